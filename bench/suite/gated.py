"""Jobs that are not plain: with options, tried before, behind locks, semaphores and rates; each compared with plain jobs.
Also serial queues of graphile-worker, compared with one lock and a hundred locks; its driver counts the jobs that
began while another of their queue ran, since a queue that is not serial is no rival of a lock."""
from . import laterd, modes, peers, redis

# Name -> settings of the queue, limits, options of the i-th job, share of the jobs. With one lock
# for all, each job costs a round trip.
ROWS = {
    "key and priority": ("", (), lambda i: ("key", f"k{i}", "priority", str(4 + i % 3)), 1),
    "attempts and timeout": ("", (), lambda i: ("attempts", "5", "timeout", "30s"), 1),
    "tried before": ("", (), lambda i: ("attempts", "5"), 1),
    "unique": ("", (), lambda i: ("unique", f"u{i}"), 1),
    "open rate": (", rate: r", (("r", "rate", "1000000/1s", "burst", "1000000"),), lambda i: (), 1),
    "lock by key, 10,000 keys": (', lock: "l:{key}"', (), lambda i: ("key", f"k{i % 10000}"), 1),
    "lock by key, 100 keys": (', lock: "l:{key}"', (), lambda i: ("key", f"k{i % 100}"), 1),
    "semaphore of 20": (", semaphore: s", (("s", "semaphore", "20"),), lambda i: (), 1),
    "fair, 1 tenant": (", fair: true", (), lambda i: ("key", "k"), 1),
    "fair, 100 tenants": (", fair: true", (), lambda i: ("key", f"k{i % 100}"), 1),
    "fair, 10,000 tenants": (", fair: true", (), lambda i: ("key", f"k{i % 10000}"), 1),
    "one lock for all": (", lock: one", (), lambda i: (), 0.1),
}
TRIED = "tried before"
PER_CALL = 500


def _add(server, name, n, options):
    calls = [("FCALL", "later_add", 1, laterd.ROOT, "bench", *options(i), "x" * laterd.PAYLOAD_BYTES) for i in range(n)]
    for at in range(0, n, PER_CALL):
        replies = server.call.pipeline(calls[at:at + PER_CALL])
        if name == TRIED:
            server.call.pipeline([("HSET", laterd.ROOT + ":tries", reply[0], f"2 2 0 {reply[2]}") for reply in replies])


def _drain_once(name, n):
    settings, limits, options, _ = ROWS[name]
    kind = laterd.fastest()
    with redis.Server() as server:
        laterd.setup(server)
        for limit in limits:
            server.call("FCALL", "later_limit_set", 1, laterd.ROOT, *limit)
        if "fair" in settings: # before the jobs come, as most fair queues are
            server.call("HSET", laterd.ROOT + ":queues", "bench", "fair=1")
            server.call("HSET", laterd.ROOT + ":fair", "bench", "0 0")
            server.call("HSET", laterd.ROOT + ":prio", "bench", "f")
        _add(server, name, n, options)
        queue = kind.queue().removesuffix(" }") + settings + " }"
        return {"per_s": laterd.drain(server, {"bench": queue}, kind.places, n)}


def _serial(queues, size, with_peers):
    graphile = peers.Graphile()
    missing = graphile.missing() if with_peers else "left out"
    n = size.jobs(4000 if queues > 1 else 400, 200)

    def run():
        answer = graphile.run(f"serial{queues}", n, size.span)
        return {"per_s": answer["n"] / answer["seconds"], "beside": answer["beside"]}

    return modes.Contestant(f"graphile-worker, serial queues: {queues}", "peer", run,
                            f"not installed: {missing}" if missing and with_peers else missing,
                            "looks each ms, fsync off")


def plan(size, with_peers):
    n = size.jobs(20000, 200)
    out = [modes.Contestant(f"laterd, {name}", "laterd", lambda name=name, share=row[3]: _drain_once(name, max(int(n * share), 20)))
           for name, row in ROWS.items()]
    kind = laterd.fastest()
    out.append(modes.Contestant("laterd, plain", "limit", lambda: modes.drain_once(kind, n), is_close=True))
    out += [_serial(queues, size, with_peers) for queues in (100, 1)]
    return modes.Mode("gated", f"no-op jobs with options and gates, {kind.places} places ({n:,}; one lock: a tenth)",
                      [modes.Metric("per_s", "jobs/s", "", True),
                       modes.Metric("beside", "beside another of its queue", "", False)], out)
