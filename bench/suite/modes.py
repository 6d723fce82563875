"""What is measured with rivals: drain, exec, late, herd, mem, add. Each contestant's run gives a sample,
a dict of metric -> number."""
import json
import os
import subprocess
import time

from . import laterd, peers, procs, redis


class Metric:
    def __init__(self, key, title, unit, more):
        self.key, self.title, self.unit = key, title, unit
        self.more = more  # is more better?


class Contestant:
    """kind: laterd, peer or limit. is_close: each of laterd's ways runs right after it."""

    def __init__(self, name, kind, run, missing=None, note="", is_close=False):
        self.name, self.kind, self.run, self.missing = name, kind, run, missing
        self.note, self.is_close = note, is_close


class Mode:
    def __init__(self, name, title, metrics, contestants):
        self.name, self.title, self.metrics, self.contestants = name, title, metrics, contestants


class Size:
    """The size of a run: the jobs of each mode, scaled."""

    def __init__(self, scale, span):
        self.scale, self.span = scale, span

    def jobs(self, n, least=100):
        return max(least, int(n * self.scale))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def lateness(late_ms):
    return {"p50_ms": percentile(late_ms, 0.5), "p99_ms": percentile(late_ms, 0.99), "max_ms": max(late_ms),
            "early": sum(1 for ms in late_ms if ms < 0)}


def _per_s(answer):
    return {"per_s": answer["n"] / answer["seconds"]}


def _peer_contestants(mode, size, sample, with_peers):
    out = []
    for peer in peers.ALL:
        if mode not in peer.modes:
            continue
        n = size.jobs(peer.sizes[mode], 200)

        def run(peer=peer, n=n):
            return sample(peer.run(mode, n, size.span))

        missing = peer.missing() if with_peers else "left out"
        reason = f"not installed: {missing}" if missing and with_peers else missing
        note = "" if mode in ("mem", "add") else peer.note
        out.append(Contestant(peer.name, "peer", run, reason, note, peer.name in ("BullMQ", "graphile-worker")))
    return out


def _kind_contestant(name, kind, run, note=""):
    missing = laterd.missing(kind)
    return Contestant(name, "laterd", run, f"not in this build: {missing}" if missing else None, note)


# ---- drain and exec

def drain_once(kind, n, *settings):
    with redis.Server(*settings) as server:
        laterd.setup(server)
        laterd.add(server, "bench", n)
        return {"per_s": laterd.drain(server, {"bench": kind.queue()}, kind.places, n)}


def _sync_limit(n, claims):
    with redis.Server() as server:
        laterd.setup(server)
        laterd.add(server, "bench", n)
        text = procs.output([os.path.join(procs.PROGRAMS, "sync_limit"), str(server.port), "bench",
                             str(claims)])
    answer = json.loads(text)
    if answer["n"] != n:
        raise procs.Failed(f"{answer['n']} of {n} jobs were stepped through")
    return {"per_s": answer["per_s"]}


def drain(size, with_peers):
    n = size.jobs(200000)
    out = [_kind_contestant(f"laterd, {kind.name}", kind, lambda kind=kind: drain_once(kind, n))
           for kind in (laterd.PLUGIN_KIND, laterd.STREAM_C_KIND, laterd.STREAM_PYTHON_KIND)]
    for claims in (192, 512):
        limit = Contestant(f"bare later_sync, {claims} a call", "limit",
                           lambda claims=claims: _sync_limit(n, claims), None, "one call at a time")
        out.append(limit)
    out += _peer_contestants("drain", size, _per_s, with_peers)
    return Mode("drain", f"no-op jobs that are due already ({n:,} for laterd)",
                [Metric("per_s", "jobs/s", "", True)], out)


def _spawn_limit(n):
    text = procs.output([os.path.join(procs.PROGRAMS, "spawn_limit"), str(laterd.EXEC_PLACES), str(n),
                         "/bin/true"])
    return {"per_s": json.loads(text)["per_s"]}


def exec_mode(size, with_peers):
    n = size.jobs(10000)
    kind = laterd.EXEC_KIND
    out = [_kind_contestant(f"laterd, {kind.name}", kind, lambda: drain_once(kind, n),
                            f"{kind.places} places"),
           Contestant("posix_spawn and wait", "limit", lambda: _spawn_limit(n), None,
                      f"{laterd.EXEC_PLACES} threads, 4 pipes")]
    out += _peer_contestants("exec", size, _per_s, with_peers)
    return Mode("exec", f"each job starts /bin/true ({n:,} for laterd)",
                [Metric("per_s", "jobs/s", "", True)], out)


# ---- lateness

def late_once(kind, n, span, daemons):
    record = os.path.join(procs.folder("late"), "record")
    with redis.Server() as server:
        laterd.setup(server)
        queues = {"bench": kind.queue(record)}
        running = []
        try:
            for i in range(daemons):
                running.append(laterd.Daemon(server.url, queues, kind.places))
                laterd.await_workers(server, running[0], i + 1)
            from_ms = int(time.time() * 1000) + 700 + n // 4
            laterd.add(server, "bench", n, "add", from_ms, int(span * 1000))
            laterd.await_end(server, running[0], 0, span + 60)
        finally:
            for daemon in running:
                procs.stop(daemon.process)
    rows = laterd.read_record(record)
    if len(rows) != n:
        raise procs.Failed(f"{len(rows)} of {n} starts were recorded")
    return lateness([(start - due) / 1000 for due, start in rows])


def _late_sample(answer):
    return lateness(answer["late_ms"])


def late(size, with_peers):
    n = size.jobs(5000, 500)
    out = []
    for kind in (laterd.PLUGIN_KIND, laterd.STREAM_C_KIND):
        for daemons in (1, 3):
            name = f"laterd, {kind.name}" + (", 3 daemons" if daemons > 1 else "")
            out.append(_kind_contestant(
                name, kind, lambda kind=kind, daemons=daemons: late_once(kind, n, size.span, daemons)))
    out += _peer_contestants("late", size, _late_sample, with_peers)
    metrics = [Metric("p50_ms", "p50", "ms", False), Metric("p99_ms", "p99", "ms", False),
               Metric("max_ms", "max", "ms", False), Metric("early", "early", "", False)]
    return Mode("late", f"lateness of {n:,} jobs at random over {size.span:g} s", metrics, out)


# ---- herd

BESIDE_JOBS = 40
BESIDE_STEP_MS = 5


def herd_once(kind, n):
    folder = procs.folder("herd")
    records = {queue: os.path.join(folder, queue) for queue in ("herd", "beside")}
    queues = {queue: kind.queue(path) for queue, path in records.items()}
    with redis.Server() as server:
        laterd.setup(server)
        with laterd.Daemon(server.url, queues, kind.places) as daemon:
            laterd.await_workers(server, daemon)
            due = int(time.time() * 1000) + 700 + n // 10
            laterd.add(server, "herd", n, "many", due)
            server.call.pipeline([("FCALL", "later_add", 1, laterd.ROOT, "beside", "at",
                                   due + BESIDE_STEP_MS * i, "x") for i in range(BESIDE_JOBS)])
            if time.time() * 1000 > due - 200:
                raise procs.Failed("adding took too long: the herd was due before it was there")
            laterd.await_end(server, daemon, 0, 120)
    rows = laterd.read_record(records["herd"])
    if len(rows) != n:
        raise procs.Failed(f"{len(rows)} of {n} starts were recorded")
    last = max(start for _, start in rows)
    beside = [(start - at) / 1000 for at, start in laterd.read_record(records["beside"]) if at <= last]
    return {"last_ms": (last - due * 1000) / 1000, "beside_ms": max(beside),
            "early": sum(1 for at, start in rows if start < at)}


def _herd_sample(answer):
    late_ms = answer["late_ms"]
    return {"last_ms": max(late_ms), "early": sum(1 for ms in late_ms if ms < 0)}


def herd(size, with_peers):
    n = size.jobs(10000, 1000)
    out = [_kind_contestant(f"laterd, {kind.name}", kind, lambda kind=kind: herd_once(kind, n))
           for kind in (laterd.PLUGIN_KIND, laterd.STREAM_C_KIND)]
    out += _peer_contestants("herd", size, _herd_sample, with_peers)
    metrics = [Metric("last_ms", "last start", "ms", False),
               Metric("beside_ms", "latest in another queue meanwhile", "ms", False),
               Metric("early", "early", "", False)]
    return Mode("herd", f"{n:,} jobs due at one millisecond", metrics, out)


# ---- memory

def _mem_once(n):
    with redis.Server() as server:
        laterd.setup(server)
        before = server.used_memory()
        laterd.add(server, "bench", n, "add", int(time.time() * 1000) + 3600000, 3600000)
        return {"bytes": (server.used_memory() - before) / n}


def mem(size, with_peers):
    n = size.jobs(100000, 2000)
    out = [Contestant("laterd", "laterd", lambda: _mem_once(n))]
    out += _peer_contestants("mem", size, lambda answer: {"bytes": answer["bytes_per_job"]}, with_peers)
    return Mode("mem", f"Redis bytes for a waiting job with {laterd.PAYLOAD_BYTES} bytes of payload",
                [Metric("bytes", "bytes", "", False)], out)


# ---- producers

def _add_once(n, how):
    with redis.Server() as server:
        laterd.setup(server)
        return {"per_s": laterd.add(server, "bench", n, how)["per_s"]}


def _add_node_once(n):
    with redis.Server() as server:
        laterd.setup(server)
        argv = [procs.find("node"), os.path.join(procs.PEERS, "later_node.js"), "add", str(n)]
        text = procs.output(argv, env={**os.environ, "NODE_PATH": peers.MODULES,
                                       "REDIS_PORT": str(server.port)})
    return _per_s(json.loads(text))


def _add_file_once(n):
    path = os.path.join(procs.folder("add"), "payloads")
    with open(path, "w", encoding="ascii") as f:
        f.writelines(f"{i:0{laterd.PAYLOAD_BYTES}d}\n" for i in range(n))
    with redis.Server() as server:
        laterd.setup(server)
        begin = time.monotonic()
        procs.output([laterd.LATER, "--redis", server.url, "add", "bench", "--from", path],
                     env=laterd.environment())
        seconds = time.monotonic() - begin
        there = laterd.stats(server)[2]
    if there != n:
        raise procs.Failed(f"{there} of {n} jobs are there")
    return {"per_s": n / seconds}


def _add_file_missing():
    text = subprocess.run([laterd.LATER, "help", "add"], capture_output=True, check=False).stdout
    return None if b"--from" in text else "not in this build: later add --from"


def add(size, with_peers):
    n = size.jobs(200000, 2000)
    node = peers.BullMQ().missing() if with_peers else "left out"
    out = [Contestant("later_add, pipelined, C", "laterd", lambda: _add_once(n, "add")),
           Contestant("later_add_many, 128 a call, C", "laterd", lambda: _add_once(n, "many")),
           Contestant("later add --from FILE", "laterd", lambda: _add_file_once(n), _add_file_missing()),
           Contestant("later_add, pipelined, Node", "laterd", lambda: _add_node_once(n),
                      f"not installed: {node}" if node and with_peers else node, "ioredis, as BullMQ")]
    out += _peer_contestants("add", size, _per_s, with_peers)
    return Mode("add", f"confirmed adds ({n:,} for laterd), {laterd.PAYLOAD_BYTES} bytes of payload",
                [Metric("per_s", "jobs/s", "", True)], out)


WITH_RIVALS = {"drain": drain, "exec": exec_mode, "late": late, "herd": herd, "mem": mem, "add": add}
