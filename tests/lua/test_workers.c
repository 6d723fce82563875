/*
 * Workers: register, beat, reconcile, reap, leave; tidy, notes, quiet.
 *
 * Reason for its length: one small test for each thing that a worker can meet.
 */
#include "fixture.h"

#define MAIL "mail 10 1048576"

/* A worker that runs a job of queue mail. */
struct held_job {
    const char *w, *id;
};

static struct held_job holder(const char *options)
{
    struct held_job h;

    h.w = worker();
    h.id = add("mail %s x", options);
    assert_string_equal(claim(h.w, "mail", 1), h.id);
    return h;
}

static void set_field(const char *key, const char *id, const char *value)
{
    const char *argv[] = {"HSET", text(ROOT ":%s", key), id, value};

    (void)send_args(4, argv, NULL);
}

/* ---- register */

static void test_register(void **state)
{
    const char *a, *b;

    (void)state;
    (void)fcall("later_v1_register 0 inst 1 0 2 host h1 queues mail,sms 1 max_payload 5000 0");
    a = at(1, -1);
    assert_string_equal(text("%s %s %s %s", at(2, -1), at(3, -1), at(4, -1), at(5, -1)),
                        "1 0 [] []");
    assert_int_equal(strlen(a), 16);
    assert_string_equal(redis("HGETALL R:workers"), text("[%s 1]", a));
    assert_starts(redis("HGETALL R:worker:%s", a), "[link 1 inst inst seq 1 started ");
    assert_string_equal(redis("HMGET R:worker:%s host queues", a), "[h1 mail,sms]");
    assert_string_equal(redis("HGETALL R:config"), "[max_payload 5000]");
    b = worker();
    assert_true(strcmp(a, b) < 0);
    assert_string_equal(at(5, -1), text("[%s 1 h1    ]", a));
    (void)fcall("later_v1_register %lld other 1 0 0 0 0", (long long)atoll(b) + 1000000000);
    assert_string_equal(at(3, -1), "1"); /* Redis lost numbers that it had given out */
    assert_true(int_at(1, -1) > atoll(b) + 1000000000);
}

static void test_register_refusals(void **state)
{
    static const char *const rows[] = {"",
                                       "0",
                                       "0 i",
                                       "0 i 1",
                                       "0 i 1 0",
                                       "0 i 1 0 0",
                                       "0 i 1 0 0 0",
                                       "0 i 1 0 1 host 0 0",
                                       "0 i 1 0 0 0 1 j",
                                       "nan i 1 0 0 0 0",
                                       "0 i nan 0 0 0 0",
                                       "0 i 1 -5 0 0 0",
                                       "1e9 i 1 0 0 0 0",
                                       "0 i 1 0 nan 0 0",
                                       "0 i 1 0 0.5 0 0",
                                       "0 i 1 0 -1 0 0",
                                       "99999999999999999 i 1 0 0 0 0",
                                       "9007199254740993 i 1 0 0 0 0"};
    static const char *const keys[] = {"workers", "running", "tries", "clock"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused("ELATER_ARGS", "later_v1_register%s%s", rows[i][0] != '\0' ? " " : "",
                       rows[i]);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)redis("FLUSHALL");
        (void)redis("RPUSH R:%s x", keys[i]);
        assert_refused("ELATER_TYPE", "later_v1_register 0 i 1 0 0 0 0");
    }
}

static void test_ghosts(void **state)
{
    const char *first, *second;

    (void)state;
    (void)fcall("later_v1_register 0 inst 5 0 0 0 0"); /* its reply is lost */
    first = at(1, -1);
    (void)fcall("later_v1_register 0 inst 6 0 0 0 0");
    second = at(1, -1);
    assert_string_equal(at(5, -1), "[]");
    assert_string_equal(redis("HKEYS R:workers"), text("[%s]", second));
    assert_string_equal(redis("EXISTS R:worker:%s", first), "0");
    assert_refused("ELATER_WORKER", "later_v1_register 0 inst 5 0 0 0 0");
    assert_refused("ELATER_WORKER", "later_v1_register 0 inst 6 0 0 0 0");
    (void)redis("HSET R:workers %s dead", second); /* a dead one is reaped, not dropped */
    assert_starts(fcall("later_v1_register 0 inst 6 0 0 0 0"), "[");
    assert_starts(at(5, -1), text("[%s dead", second));
}

/* Whether a job with start number 2 is adopted, by what became of it. */
static void test_adoption(void **state)
{
    static const struct {
        const char *what, *answer;
    } rows[] = {{"held", "adopted"},    {"unknown", "adopted"}, {"other", "taken"},
                {"restarted", "taken"}, {"reaped", "adopted"},  {"unclaimed", "adopted"},
                {"older", "taken"},     {"gone", "gone"},       {"dead", "gone"},
                {"done", "gone"},       {"broken", "gone"},     {"wrongtype", "taken"},
                {"settled", "taken"},   {"released", "taken"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *what = rows[i].what, *w, *id, *new;

        (void)redis("FLUSHALL");
        w = worker();
        id = add("mail x");
        (void)claim(w, "mail", 1);
        set_field("tries", id, "2 2 0 1000");
        if (strcmp(what, "unknown") == 0) {
            (void)redis("HDEL R:workers %s", w);
            w = "77";
        } else if (strcmp(what, "other") == 0) {
            (void)redis("ZADD R:running %s %s", worker(), id);
        } else if (strcmp(what, "restarted") == 0) {
            set_field("tries", id, "3 3 0 1000");
        } else if (strcmp(what, "reaped") == 0 || strcmp(what, "wrongtype") == 0) {
            (void)fcall("later_v1_reap %s %s 1 9 9", worker(), w);
        } else if (strcmp(what, "settled") == 0) {
            (void)settle(w, id, 2, "retry", 60000); /* and the answer was lost */
        } else if (strcmp(what, "released") == 0) {
            (void)settle(w, id, 2, "release", 60000);
        } else if (strcmp(what, "unclaimed") == 0 || strcmp(what, "older") == 0) {
            (void)settle(w, id, 2, "retry", 60000);
            set_field("tries", id, strcmp(what, "older") == 0 ? "0 0 0 1000" : "1 1 0 1000");
        } else if (strcmp(what, "gone") == 0) {
            (void)settle(w, id, 2, "done", 0);
        } else if (strcmp(what, "dead") == 0 || strcmp(what, "done") == 0) {
            (void)settle(w, id, 2, what, 50000);
        } else if (strcmp(what, "broken") == 0) {
            (void)redis("HSET R:jobs %s junk", id);
        }
        if (strcmp(what, "wrongtype") == 0)
            (void)redis("SET R:q:mail:5 x");
        (void)fcall("later_v1_register 0 back 1 %s 0 0 1 %s 2", w, id);
        new = at(1, -1);
        if (strcmp(at(4, 0, -1), rows[i].answer) != 0)
            fail_msg("%s: %s", what, shown(fx.last));
        if (strcmp(rows[i].answer, "adopted") == 0) {
            assert_string_equal(redis("ZSCORE R:running %s", id), new);
            assert_starts(redis("HGET R:tries %s", id), "2 2 ");
            assert_string_equal(redis("EXISTS R:q:mail:5"), "0");
            assert_string_equal(settle(new, id, 2, "done", 0), "ok");
        }
    }
}

static void test_register_releases_what_is_not_named(void **state)
{
    struct held_job h = holder("in 0s");
    const char *named_id = add("mail y"), *broken = add("sms z");

    (void)state;
    (void)claim(h.w, "mail", 1);
    (void)claim(h.w, "sms", 1);
    (void)redis("SET R:q:sms:5 x"); /* cannot be put back: must not keep the worker out */
    (void)fcall("later_v1_register 0 back 1 %s 0 0 1 %s 1", h.w, named_id);
    assert_string_equal(at(4, -1), "[adopted]");
    assert_string_equal(state_of(h.id), "waiting");
    assert_starts(redis("HGET R:tries %s", h.id), "1 0 0 "); /* no attempt spent; start is used */
    assert_string_equal(state_of(broken), "running");
}

/* ---- beat */

static void test_beat(void **state)
{
    struct held_job h = holder("in 0s");
    const char *other = worker();

    (void)state;
    (void)fcall("later_v1_beat %s mail,sms", h.w);
    assert_string_equal(
        text("%s %s %s %s %s", at(1, -1), at(2, -1), at(3, -1), at(4, -1), at(5, -1)),
        text("ok 1 1 0 [%s 1]", other));
    assert_string_equal(redis("HGET R:worker:%s queues", h.w), "mail,sms");
    (void)fcall("later_v1_beat %s", h.w);
    assert_string_equal(redis("HGET R:workers %s", h.w), "3");
    /* Jobs are held under epochs that nobody knows. */
    (void)redis("ZADD R:running 123 a 123 b 456 c");
    (void)fcall("later_v1_beat %s", other);
    assert_string_equal(at(5, -1), text("[%s 3 123 ? 456 ?]", h.w));
    assert_string_equal(fcall("later_v1_quiet %s on", other), "1");
    (void)fcall("later_v1_beat %s", other);
    assert_string_equal(at(4, -1), "1");
    assert_non_null(strstr(fcall("later_v1_beat 42"), " unknown 0 0 0 []]"));
    assert_non_null(strstr(fcall("later_v1_beat"), " unknown 0 0 0 []]"));
    (void)redis("HSET R:workers %s dead", h.w);
    assert_non_null(strstr(fcall("later_v1_beat %s", h.w), " dead 0 0 0 []]"));
    assert_string_equal(redis("HGET R:workers %s", h.w), "dead");
    (void)redis("DEL R:worker:%s", other);
    assert_non_null(strstr(fcall("later_v1_beat %s", other), " unknown 0 0 0 []]"));
    (void)redis("DEL R:workers");
    (void)redis("SET R:workers x");
    assert_refused("ELATER_TYPE", "later_v1_beat %s", other);
}

/* ---- reconcile */

static void test_reconcile(void **state)
{
    struct held_job h = holder("in 0s");
    const char *kept = add("mail y"), *stale = add("mail z"), *before;

    (void)state;
    (void)claim(h.w, "mail", 2);
    (void)fcall("later_v1_reconcile %s 1 3 %s 1 %s 9 j00000000000 1", h.w, kept, stale);
    assert_string_equal(at(1, -1), "ok");
    assert_string_equal(at(2, -1), "2");
    assert_string_equal(at(3, -1),
                        "2"); /* the one never heard of, and the one with another start */
    assert_string_equal(at(4, -1), text("[%s j00000000000]", stale));
    assert_string_equal(redis("ZRANGE R:running 0 -1"), text("[%s]", kept));
    assert_starts(redis("HGET R:tries %s", h.id), "1 0 0 ");
    before = snapshot();
    assert_non_null(strstr(fcall("later_v1_reconcile %s 1 0", h.w), " link 0 0 [] 0]"));
    assert_non_null(strstr(fcall_sync("%s 1 0 9 0 1 " MAIL, h.w), " link]")); /* a delayed call */
    assert_non_null(strstr(fcall("later_v1_reconcile 42 1 0"), " unknown 0 0 [] 0]"));
    assert_string_equal(snapshot(), before);
    assert_refused("ELATER_ARGS", "later_v1_reconcile %s 2", h.w);
    assert_refused("ELATER_ARGS", "later_v1_reconcile %s 2 1 j", h.w);
    assert_refused("ELATER_ARGS", "later_v1_reconcile %s 2 nan", h.w);
    (void)redis("DEL R:q:mail:5");
    (void)redis("SET R:q:mail:5 x");
    assert_non_null(
        strstr(fcall("later_v1_reconcile %s 2 0", h.w), " ok 3 0 [] 0]")); /* they stay held */
    assert_string_equal(redis("ZRANGE R:running 0 -1"), text("[%s]", kept));
    (void)redis("HSET R:workers %s dead", h.w);
    assert_non_null(strstr(fcall("later_v1_reconcile %s 3 0", h.w), " dead 0 0 [] 0]"));
}

/* A restored snapshot may still have the worker's entry: then its reconcile tells Redis which
 * numbers were given out already. */
static void test_reconcile_lifts_the_clock(void **state)
{
    const char *w = worker();
    long long seen = atoll(redis("GET R:clock")) + 3600000000LL;

    (void)state;
    (void)fcall("later_v1_reconcile %s 1 0 %lld", w, seen);
    assert_string_equal(at(5, -1), "1"); /* numbers were lost */
    assert_string_equal(redis("GET R:clock"), text("%lld", seen));
    (void)add("mail x");
    (void)fcall_sync("%s 2 0 9 0 1 " MAIL, w);
    assert_true(atoll(claimed(0, CLAIM_FENCE)) > seen);
    (void)fcall("later_v1_reconcile %s 2 0 %lld", w, seen - 5);
    assert_string_equal(at(5, -1), "0");
    (void)fcall("later_v1_reconcile %s 3 0", w); /* an older daemon does not tell it */
    assert_string_equal(at(5, -1), "0");
    assert_refused("ELATER_ARGS", "later_v1_reconcile %s 4 0 nan", w);
    /* No clock gave this number out: the worker met a garbage score, and must be able to go on. */
    (void)fcall("later_v1_reconcile %s 4 0 9007199254740991", w);
    assert_string_equal(text("%s %s", at(1, -1), at(5, -1)), "ok 0");
}

/* ---- reap */

static void test_reap(void **state)
{
    struct held_job h = holder("priority 3");
    const char *w = worker(), *before;

    (void)state;
    (void)redis("HSET R:progress %s 50", h.id);
    (void)fcall("later_v1_beat %s", h.w);
    before = snapshot();
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", w, h.w), "[alive 0]"); /* it moved */
    assert_string_equal(fcall("later_v1_reap %s %s ? 3 100", w, h.w), "[alive 0]");
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, h.w), "[alive 0]");
    assert_string_equal(fcall("later_v1_reap %s 42 1 3 100", w), "[clear 0]");
    assert_string_equal(fcall("later_v1_reap 42 %s 2 3 100", h.w), "[unknown 0]");
    assert_string_equal(snapshot(), before);
    assert_string_equal(fcall("later_v1_reap %s %s 2 3 100", w, h.w), "[clear 1]");
    assert_string_equal(redis("EXISTS R:worker:%s R:running R:progress", h.w), "0");
    assert_string_equal(redis("HKEYS R:workers"), text("[%s]", w));
    assert_starts(redis("HGET R:tries %s", h.id), "1 1 1 ");
    assert_starts(fcall("later_result %s", h.id), "[failed 0 ");
    assert_non_null(strstr(at(4, -1), "died while it ran (crash 1)"));
    assert_string_equal(settle(w, h.id, 1, "done", 0), "settled");
    assert_string_equal(claim(w, "mail", 1), h.id);
    assert_string_equal(text("%s %s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT),
                             claimed(0, CLAIM_CRASHES)),
                        "2 2 1");
    assert_refused("ELATER_ARGS", "later_v1_reap %s", w);
    assert_refused("ELATER_ARGS", "later_v1_reap %s x 1 3 100", w);
    assert_refused("ELATER_ARGS", "later_v1_reap %s 42 1 nan 100", w);
    assert_refused("ELATER_ARGS", "later_v1_reap %s 42 1 3 -1", w);
}

static void test_reap_in_batches(void **state)
{
    struct buf b = BUF_INIT;
    const char *victim = worker(), *w = worker();

    (void)state;
    buf_puts(&b, "later_add_many mail");
    for (int i = 0; i < 300; i++)
        buf_puts(&b, " x");
    (void)call_line(buf_str(&b));
    buf_done(&b);
    (void)claim(victim, "mail", 300);
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", w, victim), "[more 128]");
    assert_string_equal(redis("HGET R:workers %s", victim), "dead");
    assert_non_null(strstr(fcall_sync("%s 1 0 9 0 1 " MAIL, victim), " dead]"));
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", worker(), victim),
                        "[more 128]"); /* any worker may go on */
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, victim), "[clear 44]");
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, victim), "[clear 0]");
    assert_string_equal(redis("ZCARD R:q:mail:5"), "300");
    assert_string_equal(redis("HEXISTS R:workers %s", victim), "0");
}

/* Stuck jobs, more than a batch, do not keep those behind them from being moved. */
static void test_reap_passes_by_what_is_stuck(void **state)
{
    struct buf b = BUF_INIT;
    const char *victim = worker(), *w = worker(), *id;

    (void)state;
    buf_puts(&b, "later_add_many mail");
    for (int i = 0; i < 200; i++)
        buf_puts(&b, " x");
    (void)call_line(buf_str(&b));
    buf_done(&b);
    id = add("sms x");
    (void)claim(victim, "mail", 200);
    (void)claim(victim, "sms", 1);
    (void)redis("SET R:q:mail:5 x");
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", w, victim), "[more 1]");
    assert_string_equal(state_of(id), "waiting");
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, victim), "[more 0]");
    (void)redis("DEL R:q:mail:5");
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, victim), "[more 128]");
    assert_string_equal(fcall("later_v1_reap %s %s dead 3 100", w, victim), "[clear 72]");
}

static void test_reap_strangers(void **state)
{
    struct held_job h = holder("in 0s");
    const char *w = worker();

    (void)state;
    (void)redis("HDEL R:workers %s", h.w);
    assert_string_equal(fcall("later_v1_reap %s %s ? 3 100", w, h.w), "[clear 1]");
    assert_string_equal(state_of(h.id), "waiting");
    assert_starts(redis("HGET R:tries %s", h.id), "1 1 1 ");
}

static void test_poison_pill(void **state)
{
    const char *id = add("mail priority 2 x"), *w = worker();

    (void)state;
    for (int crash = 1; crash <= 3; crash++) {
        const char *victim = worker();

        assert_string_equal(claim(victim, "mail", 1), id);
        assert_int_equal(atoll(claimed(0, CLAIM_CRASHES)), crash - 1);
        assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", w, victim), "[clear 1]");
        assert_string_equal(redis("EXISTS R:solo:mail"), crash == 2 ? "1" : "0");
        assert_string_equal(redis("EXISTS R:q:mail:2"), crash == 1 ? "1" : "0");
    }
    assert_starts(fcall("later_result %s", id), "[dead 0 ");
    assert_starts(at(4, -1), "poison pill: worker ");
    assert_starts(fcall("later_retry %s", id), "[j");
    assert_string_equal(redis("ZCARD R:q:mail:2"), "1");
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(text("%s %s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT),
                             claimed(0, CLAIM_CRASHES)),
                        "4 1 0");
}

static void test_reap_cancelled_and_broken(void **state)
{
    struct held_job h = holder("keep 1h");
    const char *w = worker(), *bare = add("mail y"), *corrupt = add("mail z"),
               *missing = add("mail z");

    (void)state;
    (void)claim(h.w, "mail", 3);
    (void)fcall("later_cancel %s", h.id);
    (void)fcall("later_cancel %s", bare);
    (void)redis("HDEL R:jobs %s", missing);
    set_field("jobs", corrupt, "-mail 5 k=no\nz");
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", w, h.w), "[clear 4]");
    assert_starts(fcall("later_result %s", h.id), "[cancelled 0 ");
    assert_string_equal(state_of(bare), "gone");
    assert_string_equal(state_of(corrupt), "dead"); /* what is left of it, with the reason */
    assert_string_equal(named("payload"), "-mail 5 k=no\\nz");
    assert_string_equal(state_of(missing), "gone");
    assert_string_equal(redis("EXISTS R:cancel R:running"), "0");
    assert_string_equal(redis("HGET R:stats cancelled:mail"), "2");
}

/* ---- leave, quiet, workers */

static void test_leave(void **state)
{
    struct held_job h = holder("in 0s");

    (void)state;
    assert_string_equal(fcall("later_v1_leave %s", h.w), "holds");
    assert_string_equal(settle(h.w, h.id, 1, "done", 0), "ok");
    assert_string_equal(fcall("later_v1_leave %s", h.w), "left");
    assert_string_equal(fcall("later_v1_leave %s", h.w), "unknown");
    assert_string_equal(fcall("later_v1_leave"), "unknown");
    assert_string_equal(redis("EXISTS R:workers R:worker:%s", h.w), "0");
}

static void test_quiet(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    const char *a = worker(), *b = worker();

    (void)state;
    assert_string_equal(fcall("later_v1_quiet * on"), "2");
    assert_string_equal(fcall("later_v1_quiet %s off", a), "1");
    assert_string_equal(heard(c, "R:wake"), "!beat,!beat");
    assert_string_equal(redis("HGET R:worker:%s quiet", a), "0");
    assert_string_equal(redis("HGET R:worker:%s quiet", b), "1");
    (void)redis("HSET R:workers %s dead", b);
    (void)redis("DEL R:worker:%s", b);
    assert_string_equal(fcall("later_v1_quiet * on"), "1"); /* the dead are not told */
    assert_string_equal(redis("EXISTS R:worker:%s", b), "0");
    assert_refused("ELATER_WORKER", "later_v1_quiet %s on", b);
    assert_refused("ELATER_WORKER", "later_v1_quiet 42 on");
    assert_refused("ELATER_ARGS", "later_v1_quiet *");
    assert_refused("ELATER_ARGS", "later_v1_quiet * maybe");
    client_close(c);
}

static void test_workers(void **state)
{
    const char *a;

    (void)state;
    (void)fcall("later_v1_register 0 i 1 0 4 host h pid 12 version 0.1 queues mail 0 0");
    a = at(1, -1);
    (void)add("mail x");
    (void)claim(a, "mail", 1);
    (void)fcall("later_v1_workers");
    assert_starts(at(1, -1), text("[%s 1 1 h 12 0.1 ", a));
    assert_string_equal(text("%s %s", at(1, 7, -1), at(1, 8, -1)), "mail 0");
    (void)redis("HSET R:workers 77 dead");
    (void)fcall("later_v1_workers");
    assert_string_equal(at(2, -1), "[77 dead 0      0    ]");
    (void)fcall("later_v1_tidy %s 0 3 modes mail=stream defects broken other x", a);
    (void)fcall("later_v1_workers");
    assert_string_equal(text("%s %s", at(1, 9, -1), at(1, 10, -1)), "mail=stream broken");
}

/* ---- tidy, note */

static void test_tidy_trims(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *id = add("mail x");

        (void)claim(w, "mail", 1);
        (void)settle(w, id, 1, i == 0 ? "done" : "dead", 60000);
        if (i < 2)
            (void)redis("ZADD R:%s:mail %lld %s", i == 0 ? "done" : "dead",
                        (long long)now_ms() - 7000, id);
    }
    (void)redis("HSET R:await x 1000 y %lld", (long long)now_ms() + 60000);
    (void)redis("HSET R:notes old:x 1000 new:x %lld", (long long)now_ms());
    assert_string_equal(fcall("later_v1_tidy %s 1 mail 8000", w), "[[] 0]");
    assert_string_equal(redis("EXISTS R:done:mail R:results"), "0");
    assert_string_equal(redis("ZCARD R:dead:mail"), "2");
    assert_string_equal(fcall("later_v1_tidy %s 1 mail 5000", w), "[[] 0]");
    assert_string_equal(redis("ZCARD R:dead:mail"), "1");
    assert_string_equal(redis("HLEN R:jobs"), "1");
    assert_string_equal(redis("HLEN R:errors"), "1");
    assert_string_equal(redis("HKEYS R:await"), "[y]");
    assert_string_equal(redis("HKEYS R:notes"), "[new:x]");
}

static void test_tidy_buries_what_is_never_due(void **state)
{
    const char *w = worker();

    (void)state;
    (void)redis("ZADD R:due:mail inf a 1e308 b 100000000000001 c 100000000000000 d 1 e");
    (void)redis("SET R:due:sms x"); /* a wrong type does not stop the other queue */
    assert_string_equal(fcall("later_v1_tidy %s 2 sms 5000 mail 5000", w), "[[] 3]");
    assert_string_equal(redis("ZRANGE R:due:mail 0 -1"), "[e d]");
    assert_string_equal(redis("ZCARD R:dead:mail"), "3");
    (void)redis("ZRANGE R:dead:mail -1 -1");
    assert_starts(fcall("later_result %s", at(0, -1)), "[dead 0 ");
    assert_non_null(strstr(at(4, -1), "its score inf is not finite or after the year 5000"));
    (void)redis("DEL R:dead:mail");
    (void)redis("SET R:dead:mail x");
    (void)redis("ZADD R:due:mail inf a");
    assert_string_equal(fcall("later_v1_tidy %s 1 mail 5000", w), "[[] 0]");
    assert_string_equal(redis("ZCARD R:due:mail"), "3"); /* it stays rather than get lost */
}

static void test_tidy_repairs_marks(void **state)
{
    const char *w = worker(), *id = add("mail priority 8 x");

    (void)state;
    (void)redis("DEL R:prio");
    assert_string_equal(claim(w, "mail", 1), "nil");
    (void)redis("ZADD R:solo:mail 4102444800000 %s", id);
    (void)fcall("later_v1_tidy %s 1 mail 5000", w);
    assert_string_equal(redis("HGET R:prio mail"), "8s");
    assert_string_equal(claim(w, "mail", 1), id);
}

static void test_unserved_queues(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_v1_beat %s mail,fax", w);
    (void)add("mail x");
    (void)add("sms x");
    (void)add("tel in 1h x");
    (void)add("off x");
    (void)fcall("later_pause off");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
    assert_string_equal(redis("HKEYS R:unserved"), "[sms]"); /* not yet for a minute */
    (void)redis("HSET R:unserved sms %lld", (long long)now_ms() - 60000);
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[sms] 0]");
    assert_string_equal(redis("HKEYS R:notes"), "[unserved-queue:sms]");
    (void)fcall("later_stats");
    assert_starts(at(6, -1), "[unserved-queue:sms ");
    (void)fcall("later_v1_beat %s mail,sms", w);
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
    assert_string_equal(redis("EXISTS R:unserved R:notes"), "0");
}

/* A head only says when to look. Nobody looks where nobody serves: there it may be of jobs that
 * were cancelled, moved or purged. */
static void test_unserved_without_due_jobs(void **state)
{
    const char *w = worker(), *gone = add("gone x"), *moved = add("moved x");

    (void)state;
    (void)add("purged x");
    (void)redis("ZADD R:heads 1000 raw 1000 empty");
    (void)redis("ZADD R:due:raw 4102444800000 x");
    (void)add("sms x");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
    (void)redis("HSET R:unserved gone 1 moved 1 purged 1 sms 1 raw 1 empty 1");
    (void)fcall("later_cancel %s", gone);
    (void)fcall("later_reschedule %s 4102444800000", moved);
    (void)redis("DEL R:q:purged:5");
    assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[sms] 0]");
    assert_string_equal(redis("HKEYS R:unserved"), "[sms]");
    assert_string_equal(redis("HKEYS R:notes"), "[unserved-queue:sms]");
    /* The heads of the others are right now. */
    assert_string_equal(redis("ZMSCORE R:heads gone purged empty moved raw"),
                        "[nil nil nil 4102444800000 4102444800000]");
    assert_string_equal(redis("ZCOUNT R:heads -inf 4102444799999"), "1");
}

/* A key of a foreign type keeps only what reads it from being done. */
static void test_tidy_past_foreign_keys(void **state)
{
    static const char *const keys[] = {"await", "notes", "names", "timers", "heads", "unserved"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int64_t today = now_ms() / 86400000;

        (void)redis("DEL R:h:mail:%lld R:batches R:batch:ended R:%s", (long long)today, keys[i]);
        (void)redis("SET R:%s x", keys[i]);
        (void)redis("HSET R:batches old keep_ms=1\n");
        (void)redis("ZADD R:batch:ended 1000 old");
        assert_string_equal(fcall("later_v1_tidy %s 0 1 series:mail 6:100", w), "[[] 0]");
        assert_string_equal(redis("EXISTS R:h:mail:%lld", (long long)today), "1");
        assert_string_equal(redis("EXISTS R:batches R:batch:ended"), "0");
        assert_string_equal(redis("GET R:%s", keys[i]), "x");
        (void)redis("DEL R:%s", keys[i]);
    }
}

/* Ten thousand programs wait for jobs: the call reads some of them, and all in time. */
static void test_tidy_of_many_awaited(void **state)
{
    const char *w = worker();
    int64_t left = 9000;

    (void)state;
    (void)redis("EVAL for\ti=1,9000\tdo\tredis.call('HSET',KEYS[1],i,i%%9==0\tand\t1000\tor\t1e15)"
                "\tend 1 R:await");
    for (int i = 0; i < 2000 && left > 8000; i++) {
        assert_string_equal(fcall("later_v1_tidy %s 0", w), "[[] 0]");
        (void)redis("HLEN R:await");
        left = int_at(-1);
    }
    assert_int_equal(left, 8000);
}

static void test_tidy_refusals(void **state)
{
    const char *w = worker(), *before;

    (void)state;
    assert_refused("ELATER_ARGS", "later_v1_tidy");
    assert_refused("ELATER_ARGS", "later_v1_tidy %s 1 mail", w);
    assert_refused("ELATER_ARGS", "later_v1_tidy %s 2 mail 5 sms soon", w);
    assert_refused("ELATER_QUEUE", "later_v1_tidy %s 2 mail 5 a:b 5", w);
    before = snapshot();
    assert_string_equal(fcall("later_v1_tidy 42 0"), "[[] 0]");
    assert_string_equal(snapshot(), before);
}

/* When there are very many names, those of empty queues are dropped, so that new ones fit. */
static void test_tidy_drops_names(void **state)
{
    const char *w = worker();
    int64_t left;

    (void)state;
    for (int i = 0; i < 1010; i++)
        (void)redis("SADD R:names n%d", i);
    (void)add("mail in 1h x");
    (void)fcall("later_pause off");
    for (int i = 0; i < 5; i++)
        (void)fcall("later_v1_tidy %s 0", w);
    left = (redis("SCARD R:names"), reply_int(fx.last));
    assert_in_range(left, 991, 1002);
    assert_string_equal(redis("SISMEMBER R:names mail"), "1");
    assert_string_equal(redis("SISMEMBER R:names off"), "1");
}

static void test_forget(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_pause unused by me");
    (void)redis("HSET R:stats done:unused 3");
    (void)redis("HSET R:queues unused lock=a");
    (void)redis("HSET R:config max_payload:unused 5");
    assert_string_equal(fcall("later_v1_forget unused"), "forgotten");
    assert_string_equal(fcall("later_v1_forget unused"), "forgotten");
    assert_string_equal(redis("EXISTS R:names R:paused R:stats R:queues R:config"), "0");
    /* One with jobs in any state is kept. */
    id = add("unused in 1h keep 1h x");
    assert_refused("ELATER_STATE", "later_v1_forget unused");
    (void)fcall("later_run_now %s", id);
    assert_string_equal(claim(w, "unused", 1), id);
    assert_refused("ELATER_STATE", "later_v1_forget unused");
    (void)fcall_sync("%s 1 0 10 1 %s 1 done unused 3600000 0 T O 0", w, id);
    assert_string_equal(state_of(id), "done");
    assert_refused("ELATER_STATE", "later_v1_forget unused");
    (void)redis("ZADD R:due:raw 1 x");
    assert_refused("ELATER_STATE", "later_v1_forget raw");
    /* So is one that a live worker serves. */
    (void)fcall("later_v1_beat %s mail,idle", w);
    assert_refused("ELATER_STATE", "later_v1_forget idle");
    assert_refused("ELATER_QUEUE", "later_v1_forget a/b");
    assert_refused("ELATER_QUEUE", "later_v1_forget");
}

/* It was fair, and no sync came by since it is so no more. */
static void test_forget_a_fair_queue(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_v1_declare %s 0 1 unused fair=1", w);
    (void)add("unused key a x");
    (void)redis("ZADD R:fair-debts:unused 5 b");
    (void)fcall_bytes(text("later_v1_declare %s 0 1 unused", w), "", 0);
    (void)fcall("later_v1_purge unused due 9");
    assert_string_equal(fcall("later_v1_forget unused"), "forgotten");
    assert_string_equal(redis("EXISTS R:fair R:fair:unused R:fair-jobs:unused"), "0");
    assert_string_equal(redis("EXISTS R:fair-next:unused R:fair-debts:unused"), "0");
}

static void test_known(void **state)
{
    const char *w = worker();

    (void)state;
    assert_string_equal(fcall("later_v1_known mail"), "[0 0]");
    (void)fcall("later_pause mail");
    assert_string_equal(fcall("later_v1_known mail"), "[1 0]");
    (void)redis("ZADD R:due:raw 1 x");
    assert_string_equal(fcall("later_v1_known raw"), "[1 0]");
    (void)fcall("later_v1_beat %s mail,idle", w);
    assert_string_equal(fcall("later_v1_known mail"), "[1 1]");
    assert_string_equal(fcall("later_v1_known idle"), "[1 1]");
    assert_string_equal(fcall("later_v1_known id"), "[0 0]");
    assert_refused("ELATER_QUEUE", "later_v1_known");
}

/* n names of queues that nobody serves. All are paused, so that tidying drops none of them. */
static void many_names(int n)
{
    (void)redis(
        "EVAL for\ti=1,%d\tdo\tredis.call('SADD',KEYS[1],'n'..i)\tredis.call('HSET',KEYS[2],"
        "'n'..i,0)\tend 2 R:names R:paused",
        n);
}

/* The limit of names does not hold for queues that a worker serves. */
static void test_served_queue_has_its_name(void **state)
{
    const char *w;

    (void)state;
    many_names(10000);
    (void)fcall("later_v1_register 0 inst 1 0 2 host h1 queues mail,sms 0 0");
    w = at(1, -1);
    (void)add("mail x");
    assert_starts(fcall("later_add_many sms x y"), "[[j");
    assert_string_equal(fcall("later_pause sms"), "paused");
    assert_refused("ELATER_FULL", "later_add fresh x");
    (void)fcall("later_v1_beat %s mail,fresh,,a:b", w);
    assert_string_equal(at(1, -1), "ok");
    (void)add("fresh x");
    assert_string_equal(redis("SISMEMBER R:names a:b"), "0");
    /* A foreign type keeps no worker from its beat. */
    (void)redis("DEL R:names");
    (void)redis("SET R:names x");
    (void)fcall("later_v1_beat %s mail", w);
    assert_string_equal(at(1, -1), "ok");
}

/* Tidying drops the names of idle queues that nobody serves. A counter of a queue without a name
 * brings the name back, so that the counter can be dropped later. */
static void test_dropped_name_takes_its_counters(void **state)
{
    const char *w, *id;

    (void)state;
    (void)fcall("later_v1_register 0 inst 1 0 2 host h1 queues sms 0 0");
    w = at(1, -1);
    id = add("mail x");
    assert_string_equal(claim(w, "mail", 1), id);
    many_names(1001);
    for (int i = 0; i < 1500; i++) /* each checks ten names */
        (void)fcall("later_v1_tidy %s 0", w);
    assert_string_equal(redis("SISMEMBER R:names mail"), "0");
    assert_string_equal(redis("SISMEMBER R:names sms"), "1");
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("HGET R:stats done:mail"), "1");
    for (int i = 0; i < 1500; i++)
        (void)fcall("later_v1_tidy %s 0", w);
    assert_string_equal(redis("HEXISTS R:stats done:mail"), "0");
}

static void test_note(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    int64_t head;

    (void)state;
    assert_string_equal(fcall("later_v1_note stray-key later:due:%c", '\n'), "noted");
    assert_string_equal(redis("HKEYS R:notes"), "[stray-key:later:due: ]");
    for (int i = 0; i < 200; i++)
        (void)fcall("later_v1_note stray-key k%d", i);
    assert_string_equal(redis("HLEN R:notes"), "100");
    (void)redis("ZADD R:due:mail -inf a");
    (void)heard(c, "R:wake");
    assert_string_equal(fcall("later_v1_note raw-queue mail"), "noted");
    head = strtoll(redis("ZSCORE R:heads mail"), NULL, 10);
    assert_in_range(head, now_ms() - 60000, now_ms()); /* it is due */
    assert_string_equal(redis("SMEMBERS R:names"), "[mail]");
    assert_string_equal(heard(c, "R:wake"), "mail");
    (void)fcall("later_v1_note raw-queue mail");
    (void)fcall("later_v1_note raw-queue empty");
    assert_string_equal(heard(c, "R:wake"), "");
    assert_refused("ELATER_QUEUE", "later_v1_note raw-queue a:b");
    (void)redis("SET R:due:sms x");
    assert_refused("ELATER_TYPE", "later_v1_note raw-queue sms");
    client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_register),
                                       FX_TEST(test_register_refusals),
                                       FX_TEST(test_ghosts),
                                       FX_TEST(test_adoption),
                                       FX_TEST(test_register_releases_what_is_not_named),
                                       FX_TEST(test_beat),
                                       FX_TEST(test_reconcile),
                                       FX_TEST(test_reconcile_lifts_the_clock),
                                       FX_TEST(test_reap),
                                       FX_TEST(test_reap_in_batches),
                                       FX_TEST(test_reap_passes_by_what_is_stuck),
                                       FX_TEST(test_reap_strangers),
                                       FX_TEST(test_poison_pill),
                                       FX_TEST(test_reap_cancelled_and_broken),
                                       FX_TEST(test_leave),
                                       FX_TEST(test_quiet),
                                       FX_TEST(test_workers),
                                       FX_TEST(test_tidy_trims),
                                       FX_TEST(test_tidy_buries_what_is_never_due),
                                       FX_TEST(test_tidy_repairs_marks),
                                       FX_TEST(test_unserved_queues),
                                       FX_TEST(test_unserved_without_due_jobs),
                                       FX_TEST(test_tidy_past_foreign_keys),
                                       FX_TEST(test_tidy_of_many_awaited),
                                       FX_TEST(test_tidy_refusals),
                                       FX_TEST(test_tidy_drops_names),
                                       FX_TEST(test_forget),
                                       FX_TEST(test_forget_a_fair_queue),
                                       FX_TEST(test_known),
                                       FX_TEST(test_served_queue_has_its_name),
                                       FX_TEST(test_dropped_name_takes_its_counters),
                                       FX_TEST(test_note)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
