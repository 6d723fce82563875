/* What is done with many jobs at once: purge, export, import, and adopting a foreign sorted set. */
#include "fixture.h"

/* ---- purge */

static int64_t purge(const char *state, int most)
{
    const char *line = fcall("later_v1_purge mail %s %d", state, most);

    if (line[0] != '[')
        fail_msg("%s", line);
    return int_at(0, -1);
}

/* Nothing is left but counters, names and tokens. */
static void assert_bare(void)
{
    static const char *const keys[] = {
        "jobs",        "tries",  "errors",       "failures",  "results",   "cancel",
        "progress",    "await",  "dead:mail",    "done:mail", "solo:mail", "due:mail",
        "parked:mail", "parked", "granted:mail", "heads",     "holds"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(redis("EXISTS R:%s", keys[i]), "0") != 0)
            fail_msg("R:%s is left", keys[i]);
    }
    assert_string_equal(redis("KEYS R:big:*"), "[]");
    assert_string_equal(redis("KEYS R:q:*"), "[]");
    assert_string_equal(redis("KEYS R:line:*"), "[]");
    assert_string_equal(redis("KEYS R:uniq:*"), "[]");
}

static void test_purge_waiting(void **state)
{
    char big[20000];
    const char *id = add("mail in 1h unique a x");
    struct client *c;

    (void)state;
    (void)add("mail priority 0 x");
    (void)add("mail priority 9 keep 1h x");
    (void)add("other x");
    memset(big, 'b', sizeof(big));
    (void)fcall_bytes("later_add mail", big, sizeof(big));
    (void)redis("ZADD R:due:mail 5 raw");
    (void)fcall("later_v1_await %s", id);
    c = listen_to(text(ROOT ":ended:%s", id));
    assert_int_equal(purge("due", 0), 0);
    assert_int_equal(int_at(1, -1), 5);
    for (int removed = 0; removed < 5;)
        removed += (int)purge("due", 5 - removed);
    assert_int_equal(int_at(1, -1), 0);
    assert_int_equal(purge("due", 5), 0);
    assert_starts(heard(c, text("R:ended:%s", id)), "cancelled 0 ");
    assert_string_equal(redis("HLEN R:jobs"), "1");
    assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[other]");
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 9, -1), "5");
    (void)fcall("later_v1_purge other due 10");
    assert_bare();
    client_close(c);
}

/* A call removes at most so many jobs, the first ones first. */
static void test_purge_some(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++)
        (void)add("mail in %dm x", 10 + i);
    assert_int_equal(purge("due", 10), 10);
    assert_int_equal(purge("due", 600), 100);
    assert_int_equal(int_at(1, -1), 490);
    (void)fcall("later_show %s", text("%s", redis("ZRANGE R:q:mail:5 0 0") + 1));
}

static void test_purge_ended(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *id = add("mail unique u%d x", i);

        assert_string_equal(claim(w, "mail", 1), id);
        assert_string_equal(settle(w, id, 1, i < 2 ? "dead" : "done", i < 2 ? 100 : 60000), "ok");
    }
    assert_int_equal(purge("dead", 1), 1);
    assert_int_equal(int_at(1, -1), 1);
    assert_int_equal(purge("dead", 100), 1);
    assert_int_equal(purge("done", 100), 1);
    (void)redis("DEL R:heads");
    assert_bare();
    assert_refused("ELATER_ARGS", "later_v1_purge mail running 1");
    assert_refused("ELATER_ARGS", "later_v1_purge mail x 1");
    assert_refused("ELATER_ARGS", "later_v1_purge mail dead -1");
    assert_refused("ELATER_QUEUE", "later_v1_purge '' dead 1");
}

/* Purged jobs leave their gate. */
static void test_purge_parked(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    id = add("mail lock l x");
    assert_string_equal(claim(w, "mail", 1), id);
    for (int i = 0; i < 3; i++)
        (void)add("mail lock l unique p%d x", i);
    (void)add("other lock l x");
    (void)claim(w, "mail", 4);
    (void)claim(w, "other", 1);
    assert_string_equal(redis("ZCARD R:parked:mail"), "3");
    assert_int_equal(purge("parked", 100), 3);
    assert_string_equal(redis("EXISTS R:parked:mail R:line:mail:lock:l"), "0");
    assert_string_equal(redis("KEYS R:uniq:*"), "[]");
    assert_string_equal(redis("HLEN R:parked"), "1");
    /* The running job ends: the lock goes to the job of the other queue. */
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_starts(claim(w, "other", 1), "j");
    (void)fcall("later_v1_purge other parked 5");
}

static void test_purge_foreign_type(void **state)
{
    const char *before;

    (void)state;
    (void)add("mail x");
    (void)redis("SET R:tries 1");
    before = snapshot();
    assert_refused("ELATER_TYPE", "later_v1_purge mail due 10");
    assert_string_equal(snapshot(), before);
}

/* ---- export */

/* All rows of a state, in pages of so many; the payloads or records, one behind the other. */
static const char *exported(const char *state, int count)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    const char *set = "1", *score = "''", *member = "''";

    for (int pages = 0; pages < 500; pages++) {
        const char *line =
            fcall("later_v1_export mail %s %s %s %s %d", state, set, score, member, count);

        if (line[0] != '[')
            fail_msg("%s", line);
        for (int i = 4; i < len_at(-1); i++)
            buf_printf(&out, "%s;", at(i, 3, -1));
        set = at(0, -1);
        score = at(1, -1);
        member = at(2, -1);
        if (set[0] == '\0')
            return text("%s", buf_str(&out));
    }
    fail_msg("no end");
    return "";
}

static void test_export_pages(void **state)
{
    const char *all;

    (void)state;
    assert_string_equal(exported("due", 200), "");
    /* Many members have one score, so that the members decide. */
    (void)fcall("later_add_many mail in 1h a b c d e f g h i k");
    (void)add("mail priority 0 first");
    (void)redis("ZADD R:due:mail 7 r1 7 r2 7 r22 7 r3 8 r0");
    (void)add("mail priority 9 last");
    all = exported("due", 200);
    assert_string_equal(all, "-mail 0\\nfirst;-mail\\na;-mail\\nb;-mail\\nc;-mail\\nd;-mail\\ne;"
                             "-mail\\nf;-mail\\ng;-mail\\nh;-mail\\ni;-mail\\nk;r1;r2;r22;r3;r0;"
                             "-mail 9\\nlast;");
    for (int count = 1; count < 20; count++)
        assert_string_equal(exported("due", count), all);
}

/* The row that was told last is removed before the next page: no row behind it is missed. */
static void test_export_at_work(void **state)
{
    static const char *const members[] = {"a", "ab", "b", "bA", "bAz", "c", "ca"};
    const char *set = "1", *score = "''", *member = "''";
    CLEANUP_BUF struct buf out = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        (void)redis("ZADD R:due:mail 5 %s", members[i]);
    while (set[0] != '\0') {
        const char *told;

        (void)fcall("later_v1_export mail due %s %s %s 1", set, score, member);
        told = len_at(-1) > 4 ? at(4, 3, -1) : NULL;
        set = at(0, -1);
        score = at(1, -1);
        member = at(2, -1);
        if (told == NULL)
            break;
        buf_puts(&out, told);
        buf_puts(&out, ";");
        /* It is removed, and others that sort before it are added. */
        (void)redis("ZREM R:due:mail %s", told);
        (void)redis("ZADD R:due:mail 4 x%s 5 A0", told);
        member = text("%s", told);
        if (score[0] == '\0')
            score = "''";
    }
    assert_string_equal(buf_str(&out), "a;ab;b;bA;bAz;c;ca;");
}

static void test_export_states(void **state)
{
    const char *w = worker(), *id = add("mail lock l in 0s x");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    (void)add("other y");
    (void)claim(w, "other", 1);
    (void)add("mail lock l priority 2 z");
    (void)claim(w, "mail", 2);
    assert_string_equal(exported("running", 1), "-mail l=l\\nx;");
    assert_string_equal(exported("parked", 200), "-mail 2 l=l\\nz;");
    (void)fcall("later_v1_export mail parked 1 '' '' 9");
    assert_time(atoll(at(4, 2, -1)), -5000, 0);
    assert_string_equal(settle(w, id, 1, "dead", 100), "ok");
    assert_string_equal(exported("dead", 200), "-mail l=l\\nx;");
    assert_starts(at(4, 6, -1), "dead ");
    assert_non_null(strstr(at(4, 6, -1), "\\n")); /* with its output */
    assert_string_equal(exported("done", 200), "");
    assert_refused("ELATER_ARGS", "later_v1_export mail due 0 '' '' 9");
    assert_refused("ELATER_ARGS", "later_v1_export mail due 13 '' '' 9");
    assert_refused("ELATER_ARGS", "later_v1_export mail due 1 x '' 9");
    assert_refused("ELATER_ARGS", "later_v1_export mail due 1 '' '' 201");
    assert_refused("ELATER_ARGS", "later_v1_export mail all 1 '' '' 9");
}

/* A page ends at 1 MiB. */
static void test_export_large(void **state)
{
    char *big = mem_new(400000);
    int rows = 0;

    (void)state;
    memset(big, 'b', 400000);
    for (int i = 0; i < 7; i++)
        (void)fcall_bytes("later_add mail", big, 400000);
    (void)fcall("later_v1_export mail due 1 '' '' 200");
    assert_int_equal(len_at(-1), 4 + 3);
    for (const char *set = "1", *score = "''", *member = "''"; set[0] != '\0';) {
        (void)fcall("later_v1_export mail due %s %s %s 200", set, score, member);
        rows += len_at(-1) - 4;
        set = at(0, -1);
        score = at(1, -1);
        member = at(2, -1);
        if (score[0] == '\0')
            score = member = "''";
    }
    assert_int_equal(rows, 7);
    free(big);
}

/* ---- import */

static void test_import(void **state)
{
    (void)state;
    assert_string_equal(
        fcall(
            "later_v1_import mail 0 a 2 due 5 priority 9 b 3 due 1900000000000 key k timeout 5s c"),
        "[3 added]");
    assert_string_equal(exported("due", 200), "-mail\\na;-mail K=k t=5000\\nc;-mail 9\\nb;");
    assert_string_equal(redis("ZRANGE R:q:mail:9 0 -1 WITHSCORES") + 14, "5]");
    assert_string_equal(redis("HGET R:prio mail"), "9");
    assert_string_equal(redis("ZSCORE R:heads mail"), "5");
    assert_string_equal(fcall("later_v1_import mail 1 unique u x"), "[1 added]");
    assert_string_equal(fcall("later_v1_import mail 1 unique u x"), "[1 dropped]");
    assert_string_equal(fcall("later_v1_import mail 2 unique v unique_until 1900000000000 x"),
                        "[1 added]");
    assert_string_equal(fcall("later_v1_import mail 1 token t x"), "[1 added]");
    assert_string_equal(fcall("later_v1_import mail 1 token t x"), "[1 repeated]");
}

static void test_import_gates(void **state)
{
    (void)state;
    assert_refused("ELATER_LIMIT", "later_v1_import mail 0 a 1 sem s b");
    (void)fcall("later_limit_set s semaphore 2");
    assert_string_equal(fcall("later_v1_import mail 0 a 3 sem s key k lock l:{key} b"),
                        "[2 added]");
    assert_string_equal(exported("due", 200), "-mail\\na;-mail K=k l=l:k s=s\\nb;");
}

/* Import jobs into mail: the words of a line, in which ~ is a blank and ^ a line feed. */
static const char *import_words(const char *line)
{
    const char *argv[64] = {"FCALL", "later_v1_import", "1", ROOT, "mail"};
    char *rest = mem_strdup(line), *word;
    int argc = 5;

    (void)keep(rest);
    while ((word = strsep(&rest, " ")) != NULL) {
        for (char *p = word; *p != '\0'; p++)
            *p = *p == '~' ? ' ' : *p == '^' ? '\n' : *p;
        argv[argc++] = word;
    }
    return send_args(argc, argv, NULL);
}

/* A pinned job passes no gates, and a dead one may have died of what its queue refuses. */
static void test_import_past_the_gates(void **state)
{
    const char *dead = text("3 due 1000 tries 0~0~0 dead dead~0~1000~0~too~large^ %02001d", 1);

    (void)state;
    (void)redis("HSET R:queues mail lock=user:{key}");
    (void)redis("HSET R:config max_payload:mail 2000");
    assert_refused("ELATER_KEY", "later_v1_import mail 0 x");
    assert_refused("ELATER_SIZE", "later_v1_import mail 1 key k %02001d", 1);
    assert_string_equal(fcall("later_v1_import mail 1 pinned hweb1 x"), "[1 added]");
    assert_string_equal(redis("ZCARD R:pin:mail:hweb1"), "1");
    assert_string_equal(import_words(dead), "[1 added]");
    assert_string_equal(redis("ZCARD R:dead:mail"), "1");
    assert_starts(fcall("later_v1_import mail 1 pinned hweb1 %02001d", 1), "!ELATER_SIZE ");
}

/* A dead job may come as a dead one: with what it died of, and retried as if it had died here. */
static void test_import_dead(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    assert_string_equal(import_words("3 due 1000 dead dead~65~1900000000000~7~no~such~user^out^ "
                                     "tries 7~3~1 x"),
                        "[1 added]");
    id = (redis("ZRANGE R:dead:mail 0 0"), at(0, -1));
    (void)fcall("later_result %s", id);
    assert_string_equal(text("%s %s %s %s", at(0, -1), at(1, -1), at(4, -1), at(5, -1)),
                        "dead 65 no such user out\\n");
    assert_time(int_at(2, -1), -60000, 0); /* not after now */
    assert_string_equal(redis("HEXISTS R:stats dead:mail"), "0");
    assert_string_equal(exported("dead", 200), "-mail\\nx;");
    (void)fcall("later_v1_export mail dead 1 '' '' 9");
    assert_string_equal(at(4, 5, -1), "7 3 1 1000");
    assert_starts(fcall("later_retry %s", id), text("[%s retried ", id));
    assert_string_equal(claim(w, "mail", 1), id);
    assert_starts(redis("HGET R:tries %s", id), "8 1 0 ");
    assert_string_equal(settle(w, id, 8, "dead", 100), "ok");
    /* The same job again; and a dead job does not take a unique key. */
    assert_string_equal(import_words(text("2 dead dead~0~5~1~x^ token import:%s x", id)),
                        "[1 repeated]");
    assert_string_equal(import_words("3 dead dead~0~5~1~x^ token t unique u x"), "[1 added]");
    assert_string_equal(import_words("3 dead dead~0~5~1~x^ token t unique u x"), "[1 repeated]");
    assert_string_equal(redis("EXISTS R:uniq:mail:u"), "0");
    assert_string_equal(redis("ZCARD R:dead:mail"), "2");
}

/* An import adds all or nothing, and the error names the record. */
static void test_import_refused(void **state)
{
    static const struct {
        const char *code, *args, *says;
    } all[] = {
        {"ELATER_ARGS", "mail", "1 to 1000"},
        {"ELATER_ARGS", "mail 0", "PAYLOAD [record 1]"},
        {"ELATER_ARGS", "mail 0 a 1 key k", "[record 2]"},
        {"ELATER_ARGS", "mail 0 a x b", "[record 2]"},
        {"ELATER_ARGS", "mail -1 a", "[record 1]"},
        {"ELATER_QUEUE", "'' 0 a", ""},
        {"ELATER_OPTION", "mail 0 a 1 nonsense 1 b", "[record 2]"},
        {"ELATER_OPTION", "mail 0 a 1 in 5m b", "[record 2]"},
        {"ELATER_OPTION", "mail 0 a 1 priority 10 b", "[record 2]"},
        {"ELATER_OPTION", "mail 0 a 1 unique u b", "[record 2]"},
        {"ELATER_OPTION", "mail 1 token t a 0 b", "[record 1]"},
        {"ELATER_OPTION", "mail 1 unique_until 5 a", ""},
        {"ELATER_TIME", "mail 0 a 1 due 1767225600 b", "[record 2]"},
        {"ELATER_TIME", "mail 0 a 1 due -1 b", "[record 2]"},
        {"ELATER_TIME", "mail 0 a 1 due 1e3 b", "[record 2]"},
        {"ELATER_TIME", "mail 0 a 1 due 100000000000001 b", "[record 2]"},
        {"ELATER_TIME", "mail 1 timeout 0s a", "[record 1]"},
        {"ELATER_KEY", "mail 0 a 1 key '' b", "[record 2]"},
    };
    static const struct {
        const char *args, *says;
    } dead[] = {
        {"1 dead x a", "no outcome"},
        {"1 dead done~0~5~1~x^ a", "no outcome"},
        {"1 dead dead~0~99999999999999999~1~x^ a", "no outcome"},
        {"2 dead dead~0~5~1~x^ tries 1~2 a", "three numbers"},
        {"1 tries 1~2~3 a", "goes with dead"},
        {"0 a 1 dead dead~0~5~1~x^ b", "dead goes alone"},
    };
    const char *before;

    (void)state;
    (void)add("mail in 1h x");
    before = snapshot();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const char *line = fcall("later_v1_import %s", all[i].args);

        if (strncmp(line, text("!%s ", all[i].code), strlen(all[i].code) + 2) != 0 ||
            strstr(line, all[i].says) == NULL)
            fail_msg("%s: %s", all[i].args, line);
        assert_string_equal(snapshot(), before);
    }
    for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); i++) {
        const char *line = import_words(dead[i].args);

        if (strncmp(line, "!ELATER_OPTION ", 15) != 0 || strstr(line, dead[i].says) == NULL)
            fail_msg("%s: %s", dead[i].args, line);
        assert_string_equal(snapshot(), before);
    }
    (void)redis("SET R:q:mail:3 1");
    before = snapshot();
    assert_refused("ELATER_TYPE", "later_v1_import mail 0 a 1 priority 3 b");
    assert_string_equal(snapshot(), before);
}

/* ---- adopt */

static void test_adopt(void **state)
{
    (void)state;
    (void)redis("ZADD schedule 1900000000.5 one 1900000001.0004883 two 12 old");
    assert_string_equal(fcall("later_v1_adopt mail schedule '' s 0 '' '' 2"),
                        "[2 0 1900000000.5 one  ]");
    assert_starts(fcall("later_v1_adopt mail schedule '' s 0 1900000000.5 one 2"), "[1 0 1");
    assert_string_equal(at(3, -1), "two");
    /* Redis 8 writes 1.9000000010004883e+9. */
    assert_true(strtod(at(2, -1), NULL) == 1900000001.0004883);
    assert_string_equal(fcall("later_v1_adopt mail schedule '' s 0 %s two 2", at(2, -1)),
                        "[0 0    ]");
    assert_string_equal(redis("ZCARD schedule"), "3");
    (void)redis("ZRANGE R:q:mail:5 0 -1 WITHSCORES");
    assert_string_equal(at(3, -1), "1900000000500");
    assert_string_equal(at(5, -1), "1900000001000");
    assert_string_equal(exported("due", 9), "-mail\\nold;-mail\\none;-mail\\ntwo;");
}

/* A member is removed by the call that adds it as a job. Members that cannot be jobs stay. */
static void test_adopt_remove(void **state)
{
    (void)state;
    (void)redis("ZADD delayed 1900000000000 a 1900000000 seconds 1900000000001 c inf never -inf b");
    (void)redis("HSET bodies a A b B seconds S never N c C");
    assert_string_equal(fcall("later_v1_adopt mail delayed bodies ms 1 '' '' 200"),
                        "[2 3 inf never its score -inf is not finite b]");
    assert_string_equal(redis("ZRANGE delayed 0 -1"), "[b seconds never]");
    assert_int_equal(reply_count(node(-1)), 3);
    assert_string_equal(exported("due", 9), "-mail\\nA;-mail\\nC;");
    (void)redis("HDEL bodies never");
    assert_starts(fcall("later_v1_adopt mail delayed bodies ms 1 1900000000 seconds 200"),
                  "[0 1 inf never it has no field in 'bodies' never]");
    assert_refused("ELATER_ARGS", "later_v1_adopt mail nothing '' ms 1 '' '' 200");
    assert_refused("ELATER_ARGS", "later_v1_adopt mail R:q:mail:5 '' ms 1 '' '' 200");
    assert_refused("ELATER_TYPE", "later_v1_adopt mail bodies '' ms 1 '' '' 200");
    assert_refused("ELATER_TYPE", "later_v1_adopt mail delayed delayed ms 1 '' '' 200");
    assert_refused("ELATER_ARGS", "later_v1_adopt mail delayed '' h 1 '' '' 200");
    assert_refused("ELATER_ARGS", "later_v1_adopt mail delayed '' s 1 x '' 200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_purge_waiting),
        FX_TEST(test_purge_some),
        FX_TEST(test_purge_ended),
        FX_TEST(test_purge_parked),
        FX_TEST(test_purge_foreign_type),
        FX_TEST(test_export_pages),
        FX_TEST(test_export_at_work),
        FX_TEST(test_export_states),
        FX_TEST(test_export_large),
        FX_TEST(test_import),
        FX_TEST(test_import_past_the_gates),
        FX_TEST(test_import_gates),
        FX_TEST(test_import_refused),
        FX_TEST(test_import_dead),
        FX_TEST(test_adopt),
        FX_TEST(test_adopt_remove),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
