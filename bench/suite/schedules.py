"""Schedules: how late the jobs of many of them start, each second, compared with the job schedulers of BullMQ."""
import os
import time

from . import laterd, modes, peers, procs, redis

SCHEDULES = 60
SECONDS = 60


def _set(server):
    server.call.pipeline([("FCALL", "later_schedule_set", 1, laterd.ROOT, f"s{i}", "every", "1s", "queue", "bench", "x")
                          for i in range(SCHEDULES)])


def _delete(server):
    server.call.pipeline([("FCALL", "later_schedule_del", 1, laterd.ROOT, f"s{i}") for i in range(SCHEDULES)])


def _run(kind, seconds, daemons):
    record = os.path.join(procs.folder("schedules"), "record")
    with redis.Server() as server:
        laterd.setup(server)
        running = []
        try:
            for i in range(daemons):
                running.append(laterd.Daemon(server.url, {"bench": kind.queue(record)}, kind.places))
                laterd.await_workers(server, running[0], i + 1)
            _set(server)
            first_us = (int(time.time()) + 2) * 1000000
            time.sleep(seconds + 3)
            _delete(server)
            laterd.await_end(server, running[0], 0, 60)
        finally:
            for daemon in running:
                procs.stop(daemon.process)
    rows = [(at, start) for at, start in laterd.read_record(record) if first_us <= at < first_us + seconds * 1000000]
    if len(rows) != SCHEDULES * seconds or len(set(at for at, _ in rows)) != seconds:
        raise procs.Failed(f"{len(rows)} of {SCHEDULES * seconds} starts were recorded")
    return modes.lateness([(start - at) / 1000 for at, start in rows])


def _bullmq(seconds):
    return modes.lateness(peers.BullMQ().run("schedules", SCHEDULES, seconds)["late_ms"])


def plan(size, with_peers):
    seconds = size.jobs(SECONDS, 3)
    out = []
    for kind in (laterd.PLUGIN_KIND, laterd.STREAM_C_KIND):
        missing = laterd.missing(kind)
        for daemons in (1, 3):
            out.append(modes.Contestant(
                f"laterd, {kind.name}" + (f", {daemons} daemons" if daemons > 1 else ""), "laterd",
                lambda kind=kind, daemons=daemons: _run(kind, seconds, daemons),
                f"not in this build: {missing}" if missing else None))
    missing = peers.BullMQ().missing() if with_peers else "left out"
    out.append(modes.Contestant("BullMQ, job schedulers", "peer", lambda: _bullmq(seconds),
                                f"not installed: {missing}" if missing and with_peers else missing,
                                peers.BullMQ.note, is_close=True))
    metrics = [modes.Metric("p50_ms", "p50", "ms", False), modes.Metric("p99_ms", "p99", "ms", False),
               modes.Metric("max_ms", "max", "ms", False), modes.Metric("early", "early", "", False)]
    return modes.Mode("schedules", f"start behind the occurrence, {SCHEDULES} schedules each second, {seconds} s", metrics, out)
