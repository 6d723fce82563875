"""The benchmarks of laterd: start them with scripts/bench; the manual is bench/README.md."""
import argparse
import json
import os
import subprocess
import sys
import time

from suite import chart, contest, fair, fanout, gated, growth, idle, laterd, modes, peers, procs, redis, schedules, table

PLANS = {**modes.WITH_RIVALS, "gated": gated.plan, "fanout": fanout.plan, "schedules": schedules.plan}
MODES = (*PLANS, "fair", "growth", "idle")
QUICK_SCALE = 0.02


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(64, f"bench: {message}\n")


def parse(argv):
    p = Parser(prog="scripts/bench", formatter_class=argparse.RawDescriptionHelpFormatter,
               description="Measures laterd beside other job systems, in turn, and prints medians and ratios.",
               epilog=f"modes: {' '.join(MODES)} (none named: all). --setup installs the others into\n"
                      f"{peers.CACHE}.")
    p.add_argument("modes", nargs="*", metavar="MODE")
    p.add_argument("--rounds", type=int, metavar="N", help="how often all take their turn (default: 3)")
    p.add_argument("--scale", type=float, default=1.0, metavar="F", help="so many times the jobs")
    p.add_argument("--quick", action="store_true", help="one round of few jobs: whether it works, half a minute")
    p.add_argument("--no-peers", action="store_true", help="laterd and the limits of the machine only")
    p.add_argument("--waiting", type=int, metavar="N", help="growth: jobs that wait (default: 10000000)")
    p.add_argument("--queues", type=int, metavar="N", help="growth: queues (default: 10000)")
    p.add_argument("--seconds", type=int, metavar="N", help="idle: how long it is watched (default: 60)")
    p.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    p.add_argument("--chart", metavar="FILE", help="write the chart there (default: doc/bench.svg, after a whole run)")
    p.add_argument("--from", dest="saved", nargs="+", metavar="FILE",
                   help="measure nothing: table and chart of what --json printed before")
    p.add_argument("--setup", action="store_true", help="install the other job systems, then end")
    args = p.parse_args(argv)
    unknown = [mode for mode in args.modes if mode not in MODES]
    if unknown:
        p.error(f"there is no mode {unknown[0]!r}: {' '.join(MODES)}")
    for name in ("rounds", "waiting", "queues", "seconds", "scale"):
        if getattr(args, name) is not None and getattr(args, name) <= 0:
            p.error(f"--{name} must be more than 0")
    if args.saved and (args.modes or args.setup):
        p.error("--from measures nothing: no modes, no --setup beside it")
    args.scale *= QUICK_SCALE if args.quick else 1
    args.whole = args.scale == 1 and not args.modes and not args.no_peers
    return args


def build():
    """Measure the tree as it is. -> the report"""
    for line in (["sh", "scripts/build"], ["make", "--quiet", "bench-programs"]):
        if subprocess.run(line, cwd=procs.TOP, stdout=sys.stderr, check=False).returncode != 0:
            raise procs.Failed("the build failed: " + " ".join(line))


def measure(mode, args, size, rounds):
    if mode == "fair":
        return fair.run(size, rounds, not args.no_peers)
    if mode == "growth":
        return growth.run(size, rounds, args.waiting or size.jobs(5000000 if args.quick else 10000000), args.queues or 10000)
    if mode == "idle":
        return idle.run(args.seconds or (1 if args.quick else 60), not args.no_peers)
    plan = PLANS[mode](size, not args.no_peers)
    return contest.summarize(plan, *contest.run(plan, rounds))


def run(args):
    rounds = args.rounds or (1 if args.quick else 3)
    build()
    size = modes.Size(args.scale, 1 if args.quick else 10)
    report = {
        "version": procs.output([laterd.LATERD, "--version"]).splitlines()[0],
        "redis": procs.output([redis.PROGRAM, "--version"]).split("v=")[1].split()[0],
        "processors": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
        "rounds": rounds,
        "scale": args.scale,
        "load_before": os.getloadavg()[0],
        "modes": {mode: measure(mode, args, size, rounds) for mode in args.modes or MODES},
    }
    report["load_after"] = os.getloadavg()[0]
    return report


def load(paths):
    """Join saved reports. If a mode is in several, the last one counts."""
    report = {"modes": {}}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            try:
                saved = json.load(f)
                saved["modes"].items()
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise procs.Failed(f"{path}: not what --json printed: {e}") from e
        report = {**report, **saved, "modes": {**report["modes"], **saved["modes"]}}
    return report


def failed(report):
    rows = [row for mode in report["modes"].values() for row in mode.get("rows", mode.get("lines"))]
    return any(row.get("missing", "").startswith("failed") for row in rows)


def main(argv):
    args = parse(argv)
    procs.arm()
    if args.setup:
        peers.setup()
        return 0
    report = load(args.saved) if args.saved else run(args)
    path = args.chart or (os.path.join(procs.TOP, "doc", "bench.svg") if args.whole and not args.saved else None)
    if path:
        with open(path, "w", encoding="utf-8") as f:
            f.write(chart.draw(report))
    print(json.dumps(report) if args.json else table.text(report))
    return 1 if failed(report) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except procs.Failed as e:
        print(f"bench: {e}", file=sys.stderr)
        sys.exit(1)
