"""Fair queues: how long the jobs of quiet tenants wait beside a tenant with a long backlog, what share of the run time
each tenant gets, what tenants cost in memory. Without Pro, BullMQ has no groups: what its users do instead."""
import heapq
import json
import os
import re
import statistics
import struct
import time

from . import laterd, modes, peers, procs, redis
from .contest import note, show

PROGRAM = os.path.join(procs.PROGRAMS, "job_sleep")
PLACES = 16
QUIET = 999 # tenants t1 to t999; t0 has the backlog
# Milliseconds of a job -> how often each quiet tenant has one, in seconds: together they use a third of the places at most.
LOADS = {"20": 10, "2": 10, "200": 40, "1-1000": 100}
PER_CALL, CALLS = 128, 32
SHORT_MS, LONG_MS = 1, 1000
COLUMNS = [("case", ""), ("p50_ms", "wait p50, ms"), ("p99_ms", "p99"), ("max_ms", "max"), ("of_alone", "p99 ÷ alone"),
           ("of_urgent", "÷ priority 0"),
           ("not_started", "not started"), ("backlog_per_s", "backlog's jobs/s"), ("shares", "shares, %"),
           ("off_percent", "most off, %"), ("bytes", "bytes a job"), ("of_plain", "÷ plain"), ("keys_left", "keys left")]
RATIOS = {"of_alone": "p99_ms", "of_urgent": "p99_ms", "of_plain": "bytes"}


class Bench:
    """One laterd with 16 places. Its queue is paused until go(). A queue that becomes fair must do so before that, since
    one that is paused does not get on. A `with` block."""

    def __init__(self, server, settings="", first="0", others="0"):
        self.server = server
        self.record = os.path.join(procs.folder("fair"), "record")
        handler = json.dumps([PROGRAM, self.record, str(PLACES), first, others])
        queue = f"{{ mode: stream, handler: {handler}{settings} }}"
        self.daemon = laterd.Daemon(server.url, {"bench": queue}, PLACES)
        try:
            laterd.await_workers(server, self.daemon)
            if "fair" in settings:
                procs.await_true("the queue is fair", self._is_fair, 60, 0.01, self.daemon.process)
            server.call("FCALL", "later_pause", 1, laterd.ROOT, "bench")
        except BaseException:
            self.__exit__()
            raise

    def _is_fair(self):
        return re.fullmatch(r"\d+ \d+", self.server.call("HGET", laterd.ROOT + ":fair", "bench") or "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        procs.stop(self.daemon.process)

    def add(self, tenant, n):
        """Add n jobs of one tenant that are due now."""
        words = ("FCALL", "later_add_many", 1, laterd.ROOT, "bench", "key", f"t{tenant}", "--")
        sizes = [PER_CALL] * (n // PER_CALL) + ([n % PER_CALL] if n % PER_CALL else [])
        for at in range(0, len(sizes), CALLS):
            self.server.call.pipeline([(*words, *["x" * laterd.PAYLOAD_BYTES] * k) for k in sizes[at:at + CALLS]])

    def fill(self, n):
        """The backlog has n jobs again."""
        self.add(0, max(n - self.server.call("ZCARD", laterd.ROOT + ":q:bench:5"), 0))

    def add_each(self, dues, *options):
        """Add a job of each tenant, due then; dues: [(tenant, ms, 0: now)...] -> their ids"""
        calls = [("FCALL", "later_add", 1, laterd.ROOT, "bench", "key", f"t{tenant}", *(("at", due) if due else ()), *options,
                  "x" * laterd.PAYLOAD_BYTES) for tenant, due in dues]
        return [reply[0] for at in range(0, len(calls), PER_CALL) for reply in self.server.call.pipeline(calls[at:at + PER_CALL])]

    def cancel(self, jobs):
        for job in jobs:
            try:
                self.server.call("FCALL", "later_cancel", 1, laterd.ROOT, job, "waiting")
            except redis.RedisError:
                pass # it has begun

    def go(self):
        self.server.call("FCALL", "later_resume", 1, laterd.ROOT, "bench")

    def rows(self):
        """-> [(tenant, due, begin, end) in microseconds since 1970] of the jobs that have ended"""
        if not os.path.exists(self.record):
            return []
        with open(self.record, "rb") as f:
            data = f.read()
        return list(struct.iter_unpack("=qqqq", data[:len(data) // 32 * 32]))

    def await_start(self, tenant, after_us=0):
        """-> when the first job of the tenant behind this time began"""
        def begins():
            return [begin for who, _, begin, _ in self.rows() if who == tenant and begin >= after_us]

        procs.await_true(f"a job of t{tenant} runs", begins, 60, 0.05, self.daemon.process)
        return min(begins())


def _now_us():
    return int(time.time() * 1000000)


def _sleep_until(us):
    time.sleep(max(us - _now_us(), 0) / 1000000)


# ---- waits

def quiet_dues(every_s, from_ms, span):
    """When the jobs of the quiet tenants are due: evenly. -> [(tenant, ms)...]"""
    n = int(QUIET * span / every_s)
    return [(1 + i % QUIET, from_ms + int(i * every_s * 1000 / QUIET)) for i in range(n)]


def waits(late_ms, n):
    """Of n jobs these have started so late."""
    times = modes.lateness(late_ms) if late_ms else {}
    times.pop("early", None)
    return {**times, "not_started": n - len(late_ms)}


def _await_rows(bench, keys, until_us):
    """-> {(tenant, due): begin} of these jobs. Gives up at that time."""
    while True:
        begins = {(tenant, due): begin for tenant, due, begin, _ in bench.rows() if (tenant, due) in keys}
        if len(begins) == len(keys) or _now_us() > until_us:
            return begins
        time.sleep(0.5)


def _wait_once(server, settings, backlog, ms, span, patience, *options):
    """patience: seconds behind the span for which we wait for jobs that have not started; options: of the quiet tenants' jobs"""
    n = int(QUIET * span / LOADS[ms])
    with Bench(server, settings, ms, ms) as bench:
        if backlog:
            bench.fill(backlog)
        from_ms = _now_us() // 1000 + 1000 + n
        dues = quiet_dues(LOADS[ms], from_ms, span)
        ids = dict(zip([(tenant, due * 1000) for tenant, due in dues], bench.add_each(dues, *options)))
        bench.go()
        if _now_us() > from_ms * 1000:
            raise procs.Failed("adding took too long: the first jobs were due before they were there")
        to_us = int((from_ms + span * 1000) * 1000)
        _sleep_until(to_us)
        begins = _await_rows(bench, ids.keys(), to_us + patience * 1000000)
        bench.cancel([job for key, job in ids.items() if key not in begins])
        begun = sum(1 for tenant, _, begin, _ in bench.rows() if tenant == 0 and from_ms * 1000 <= begin < to_us)
    sample = waits([(begin - key[1]) / 1000 for key, begin in begins.items()], n)
    return {**sample, "backlog_per_s": begun / span} if backlog else sample


def _wait_cases(size, lines):
    """Beside the backlog nothing is better than what goes before all else, by its priority."""
    backlog, span = size.jobs(1000000, 50000), 2 * size.span
    with redis.Server() as alone, redis.Server() as fair, redis.Server() as plain:
        for server in (alone, fair, plain):
            laterd.setup(server)
        for ms, every_s in list(LOADS.items())[:1 if size.scale < 0.1 else None]: # few jobs: does it work?
            load = f"jobs of {ms} ms, {QUIET / every_s:.0f} a second"
            first = lines.add(f"{load}, alone", _wait_once(alone, ", fair: true", 0, ms, span, 60))
            urgent = lines.add(f"{load}, plain queue, priority 0",
                               _wait_once(plain, "", backlog, ms, span, 60, "priority", "0"), of_alone=first)
            lines.add(f"{load}, fair queue", _wait_once(fair, ", fair: true", backlog, ms, span, 60),
                      of_alone=first, of_urgent=urgent)
            lines.add(f"{load}, plain queue", _wait_once(plain, "", backlog, ms, span, 0), of_alone=first)


# ---- shares

def shares(rows, tenants, from_us, to_us):
    """-> percent of the run time of these tenants from then to then"""
    used = dict.fromkeys(tenants, 0)
    for tenant, _, begin, end in rows:
        if tenant in used:
            used[tenant] += max(min(end, to_us) - max(begin, from_us), 0)
    return percents(used.values())


def percents(values):
    values = list(values)
    return [100 * value / max(sum(values), 1) for value in values]


def shared(measured, weights, judged=None):
    """weights: of the tenants in this order; judged: how many of them are compared with their weights (None: all)"""
    off = [abs(a / b - 1) * 100 for a, b in zip(measured, percents(weights))]
    return {"shares": measured, "off_percent": max(off[:judged])}


def _weights(size, lines):
    span, ms = 6 * size.span, 20
    with redis.Server() as server:
        laterd.setup(server)
        with Bench(server, ", fair: true, weights: { t1: 3 }", str(ms), str(ms)) as bench:
            for tenant in (1, 2, 3):
                bench.add(tenant, int(PLACES * 1000 / ms * (span + 10) * (0.7 if tenant == 1 else 0.3)))
            bench.go()
            from_us = bench.await_start(1) + 1000000
            to_us = from_us + span * 1000000
            _sleep_until(to_us + 500000)
            measured = shares(bench.rows(), (1, 2, 3), from_us, to_us)
    lines.add(f"weights 3, 1, 1, {show(span)} s", shared(measured, (3, 1, 1)))


def _come_back(size, lines, weight):
    """t1 has run, was idle while t2 and t3 ran, and has a backlog again."""
    idle, span, ms = 2 * size.span, size.span, 20
    with redis.Server() as server:
        laterd.setup(server)
        with Bench(server, f", fair: true, weights: {{ t1: {weight} }}", str(ms), str(ms)) as bench:
            for tenant, seconds in ((1, 0.5), (2, idle + span + 10), (3, idle + span + 10)):
                bench.add(tenant, int(PLACES * 1000 / ms * seconds))
            bench.go()
            _sleep_until(bench.await_start(1) + idle * 1000000)
            added_us = _now_us()
            bench.add(1, PLACES * 1000 // ms * (span + 2))
            from_us = bench.await_start(1, added_us)
            _sleep_until(from_us + span * 1000000 + 500000)
            rows = bench.rows()
    for seconds in sorted({1, span}):
        measured = shares(rows, (1, 2, 3), from_us, from_us + seconds * 1000000)
        lines.add(f"weights {weight}, 1, 1, the first was idle for {show(idle)} s: its next {show(seconds)} s",
                  shared(measured, (weight, 1, 1), 1))


def simulate(job_ms, span_ms, is_by_start):
    """Tenants with jobs of these lengths that always wait share the places, by starts or by run time. -> percents"""
    used, counted = [0] * len(job_ms), [0] * len(job_ms)
    ends = [0] * PLACES
    while ends[0] < span_ms:
        begin = heapq.heappop(ends)
        tenant = counted.index(min(counted))
        counted[tenant] += 1 if is_by_start else job_ms[tenant]
        used[tenant] += min(job_ms[tenant], span_ms - begin)
        heapq.heappush(ends, begin + job_ms[tenant])
    return percents(used)


def _charged(server):
    """-> what laterd has charged the tenants with, in ms"""
    used = {}
    for key in server.call("KEYS", laterd.ROOT + ":fair-used:bench:*"):
        words = server.call("HGETALL", key)
        for name, ms in zip(words[::2], words[1::2]):
            used[name] = used.get(name, 0) + int(ms)
    return used


def _long_and_short(size, lines):
    span, n = 2 * size.span, 4
    with redis.Server() as server:
        laterd.setup(server)
        with Bench(server, ", fair: true", str(LONG_MS), str(SHORT_MS)) as bench:
            bench.add(0, PLACES * (span + 10))
            for tenant in range(1, n):
                bench.add(tenant, PLACES * 1000 // SHORT_MS * (span + 4) // n)
            bench.go()
            bench.await_start(1)
            from_us, before = _now_us() + 1000000, _charged(server)
            _sleep_until(from_us + span * 1000000)
            after = _charged(server)
            time.sleep(LONG_MS / 1000)
            measured = shares(bench.rows(), range(n), from_us, from_us + span * 1000000)
    title = f"one has jobs of {LONG_MS} ms, {n - 1} of {SHORT_MS} ms"
    equal = (1,) * n
    charged = percents(after.get(f"t{i}", 0) - before.get(f"t{i}", 0) for i in range(n))
    lines.add(f"{title}: as laterd charged them", shared(charged, equal))
    lines.add(f"{title}: in their handlers", shared(measured, equal))
    lengths = [LONG_MS] + [SHORT_MS] * (n - 1)
    for is_by_start in (False, True):
        result = simulate(lengths, span * 1000, is_by_start)
        lines.add(f"{title}: simulated, {'starts' if is_by_start else 'run time'} counted", shared(result, equal))


# ---- memory

def _left(server):
    """-> the keys of fair queues that should have gone"""
    return [key for key in server.call("KEYS", laterd.ROOT + ":*fair*")
            if key != laterd.ROOT + ":fair" and not (":fair-used:" in key and server.call("PTTL", key) > 0)]


def _memory_once(settings, n):
    with redis.Server() as server:
        laterd.setup(server)
        with Bench(server, settings) as bench:
            before = server.used_memory()
            bench.add_each([(tenant, 0) for tenant in range(n)])
            sample = {"bytes": (server.used_memory() - before) / n}
            bench.go()
            laterd.await_end(server, bench.daemon, 0)
        return {**sample, "keys_left": len(_left(server))}


def _memory(size, lines):
    n = size.jobs(100000, 2000)
    plain = lines.add(f"{n:,} tenants with one job, plain queue", _memory_once("", n))
    lines.add(f"{n:,} tenants with one job, fair queue", _memory_once(", fair: true", n), of_plain=plain)


# ---- BullMQ

def _bullmq(size, lines, with_peers):
    ways = {"alone": "a queue and a worker a tenant, alone", "tenants": "a queue and a worker a tenant",
            "priority": "one queue, priority by the tenant's waiting jobs", "one": "one queue"}
    missing = peers.BullMQ().missing() if with_peers else None
    if missing or not with_peers:
        lines.missing("BullMQ", f"not installed: {missing}" if missing else "left out")
        return
    first, n, span = None, size.jobs(100000, 5000), 2 * size.span
    for way, title in ways.items():
        answer = peers.BullMQ().run(way, n, span, "bullmq_tenants.js", TENANTS=str(QUIET), EVERY=str(LOADS["20"]), MS="20",
                                    PLACES=str(PLACES))
        sample = waits(answer["late_ms"], answer["quiet"])
        if way != "alone":
            sample["backlog_per_s"] = answer["begun"] / span
        kept = lines.add(f"BullMQ, jobs of 20 ms, {title}", sample, of_alone=first)
        first = first or kept


# ---- all

class Lines:
    """The samples of each case, over the rounds."""

    def __init__(self):
        self.samples, self.reasons = {}, {}

    def add(self, case, sample, **others):
        """others: a ratio -> the sample of the same round with which it is made. -> the sample"""
        for name, other in others.items():
            key = RATIOS[name]
            if other and other.get(key) and key in sample:
                sample[name] = sample[key] / other[key]
        self.samples.setdefault(case, []).append(sample)
        shown = ", ".join(f"{title or key} {_cell(sample[key])}" for key, title in COLUMNS if key in sample)
        note(f"fair: {case}: {shown}")
        return sample

    def missing(self, case, reason):
        self.reasons[case] = reason

    def rows(self):
        out = [{"case": case, **_median(samples), "samples": samples} for case, samples in self.samples.items()]
        return out + [{"case": case, "missing": reason} for case, reason in self.reasons.items()]


def _cell(value):
    return " ".join(f"{share:.1f}" for share in value) if isinstance(value, list) else show(value)


def _median(samples):
    row = {}
    for key in {key for sample in samples for key in sample}:
        values = [sample[key] for sample in samples if key in sample]
        is_list = isinstance(values[0], list)
        row[key] = _cell([statistics.median(column) for column in zip(*values)]) if is_list else statistics.median(values)
    return row


def run(size, rounds, with_peers):
    lines = Lines()
    parts = {"waits": _wait_cases, "weights": _weights,
             "come back, 3": lambda size, lines: _come_back(size, lines, 3),
             "come back, 1": lambda size, lines: _come_back(size, lines, 1),
             "long and short": _long_and_short, "memory": _memory,
             "BullMQ": lambda size, lines: _bullmq(size, lines, with_peers)}
    for _ in range(rounds):
        for name, part in parts.items():
            try:
                part(size, lines)
            except (procs.Failed, OSError, ValueError, redis.RedisError) as e:
                note(f"fair: {name}: FAILED: {e}")
                lines.missing(name, f"failed: {e}")
    return {"title": f"fair queues, {PLACES} places, {QUIET} quiet tenants beside one with {size.jobs(1000000, 50000):,} jobs",
            "columns": COLUMNS, "lines": lines.rows()}
