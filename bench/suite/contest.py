"""Contestants in turn, and what follows from their samples."""
import statistics
import sys

from . import procs


def note(text):
    print(text, file=sys.stderr, flush=True)


def order(contestants):
    """One round: after each rival laterd's first way, after the first and the close rivals all of its ways."""
    ways = [c for c in contestants if c.kind == "laterd"]
    rivals = [c for c in contestants if c.kind != "laterd"]
    if not rivals:
        return ways
    out = []
    for i, rival in enumerate(rivals):
        out.append(rival)
        out += ways if rival.is_close or i == 0 else ways[:1]
    return out


def run(mode, rounds):
    """-> {name: [(number of the run, round, sample)...]}, {name: why it failed}"""
    samples = {c.name: [] for c in mode.contestants}
    failures = {}
    number = 0
    there = [c for c in mode.contestants if c.missing is None]
    for turn in range(rounds):
        for c in order(there):
            if c.name in failures:
                continue
            number += 1
            try:
                sample = c.run()
            except (procs.Failed, OSError, ValueError) as e:
                failures[c.name] = str(e)
                note(f"{mode.name} round {turn + 1}: {c.name}: FAILED: {e}")
                continue
            samples[c.name].append((number, turn, sample))
            shown = ", ".join(f"{m.title} {show(sample[m.key])}" for m in mode.metrics if m.key in sample)
            note(f"{mode.name} round {turn + 1}: {c.name}: {shown}")
    return samples, failures


def show(value):
    if value is None:
        return "-"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def median(runs, key):
    values = [sample[key] for _, _, sample in runs if key in sample]
    return statistics.median(values) if values else None


def ratio(ways, rival, key):
    """Median over the rival's runs of: laterd's run nearest to it in that round / that run."""
    values = []
    for number, turn, sample in rival:
        mine = min(ways, key=lambda run: (run[1] != turn, abs(run[0] - number)), default=None)
        if mine is not None and sample.get(key) and key in mine[2]:
            values.append(mine[2][key] / sample[key])
    return statistics.median(values) if values else None


def summarize(mode, samples, failures):
    """One JSON object for the mode."""
    ways = [c for c in mode.contestants if c.kind == "laterd"]
    rows = []
    for c in mode.contestants:
        runs = samples[c.name]
        row = {"name": c.name, "kind": c.kind, "note": c.note}
        if c.missing or c.name in failures:
            row["missing"] = c.missing or "failed: " + failures[c.name]
        row["samples"] = [sample for _, _, sample in runs]
        row["median"] = {m.key: median(runs, m.key) for m in mode.metrics}
        if c.kind != "laterd":
            row["laterd_ratio"] = {
                way.name: {m.key: ratio(samples[way.name], runs, m.key) for m in mode.metrics}
                for way in ways if samples[way.name]}
        rows.append(row)
    return {"title": mode.title, "rows": rows,
            "metrics": [{"key": m.key, "title": m.title, "unit": m.unit, "more_is_better": m.more}
                        for m in mode.metrics]}
