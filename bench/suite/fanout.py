"""Jobs that fan out, and one that reports at the end: children in a batch, compared with flows of BullMQ. From the first
add to the end of the report."""
import os
import time

from . import laterd, modes, peers, procs, redis

CHILDREN = 1000 # of a job
PROGRAM = os.path.join(procs.PROGRAMS, "fan_out.py")


def _add(server, parents):
    calls = [("FCALL", "later_batch", 1, laterd.ROOT, "fan", "finally", "report")]
    calls += [("FCALL", "later_add", 1, laterd.ROOT, "import", "batch", "fan", str(CHILDREN))] * parents
    calls += [("FCALL", "later_batch_seal", 1, laterd.ROOT, "fan")]
    server.call.pipeline(calls)


def _fan_out(kind, n):
    parents = n // CHILDREN
    queues = {"bench": kind.queue(), "import": f"{{ handler: [{PROGRAM}] }}", "report": "{ handler: [/bin/true] }"}
    with redis.Server() as server:
        laterd.setup(server)
        with laterd.Daemon(server.url, queues, kind.places) as daemon:
            laterd.await_workers(server, daemon)
            begin = time.monotonic()
            _add(server, parents)
            end = laterd.await_end(server, daemon, 0)
        done = laterd.stats(server)[3]
    if done != n + parents + 1:
        raise procs.Failed(f"{done} of {n + parents + 1} jobs are counted as done")
    return {"per_s": n / (end - begin)}


def _flow(n):
    answer = peers.BullMQ().run("flow", n, CHILDREN)
    return {"per_s": answer["n"] / answer["seconds"]}


def plan(size, with_peers):
    n = max(size.jobs(20000) // CHILDREN, 1) * CHILDREN
    out = []
    for kind in (laterd.STREAM_C_KIND, laterd.STREAM_PYTHON_KIND):
        missing = laterd.missing(kind)
        out.append(modes.Contestant(f"laterd, {kind.name}", "laterd", lambda kind=kind: _fan_out(kind, n),
                                    f"not in this build: {missing}" if missing else None))
    missing = peers.BullMQ().missing() if with_peers else "left out"
    out.append(modes.Contestant("BullMQ, flows", "peer", lambda: _flow(n),
                                f"not installed: {missing}" if missing and with_peers else missing,
                                peers.BullMQ.note, is_close=True))
    return modes.Mode("fanout", f"{n:,} jobs, {CHILDREN:,} added by each of {n // CHILDREN}, and a report at the end",
                      [modes.Metric("per_s", "jobs/s", "", True)], out)
