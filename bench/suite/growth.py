"""How the cost of a job grows: with waiting jobs, queues, payloads, the append-only file. Two sizes are set up side by
side and run in turn, without rivals."""
import csv
import statistics
import time

from . import laterd, procs, redis
from .contest import note, show

DAY_MS = 86400000
BIG_PAYLOAD = 65536
SERVED_MAX = 10000 # the most queues that a configuration may name
BYTES_PER_WAITING = 450  # more than a waiting job takes; to check the free memory before filling


def _available_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


class Case:
    """One size: a server that is filled once, and the drains on it."""

    def __init__(self, name, server, queues, kind, queue, left):
        self.name, self.server, self.queues, self.kind = name, server, queues, kind
        self.queue, self.left = queue, left
        self.rates, self.slow, self.slow_add, self.events, self.stolen_s = [], (0, ""), (0, ""), [], 0

    def drain(self, n, how="many", payload=laterd.PAYLOAD_BYTES):
        self.server.watch_slow()
        laterd.add(self.server, self.queue, n, how, payload=payload)
        self.slow_add = max(self.slow_add, self.look())
        self.server.watch_slow()
        stolen_s = procs.stolen_s()
        self.rates.append(laterd.drain(self.server, self.queues, self.kind.places, n, self.left))
        stolen_s = procs.stolen_s() - stolen_s
        self.stolen_s = max(self.stolen_s, stolen_s)
        slow = self.look()
        self.slow = max(self.slow, slow)
        note(f"growth: {self.name}: {show(self.rates[-1])} jobs/s, slowest call {show(slow[0])} ms, "
             f"{show(1000 * stolen_s)} ms stolen")

    def look(self):
        ms, name, events = self.server.slowest()
        self.events += [event for event in events if event not in self.events]
        return ms, name

    def row(self, first):
        rate = statistics.median(self.rates)
        share = statistics.median(b / a for a, b in zip(first.rates, self.rates))
        return {"case": self.name, "per_s": rate, "of_first": None if self is first else share,
                "slowest_ms": self.slow[0], "slowest_call": self.slow[1], "slowest_add_ms": self.slow_add[0],
                "stolen_ms": 1000 * self.stolen_s,
                "events_over_10_ms": self.events, "samples": self.rates}


def _in_turn(cases, rounds, n, **more):
    for _ in range(rounds):
        for case in cases:
            case.drain(n, **more)
    return [case.row(cases[0]) for case in cases]


def _move_tables(server, queue, jobs):
    """Redis moves a table that has grown bucket by bucket, one with each access: wait until that is done."""
    absent = [f"-{i}" for i in range(1000)]
    for _ in range(0, jobs, len(absent)):
        server.call("HMGET", laterd.ROOT + ":jobs", *absent)
        server.call("ZMSCORE", f"{laterd.ROOT}:q:{queue}:5", *absent)


def waiting(kind, size, rounds, most):
    n, few = size.jobs(100000, 1000), size.jobs(10000, 1000)
    if most * BYTES_PER_WAITING > _available_bytes():
        raise procs.Failed(f"{most:,} waiting jobs need more memory than there is: give --waiting N")
    with redis.Server() as small, redis.Server() as big:
        cases = []
        for server, jobs in ((small, few), (big, most)):
            laterd.setup(server)
            case = Case(f"{jobs:,} jobs wait, added just now", server, {"bench": kind.queue()}, kind, "bench", jobs)
            note(f"growth: adding {jobs:,} jobs that wait")
            server.watch_slow()
            laterd.add(server, "bench", jobs, "many", int(time.time() * 1000) + DAY_MS, DAY_MS)
            case.slow_add = case.look()
            cases.append(case)
        rows = _in_turn(cases, rounds, n)
        note("growth: waiting until Redis has moved its tables")
        cases = [Case(f"{case.left:,} jobs wait", case.server, case.queues, kind, "bench", case.left) for case in cases]
        for case in cases:
            _move_tables(case.server, "bench", case.left)
        return rows + _in_turn(cases, rounds, n)


def queues(kind, size, rounds, most):
    # Long enough that the first look at each queue, at the start, is a small part of it.
    n, due = size.jobs(300000, 1000), 10
    with redis.Server() as small, redis.Server() as big:
        cases = []
        for server, count in ((small, due), (big, most)):
            laterd.setup(server)
            laterd.add(server, f"q:{count}", count, "add", int(time.time() * 1000) + DAY_MS)
            served = {None: kind.queue(), **{f"q{i}": "{}" for i in range(min(count, SERVED_MAX))}}
            cases.append(Case(f"{count:,} queues, {due} of them due", server, served, kind, f"q:{due}", count))
        return _in_turn(cases, rounds, n)


def append_only(kind, size, rounds):
    n = size.jobs(200000)
    with redis.Server() as without, redis.Server("--appendonly", "yes", "--appendfsync", "everysec") as kept:
        cases = []
        for name, server in (("no append-only file", without), ("append-only, everysec", kept)):
            laterd.setup(server)
            cases.append(Case(name, server, {"bench": kind.queue()}, kind, "bench", 0))
        return _in_turn(cases, rounds, n)


def _benchmark_get(server, n):
    """Calls a second of GET with the same payload, by redis-benchmark."""
    text = procs.output(["redis-benchmark", "-p", str(server.port), "-t", "set,get", "-n", str(n), "-d",
                         str(BIG_PAYLOAD), "--csv"])
    rates = {row[0]: row[1] for row in csv.reader(text.splitlines()) if len(row) > 1}
    return float(rates["GET"])


def payloads(kind, size, rounds):
    n = size.jobs(4000, 200)
    limits = []
    with redis.Server() as server:
        laterd.setup(server)
        case = Case("64 KiB payloads", server, {"bench": kind.queue()}, kind, "bench", 0)
        for _ in range(rounds):
            if procs.find("redis-benchmark"):
                limits.append(_benchmark_get(server, 5 * n))
                server.call("FLUSHDB")
            laterd.setup(server)
            case.drain(n, "add", BIG_PAYLOAD)
    row = case.row(case)
    row["bytes_per_s"] = row["per_s"] * BIG_PAYLOAD
    rows = [row]
    if limits:
        rate = statistics.median(limits)
        row["of_first"] = statistics.median(a / b for a, b in zip(case.rates, limits))
        rows.insert(0, {"case": "redis-benchmark, GET of 64 KiB", "per_s": rate, "of_first": None,
                        "bytes_per_s": rate * BIG_PAYLOAD, "samples": limits})
    else:
        rows.insert(0, {"case": "redis-benchmark", "missing": "not installed: redis-tools"})
    return rows


def run(size, rounds, most_waiting, most_queues):
    kind = laterd.fastest()
    parts = (lambda: waiting(kind, size, rounds, most_waiting),
             lambda: queues(kind, size, rounds, most_queues),
             lambda: append_only(kind, size, rounds),
             lambda: payloads(kind, size, rounds))
    rows = []
    for name, part in zip(("waiting", "queues", "append-only", "payloads"), parts):
        try:
            rows += part()
        except (procs.Failed, OSError, redis.RedisError) as e:
            note(f"growth: {name}: FAILED: {e}")
            rows.append({"case": name, "missing": f"failed: {e}"})
    columns = [("case", ""), ("per_s", "jobs/s"), ("of_first", "of the line above"),
               ("bytes_per_s", "bytes/s"), ("slowest_ms", "slowest call, ms"),
               ("slowest_call", ""), ("stolen_ms", "stolen, ms"), ("slowest_add_ms", "slowest add, ms"),
               ("events_over_10_ms", "events over 10 ms")]
    return {"title": f"how the cost grows ({kind.name})", "columns": columns, "lines": rows}
