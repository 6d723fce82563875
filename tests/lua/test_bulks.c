/*
 * Bulks: which jobs one means, that each of them is changed once whatever happens meanwhile, how
 * fast, by whom, and what cannot be read. (tests/integration/test_bulk_retry.c: with daemons.)
 */
#include "still.h"

#define START_US INT64_C(1767225600000000)
#define SECOND_US INT64_C(1000000)
#define MANY 500 /* too many for one call */

static int64_t clock_ms(void)
{
    return still_clock->fixed_us / 1000;
}

static void pass(int64_t ms)
{
    still_set(still_clock->fixed_us + ms * 1000);
}

static void begin(void)
{
    still_set(START_US);
}

/*
 * Jobs j0…<first>, and so on, n of them, that ended in this state of the queue; they are older than
 * every job that is added. Even ones have the key k0, odd ones k1. reason: {n} is the number of the
 * job. score: of all of them.
 */
static void put_ended(const char *state, const char *queue, int first, int n, int64_t score,
                      const char *reason)
{
    static const char script[] =
        "local R, state, queue, reason = KEYS[1], ARGV[1], ARGV[2], ARGV[6] "
        "redis.call('SADD', R .. ':names', queue) "
        "for i = tonumber(ARGV[3]), tonumber(ARGV[3]) + tonumber(ARGV[4]) - 1 do "
        "  local id = string.format('j%011d', i) "
        "  redis.call('HSET', R .. ':jobs', id, '-' .. queue .. ' 5 K=k' .. i % 2 .. '\\nbody') "
        "  redis.call('HSET', R .. ':tries', id, '1 1 0 1000') "
        "  redis.call('ZADD', R .. ':' .. state .. ':' .. queue, ARGV[5], id) "
        "  redis.call('HSET', R .. (state == 'done' and ':results' or ':errors'), id, "
        "    state .. ' 1 1000 1 ' .. string.gsub(reason, '{n}', i) .. '\\nout') "
        "end";
    const char *argv[] = {"EVAL",
                          script,
                          "1",
                          ROOT,
                          state,
                          queue,
                          text("%d", first),
                          text("%d", n),
                          text("%lld", (long long)score),
                          reason};

    assert_string_equal(send_args(10, argv, NULL), "nil");
}

static void put_dead(const char *queue, int first, int n, int64_t score)
{
    put_ended("dead", queue, first, n, score, "no answer from host {n}");
}

static const char *job(int i)
{
    return text("j%011d", i);
}

/* Begin one; -> its id. */
FX_FMT static const char *bulk(const char *fmt, ...)
{
    FX_FORMAT(line);
    assert_starts(call_line(text("later_bulk %s", line)), "[b");
    return at(0, -1);
}

/* A field of a bulk; "nil": it is not there. */
static const char *field(const char *id, const char *name)
{
    assert_starts(fcall("later_bulk_show %s", id), "[bulk ");
    return named(name);
}

static int number(const char *id, const char *name)
{
    return atoi(field(id, name));
}

/* "status total seen changed failed" */
static const char *counts(const char *id)
{
    const char *out = field(id, "status");

    return text("%s %s %s %s %s", out, named("total"), named("seen"), named("changed"),
                named("failed"));
}

/* A worker lets one go on. -> in how many ms it is to ask again */
static int64_t go_on(const char *w)
{
    assert_starts(fcall("later_v1_bulk %s", w), "[");
    assert_true(int_at(2, -1) + int_at(3, -1) <= 100);
    return int_at(0, -1);
}

/* The same until none is active any more. -> how many calls */
static int finish(const char *w)
{
    int calls = 0;
    int64_t ms;

    for (pass(1); (ms = go_on(w)) > 0; pass(ms))
        assert_true(++calls < 10000);
    return calls;
}

static int size_of(const char *key)
{
    (void)redis("ZCARD R:%s", key);
    return (int)reply_int(fx.last);
}

/* ---- at once */

static void test_few_are_done_at_once(void **state)
{
    const char *id;

    (void)state;
    begin();
    put_dead("mail", 1, 199, 1000);
    assert_starts(fcall("later_bulk RETRY mail dead by me why because"), "[b");
    id = at(0, -1);
    assert_string_equal(at(1, -1), "done");
    assert_int_equal(int_at(2, -1), 199);
    assert_string_equal(counts(id), "done 199 199 199 0");
    assert_string_equal(named("by"), "me");
    assert_string_equal(named("why"), "because");
    assert_string_equal(named("left"), "0");
    assert_string_equal(named("ended_ms"), text("%lld", (long long)clock_ms()));
    assert_int_equal(size_of("q:mail:5"), 199);
    assert_int_equal(size_of("dead:mail"), 0);
    assert_string_equal(redis("HGET R:tries %s", job(7)),
                        text("1 0 0 %lld", (long long)clock_ms()));
    id = bulk("retry mail dead");
    assert_string_equal(counts(id), "done 0 0 0 0");
    put_dead("web", 1000, 200, 1000);
    assert_starts(fcall("later_bulk retry web dead"), "[b");
    assert_string_equal(at(1, -1), "active");
    assert_int_equal(size_of("dead:web"), 200);
}

/* What is left of the bytes of a call is done later. */
static void test_few_large_ones_go_on_later(void **state)
{
    const char *w, *id;
    int at_once;

    (void)state;
    begin();
    w = worker();
    for (int i = 0; i < 150; i++)
        (void)add("mail %016000d", i);
    id = bulk("cancel mail due");
    at_once = number(id, "changed");
    assert_in_range(at_once, 1048576 / 16100, 100);
    assert_string_equal(named("status"), "active");
    (void)finish(w);
    assert_string_equal(counts(id), "done 150 150 150 0");
    assert_int_equal(size_of("q:mail:5"), 0);
}

/* ---- which jobs */

static void test_what_dies_later_is_not_meant(void **state)
{
    const char *w, *id, *job_id;
    int64_t died_ms;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, MANY, clock_ms());
    id = bulk("retry mail dead");
    assert_int_equal(go_on(w), 1); /* not in the ms in which it was made */
    assert_string_equal(counts(id), text("active %d 0 0 0", MANY));
    pass(1);
    assert_int_equal(go_on(w), 20);
    assert_string_equal(counts(id), text("active %d 100 100 0", MANY));
    /* One that was retried dies again, one of those to come, and a new one. */
    job_id = claim(w, "mail", 1);
    assert_string_equal(settle(w, job_id, 2, "dead", 1000), "ok");
    died_ms = clock_ms();
    put_dead("mail", MANY, 1, died_ms);
    put_dead("mail", 9000, 1, died_ms);
    (void)finish(w);
    assert_string_equal(counts(id), text("done %d %d %d 0", MANY, MANY - 1, MANY - 1));
    assert_int_equal(size_of("dead:mail"), 3);
    assert_string_equal(redis("ZSCORE R:dead:mail %s", job_id), text("%lld", (long long)died_ms));
}

/* While Redis' clock is behind the making of a bulk, what dies looks as if it had been dead. */
static void test_clock_set_back(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 300, 1000);
    id = bulk("retry mail dead");
    pass(1);
    (void)go_on(w);
    still_set(START_US - 600 * SECOND_US);
    assert_int_equal(go_on(w), 1000);
    assert_int_equal(number(id, "changed"), 100);
    still_set(START_US + 30000);
    (void)go_on(w);
    assert_int_equal(number(id, "changed"), 200);
}

static void test_newer_jobs_are_not_meant(void **state)
{
    const char *w, *id, *first;

    (void)state;
    begin();
    w = worker();
    for (int i = 0; i < 250; i++)
        (void)add("mail priority %d x", i % 10);
    (void)redis("ZADD R:due:mail 5 raw");
    id = bulk("cancel mail due");
    pass(1);
    first = add("mail priority 9 new");
    (void)finish(w);
    assert_string_equal(counts(id), "done 250 250 250 0");
    assert_string_equal(state_of(first), "waiting");
    assert_int_equal(size_of("due:mail"), 1);
}

/* The set changes under the cursor, among jobs of the same score. */
static void test_ties(void **state)
{
    const char *w, *id;
    int gone = 0;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 1000, 5000);
    id = bulk("retry mail dead to web");
    pass(1);
    for (int64_t ms; (ms = go_on(w)) > 0; pass(ms)) {
        int met = number(id, "seen");

        /* One behind the cursor comes back, two before it go. */
        put_dead("mail", met, 1, 5000);
        if (met + 40 <= 1000)
            gone += redis("ZREM R:dead:mail %s %s", job(met + 40), job(met + 3))[0] - '0';
    }
    assert_in_range(gone, 10, 40);
    assert_string_equal(counts(id), text("done 1000 %d %d 0", 1000 - gone, 1000 - gone));
    assert_int_equal(size_of("q:web:5"), 1000 - gone);
}

static void test_only_those_with_a_key_or_reason(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 600, 1000);
    put_ended("dead", "mail", 2000, 3, 2000, "exit status 3");
    id = bulk("retry mail dead key k1");
    (void)finish(w);
    assert_string_equal(counts(id), "done 603 603 301 0");
    (void)fcall_bytes("later_bulk retry mail dead reason", "exit status *", 13);
    id = at(0, -1);
    (void)finish(w);
    assert_string_equal(counts(id), "done 302 302 2 0");
    (void)fcall_bytes("later_bulk retry mail dead key k0 reason", "no answer from host *", 21);
    id = at(0, -1);
    (void)finish(w);
    assert_string_equal(counts(id), "done 300 300 300 0");
    assert_int_equal(size_of("dead:mail"), 0);
}

/* ---- reasons */

/* How many of these three are meant by the pattern? */
static int meant(const char *pattern)
{
    static const char *const reasons[] = {"error 42 of host a1", "exit status 42",
                                          "killed (signal 9)"};
    const char *id;

    (void)redis("DEL R:dead:q R:q:q:5");
    for (int i = 0; i < 3; i++)
        put_ended("dead", "q", 10 + i, 1, 1000 + i, reasons[i]);
    assert_starts(fcall_bytes("later_bulk retry q dead reason", pattern, strlen(pattern)), "[b");
    id = at(0, -1);
    return number(id, "changed");
}

static void test_reasons(void **state)
{
    static const struct {
        const char *pattern;
        int n;
    } rows[] = {
        {"error 42 of host a1", 1},
        {"error * of host a*", 1},
        {"error * of host a1", 1},
        {"exit status 42", 1},
        {"exit status *", 1},
        {"exit status ?2", 1},
        {"exit status ?", 0},
        {"exit status", 0},
        {"*", 3},
        {"**", 3},
        {"?", 0},
        {"*4*2*", 2},
        {"*9)", 1},
        {"killed (signal ?)", 1},
        {"killed (signal \\9)", 1},
        {"e*", 2},
        {"*r*r*", 1},
        {"*1*1", 0},
        {"error 42 of host a1*", 1},
        {"error 42 of host a1?", 0},
        {"[e]*", 0},
        {"error %d", 0},
        {"error \\* of host *", 0},
        {"*\\", 0},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (meant(rows[i].pattern) != rows[i].n)
            fail_msg("%s means %d", rows[i].pattern, meant(rows[i].pattern));
}

/* A pattern that could be tried in very many ways. */
static void test_many_stars(void **state)
{
    char pattern[256], reason[512];

    (void)state;
    begin();
    for (size_t i = 0; i < 254; i++)
        pattern[i] = i % 2 == 0 ? 'a' : '*';
    (void)snprintf(pattern + 254, 2, "b");
    memset(reason, 'a', 511);
    reason[511] = '\0';
    put_ended("dead", "mail", 1, 199, 1000, reason);
    assert_starts(fcall_bytes("later_bulk retry mail dead reason", pattern, 255), "[b");
    assert_int_equal(number(at(0, -1), "changed"), 0);
    pattern[254] = 'a';
    assert_starts(fcall_bytes("later_bulk retry mail dead reason", pattern, 255), "[b");
    assert_int_equal(number(at(0, -1), "changed"), 199);
}

/* ---- abort */

static void test_abort(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, MANY, 1000);
    id = bulk("retry mail dead");
    pass(1);
    pass(go_on(w));
    (void)go_on(w);
    assert_string_equal(fcall("later_bulk_abort %s me", id),
                        text("[%s aborted %d]", id, MANY - 200));
    assert_int_equal(go_on(w), 0);
    assert_string_equal(counts(id), text("aborted %d 200 200 0", MANY));
    assert_string_equal(named("aborted_by"), "me");
    assert_string_equal(named("left"), text("%d", MANY - 200));
    assert_int_equal(size_of("dead:mail"), MANY - 200);
    assert_refused("ELATER_STATE", "later_bulk_abort %s", id);
    assert_refused("ELATER_NOBULK", "later_bulk_abort b00000000000");
    assert_refused("ELATER_NOBULK", "later_bulk_abort x");
    assert_refused("ELATER_NOBULK", "later_bulk_abort");
    assert_refused("ELATER_NOBULK", "later_bulk_show b00000000000");
}

/* ---- how fast */

static void test_rate(void **state)
{
    const char *w, *id;
    int64_t end_ms;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, MANY, 1000);
    id = bulk("retry mail dead rate 50/s");
    assert_string_equal(field(id, "left_ms"), "10000");
    assert_string_equal(named("rate"), "50");
    assert_string_equal(named("per_ms"), "1000");
    pass(1);
    end_ms = clock_ms() + 4000;
    for (int64_t ms; clock_ms() < end_ms; pass(ms)) {
        ms = go_on(w);
        assert_in_range(ms, 1, 1000);
        assert_true(int_at(2, -1) <= 6);
        assert_true(number(id, "changed") <= 2 + (clock_ms() - START_US / 1000) / 20);
    }
    assert_in_range(number(id, "changed"), 190, 202);
    /* What was not used in a minute is not made up for: a second of it at most. */
    pass(60000);
    (void)go_on(w);
    assert_int_equal(int_at(2, -1), 50);
}

static void test_slow_and_fast_rates(void **state)
{
    const char *w, *id;
    int64_t ms, begun_ms;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 3, 1000);
    id = bulk("retry mail dead rate 1/1m");
    assert_string_equal(field(id, "status"), "active");
    assert_string_equal(named("left_ms"), "180000");
    begun_ms = clock_ms();
    for (pass(1); (ms = go_on(w)) > 0; pass(ms))
        assert_true(ms <= 1000);
    assert_string_equal(counts(id), "done 3 3 3 0");
    assert_in_range(clock_ms() - begun_ms, 120000, 122000);
    put_dead("mail", 1000, 2000, 1000);
    id = bulk("retry mail dead rate 2000/s");
    begun_ms = clock_ms();
    (void)finish(w);
    assert_string_equal(counts(id), "done 2000 2000 2000 0");
    assert_in_range(clock_ms() - begun_ms, 900, 1300);
}

static void test_spread(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 0, 400, 1000);
    id = bulk("retry mail dead spread 40s");
    (void)finish(w);
    assert_string_equal(counts(id), "done 400 400 400 0");
    for (int i = 50; i < 400; i += 50)
        assert_string_equal(redis("ZSCORE R:q:mail:5 %s", job(i)),
                            text("%lld", (long long)START_US / 1000 + 100 * i));
    put_dead("web", 1000, 10, 1000);
    (void)bulk("retry web dead at +1h spread 1000");
    assert_string_equal(redis("ZSCORE R:q:web:5 %s", job(1005)),
                        text("%lld", (long long)clock_ms() + 3600500));
}

/* ---- who does it */

static void test_another_worker_takes_over(void **state)
{
    const char *a, *b, *id;

    (void)state;
    begin();
    a = worker();
    b = worker();
    put_dead("mail", 1, 1000, 1000);
    id = bulk("retry mail dead");
    pass(1);
    assert_int_equal(go_on(a), 20);
    pass(20);
    assert_int_equal(go_on(b), 1000);
    assert_int_equal(go_on(a), 20);
    assert_string_equal(field(id, "worker"), a);
    pass(1999);
    assert_int_equal(go_on(b), 1000);
    pass(1);
    assert_int_equal(go_on(b), 20);
    assert_string_equal(field(id, "worker"), b);
    assert_int_equal(number(id, "changed"), 300);
    pass(20);
    assert_int_equal(go_on(a), 1000);
    /* It need not wait for one that has left. */
    assert_string_equal(fcall("later_v1_leave %s", b), "left");
    assert_int_equal(go_on(a), 20);
    assert_refused("ELATER_WORKER", "later_v1_bulk %s", b);
    assert_refused("ELATER_WORKER", "later_v1_bulk");
}

/* Each has its turn, also those that mean the same jobs. */
static void test_several_go_on_by_turns(void **state)
{
    const char *w, *slow, *quick, *other;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 600, 1000);
    put_dead("web", 1000, 300, 1000);
    slow = bulk("retry mail dead key k0 rate 10/s");
    quick = bulk("retry mail dead key k1");
    other = bulk("retry web dead");
    pass(1);
    for (int i = 0; i < 9; i++)
        pass(go_on(w));
    assert_in_range(number(slow, "changed"), 1, 3);
    assert_true(number(quick, "changed") >= 50);
    assert_true(number(other, "changed") >= 100);
    (void)finish(w);
    assert_int_equal(number(quick, "changed"), 300);
    assert_string_equal(counts(other), "done 300 300 300 0");
    assert_int_equal(number(slow, "changed"), 300);
}

static void test_workers_hear_of_it(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    (void)heard(c, ROOT ":wake");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
    put_dead("mail", 1, 200, 1000);
    id = bulk("retry mail dead");
    assert_string_equal(heard(c, ROOT ":wake"), "!bulk");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0 1]");
    (void)finish(w);
    assert_string_equal(heard(c, ROOT ":wake"), "mail");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
    pass(86400000 - 100);
    (void)fcall("later_v1_tidy %s 0", w);
    assert_int_equal(size_of("bulks"), 1);
    pass(100);
    (void)fcall("later_v1_tidy %s 0", w);
    assert_string_equal(redis("EXISTS R:bulks R:bulk:%s", id), "0");
    client_close(c);
}

/* ---- what they do */

static void test_retry_to_another_queue(void **state)
{
    const char *w, *id, *large, *one, *member;

    (void)state;
    begin();
    w = worker();
    assert_starts(fcall("later_batch b"), "[");
    large = add("mail unique u priority 3 then sms %017000d", 5);
    member = add("mail batch b key k xy");
    one = add("mail x");
    (void)claim(w, "mail", 3);
    assert_string_equal(settle(w, large, 1, "dead", 1000), "ok");
    assert_string_equal(settle(w, member, 1, "dead", 1000), "ok");
    assert_string_equal(settle(w, one, 1, "dead", 1000), "ok");
    (void)redis("HSET R:config max_payload:tiny 16000");
    id = bulk("retry mail dead to tiny");
    assert_string_equal(counts(id), "done 3 3 2 1");
    assert_starts(field(id, "error"), "ELATER_SIZE ");
    assert_string_equal(redis("HGET R:jobs %s", member), "-tiny K=k b=b\\nxy");
    assert_string_equal(redis("ZSCORE R:members:b %s", member), "0");
    id = bulk("retry mail dead to web");
    assert_string_equal(counts(id), "done 1 1 1 0");
    assert_string_equal(redis("HGET R:jobs %s", large), "+web 3 u=u n=sms\\n");
    assert_string_equal(redis("GET R:uniq:web:u"), large);
    assert_string_equal(redis("EXISTS R:uniq:mail:u R:dead:mail"), "0");
    assert_string_equal(redis("ZCARD R:q:web:3"), "1");
    assert_string_equal(redis("HGET R:prio web"), "3");
    assert_string_equal(claim(w, "web", 1), large);
    assert_string_equal(redis("SISMEMBER R:names web"), "1");
}

static void test_cancel_and_purge(void **state)
{
    const char *w, *id, *runs, *holder;

    (void)state;
    begin();
    w = worker();
    (void)add("mail keep 1h x");
    (void)add("mail unique u x");
    runs = claim(w, "mail", 1);
    id = bulk("cancel mail due");
    assert_string_equal(counts(id), "done 1 1 1 0");
    assert_string_equal(state_of(runs), "running");
    assert_string_equal(redis("EXISTS R:uniq:mail:u"), "0");
    /* Parked ones leave their gate. */
    holder = add("gate lock door x");
    (void)add("gate lock door x");
    (void)add("gate lock door x");
    assert_string_equal(claim(w, "gate", 3), holder);
    assert_int_equal(size_of("parked:gate"), 2);
    id = bulk("cancel gate parked");
    assert_string_equal(counts(id), "done 2 2 2 0");
    assert_string_equal(redis("EXISTS R:parked:gate R:wait:lock:door R:line:gate:lock:door"), "0");
    (void)add("gate lock door x");
    (void)claim(w, "gate", 1);
    id = bulk("purge gate parked");
    assert_string_equal(counts(id), "done 1 1 1 0");
    assert_string_equal(redis("EXISTS R:parked:gate R:wait:lock:door"), "0");
    put_ended("done", "web", 1, 9, 5000, "ok");
    id = bulk("purge web done key k1");
    assert_string_equal(counts(id), "done 9 9 5 0");
    put_dead("web", 100, 9, 1000);
    id = bulk("purge web dead");
    assert_string_equal(counts(id), "done 9 9 9 0");
    assert_string_equal(redis("HEXISTS R:jobs %s", job(101)), "0");
    (void)add("web priority 2 x");
    id = bulk("purge web due");
    assert_string_equal(counts(id), "done 1 1 1 0");
    assert_string_equal(redis("ZSCORE R:heads web"), "nil");
}

/* One that ended later is kept, even if it is forgotten earlier. */
static void test_done_later(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_ended("done", "mail", 1, 200, 9000, "ok");
    id = bulk("purge mail done");
    pass(5);
    put_ended("done", "mail", 500, 1, 8000, "ok");
    (void)send_args(4,
                    (const char *[]){"HSET", ROOT ":results", job(500),
                                     text("done 0 %lld 1 ok\n", (long long)clock_ms())},
                    NULL);
    (void)finish(w);
    assert_int_equal(number(id, "changed"), 200);
    assert_int_equal(size_of("done:mail"), 1);
}

static void test_reschedule_counts_each_once(void **state)
{
    const char *w, *id, *failed;

    (void)state;
    begin();
    w = worker();
    for (int i = 0; i < 300; i++)
        (void)add("mail in %ds x", 10 + i);
    /* To a time among theirs, so that it meets those that it has moved. */
    id = bulk("reschedule mail due at %lld", (long long)clock_ms() + 200000);
    pass(1);
    (void)go_on(w);
    failed = add("mail x");
    assert_string_equal(claim(w, "mail", 1), failed);
    pass(20);
    (void)finish(w);
    assert_string_equal(counts(id), "done 300 299 299 0");
    (void)redis("ZCOUNT R:q:mail:5 %lld %lld", (long long)START_US / 1000 + 200000,
                (long long)START_US / 1000 + 200000);
    assert_int_equal(reply_int(fx.last), 300);
    /* Parked ones wait for the time, then for their gate. */
    (void)add("gate lock door x");
    for (int i = 0; i < 250; i++)
        (void)add("gate lock door x");
    for (int i = 0; i < 8; i++)
        (void)claim(w, "gate", 128);
    assert_int_equal(size_of("parked:gate"), 250);
    id = bulk("reschedule gate parked at +1ms");
    for (pass(1); go_on(w) > 0; pass(20))
        (void)claim(w, "gate", 128); /* they are parked again */
    assert_string_equal(counts(id), "done 250 250 250 0");
}

/* A job that failed since keeps the time of its retry. */
static void test_reschedule_leaves_what_failed_since(void **state)
{
    const char *w, *id, *first;

    (void)state;
    begin();
    w = worker();
    first = add("mail x");
    for (int i = 0; i < 250; i++)
        (void)add("mail in %dm x", 10 + i);
    assert_string_equal(claim(w, "mail", 1), first);
    assert_string_equal(settle(w, first, 1, "retry", 3600000), "ok");
    assert_string_equal(redis("ZSCORE R:q:mail:5 %s", first),
                        text("%lld", (long long)clock_ms() + 3600000));
    pass(5);
    id = bulk("reschedule mail due at +1s");
    (void)finish(w);
    assert_string_equal(counts(id), "done 251 251 251 0");
}

/* ---- what cannot be changed, and what cannot be read */

static void test_failures(void **state)
{
    const char *w, *id, *one, *other;

    (void)state;
    begin();
    w = worker();
    one = add("mail unique u x");
    assert_string_equal(claim(w, "mail", 1), one);
    assert_string_equal(settle(w, one, 1, "dead", 1000), "ok");
    other = add("mail unique u y");
    put_dead("mail", 1, 10, clock_ms());
    (void)redis("HSET R:jobs %s garbage", job(3));
    (void)redis("HDEL R:jobs %s", job(4));
    (void)redis("ZADD R:running %s %s", w, job(5));
    id = bulk("retry mail dead");
    assert_string_equal(counts(id), "done 11 11 7 4");
    assert_starts(field(id, "error"), "ELATER_UNIQUE job ");
    assert_int_equal(size_of("dead:mail"), 4);
    assert_string_equal(state_of(other), "waiting");
    (void)redis("SET R:uniq:mail:u %s", one);
    (void)redis("HSET R:limits a b");
    id = bulk("purge mail dead");
    assert_string_equal(counts(id), "done 4 4 3 1"); /* one runs */
    assert_starts(field(id, "error"), "ELATER_STATE job ");
    put_dead("web", 100, 4, 1000);
    (void)redis("SET R:names x");
    assert_starts(fcall("later_bulk retry web dead to new"), "!ELATER_TYPE");
    id = bulk("retry web dead");
    assert_string_equal(counts(id), "done 4 4 0 4");
    assert_starts(field(id, "error"), "ELATER_TYPE key " ROOT ":names is a string");
}

static void test_wrong_types(void **state)
{
    const char *w, *broken, *fine;

    (void)state;
    begin();
    w = worker();
    (void)redis("SET R:dead:mail x");
    assert_refused("ELATER_TYPE", "later_bulk retry mail dead");
    (void)redis("DEL R:dead:mail");
    put_dead("mail", 1, 300, 1000);
    put_dead("web", 1000, 300, 1000);
    broken = bulk("retry mail dead");
    fine = bulk("retry web dead");
    (void)redis("RENAME R:dead:mail aside");
    (void)redis("SET R:dead:mail x");
    pass(1);
    for (int i = 0; i < 10; i++)
        pass(go_on(w));
    assert_string_equal(counts(fine), "done 300 300 300 0");
    assert_string_equal(counts(broken), "active 300 0 0 0");
    assert_starts(field(broken, "error"), "ELATER_TYPE key " ROOT ":dead:mail is a string");
    (void)redis("RENAME aside R:dead:mail");
    (void)finish(w);
    assert_string_equal(counts(broken), "done 300 300 300 0");
    (void)redis("DEL R:bulks");
    (void)redis("SET R:bulks x");
    assert_refused("ELATER_TYPE", "later_bulk retry mail dead");
    assert_refused("ELATER_TYPE", "later_bulk_show");
    assert_refused("ELATER_TYPE", "later_v1_bulk %s", w);
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
}

static void test_broken_ones_harm_no_other(void **state)
{
    const char *w, *ids[5];

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 1200, 1000);
    for (int i = 0; i < 5; i++)
        ids[i] = bulk("retry mail dead key k%d", i % 2);
    (void)redis("HSET R:bulk:%s seen garbage", ids[0]);
    (void)redis("DEL R:bulk:%s", ids[1]);
    (void)redis("SET R:bulk:%s x", ids[1]);
    (void)redis("HDEL R:bulk:%s total", ids[2]);
    (void)redis("DEL R:bulk:%s", ids[3]);
    (void)redis("ZADD R:bulks 5 odd");
    (void)finish(w);
    assert_string_equal(counts(ids[4]), "done 1200 1200 600 0");
    assert_string_equal(field(ids[0], "status"), "broken");
    assert_string_equal(named("error"), "its field seen is corrupt");
    assert_string_equal(field(ids[1], "status"), "broken");
    assert_starts(named("error"), "ELATER_TYPE ");
    assert_string_equal(field(ids[2], "error"), "its field total is missing or corrupt");
    assert_string_equal(field(ids[3], "error"), "it is not there");
    assert_starts(fcall("later_bulk_show"), "[[bulk odd status broken error it is not there]");
    assert_int_equal(len_at(-1), 6);
    assert_refused("ELATER_STATE", "later_bulk_abort %s", ids[0]);
    (void)redis("HSET R:bulk:b0000000000x status active");
    (void)fcall("later_v1_audit keys '' 100 bulks zset bulk:%s hash bulk:b0000000000x hash",
                ids[0]);
    assert_int_equal(len_at(-1), 2 + 5 + 1);
    assert_string_equal(at(2, 0, -1), "broken-bulk");
    assert_string_equal(at(7, 0, -1), "leftover");
    (void)fcall("later_v1_repair keys '' 100 bulks zset bulk:b0000000000x hash");
    assert_int_equal(size_of("bulks"), 1);
    assert_string_equal(redis("EXISTS R:bulk:%s R:bulk:%s R:bulk:b0000000000x", ids[0], ids[2]),
                        "0");
    assert_string_equal(redis("GET R:bulk:%s", ids[1]), "x"); /* not ours */
    assert_string_equal(fcall("later_v1_audit keys '' 100 bulks zset"), "[ 1]");
}

/* Members of a set that are no jobs are passed over. */
static void test_strange_members(void **state)
{
    const char *w, *id;

    (void)state;
    begin();
    w = worker();
    put_dead("mail", 1, 300, 1000);
    for (int i = 0; i < 500; i++)
        (void)redis("ZADD R:dead:mail 1000 aaa%0200d", i);
    id = bulk("retry mail dead");
    (void)finish(w);
    assert_string_equal(counts(id), "done 800 300 300 0");
    assert_int_equal(size_of("dead:mail"), 500);
}

/* ---- limits */

static void test_arguments(void **state)
{
    static const char *const bad[] = {
        "",
        "retry",
        "retry mail",
        "retry mail due",
        "cancel mail dead",
        "reschedule mail done at +1s",
        "purge mail running",
        "run mail dead",
        "retry mail dead key",
    };
    static const char *const options[] = {
        "retry mail dead spare 1",  "retry mail dead key a KEY b", "cancel mail due to web",
        "purge mail due spread 1s", "cancel mail due at +1s",      "reschedule mail due",
        "retry mail dead rate 5",   "retry mail dead rate 0/s",    "retry mail dead rate 1000001/s",
        "retry mail dead rate 5/",  "retry mail dead by ''",       "retry mail dead reason ''",
        "retry mail dead key ''",
    };

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_refused("ELATER_ARGS", "later_bulk%s%s", bad[i][0] != '\0' ? " " : "", bad[i]);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        assert_refused("ELATER_OPTION", "later_bulk %s", options[i]);
    assert_refused("ELATER_QUEUE", "later_bulk retry a/b dead");
    assert_refused("ELATER_QUEUE", "later_bulk retry mail dead to a/b");
    assert_refused("ELATER_TIME", "later_bulk retry mail dead at soon");
    assert_refused("ELATER_TIME", "later_bulk retry mail dead spread soon");
    assert_refused("ELATER_TIME", "later_bulk retry mail dead rate 5/5");
    assert_refused("ELATER_TIME", "later_bulk retry mail dead rate 5/0s");
    assert_refused("ELATER_OPTION", "later_bulk retry mail dead reason %0257d", 1);
    assert_refused("ELATER_OPTION", "later_bulk retry mail dead key %0257d", 1);
    assert_refused("ELATER_OPTION", "later_bulk retry mail dead by %0201d", 1);
    (void)bulk("retry mail dead reason %0256d key %0256d by %0200d why %0200d", 1, 2, 3, 4);
    assert_refused("ELATER_OPTION", "later_bulk retry mail dead by a\tb");
}

static void test_how_many(void **state)
{
    const char *first, *w;
    int n;

    (void)state;
    begin();
    w = worker();
    first = bulk("retry mail dead");
    for (int i = 1; i < 100; i++)
        (void)bulk("retry mail dead");
    assert_int_equal(size_of("bulks"), 100);
    put_dead("mail", 1, 200, 1000);
    (void)bulk("retry mail dead rate 1/s");
    assert_int_equal(size_of("bulks"), 100);
    assert_refused("ELATER_NOBULK", "later_bulk_show %s", first);
    assert_string_equal(redis("EXISTS R:bulk:%s", first), "0");
    for (n = 1; fcall("later_bulk retry mail dead rate 1/s")[0] == '['; n++)
        assert_true(n < 100);
    assert_int_equal(n, 16);
    assert_refused("ELATER_FULL", "later_bulk retry mail dead");
    assert_int_equal(size_of("bulks"), 100);
    pass(1);
    assert_in_range(go_on(w), 1, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_few_are_done_at_once),
        FX_TEST(test_few_large_ones_go_on_later),
        FX_TEST(test_what_dies_later_is_not_meant),
        FX_TEST(test_clock_set_back),
        FX_TEST(test_newer_jobs_are_not_meant),
        FX_TEST(test_ties),
        FX_TEST(test_only_those_with_a_key_or_reason),
        FX_TEST(test_reasons),
        FX_TEST(test_many_stars),
        FX_TEST(test_abort),
        FX_TEST(test_rate),
        FX_TEST(test_slow_and_fast_rates),
        FX_TEST(test_spread),
        FX_TEST(test_another_worker_takes_over),
        FX_TEST(test_several_go_on_by_turns),
        FX_TEST(test_workers_hear_of_it),
        FX_TEST(test_retry_to_another_queue),
        FX_TEST(test_cancel_and_purge),
        FX_TEST(test_done_later),
        FX_TEST(test_reschedule_counts_each_once),
        FX_TEST(test_reschedule_leaves_what_failed_since),
        FX_TEST(test_failures),
        FX_TEST(test_wrong_types),
        FX_TEST(test_broken_ones_harm_no_other),
        FX_TEST(test_strange_members),
        FX_TEST(test_arguments),
        FX_TEST(test_how_many),
    };

    return cmocka_run_group_tests(tests, still_open, still_close);
}
