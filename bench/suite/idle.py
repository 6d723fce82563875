"""The cost of an idle daemon: calls to Redis, processor time, system calls."""
import os
import signal
import time

from . import laterd, peers, procs, redis
from .contest import note

SETTLE_SECONDS = 5  # at most as long as the daemon is watched
WAITING = 1000


def family(pid):
    """The process and all its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    parents[int(name)] = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    out, more = [], [pid]
    while more:
        out += more
        more = [child for child, parent in parents.items() if parent in more]
    return out


def cpu_seconds(pid):
    """Processor time of all present threads, to the nanosecond."""
    total = 0
    for process in family(pid):
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
        except OSError:
            continue
    return total / 1e9


def _monitor(server, seconds):
    """-> (calls of clients, commands that functions and scripts ran inside them)"""
    client = redis.Client(server.port)
    client("MONITOR")
    client.socket.settimeout(0.2)
    until = time.monotonic() + seconds
    data = []
    while time.monotonic() < until:
        try:
            data.append(client.socket.recv(65536))
        except TimeoutError:
            continue
    client.socket.close()
    lines = b"".join(data).splitlines()
    inner = sum(1 for line in lines if b" lua]" in line[:60])
    return len(lines) - inner, inner


def _strace(pid, seconds):
    """System calls of a process and all its descendants; None if they cannot be counted."""
    if procs.find("strace") is None:
        return None
    path = os.path.join(procs.folder("strace"), "counts")
    attach = [word for process in family(pid) for word in ("-p", str(process))]
    tracer = procs.start(["strace", "-c", "-f", "-o", path, *attach])
    try:
        time.sleep(seconds)
    finally:
        procs.stop(tracer, signal.SIGINT)
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii", errors="replace") as f:
        totals = [line.split() for line in f if line.rstrip().endswith(" total")]
    # strace has a column for errors only if there were any.
    return int(totals[0][3]) if totals else 0


def measure(process, server, seconds):
    time.sleep(min(SETTLE_SECONDS, seconds))
    if process.poll() is not None:
        raise procs.Failed(f"it ended with {process.returncode}")
    cpu = cpu_seconds(process.pid)
    begin = time.monotonic()
    out = {}
    if server is None:
        time.sleep(seconds)
    else:
        calls, inner = _monitor(server, seconds)
        out = {"calls_per_s": calls / seconds, "inner_per_s": inner / seconds}
    out["cpu_percent"] = 100 * (cpu_seconds(process.pid) - cpu) / (time.monotonic() - begin)
    out["system_calls"] = _strace(process.pid, seconds)
    return out


def _laterd(kind, seconds):
    with redis.Server() as server:
        laterd.setup(server)
        laterd.add(server, "bench", WAITING, "many", int(time.time() * 1000) + 86400000)
        with laterd.Daemon(server.url, {"bench": kind.queue()}, kind.places) as daemon:
            laterd.await_workers(server, daemon)
            return measure(daemon.process, server, seconds)


def run(seconds, with_peers):
    rows = []

    def line(name, work, missing=None):
        row = {"case": name}
        rows.append(row)
        if missing:
            row["missing"] = missing
            return
        note(f"idle: {name}, twice {seconds} s")
        try:
            row.update(work())
        except (procs.Failed, OSError, redis.RedisError) as e:
            row["missing"] = f"failed: {e}"
            note(f"idle: {name}: FAILED: {e}")

    for kind in (laterd.EXEC_KIND, laterd.STREAM_C_KIND, laterd.PLUGIN_KIND):
        why = laterd.missing(kind)
        line(f"laterd, {kind.name}", lambda kind=kind: _laterd(kind, seconds),
             f"not in this build: {why}" if why else None)
    for peer in peers.ALL:
        if "idle" in peer.modes:
            why = peer.missing() if with_peers else None
            line(peer.name, lambda peer=peer: peer.idle(lambda p, s: measure(p, s, seconds)),
                 f"not installed: {why}" if why else None if with_peers else "left out")
    columns = [("case", ""), ("calls_per_s", "calls/s"), ("inner_per_s", "commands/s inside them"),
               ("cpu_percent", "% of a processor"), ("system_calls", f"system calls in {seconds} s")]
    return {"title": f"a daemon that waits ({WAITING:,} jobs that are not due, for laterd)",
            "columns": columns, "lines": rows}
