"""What bench/calls measures with: one call at a time, by the time of the processor that Redis' main thread had,
which other work on the machine hardly changes, beside a plain sync and a COPY."""
import fnmatch
import statistics
import sys

from . import procs, redis

ROOT = "later:{default}"
MIB = 1048576
PAGE_BYTES = 16384  # the longest payload in a record, of a schedule and of a batch
SYNC = 64
UNITS = 30          # how often a plain sync and a COPY are measured in a round


class Bench:
    """A server with the library, and what its calls took."""

    def __init__(self, server):
        self.redis = server.call
        pid = server.process.pid
        self.stat = f"/proc/{pid}/task/{pid}/schedstat"
        self.longest_us = 0
        self.sync_us, self.copy_us = [], []
        self.worker_n = 0

    # ---- calls

    def call(self, function, *words):
        return self.redis("FCALL", function, 1, ROOT, *words)

    def timed(self, function, *words):
        """The call that the line is about; of several the longest counts. -> its reply"""
        before_us = self.used_us()
        reply = self.call(function, *words)
        self.longest_us = max(self.longest_us, self.used_us() - before_us)
        return reply

    def used_us(self):
        with open(self.stat, encoding="ascii") as f:
            return int(f.read().split()[0]) / 1000

    def fill(self, n, line, *args):
        """Run a line of Lua n times in Redis, with i from 1 to n, R and ARGV."""
        step = 5000
        for first in range(1, n + 1, step):
            self.redis("EVAL", f"local R = '{ROOT}' for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do {line} end return 1",
                       0, first, min(first + step - 1, n), *args)

    # ---- jobs

    def worker(self, queues="", host="web1"):
        self.worker_n += 1
        reply = self.call("later_v1_register", 0, f"i{self.worker_n}", 1, 0, 2, "queues", queues, "host", host, 0, 0)
        return reply[1]

    def workers(self, n, queue):
        """Many workers that serve a queue, written as later_v1_register writes them."""
        self.fill(n, f"local e = string.format('%d', 1700000000000000 + i) redis.call('HSET', R .. ':workers', e, 1) "
                     f"redis.call('HSET', R .. ':worker:' .. e, 'queues', '{queue}', 'host', 'h' .. i)")

    def add(self, queue, n, size, *options):
        """n jobs with payloads of `size` bytes."""
        most = max(1, min(500, 8 * MIB // max(size, 1)))
        for at in range(0, n, most):
            payloads = [b"x" * size] * min(most, n - at)
            self.call("later_add_many", queue, *options, "--", *payloads)

    def claim(self, worker, queue, n):
        """-> the ids of n jobs that the worker now holds"""
        ids = []
        while len(ids) < n:
            groups = self.call("later_v1_sync", worker, 1, 0, min(512, n - len(ids)), 0,
                               1, queue, n - len(ids), 64 * MIB, 0)[3]
            if not groups:
                raise procs.Failed(f"{len(ids)} of {n} jobs are claimed")
            for group in groups:
                ids += group[6::3]
        return ids

    def held(self, queue, n, size, *options):
        """-> a worker, the ids of n jobs that it holds"""
        worker = self.worker(queue)
        self.add(queue, n, size, *options)
        return worker, self.claim(worker, queue, n)

    def settle(self, worker, queue, ids, verb, amount, output="O", children=()):
        """Tell one result of each, as often as the library leaves some for later."""
        while ids:
            words = [worker, 1, 0, 0, len(ids)]
            for i in ids:
                words += [i, 1, verb, queue, amount, 0, "T", output]
            words += [0, 0]
            if children:
                words += [0, len(ids)]
                for k in range(len(ids)):
                    words += [k + 1, len(children)]
                    for child in children:
                        words += [len(child), *child]
            answers = self.timed("later_v1_sync", *words)[2]
            wrong = [a for a in answers if a not in ("ok", "later")]
            if wrong or "ok" not in answers:
                raise procs.Failed(f"a result is answered {wrong or answers[0]}")
            ids = [i for i, answer in zip(ids, answers) if answer == "later"]

    # ---- units

    def measure_units(self):
        """A plain sync of 64 jobs, and a COPY of 1 MiB."""
        self.redis("FLUSHALL")
        self.add("plain", SYNC * (UNITS + 1), 100)
        worker, ids = self.worker("plain"), []
        for _ in range(UNITS + 1):
            self.longest_us = 0
            ends = [1, "plain", 1, len(ids), *ids] if ids else [0]
            groups = self.timed("later_v1_sync", worker, 1, 0, SYNC, 0, 1, "plain", SYNC, MIB, *ends)[3]
            if ids:
                self.sync_us.append(self.longest_us)
            ids = [i for group in groups for i in group[6::3]]
        self.redis("SET", "from", b"x" * MIB)
        for i in range(UNITS): # each into memory of its own, as the copies of payloads
            before_us = self.used_us()
            self.redis("COPY", "from", f"to{i}")
            self.copy_us.append(self.used_us() - before_us)

    def units(self):
        """-> us of a plain sync, of a COPY: medians of the quickest round"""
        return [min(statistics.median(all_us[at:at + UNITS]) for at in range(0, len(all_us), UNITS))
                for all_us in (self.sync_us, self.copy_us)]

    def functions(self):
        library = self.redis("FUNCTION", "LIST", "LIBRARYNAME", "laterd")[0]
        listed = dict(zip(library[::2], library[1::2]))["functions"]
        return sorted(dict(zip(f[::2], f[1::2]))["name"] for f in listed)


def is_wanted(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)


def measure(bench, patterns, rounds):
    """-> [(function, what, us of the quickest round, or None for one that failed)]

    Other work on the machine only makes a call longer, so the quickest of some rounds is its own."""
    from . import longest_calls
    figures = {}
    for _ in range(rounds):
        bench.measure_units()
        for case in longest_calls.CASES:
            if not is_wanted(case.function, patterns):
                continue
            bench.redis("FLUSHALL")
            bench.longest_us = 0
            key = (case.function, case.what)
            try:
                case.run(bench)
                figures.setdefault(key, []).append(bench.longest_us)
            except (redis.RedisError, procs.Failed) as e:
                print(f"calls: {case.function}, {case.what}: {str(e)[:200]}", file=sys.stderr)
                figures.setdefault(key, [])
    return [(function, what, min(us) if us else None) for (function, what), us in figures.items()]


def table(rows, bench, version, processors, least=0):
    """-> lines of Markdown, the longest first: those that take at least so many plain syncs"""
    sync, copy = bench.units()
    out = [f"Redis {version}, {processors} processors: a plain sync of {SYNC} jobs takes {sync:,.0f} us, "
           f"a COPY of 1 MiB {copy:,.0f} us.", "",
           "| function | with | ms | plain syncs | COPYs |", "| --- | --- | --- | --- | --- |"]
    shown = [row for row in rows if row[2] is None or row[2] >= least * sync]
    for function, what, us in sorted(shown, key=lambda row: -(row[2] or 1e9)):
        figures = ("failed", "", "") if us is None else (f"{us / 1000:.1f}", f"{us / sync:.1f}", f"{us / copy:.1f}")
        out.append(f"| `{function}` | {what} | {' | '.join(figures)} |")
    if len(shown) < len(rows):
        out.append(f"| {len(rows) - len(shown)} others | | | less than {least:g} | |")
    return out


def is_complete(rows, bench, patterns):
    missing = [f for f in bench.functions() if is_wanted(f, patterns) and f not in {row[0] for row in rows}]
    for name in missing:
        print(f"calls: {name} has no line in longest_calls.py", file=sys.stderr)
    return not missing and all(us is not None for _, _, us in rows)
