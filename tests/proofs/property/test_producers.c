/*
 * What producers can do with raw commands, repeated tokens and odd names: these tests have the
 * names of their lines in the fault catalogue.
 *
 * LATER_ONLY=PATTERN runs the tests of that name.
 */
#include "judges.h"

/* Claim one job of a queue with an idle worker. Returns its payload, whose length is *n. */
static const char *take_payload(const char *w, const char *queue, size_t *n)
{
    const struct reply *record;
    const char *lf;

    assert_starts(fcall_sync("%s 1 0 1 0 1 %s 1 1048576", w, queue), "[");
    assert_int_equal(count_claimed(), 1);
    record = claimed_node(0, CLAIM_RECORD);
    lf = memchr(reply_str(record), '\n', reply_len(record));
    assert_non_null(lf);
    if (reply_str(record)[0] == '+') {
        (void)redis("GET R:big:%s", claimed(0, CLAIM_ID));
        *n = reply_len(fx.last);
        return reply_str(fx.last);
    }
    *n = reply_len(record) - (size_t)(lf + 1 - reply_str(record));
    return lf + 1;
}

/* Payloads that would trouble a JSON reader: nobody reads them, and both kinds of add keep every
 * byte. */
static void P4_payloads_are_opaque(void **state)
{
    static const char *const texts[] = {"1e308",        "-1e999", "{\"a\":1,\"a\":2}", "NaN",
                                        "\xed\xa0\x80", "[1,",    "\"\\ud800\""};
    char *deep = mem_new(200001);
    const char *w = worker(), *got;
    size_t n;

    (void)state;
    memset(deep, '[', 100000);
    memset(deep + 100000, ']', 100000);
    for (size_t i = 0; i <= COUNT(texts); i++) {
        const char *payload = i < COUNT(texts) ? texts[i] : deep;
        const char *argv[] = {"ZADD", ROOT ":due:mail", "1", payload};

        assert_starts(fcall_bytes("later_add mail", payload, strlen(payload)), "[j");
        got = take_payload(w, "mail", &n);
        assert_int_equal(n, strlen(payload));
        assert_memory_equal(got, payload, n);
        (void)send_args(4, argv, NULL);
        got = take_payload(w, "mail", &n);
        assert_int_equal(n, strlen(payload));
        assert_memory_equal(got, payload, n);
    }
    free(deep);
    assert_one_set("odd payloads");
    printf(
        "figure P4: nothing parses a payload; 100,000 levels of JSON pass untouched both ways\n");
}

/* What becomes of a raw member with this score after a sync and a tidy: run, wait, bury, refuse. */
static const char *fate_of(const char *score)
{
    const char *w = (fx_clear(NULL), worker());

    if (starts(redis("ZADD R:due:mail %s x", score), "!"))
        return "refused";
    assert_starts(fcall_sync("%s 1 0 1 0 1 mail 1 1048576", w), "[");
    if (count_claimed() == 1)
        return "runs";
    (void)fcall("later_v1_tidy %s 1 mail 604800000", w);
    assert_one_set(score);
    if (strcmp(redis("ZCARD R:dead:mail"), "1") == 0)
        return redis("EXISTS R:due:mail")[0] == '0' ? "buried" : "twice";
    return strcmp(redis("ZCARD R:due:mail"), "1") == 0 ? "waits" : "lost";
}

static void P5_scores(void **state)
{
    static const struct {
        const char *score, *want;
    } rows[] = {{"nan", "refused"},
                {"text", "refused"},
                {"''", "refused"},
                {"inf", "buried"},
                {"-inf", "buried"},
                {"-1", "runs"},
                {"0", "runs"},
                {"1e308", "buried"},
                {"-1e308", "runs"},
                {"9007199254740993", "buried"},
                {"1767225600", "buried"},
                {"0x10", "runs"},
                {"0x19B76CAC000", "runs"},
                {"4102444800000", "waits"},
                {"1e14", "waits"},
                {"100000000000001", "buried"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(fate_of(rows[i].score), rows[i].want);
}

static void P6_delays(void **state)
{
    static const char *const refused[] = {"in -1s",
                                          "in 36526d",
                                          "in 1e3s",
                                          "in 5",
                                          "in nan",
                                          "at 1e400",
                                          "at -5",
                                          "at 1767225600",
                                          "at 100000000000001",
                                          "in 999999999999999999999d"};
    int64_t due, hundred_years = INT64_C(36525) * 86400000;

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_refused("ELATER_TIME", "later_add mail %s x", refused[i]);
    (void)add("mail in 36525d x");
    due = int_at(2, -1);
    assert_time(due, hundred_years - 60000, hundred_years);
    (void)add("mail in 0ms x");
    assert_time(int_at(2, -1), -60000, 0);
    (void)add("mail at 0 x");
    assert_time(int_at(2, -1), -60000, 0);
    (void)add("mail at 1999-01-01T00:00:00Z x");
    assert_time(int_at(2, -1), -60000, 0);
    assert_string_equal(redis("ZCARD R:q:mail:5"), "4");
}

/* The same token, and the same raw bytes: while it waits, while it runs, after its success. */
static void P7_duplicates(void **state)
{
    const char *w = worker(), *id = add("mail token t x"), *first, *second;

    (void)state;
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_string_equal(claim(w, "mail", 9), id);
    assert_int_equal(count_claimed(), 1);
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_refused("ELATER_TOKEN", "later_add mail token t other");
    assert_refused("ELATER_TOKEN", "later_add sms token t x");
    assert_string_equal(redis("HLEN R:jobs"), "0");
    (void)redis("ZADD R:due:mail 1 x");
    (void)redis("ZADD R:due:mail 2 x");
    first = claim(w, "mail", 9);
    assert_int_equal(count_claimed(), 1);
    (void)redis("ZADD R:due:mail 1 x");
    second = claim(w, "mail", 9);
    assert_int_equal(count_claimed(), 1);
    assert_string_not_equal(first, second);
    assert_string_equal(settle(w, first, 1, "done", 0), "ok");
    assert_string_equal(settle(w, first, 1, "done", 0), "settled");
    assert_string_equal(settle(w, second, 1, "done", 0), "ok");
    (void)redis("ZADD R:due:mail 1 x");
    assert_string_not_equal(claim(w, "mail", 9), "nil");
    assert_one_set("duplicates");
}

/* Ids without records, and records without ids, are buried with a reason, and cause no loop. */
static void P10_dangling(void **state)
{
    static const char *const sets[] = {"q:mail:5", "q:mail:0", "solo:mail"};
    static const char *const records[] = {
        "", "x", "-", "-mail", "-mail 5", "-mail x\nx", "-sms 5\nx", "-mail 5 x=inf\nx", "\n"};

    (void)state;
    for (size_t s = 0; s < COUNT(sets); s++)
        for (size_t r = 0; r <= COUNT(records); r++) {
            const char *w = (fx_clear(NULL), worker());
            const char *argv[] = {"HSET", ROOT ":jobs", "j00000000001", NULL};

            (void)redis("ZADD R:%s 1 j00000000001", sets[s]);
            (void)redis("HSET R:prio mail 0s");
            if (r < COUNT(records)) {
                argv[3] = records[r];
                (void)send_args(4, argv, NULL);
            }
            assert_starts(fcall_sync("%s 1 0 9 0 1 mail 9 100", w), "[");
            assert_int_equal(count_claimed(), 0);
            assert_string_equal(redis("ZRANGE R:dead:mail 0 -1"), "[j00000000001]");
            assert_non_null(strstr(redis("HGET R:errors j00000000001"), "its record is "));
            assert_one_set(sets[s]);
        }
    fx_clear(NULL);
    (void)redis("HSET R:jobs j00000000001 -mail");
    assert_refused("ELATER_NOJOB", "later_show j00000000001");
    (void)redis("ZADD R:running 5 j00000000002");
    assert_starts(fcall("later_v1_reap %s 5 ? 5 100", worker()), "[clear 1]");
    assert_string_equal(redis("EXISTS R:running"), "0"); /* unknown, so removed */
}

/* A record with more than a producer may say: known names are checked, unknown ones ignored. */
static void P11_privileged_fields(void **state)
{
    const char *w = worker(), *id = add("mail attempts 2 x");
    const char *argv[] = {"HSET", ROOT ":jobs", id,
                          "-mail 5 a=2 starts=9 uid=0 w=root cwd=/ E=LD_PRELOAD=x o=7\nx"};

    (void)state;
    (void)send_args(4, argv, NULL);
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(text("%s %s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT),
                             claimed(0, CLAIM_CRASHES)),
                        "1 1 0");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("starts"), "1");
    assert_string_equal(named("attempt"), "1");
    assert_string_equal(named("worker"), w);
    assert_string_equal(named("timeout_ms"), "nil");
    /* Options that a producer may not give. */
    assert_refused("ELATER_OPTION", "later_add mail start 5 x");
    assert_refused("ELATER_OPTION", "later_add mail uid 0 x");
    assert_refused("ELATER_OPTION", "later_add mail env PATH=/ x");
    assert_refused("ELATER_OPTION", "later_add mail attempts 1000001 x");
    assert_refused("ELATER_TIME", "later_add mail timeout 1000000d x");
    assert_refused("ELATER_KEY", "later_add mail key %s x", "a\nT=b");
    assert_refused("ELATER_OPTION", "later_add mail trace %s x", "a\nb");
}

static void P14_names(void **state)
{
    static const char *const queues[] = {"{",   "}",    "*",   ":",   "a*",      "a:b", "mail:5",
                                         "{t}", "a{b}", "?",   "[a]", "mail}",   "..",  "-a",
                                         "_a",  "",     "a b", "a\n", "\xc3\xa4"};
    static const char *const texts[] = {"{t}", "*", "a:b", "}:jobs", "[x]", "?"};
    static const char *const chains[] = {"then", "on_dead"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < COUNT(queues); i++) {
        const char *argv[] = {"FCALL", "later_add", "1", ROOT, queues[i], "x"};
        const char *before = fingerprint();

        assert_starts(send_args(6, argv, NULL), "!ELATER_QUEUE ");
        argv[1] = "later_pause";
        assert_starts(send_args(5, argv, NULL), "!ELATER_QUEUE ");
        for (size_t k = 0; k < COUNT(chains); k++) {
            const char *chain[] = {"FCALL", "later_add", "1",       ROOT,
                                   "mail",  chains[k],   queues[i], "x"};

            assert_starts(send_args(8, chain, NULL), "!ELATER_QUEUE ");
        }
        assert_string_equal(before, fingerprint());
    }
    /* Where any text is allowed, it stays a mere text. */
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *id = add("mail token %s key %s %s", texts[i], texts[i], texts[i]);

        assert_starts(fcall("later_add mail token %s key k %s", texts[i], texts[i]),
                      text("[%s repeated", id));
        assert_string_equal(claim(w, "mail", 9), id);
        assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    }
    (void)redis("ZADD R:due:a* 1 x"); /* not a legal queue name */
    assert_refused("ELATER_QUEUE", "later_v1_note raw-queue a*");
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 1 0 1 a* 1 1 0", w);
    (void)redis("DEL R:due:a*");
    assert_one_set("odd names");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CALM_TEST(P4_payloads_are_opaque),
                                       CALM_TEST(P5_scores),
                                       CALM_TEST(P6_delays),
                                       CALM_TEST(P7_duplicates),
                                       CALM_TEST(P10_dangling),
                                       CALM_TEST(P11_privileged_fields),
                                       CALM_TEST(P14_names)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
