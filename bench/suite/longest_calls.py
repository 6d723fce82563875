"""The calls that bench/calls measures: each function of the library with its largest documented input."""
import time

from .longest import MIB, PAGE_BYTES, ROOT

CASES = []
YEAR_MS = 31536000000


class Case:
    def __init__(self, function, what, run):
        self.function, self.what, self.run = function, what, run


def case(function, what):
    def keep(run):
        CASES.append(Case(function, what, run))
        return run
    return keep


def now_ms():
    return int(time.time() * 1000)


# ---- syncs


@case("later_v1_sync", "100 deaths, 1 MiB, `on_dead`")
def _(b):
    b.settle(*in_queue(b, 100, MIB, "on_dead", "alert"), "dead", 10000)


def in_queue(b, n, size, *options):
    worker, ids = b.held("q", n, size, *options)
    return worker, "q", ids


@case("later_v1_sync", "128 done, 1 MiB, `keep` and `then`")
def _(b):
    b.settle(*in_queue(b, 128, MIB, "then", "next"), "done", 3600000)


@case("later_v1_sync", "1,024 done, 16 KiB, `keep` and `then`")
def _(b):
    b.settle(*in_queue(b, 1024, PAGE_BYTES, "then", "next"), "done", 3600000)


@case("later_v1_sync", "64 retried, 16 KiB, 16 KiB of output")
def _(b):
    b.settle(*in_queue(b, 64, PAGE_BYTES), "retry", 1000, b"o" * PAGE_BYTES)


@case("later_v1_sync", "1,000 children of 1 KiB")
def _(b):
    children = [("child", b"x" * 1024)] * 1000
    b.settle(*in_queue(b, 1, 10), "done", 0, children=children)


@case("later_v1_sync", "4 results with 1,000 children")
def _(b):
    b.settle(*in_queue(b, 4, 10), "done", 0, children=[("child", "x")] * 1000)


@case("later_v1_sync", "1,024 ends of 1,024 batches, `finally`, 16 KiB")
def _(b):
    worker = b.worker("q")
    for i in range(1024):
        b.call("later_batch", f"b{i}", "finally", "told", "then", "told", b"x" * PAGE_BYTES)
        b.call("later_add", "q", "batch", f"b{i}", "x")
        b.call("later_batch_seal", f"b{i}")
    ids = b.claim(worker, "q", 1024)
    while ids:
        told = b.timed("later_v1_sync", worker, 1, 0, 0, 0, 0, 1, "q", 1, len(ids), *ids)[9]
        ids = [ids[n - 1] for n, answer in zip(told[::2], told[1::2]) if answer == "later"]


@case("later_v1_sync", "512 claims, 16 KiB")
def _(b):
    b.add("q", 512, PAGE_BYTES)
    b.timed("later_v1_sync", b.worker("q"), 1, 0, 512, 0, 1, "q", 512, MIB, 0)


@case("later_v1_sync", "128 expired, 1 MiB, `on_dead`")
def _(b):
    b.add("q", 128, MIB, "expire", "1ms", "on_dead", "alert")
    time.sleep(0.01)
    worker = b.worker("q")
    while b.redis("ZCARD", ROOT + ":q:q:5"):
        b.timed("later_v1_sync", worker, 1, 0, 128, 0, 1, "q", 128, MIB, 0)


@case("later_v1_sync", "2,000 due queues")
def _(b):
    for i in range(2000):
        b.call("later_add", f"q{i}", "x")
    queues = [word for i in range(2000) for word in (f"q{i}", 1, MIB)]
    b.timed("later_v1_sync", b.worker(), 1, 0, 512, 0, 2000, *queues, 0)


# ---- workers


@case("later_v1_reap", "128 jobs, 1 MiB, `on_dead`, all poison pills")
def _(b):
    victim, _ids = b.held("q", 128, MIB, "on_dead", "alert")
    reap(b, victim, 1)


@case("later_v1_reap", "1,024 jobs, 16 KiB")
def _(b):
    victim, _ids = b.held("q", 1024, PAGE_BYTES)
    reap(b, victim, 3)


def reap(b, victim, crashes):
    other, counter = b.worker(), 1
    while b.timed("later_v1_reap", other, victim, counter, crashes, 10000)[0] == "more":
        counter = "?"


@case("later_v1_register", "adopts 1,024 jobs, 16 KiB")
def _(b):
    worker, ids = b.held("q", 1024, PAGE_BYTES)
    b.timed("later_v1_register", 0, "again", 1, worker, 0, 0, len(ids), *[w for i in ids for w in (i, 1)])


@case("later_v1_reconcile", "releases 1,024 jobs, 16 KiB")
def _(b):
    worker, _ids = b.held("q", 1024, PAGE_BYTES)
    b.timed("later_v1_reconcile", worker, 1, 0)


@case("later_v1_beat", "1,000 workers")
def _(b):
    worker = b.worker("q")
    b.workers(1000, "q")
    b.timed("later_v1_beat", worker)


@case("later_v1_workers", "1,000 workers")
def _(b):
    b.workers(1000, "q")
    b.timed("later_v1_workers")


@case("later_v1_suspects", "10,000 queues with a suspect")
def _(b):
    b.fill(10000, "redis.call('HSET', R .. ':prio', 'q' .. i, 's') "
                 "redis.call('ZADD', R .. ':solo:q' .. i, 1, 'j1') redis.call('SADD', R .. ':names', 'q' .. i)")
    b.timed("later_v1_suspects")


@case("later_v1_quiet", "1,000 workers")
def _(b):
    b.workers(1000, "q")
    b.timed("later_v1_quiet", "*", "on")


@case("later_v1_health", "1,000 workers, 100 late queues, 1,000 jobs of 16 KiB run")
def _(b):
    b.held("run", 1000, PAGE_BYTES)
    b.workers(1000, "run")
    for i in range(100):
        b.call("later_add", f"q{i}", "x")
    b.timed("later_v1_health", 0)


def tidy(b, size, n=1000):
    """Dead jobs whose time is over."""
    worker, ids = b.held("q", n, size)
    for at in range(0, n, 50):
        some = ids[at:at + 50]
        words = [word for i in some for word in (i, 1, "dead", "q", 100000, 0, "T", "O")]
        b.call("later_v1_sync", worker, 1, 0, 0, len(some), *words, 0, 0)
    return worker


@case("later_v1_tidy", "1,000 dead of 200 KiB")
def _(b):
    worker = tidy(b, 200 * 1024)
    time.sleep(0.01)
    b.timed("later_v1_tidy", worker, 1, "q", 0)


@case("later_v1_tidy", "1,000 dead of 16 KiB")
def _(b):
    worker = tidy(b, PAGE_BYTES)
    time.sleep(0.01)
    b.timed("later_v1_tidy", worker, 1, "q", 0)


@case("later_v2_look", "1,000 queues")
def _(b):
    b.fill(1000, "redis.call('ZADD', R .. ':heads', 1, 'q' .. i)")
    b.timed("later_v2_look", 1000, *[f"q{i}" for i in range(1, 1001)])


@case("later_v1_declare", "1,000 limits, 1,000 queues")
def _(b):
    limits = [word for i in range(1000) for word in (f"l{i}", "semaphore 5 keep")]
    queues = [word for i in range(1000) for word in (f"q{i}", f"sem=l{i}")]
    b.timed("later_v1_declare", b.worker(), 1000, *limits, 1000, *queues)


def large_schedule(name):
    return (name, "every", "1h", "queue", "q", b"x" * PAGE_BYTES)


@case("later_v1_declare_schedules", "100, 16 KiB")
def _(b):
    words = [word for i in range(100) for word in (6, *large_schedule(f"s{i}"))]
    b.timed("later_v1_declare_schedules", b.worker(), now_ms() - 1000, "last", 100, *words)


@case("later_v1_declare_topics", "6 queues, 100 topics of each, which have 90 already")
def _(b):
    b.fill(100, f"for k = 1, 90 do redis.call('HSET', R .. ':topics', 't' .. i, (redis.call('HGET', R .. ':topics', "
                f"'t' .. i) or '') .. ' q' .. (100 + k)) end")
    words = [word for i in range(6) for word in (101, f"q2{i}", *[f"t{k}" for k in range(1, 101)])]
    b.timed("later_v1_declare_topics", b.worker(), now_ms() - 1000, "last", 6, *words)


@case("later_v1_collect", "128 members of 16 KiB")
def _(b):
    b.fill(128, f"redis.call('ZADD', 'foreign', 1000 + i, i .. string.rep('x', {PAGE_BYTES}))")
    b.timed("later_v1_collect", b.worker(), 1, "q", "foreign", "", "ms", "-", 0)


@case("later_v1_adopt", "200 members of 16 KiB, REMOVE")
def _(b):
    b.fill(200, f"redis.call('ZADD', 'foreign', 1000 + i, i .. string.rep('x', {PAGE_BYTES}))")
    b.timed("later_v1_adopt", "q", "foreign", "", "ms", 1, "", "", 200)


@case("later_v1_metrics", "a page of 10,000 queues")
def _(b):
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i)")
    b.timed("later_v1_metrics", 0)


@case("later_v1_tenants", "100 of 10,000 tenants")
def _(b):
    b.call("later_v1_declare", b.worker(), 0, 1, "q", "fair=1")
    b.fill(1, "redis.call('HSET', R .. ':fair', 'q', '0 0')")
    for back in (0, 1):
        b.fill(10000, "local minute = math.floor(redis.call('TIME')[1] / 60) - %d "
                      "redis.call('HSET', R .. ':fair-used:q:' .. minute, 'k' .. i, 1000 + i)" % back)
    b.timed("later_v1_tenants", "q", 100)


@case("later_v1_gates", "100 gates with 20 holders")
def _(b):
    for i in range(100):
        b.call("later_limit_set", f"s{i}", "semaphore", 20)
        for k in range(20):
            b.call("later_sem_acquire", f"s{i}", f"o{k}")
    b.timed("later_v1_gates", *[f"sem:s{i}" for i in range(100)])


# ---- adds


@case("later_add", "1 MiB with a token")
def _(b):
    b.timed("later_add", "q", "token", "t", b"x" * MIB)


@case("later_add_many", "1,000 of 16 KiB")
def _(b):
    b.timed("later_add_many", "q", "--", *[b"x" * PAGE_BYTES] * 1000)


@case("later_add_many", "16 of 1 MiB")
def _(b):
    b.timed("later_add_many", "q", "--", *[b"x" * MIB] * 16)


@case("later_v1_import", "1,000 of 16 KiB")
def _(b):
    job = (3, "due", 1000, "key", "k", "attempts", 3, b"x" * PAGE_BYTES)
    b.timed("later_v1_import", "q", *job * 1000)


def broadcast(b, size):
    b.workers(1000, "q")
    b.timed("later_broadcast", "q", "token", "t", b"x" * size)
    b.timed("later_broadcast", "q", "token", "t", b"x" * size)


@case("later_broadcast", "1,000 workers, 16 KiB, token")
def _(b):
    broadcast(b, PAGE_BYTES)


def publish(b, size):
    for i in range(100):
        b.call("later_subscribe", "t", f"q{i}")
    b.timed("later_publish", "t", "token", "t", b"x" * size)
    b.timed("later_publish", "t", "token", "t", b"x" * size)


@case("later_publish", "100 queues, 164 KiB, token")
def _(b):
    publish(b, 164 * 1000)


@case("later_subscribe", "the 100th queue")
def _(b):
    for i in range(99):
        b.call("later_subscribe", "t", f"q{i}")
    b.timed("later_subscribe", "t", "q99")


@case("later_unsubscribe", "the 100th queue")
def _(b):
    for i in range(100):
        b.call("later_subscribe", "t", f"q{i}")
    b.timed("later_unsubscribe", "t", "q99")


# ---- listings


def schedules(b, n, size):
    b.call("later_schedule_set", *large_schedule("s"))
    b.fill(n, "redis.call('HSET', R .. ':schedules', 's' .. i, "
              "'revision=1\\nwhen=every 1h\\nqueue=q\\noverlap=allow\\n\\n' .. string.rep('x', tonumber(ARGV[3])))", size)


def all_schedules(b, n, size):
    """In one call where that is allowed, else in pages."""
    schedules(b, n, size)
    try:
        b.timed("later_schedules")
    except Exception as e:  # pylint: disable=broad-except
        if "ELATER_FULL" not in str(e):
            raise
        cursor = b.timed("later_schedules", "cursor", 0)[0]
        while cursor != "0":
            cursor = b.timed("later_schedules", "cursor", cursor)[0]


@case("later_schedules", "10,000")
def _(b):
    all_schedules(b, 10000, 10)


@case("later_schedules", "10,000 of 16 KiB")
def _(b):
    all_schedules(b, 10000, PAGE_BYTES)


@case("later_schedules", "1,000")
def _(b):
    all_schedules(b, 999, 10)


@case("later_v1_schedules", "a page, 16 KiB each")
def _(b):
    schedules(b, 1000, PAGE_BYTES)
    b.timed("later_v1_schedules", 0)


@case("later_v1_fire", "100 schedules, 200 occurrences, 16 KiB")
def _(b):
    b.call("later_limit_set", "x", "semaphore", 1)
    worker, rows, words = b.worker(), [], []
    for i in range(100):
        b.call("later_schedule_set", *large_schedule(f"s{i}"))
        row = b.call("later_schedules", f"s{i}")
        rows.append(dict(zip(row[::2], row[1::2]))["revision"])
    then = now_ms() - 3600000
    for i, revision in enumerate(rows):
        times = [word for k in range(2) for word in (then + 1000 * k, 2026001)]
        words += [f"s{i}", revision, "-", then + YEAR_MS, "2025b", 0, 0, 2, *times]
    b.timed("later_v1_fire", worker, 100, *words)


def names(b):
    for kind in ("batch", "queue", "schedule", "topic", "lock", "sem", "rate"):
        b.fill(10000, f"redis.call('ZADD', R .. ':index', 0, '{kind}:name' .. i)")


@case("later_find", "all kinds, the highest limit")
def _(b):
    names(b)
    try:
        b.timed("later_find", "", "limit", 10000)
    except Exception as e:  # pylint: disable=broad-except
        if "ELATER_OPTION" not in str(e):
            raise
        b.timed("later_find", "", "limit", 1000)


@case("later_find", "one kind, 10,000 names")
def _(b):
    names(b)
    b.timed("later_find", "", "limit", 10000, "kind", "queue")


@case("later_topics", "a page, 100 queues each")
def _(b):
    for i in range(100):
        b.fill(100, f"redis.call('HSET', R .. ':topics', 't' .. i, string.rep('q{i:03} ', 100))")
    b.timed("later_topics", 0)


@case("later_stats", "10,000 queues, 1,000 jobs of 16 KiB run")
def _(b):
    b.held("run", 1000, PAGE_BYTES)
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i)")
    b.timed("later_stats")


@case("later_v1_queues", "a page of 10,000 queues that use all their sets")
def _(b):
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i) redis.call('ZADD', R .. ':index', 0, 'queue:q' .. i)")
    b.fill(200, "for p = 0, 9 do redis.call('ZADD', R .. ':q:q' .. i .. ':' .. p, 1, 'j1') end "
                "for _, set in ipairs({'due', 'solo', 'dead', 'done', 'parked'}) do "
                "redis.call('ZADD', R .. ':' .. set .. ':q' .. i, 1, 'j1') end")
    b.timed("later_v1_queues", "", 100)


@case("later_v1_queues", "a page of 10,000 idle queues")
def _(b):
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i) redis.call('ZADD', R .. ':index', 0, 'queue:q' .. i)")
    b.timed("later_v1_queues", "", 100)


@case("later_v1_queues", "a page of 10,000 queues that the index of names lacks")
def _(b):
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i)")
    b.timed("later_v1_queues", ".0:0", 100)


@case("later_v1_running", "1,000 jobs of 1 KiB run")
def _(b):
    b.held("run", 1000, 1024)
    b.timed("later_v1_running")


@case("later_v1_running", "1,000 jobs of 16 KiB run")
def _(b):
    b.held("run", 1000, PAGE_BYTES)
    b.timed("later_v1_running")


@case("later_v1_summary", "10,000 late queues")
def _(b):
    b.fill(10000, "redis.call('SADD', R .. ':names', 'q' .. i) redis.call('ZADD', R .. ':heads', i, 'q' .. i) "
                  "for p = 0, 9 do redis.call('ZADD', R .. ':q:q' .. i .. ':' .. p, i, 'j1') end")
    b.timed("later_v1_summary")


def dead_of(b, n, output_bytes):
    """n dead jobs that died of the same, but for a number."""
    b.fill(n, "local id = string.format('j%011d', i) redis.call('ZADD', R .. ':dead:q', i, id) "
              "redis.call('HSET', R .. ':errors', id, 'dead 1 ' .. i .. ' 1 exit status 1: order ' .. i .. ' is gone\\n' .. "
              "string.rep('o', tonumber(ARGV[3])))", output_bytes)


@case("later_v1_reasons", "500 of 10,000 dead")
def _(b):
    dead_of(b, 10000, 0)
    b.timed("later_v1_reasons", "q", "", 500)


@case("later_v1_reasons", "500 dead, 4 KiB of output")
def _(b):
    dead_of(b, 1000, 4096)
    b.timed("later_v1_reasons", "q", "", 500)


@case("later_v1_ahead", "60 minutes, 1,200,000 waiting jobs in 12 sets")
def _(b):
    for name in ["q:q:" + str(p) for p in range(10)] + ["solo:q", "due:q"]:
        b.fill(100000, "redis.call('ZADD', R .. ':' .. ARGV[3], (i * 7919) % 3600000, string.format('j%011d', i))", name)
    b.timed("later_v1_ahead", "q", 0, 60000, 60)


@case("later_v1_ahead", "60 minutes, 300 raw members of 1 MiB")
def _(b):
    b.fill(300, "redis.call('ZADD', R .. ':due:q', i * 12000, i .. string.rep('x', 1048576))")
    b.timed("later_v1_ahead", "q", 0, 60000, 60)


@case("later_v1_gate_names", "a page of 100,000 parked jobs")
def _(b):
    b.fill(100000, "redis.call('HSET', R .. ':parked', string.format('j%011d', i), "
                   "'1795000000000000 0 1795000000000 1\\nlock:l' .. i .. '\\nsem:s\\nrate:r')")
    b.timed("later_v1_gate_names", "4:0", 250)


@case("later_v1_list", "200 dead, 16 KiB, 16 KiB of output")
def _(b):
    worker, ids = b.held("q", 200, PAGE_BYTES)
    b.settle(worker, "q", ids, "dead", 1000, b"o" * PAGE_BYTES)
    b.longest_us = 0
    b.timed("later_v1_list", "q", "dead", "", 200)


@case("later_v1_export", "1 MiB each")
def _(b):
    b.add("q", 200, MIB // 4)
    b.timed("later_v1_export", "q", "due", 1, "", "", 200)


@case("later_v1_audit", "200 records of 16 KiB")
def _(b):
    b.add("q", 200, PAGE_BYTES)
    b.timed("later_v1_audit", "jobs", "", 200)


@case("later_v1_repair", "200 records of 16 KiB in no set, `on_dead`")
def _(b):
    b.add("q", 200, PAGE_BYTES, "on_dead", "alert")
    b.redis("DEL", ROOT + ":q:q:5")
    cursor = ""
    while True:
        cursor = b.timed("later_v1_repair", "jobs", cursor, 200)[0]
        if cursor == "":
            return


@case("later_v1_purge", "dead of 1 MiB")
def _(b):
    worker, ids = b.held("q", 100, MIB)
    b.settle(worker, "q", ids, "dead", 1000)
    b.longest_us = 0
    b.timed("later_v1_purge", "q", "dead", 200)


@case("later_v1_batches", "a page of 10,000")
def _(b):
    for i in range(10000):
        b.call("later_batch", f"b{i}")
    b.timed("later_v1_batches", 0)


@case("later_batch_jobs", "a page of 100,000 members")
def _(b):
    b.call("later_batch", "b")
    b.fill(100000, "redis.call('ZADD', R .. ':members:b', 0, 'j' .. (10000000000 + i))")
    b.timed("later_batch_jobs", "b", 0)


@case("later_batch_cancel", "a page of 1,000 members, 1 MiB, `keep`")
def _(b):
    b.call("later_batch", "b")
    b.add("q", 200, MIB, "batch", "b", "keep", "1h")
    b.timed("later_batch_cancel", "b")


@case("later_bulk", "199 purged, 5 KiB")
def _(b):
    b.add("q", 199, 5 * 1024)
    b.timed("later_bulk", "purge", "q", "due")


@case("later_v1_bulk", "100 dead to another queue, 8 KiB, 8 KiB of output")
def _(b):
    worker = b.worker("q")
    b.fill(1000, "local id = 'j' .. (10000000000 + i); "
           "redis.call('HSET', R .. ':jobs', id, '-q K=k\\n' .. string.rep('x', 8192)); "
           "redis.call('HSET', R .. ':tries', id, '3 3 0 1000'); "
           "redis.call('HSET', R .. ':errors', id, 'dead 1 1 3 no\\n' .. string.rep('x', 8192)); "
           "redis.call('ZADD', R .. ':dead:q', 1000, id)")
    b.call("later_bulk", "retry", "q", "dead", "to", "z", "reason", "n*o")
    b.timed("later_v1_bulk", worker)


@case("later_bulk_show", "100")
def _(b):
    for _ in range(100):
        b.call("later_bulk", "retry", "q", "dead", "why", "x" * 200, "reason", "x" * 256, "key", "x" * 256)
    b.timed("later_bulk_show")


@case("later_bulk_abort", "one of 16")
def _(b):
    b.fill(1, "redis.call('ZADD', R .. ':dead:q', 1000, 'j00000000000')")
    for _ in range(16):
        last = b.call("later_bulk", "retry", "q", "dead", "rate", "1/1h")[0]
    b.timed("later_bulk_abort", last)


@case("later_limits", "1,000")
def _(b):
    for i in range(1000):
        b.call("later_limit_set", f"l{i}", "rate", "100/1m")
    b.timed("later_limits")


@case("later_limit_set", "lets in 2,000 who wait")
def _(b):
    b.call("later_limit_set", "s", "semaphore", 0)
    for i in range(2000):
        b.call("later_sem_acquire", "s", f"o{i}", "wait", "1h")
    b.timed("later_limit_set", "s", "semaphore", 100000)


@case("later_seen_list", "1,000 filters")
def _(b):
    for i in range(1000):
        b.call("later_seen", f"f{i}", "k", "capacity", 1000)
    b.timed("later_seen_list")


@case("later_seen", "a new one of 64 MiB")
def _(b):
    b.timed("later_seen", "f", "k", "capacity", 13000000)


@case("later_seen_del", "one of 64 MiB")
def _(b):
    b.call("later_seen", "f", "k", "capacity", 13000000)
    b.timed("later_seen_del", "f")


@case("later_top", "8 days of full boards")
def _(b):
    for day in range(8):
        b.fill(512, f"redis.call('ZADD', R .. ':top:failed:keys:{now_ms() // 86400000 - day}', "
                    f"8388608 * i + 1000, 'key{day}-' .. i)")
    b.timed("later_top", "failed", "keys", "days", 8, "count", 500)


@case("later_explain", "1,000 jobs of 16 KiB run in 100 workers")
def _(b):
    b.held("q", 1000, PAGE_BYTES)
    b.workers(100, "q")
    job = b.call("later_add", "q", "x")[0]
    b.timed("later_explain", job)


@case("later_throttle", "sliding, 10,000 starts")
def _(b):
    b.call("later_limit_set", "r", "rate", "10000/1h", "algorithm", "sliding")
    b.timed("later_throttle", "r", "quota", 10000)


@case("later_unlock", "2,000 wait")
def _(b):
    b.call("later_lock", "l", "ann", "ttl", "1h")
    for i in range(2000):
        b.call("later_lock", "l", f"o{i}", "wait", "1h")
    b.timed("later_unlock", "l", "ann")


@case("later_sem_release", "2,000 wait")
def _(b):
    b.call("later_limit_set", "s", "semaphore", 1)
    for i in range(2001):
        b.call("later_sem_acquire", "s", f"o{i}", "wait", "1h")
    b.timed("later_sem_release", "s", "o0")


@case("later_v1_recent", "100 ids")
def _(b):
    ids = [f"j{i:011d}" for i in range(100)]
    b.call("later_v1_recent", "me@here", *ids)
    b.timed("later_v1_recent", "me@here", *ids)


@case("later_fenced", "one command")
def _(b):
    fence = b.call("later_lock", "l", "ann")[1]
    b.timed("later_fenced", "l", fence, "PING")


@case("later_v1_distinct", "8 days")
def _(b):
    for day in range(8):
        b.fill(5000, f"redis.call('PFADD', R .. ':keys:q:{20000 + day}', 'k' .. {day} .. i)")
    b.timed("later_v1_distinct", "q", 20000, 8)


# ---- about one thing


def job(b, *options):
    return b.call("later_add", "q", *options, b"x" * MIB)[0]


def dead(b):
    worker, ids = b.held("q", 1, MIB)
    b.call("later_v1_sync", worker, 1, 0, 0, 1, ids[0], 1, "dead", "q", 1000, 0, "T", "O", 0, 0)
    return ids[0]


def simple(function, *words, before=()):
    """A call about one job of 1 MiB (JOB, DEAD) or one name. before: calls to make first"""
    def run(b):
        known = {}

        def meant(word):
            if word == "JOB":
                known["JOB"] = known.get("JOB") or job(b, "keep", "1h")
            elif word == "DEAD":
                known["DEAD"] = known.get("DEAD") or dead(b)
            elif word == "WORKER":
                known["WORKER"] = known.get("WORKER") or b.worker("q")
            else:
                return word
            return known[word]
        for line in before:
            b.call(*[meant(word) for word in line])
        b.timed(function, *[meant(word) for word in words])
    what = "a job of 1 MiB" if "JOB" in words or "DEAD" in words else "one"
    CASES.append(Case(function, what, run))


simple("later_show", "JOB")
simple("later_result", "DEAD")
simple("later_cancel", "JOB")
simple("later_run_now", "JOB")
simple("later_reschedule", "JOB", "+1h")
simple("later_retry", "DEAD")
simple("later_pause", "q")
simple("later_resume", "q", before=[("later_pause", "q")])
simple("later_batch", "b", b"x" * PAGE_BYTES)
simple("later_batch_seal", "b", before=[("later_batch", "b", "finally", "q", b"x" * PAGE_BYTES)])
simple("later_batch_show", "b", before=[("later_batch", "b", "finally", "q", b"x" * PAGE_BYTES)])
simple("later_schedule_set", *large_schedule("s"))
simple("later_schedule_del", "s", before=[("later_schedule_set", *large_schedule("s"))])
simple("later_schedule_pause", "s", before=[("later_schedule_set", *large_schedule("s"))])
simple("later_schedule_resume", "s", before=[("later_schedule_set", *large_schedule("s"))])
simple("later_schedule_run", "s", before=[("later_schedule_set", *large_schedule("s"))])
simple("later_schedule_calendar", "s", 2026)
simple("later_limit_del", "r", before=[("later_limit_set", "r", "rate", "1/1m")])
simple("later_lock", "l", "ann")
simple("later_renew", "l", "ann", before=[("later_lock", "l", "ann")])
simple("later_sem_acquire", "s", "ann", before=[("later_limit_set", "s", "semaphore", 1)])
simple("later_fence_check", "l", 1)
simple("later_version")
simple("later_v1_await", "JOB")
simple("later_v1_enter", "WORKER", "lock:l")
@case("later_v1_keep", "the 100th step, 16 KiB")
def _(b):
    worker, (job, *_others) = b.held("q", 1, 100)
    for i in range(15):
        b.call("later_v1_keep", worker, job, 1, "large%d" % i, b"x" * 16384)
    for i in range(84):
        b.call("later_v1_keep", worker, job, 1, "small%d" % i, b"")
    b.timed("later_v1_keep", worker, job, 1, "last", b"x" * 15000)


simple("later_v1_exit", "WORKER", before=[("later_v1_enter", "WORKER", "lock:l")])
simple("later_v1_forget", "none")
simple("later_v1_known", "q", before=[("later_v1_known", "q")])
simple("later_v1_leave", "WORKER")
simple("later_v1_note", "stray-key", "k")
simple("later_v1_recents", "me@here")
simple("later_v1_rights")
simple("later_v1_series")
simple("later_v1_tail", 1)
