/* What people do with a job: cancel, move, retry, show, result, pause, stats, list. */
#include "fixture.h"

/* A dead job of queue mail; -> its id. */
static const char *a_dead_job(const char *w, const char *options)
{
    const char *id = add("mail %s x", options);

    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(settle(w, id, 1, "dead", 100), "ok");
    return id;
}

static const char *a_done_job(const char *w)
{
    const char *id = add("mail x");

    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(settle(w, id, 1, "done", 60000), "ok");
    return id;
}

/* No job has left anything anywhere. */
static void assert_no_trace(void)
{
    static const char *const keys[] = {"jobs",      "tries",     "errors",   "failures", "results",
                                       "cancel",    "progress",  "running",  "q:mail:5", "await",
                                       "dead:mail", "done:mail", "solo:mail"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(redis("EXISTS R:%s", keys[i]), "0") != 0)
            fail_msg("R:%s is left", keys[i]);
    }
    assert_string_equal(redis("KEYS R:big:*"), "[]");
}

static void test_ids(void **state)
{
    static const char *const functions[] = {
        "later_cancel %s", "later_run_now %s",  "later_retry %s",         "later_show %s",
        "later_result %s", "later_v1_await %s", "later_reschedule %s +1s"};
    static const struct {
        const char *id, *code;
    } ids[] = {{"mail@order:42", "ELATER_NOJOB"},
               {"''", "ELATER_NOJOB"},
               {"x", "ELATER_NOJOB"},
               {"j0000000000\n", "ELATER_NOJOB"},
               {"J00000000000", "ELATER_NOJOB"},
               {"j000000000000", "ELATER_NOJOB"},
               {"j00000000000", "ELATER_NOJOB"}};

    (void)state;
    (void)add("mail x");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        const char *bare =
            text("%.*s", (int)(strchr(functions[i], ' ') - functions[i]), functions[i]);

        assert_refused("ELATER_ARGS", "%s", bare);
        for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
            const char *rest = strstr(functions[i], "%s") + 2;

            assert_refused(ids[k].code, "%s %s%s", bare, ids[k].id, rest);
        }
    }
    assert_refused("ELATER_ARGS", "later_reschedule %s", add("mail x"));
    assert_refused("ELATER_TIME", "later_reschedule %s never", add("mail x"));
}

static void test_cancel_waiting(void **state)
{
    char big[20000];
    const char *id = add("mail in 1h x");

    (void)state;
    assert_refused("ELATER_OPTION", "later_cancel %s running", id);
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    assert_refused("ELATER_NOJOB", "later_cancel %s", id);
    memset(big, 'b', sizeof(big));
    (void)fcall_bytes("later_add mail in 1h", big, sizeof(big));
    assert_string_equal(fcall("later_cancel %s Waiting", at(0, -1)), "cancelled");
    assert_no_trace();
    id = add("mail in 1h keep 1h x");
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    assert_string_equal(state_of(id), "done");
    assert_starts(fcall("later_result %s", id), "[cancelled 0 ");
    assert_refused("ELATER_STATE", "later_cancel %s", id);
    assert_starts(fcall("later_stats mail"), "[");
    assert_string_equal(at(5, 9, -1), "3");
}

static void test_cancel_running(void **state)
{
    const char *w = worker(), *id = add("mail keep 1h x");
    struct client *c = listen_to(ROOT ":wake");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    assert_refused("ELATER_STATE", "later_cancel %s waiting", id);
    assert_string_equal(heard(c, "R:wake"), "");
    assert_string_equal(fcall("later_cancel %s", id), "cancelling");
    assert_string_equal(fcall("later_cancel %s", id), "cancelling");
    assert_string_equal(heard(c, "R:wake"), "!cancel,!cancel");
    (void)fcall_sync("%s 1 1 0 0 0", worker());
    assert_string_equal(at(4, -1), "[]");
    (void)fcall_sync("%s 1 1 0 0 0", w);
    assert_string_equal(at(4, -1), text("[%s]", id));
    (void)fcall("later_show %s", id);
    assert_time(atoll(named("cancelling")), -5000, 0);
    assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
    assert_starts(fcall("later_result %s", id), "[cancelled 7 ");
    assert_string_equal(at(5, -1), "O");
    assert_string_equal(redis("EXISTS R:cancel"), "0");
    client_close(c);
}

/* A flagged job ends as cancelled on every path, except that a finished job is done. */
static void test_cancel_ends_on_every_path(void **state)
{
    static const struct {
        const char *verb, *state;
    } rows[] = {
        {"retry", "cancelled"}, {"dead", "cancelled"}, {"release", "cancelled"}, {"done", "done"}};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *id = add("mail keep 1h x");

        (void)claim(w, "mail", 1);
        (void)fcall("later_cancel %s", id);
        assert_string_equal(settle(w, id, 1, rows[i].verb, 50000), "ok");
        assert_starts(fcall("later_result %s", id), text("[%s ", rows[i].state));
        assert_string_equal(redis("EXISTS R:cancel"), "0");
    }
    for (int i = 0; i < 2; i++) {
        const char *id = add("mail x");

        (void)claim(w, "mail", 1);
        (void)fcall("later_cancel %s", id);
        if (i == 0)
            (void)fcall("later_v1_reconcile %s 1 0",
                        w); /* it was claimed, but its worker never heard of it */
        else
            (void)fcall("later_v1_register 0 again 1 %s 0 0 0", w);
        w = worker();
        assert_string_equal(state_of(id), "gone");
    }
    assert_string_equal(redis("HGET R:stats cancelled:mail"), "5");
}

static void test_moves(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    const char *w = worker(), *id = add("mail priority 2 in 1h x");

    (void)state;
    (void)heard(c, "R:wake");
    assert_string_equal(fcall("later_reschedule %s 4102444800000", id),
                        text("[%s moved 4102444800000]", id));
    assert_string_equal(heard(c, "R:wake"), "");
    assert_string_equal(redis("ZSCORE R:q:mail:2 %s", id), "4102444800000");
    assert_starts(fcall("later_reschedule %s +10s", id), "[");
    assert_time(int_at(2, -1), 5000, 10000);
    assert_string_equal(heard(c, "R:wake"), "mail");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_starts(fcall("later_run_now %s", id), text("[%s moved ", id));
    assert_string_equal(heard(c, "R:wake"), "mail");
    assert_string_equal(claim(w, "mail", 1), id);
    assert_refused("ELATER_STATE", "later_run_now %s", id);
    assert_refused("ELATER_STATE", "later_reschedule %s +1s", id);
    assert_refused("ELATER_STATE", "later_retry %s", id);
    id = a_done_job(w);
    assert_refused("ELATER_STATE", "later_run_now %s", id);
    client_close(c);
}

static void test_retry(void **state)
{
    const char *w = worker(), *id = a_dead_job(w, "priority 7 attempts 1 expire 1h");

    (void)state;
    assert_starts(fcall("later_result %s", id), "[dead 7 ");
    assert_starts(fcall("later_retry %s", id), text("[%s retried ", id));
    /* It waits for its next attempt now, although its last outcome was dead. */
    assert_starts(fcall("later_result %s", id), "[failed 7 ");
    assert_string_equal(state_of(id), "waiting");
    assert_refused("ELATER_STATE", "later_retry %s", id);
    /* It was started once in time, so it does not expire, however late it is now. */
    assert_starts(fcall("later_reschedule %s 1767225600000", id), text("[%s moved ", id));
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(claimed(0, CLAIM_START), "2"); /* starts go on, attempts begin anew */
    assert_string_equal(claimed(0, CLAIM_ATTEMPT), "1");
    assert_string_equal(settle(w, id, 1, "done", 0), "settled");
    assert_string_equal(settle(w, id, 2, "done", 0), "ok");
    assert_no_trace();
}

/* A dead job that is retried at a time is never due before: one call does both. */
static void test_retry_at_a_time(void **state)
{
    const char *w = worker(), *id = a_dead_job(w, "key D");

    (void)state;
    assert_refused("ELATER_TIME", "later_retry %s soon", id);
    assert_starts(fcall("later_retry %s +1h", id), text("[%s retried ", id));
    assert_time(int_at(2, -1), 3590000, 3600000);
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_time(int_at(5, 0, -1), 3590000, 3600000);
}

static void test_show(void **state)
{
    const char *w = worker(),
               *id =
                   add("mail priority 3 key K attempts 4 timeout 5s expire 1h keep 7m trace " TRACE
                       " in 1h hi");

    (void)state;
    assert_starts(fcall("later_show %s", id),
                  text("[id %s queue mail state waiting priority 3 added_ms 17", id));
    assert_non_null(strstr(shown(fx.last),
                           "attempt 0 attempts_max 4 starts 0 crashes 0 key K timeout_ms 5000 "
                           "expire_ms 3600000 keep_ms 420000 trace " TRACE
                           " payload_bytes 2 payload hi]"));
    (void)fcall("later_run_now %s", id);
    (void)claim(w, "mail", 1);
    (void)fcall_sync("%s 1 1 0 1 %s 1 progress mail 0 0 40%%\nresizing '' 0", w, id);
    assert_starts(fcall("later_show %s", id), text("[id %s queue mail state running", id));
    assert_string_equal(named("worker"), w);
    assert_string_equal(named("progress"), "40% resizing");
    assert_string_equal(named("starts"), "1");
    assert_string_equal(settle(w, id, 1, "retry", 60000), "ok");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("state"), "waiting");
    assert_string_equal(named("progress"), "nil");
    assert_starts(named("outcome"), "failed 7 ");
    (void)fcall("later_show %s", a_dead_job(w, "key D"));
    assert_time(atoll(named("died_ms")), -5000, 0);
    (void)fcall("later_show %s", a_done_job(w));
    assert_time(atoll(named("until_ms")), 50000, 60000);
    (void)redis("SET R:jobs x");
    assert_refused("ELATER_TYPE", "later_show %s", id);
    assert_refused("ELATER_TYPE", "later_cancel %s", id);
}

/* The last five failed attempts are kept, the newest first, until the job is forgotten. */
static void test_failures(void **state)
{
    const char *w = worker(), *id = add("mail attempts 9 x");

    (void)state;
    assert_string_equal((fcall("later_show %s", id), named("failures")), "nil");
    for (int start = 1; start <= 6; start++) {
        assert_string_equal(claim(w, "mail", 1), id);
        (void)fcall_sync("%s 1 0 0 1 %s %d retry mail 0 %d T%d O 0", w, id, start, start, start);
    }
    (void)fcall("later_show %s", id);
    assert_non_null(strstr(named("failures"), text(" %s - 6 T6\\n", w)));
    assert_non_null(strstr(named("failures"), " 2 T2"));
    assert_null(strstr(named("failures"), " 1 T1"));
    assert_string_equal(claim(w, "mail", 1), id);
    (void)redis("HSET R:worker:%s host web1", w);
    assert_string_equal(settle(w, id, 7, "dead", 100), "ok");
    (void)fcall("later_show %s", id);
    assert_non_null(strstr(named("failures"), text(" %s web1 7 T\\n", w)));
    assert_string_equal(fcall("later_v1_purge mail dead 10"), "[1 0]");
    assert_string_equal(redis("EXISTS R:failures"), "0");
}

static void test_pause_and_resume(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    const char *w = worker(), *id = add("mail x");

    (void)state;
    assert_string_equal(fcall("later_resume mail"), "not paused");
    assert_string_equal(fcall("later_pause mail by a%cb reason %s", '\t', "one\nline"), "paused");
    (void)fcall("later_stats mail");
    assert_starts(at(5, 4, -1), "0 ");
    assert_non_null(strstr(at(5, 4, -1), " a_b one line"));
    (void)heard(c, "R:wake");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_string_equal(at(5, 0, -1), "-1");
    assert_string_equal(fcall("later_resume mail at +1h"), "resuming");
    assert_string_equal(heard(c, "R:wake"), "mail");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_time(int_at(5, 0, -1), 3595000, 3600000);
    assert_string_equal(fcall("later_pause mail for 2h"), "paused");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_time(int_at(5, 0, -1), 7195000, 7200000);
    assert_string_equal(fcall("later_resume mail"), "resumed");
    assert_string_equal(heard(c, "R:wake"), "mail");
    assert_string_equal(claim(w, "mail", 1), id);
    /* A pause ends when its time is over. */
    id = add("mail x");
    (void)redis("HSET R:paused mail 1000:500:-:");
    assert_string_equal(claim(w, "mail", 1), "nil"); /* unreadable: it counts as paused */
    (void)fcall("later_pause mail for 1ms");
    for (int64_t start = now_ms(); now_ms() <= start + 1;) {
    }
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(redis("EXISTS R:paused"), "0");
    client_close(c);
}

static void test_pause_refusals(void **state)
{
    (void)state;
    assert_refused("ELATER_QUEUE", "later_pause");
    assert_refused("ELATER_QUEUE", "later_pause a:b");
    assert_refused("ELATER_ARGS", "later_pause mail by");
    assert_refused("ELATER_OPTION", "later_pause mail who me");
    assert_refused("ELATER_TIME", "later_pause mail for 5");
    assert_refused("ELATER_TIME", "later_pause mail for 0s");
    assert_string_equal(redis("EXISTS R:paused"), "0");
    assert_refused("ELATER_QUEUE", "later_resume");
    assert_refused("ELATER_ARGS", "later_resume mail now");
    assert_refused("ELATER_ARGS", "later_resume mail by +1h");
    (void)fcall("later_pause mail");
    assert_refused("ELATER_TIME", "later_resume mail at 5m");
    (void)redis("SET R:paused x");
    assert_refused("ELATER_TYPE", "later_pause mail");
    assert_refused("ELATER_TYPE", "later_resume mail");
}

static void test_result_and_await(void **state)
{
    const char *w = worker(), *id = add("mail x");
    const char *channel = text("R:ended:%s", id);
    struct client *c = listen_to(text(ROOT ":ended:%s", id));

    (void)state;
    assert_string_equal(fcall("later_result %s", id), "[waiting     ]");
    assert_string_equal(fcall("later_v1_await %s", id), "[waiting     ]");
    (void)claim(w, "mail", 1);
    assert_string_equal(fcall("later_v1_await %s", id), "[running     ]");
    assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
    assert_starts(fcall("later_result %s", id), "[failed 7 ");
    assert_string_equal(heard(c, channel), "");
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 2, "done", 0), "ok"); /* it is not kept, but told */
    assert_starts(heard(c, channel), "done 7 ");
    assert_refused("ELATER_NOJOB", "later_v1_await %s", id);
    assert_no_trace();
    id = a_done_job(w);
    assert_starts(fcall("later_v1_await %s", id), "[done 7 ");
    assert_string_equal(redis("EXISTS R:await"), "0");
    assert_starts(fcall("later_v1_await %s", a_dead_job(w, "key D")), "[dead 7 ");
    client_close(c);
}

static void test_await_hears_of_every_end(void **state)
{
    static const char *const ends[] = {"dead", "cancel", "expire", "reap"};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *w = worker(), *id = add("mail in 1h expire 1h x"), *heard_text;
        struct client *c = listen_to(text(ROOT ":ended:%s", id));

        (void)fcall("later_v1_await %s", id);
        if (strcmp(ends[i], "cancel") == 0) {
            (void)fcall("later_cancel %s", id);
        } else if (strcmp(ends[i], "expire") == 0) {
            (void)redis("ZADD R:q:mail:5 1000 %s", id);
            (void)claim(w, "mail", 1);
        } else {
            (void)fcall("later_run_now %s", id);
            assert_string_equal(claim(w, "mail", 1), id);
            if (strcmp(ends[i], "dead") == 0)
                (void)settle(w, id, 1, "dead", 10);
            else
                assert_starts(fcall("later_v1_reap %s %s 1 1 100", worker(), w), "[clear 1]");
        }
        heard_text = heard(c, text("R:ended:%s", id));
        assert_starts(heard_text, strcmp(ends[i], "cancel") == 0 ? "cancelled 0 " : "dead ");
        assert_null(strstr(heard_text, ","));
        client_close(c);
    }
}

static void test_stats(void **state)
{
    const char *w = worker();

    (void)state;
    (void)a_dead_job(w, "key D");
    (void)a_done_job(w);
    (void)fcall("later_cancel %s", add("mail in 1h x"));
    (void)fcall("later_add_many mail priority 1 in 1h a b c");
    (void)redis("ZADD R:due:mail 4102444800000 r1 4102444800000 r2");
    (void)add("sms x");
    (void)claim(w, "sms", 1);
    (void)fcall("later_stats mail");
    assert_string_equal(at(1, -1), "1");
    assert_string_equal(at(2, -1), "1");
    assert_string_equal(at(3, -1), "6");
    assert_string_equal(text("%s %s %s", at(5, 0, -1), at(5, 1, -1), at(5, 2, -1)), "mail 3 2");
    assert_string_equal(text("%s %s %s %s %s", at(5, 5, -1), at(5, 6, -1), at(5, 7, -1),
                             at(5, 8, -1), at(5, 9, -1)),
                        "1 1 1 1 1");
    assert_string_equal(at(7, -1), "[0 0]");
    (void)fcall("later_stats");
    assert_int_equal(len_at(5, -1), 20);
    assert_string_equal(at(7, -1), "[0 0 1 0]");
    assert_string_equal(at(5, 0, -1), "mail");
    assert_string_equal(at(5, 10, -1), "sms");
    /* One foreign key must not hide the other queues. */
    (void)redis("SET R:due:sms x");
    (void)redis("SET R:q:sms:0 x");
    (void)fcall("later_stats");
    assert_int_equal(len_at(5, -1), 20);
    /* A counter that cannot count does not lose a result. */
    (void)redis("HSET R:stats done:mail junk dead:mail junk");
    (void)a_done_job(w);
    (void)a_dead_job(w, "key E");
    (void)redis("DEL R:names");
    for (int i = 0; i < 501; i++)
        (void)redis("SADD R:names q%d", i);
    (void)fcall("later_stats");
    assert_string_equal(at(4, -1), "1");
    assert_int_equal(len_at(5, -1), 5000);
    assert_refused("ELATER_QUEUE", "later_stats a:b");
}

/* The first job that is due, whatever the head of its queue says: one that was cancelled or moved
 * is gone from there only with the next sync, and a suspect never comes there. */
static void test_stats_first_due(void **state)
{
    const char *early = add("mail in 1h x"), *late = add("mail priority 3 in 2h x"), *due;

    (void)state;
    (void)fcall("later_stats mail");
    due = text("%s", at(5, 3, -1));
    assert_string_equal(redis("ZSCORE R:q:mail:5 %s", early), due);
    due = redis("ZSCORE R:q:mail:3 %s", late);
    (void)fcall("later_cancel %s", early);
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 3, -1), due);
    (void)redis("ZADD R:due:mail 4102444800000 raw");
    (void)fcall("later_cancel %s", late);
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 3, -1), "4102444800000");
    (void)redis("ZADD R:solo:mail 1767225600000 j00000000001");
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 3, -1), "1767225600000");
    (void)redis("DEL R:solo:mail R:due:mail");
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 3, -1), "");
}

/* Jobs at a gate wait, too. Nobody reads thousands of running jobs to tell of which queues they
 * are. */
static void test_stats_states(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 3; i++)
        (void)add("mail lock L x");
    (void)claim(w, "mail", 3);
    (void)fcall("later_stats mail");
    assert_string_equal(at(7, -1), "[1 2]");
    assert_string_equal(at(5, 1, -1), "2");
    (void)redis("EVAL for\ti=1,1000\tdo\tredis.call('ZADD',KEYS[1],1,'j'..i)\tend 1 R:running");
    (void)fcall("later_stats mail");
    assert_string_equal(at(7, -1), "[ 2]");
}

/* The payloads of all jobs in a state, page by page; *pages: how many. */
static const char *listed(const char *what, int count, int *pages)
{
    struct buf b = BUF_INIT;
    const char *cursor = "''";

    *pages = 0;
    do {
        assert_starts(fcall("later_v1_list %s %s %d", what, cursor, count), "[");
        assert_true(len_at(-1) <= count + 1);
        for (int i = 1; i < len_at(-1); i++)
            buf_puts(&b, at(i, 6, -1));
        cursor = at(0, -1);
        ++*pages;
    } while (cursor[0] != '\0');
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* A page ends early once it has 1 MiB of raw members, also where it is full by then. */
static void test_list_of_large_members(void **state)
{
    char *large = mem_new(400001);

    (void)state;
    for (int i = 0; i < 5; i++) {
        const char *argv[] = {"ZADD", ROOT ":due:mail", "1", large};

        memset(large, 'a' + i, 400000);
        (void)send_args(4, argv, NULL);
    }
    free(large);
    for (int count = 1; count <= 6; count++) {
        int pages;

        assert_int_equal(strlen(listed("mail due", count, &pages)), 5 * 64);
    }
}

static void test_list(void **state)
{
    static const char *const payloads = "abcdefghij";
    const char *w = worker(), *id;
    int pages;

    (void)state;
    assert_string_equal(listed("mail due", 3, &pages), "");
    for (int i = 0; i < 10; i++) {
        if (i == 5 || i == 6)
            (void)redis("ZADD R:due:mail %d %c", i, payloads[i]);
        else
            (void)add("mail in %dh priority %d %c", i + 1, i < 5 ? i : i - 1, payloads[i]);
    }
    for (int count = 1; count <= 12; count++)
        assert_string_equal(listed("mail due", count, &pages), "abcdefghij");
    (void)listed("mail due", 200, &pages);
    assert_int_equal(pages, 1);
    (void)listed("mail due", 1, &pages);
    assert_int_equal(pages, 10);
    (void)fcall("later_v1_list mail due '' 10");
    assert_string_equal(at(7, 0, -1), ""); /* a raw member has no id */
    assert_string_equal(at(7, 2, -1), "5");
    (void)redis("DEL R:due:mail");
    for (int i = 0; i < 5; i++)
        (void)fcall_bytes("later_add sms",
                          "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss",
                          68);
    (void)claim(w, "sms", 5);
    assert_int_equal(strlen(listed("sms running", 2, &pages)), 5 * 64);
    assert_string_equal(listed("mail running", 2, &pages), "");
    id = a_dead_job(w, "key D");
    (void)a_dead_job(w, "key D");
    (void)a_done_job(w);
    assert_string_equal(listed("mail dead", 1, &pages), "xx");
    assert_string_equal(listed("mail done", 10, &pages), "x");
    (void)fcall("later_v1_list mail dead '' 10");
    assert_string_equal(at(1, 0, -1), id);
    assert_starts(at(1, 4, -1), "dead 7 ");
    assert_starts(at(1, 3, -1), "1 1 0 ");
    assert_string_equal(at(1, 5, -1), "1");
}

static void test_list_refusals(void **state)
{
    static const char *const rows[] = {"mail",
                                       "mail due",
                                       "mail due ''",
                                       "mail due '' 0",
                                       "mail due '' 201",
                                       "mail due '' -1",
                                       "mail due '' 1.5",
                                       "mail due '' nan",
                                       "mail due 0:0 1",
                                       "mail due 13:0 1",
                                       "mail nosuch '' 1"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused("ELATER_ARGS", "later_v1_list %s", rows[i]);
    assert_refused("ELATER_QUEUE", "later_v1_list a:b due '' 1");
    assert_starts(fcall("later_v1_list mail due junk 1"), "[]"); /* an unknown cursor starts anew */
    (void)redis("SET R:due:mail x");
    assert_refused("ELATER_TYPE", "later_v1_list mail due '' 1");
}

static void test_wrong_types(void **state)
{
    static const char *const rows[][2] = {
        {"later_cancel %s", "names"},         {"later_cancel %s", "results"},
        {"later_cancel %s", "done:mail"},     {"later_cancel %s", "q:mail:5"},
        {"later_cancel %s", "await"},         {"later_run_now %s", "heads"},
        {"later_run_now %s", "names"},        {"later_run_now %s", "running"},
        {"later_v1_await %s", "await"},       {"later_result %s", "errors"},
        {"later_reschedule %s +1s", "heads"}, {"later_reschedule %s +1s", "tries"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *line;
        const char *id;

        (void)redis("FLUSHALL");
        id = add("mail keep 1h in 1h x");
        line = text("%.*s%s%s", (int)(strstr(rows[i][0], "%s") - rows[i][0]), rows[i][0], id,
                    strstr(rows[i][0], "%s") + 2);
        (void)redis("DEL R:%s", rows[i][1]);
        (void)redis("RPUSH R:%s x", rows[i][1]);
        assert_refused_line("ELATER_TYPE", line);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = {"heads", "names", "q:mail:5"};
        const char *id;

        (void)redis("FLUSHALL");
        id = a_dead_job(worker(), "key D");
        (void)redis("DEL R:%s", keys[i]);
        (void)redis("RPUSH R:%s x", keys[i]);
        assert_refused("ELATER_TYPE", "later_retry %s", id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_ids),
                                       FX_TEST(test_cancel_waiting),
                                       FX_TEST(test_cancel_running),
                                       FX_TEST(test_cancel_ends_on_every_path),
                                       FX_TEST(test_moves),
                                       FX_TEST(test_retry),
                                       FX_TEST(test_retry_at_a_time),
                                       FX_TEST(test_show),
                                       FX_TEST(test_failures),
                                       FX_TEST(test_pause_and_resume),
                                       FX_TEST(test_pause_refusals),
                                       FX_TEST(test_result_and_await),
                                       FX_TEST(test_await_hears_of_every_end),
                                       FX_TEST(test_stats),
                                       FX_TEST(test_stats_states),
                                       FX_TEST(test_stats_first_due),
                                       FX_TEST(test_list),
                                       FX_TEST(test_list_of_large_members),
                                       FX_TEST(test_list_refusals),
                                       FX_TEST(test_wrong_types)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
