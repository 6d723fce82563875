/* later_add and later_add_many: options, times, refusals, limits, tokens, waking, memory. */
#include "fixture.h"

struct row {
    const char *args, *want;
};

static void test_reply_and_order(void **state)
{
    const char *first, *second;

    (void)state;
    first = add("mail hello");
    assert_string_equal(at(1, -1), "added");
    assert_time(int_at(2, -1), -5000, 0);
    second = add("mail hello");
    assert_int_equal(strlen(first), 12);
    assert_true(strcmp(first, second) < 0); /* ids rise, and equal due times keep the order */
    assert_string_equal(redis("ZCARD R:q:mail:5"), "2");
    assert_string_equal(redis("SMEMBERS R:names"), "[mail]");
}

static void test_options(void **state)
{
    static const struct row rows[] = {
        {"mail x", "-mail\\nx"},
        {"mail priority 0 x", "-mail 0\\nx"},
        {"mail PRIORITY 9 x", "-mail 9\\nx"},
        {"mail key user:42 x", "-mail K=user:42\\nx"},
        {"mail key a=b x", "-mail K=a=b\\nx"},
        {"mail attempts 1 x", "-mail a=1\\nx"},
        {"mail attempts 1000000 x", "-mail a=1000000\\nx"},
        {"mail timeout 90s x", "-mail t=90000\\nx"},
        {"mail Expire 1ms x", "-mail x=1\\nx"},
        {"mail keep 0s x", "-mail k=0\\nx"},
        {"mail keep 36500d x", "-mail k=3153600000000\\nx"},
        {"mail token T x", "-mail\\nx"},
        {"mail trace " TRACE " x", "-mail T=" TRACE "\\nx"},
        {"mail in 5m x", "-mail\\nx"},
        {"Mail_2-b x", "-Mail_2-b\\nx"},
        {"mail trace " TRACE " key K keep 1s expire 1s timeout 1s attempts 2 priority 3 x",
         "-mail 3 a=2 t=1000 x=1000 k=1000 K=K T=" TRACE "\\nx"},
        {"mail ''", "-mail\\n"},
        {"mail in 1s priority", "-mail\\npriority"}, /* the last is the payload, whatever it is */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *id = add("%s", rows[i].args);

        assert_string_equal(redis("HGET R:jobs %s", id), rows[i].want);
    }
    assert_string_equal(redis("HGET R:prio mail"), "093");
}

static const struct row refusals[] = {
    {"", "ELATER_ARGS"},
    {"mail", "ELATER_ARGS"},
    {"mail in 5m", "ELATER_ARGS"},
    {"'' x", "ELATER_QUEUE"},
    {"-mail x", "ELATER_QUEUE"},
    {"_mail x", "ELATER_QUEUE"},
    {"mail:x x", "ELATER_QUEUE"},
    {"mail.x x", "ELATER_QUEUE"},
    {"{mail} x", "ELATER_QUEUE"},
    {"../mail x", "ELATER_QUEUE"},
    {"m*il x", "ELATER_QUEUE"},
    {"mail\n x", "ELATER_QUEUE"},
    {"m\xc3\xa4il x", "ELATER_QUEUE"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x", "ELATER_QUEUE"},
    {"mail nosuch 1 x", "ELATER_OPTION"},
    {"mail {json} x", "ELATER_OPTION"},
    {"mail priority 10 x", "ELATER_OPTION"},
    {"mail priority -1 x", "ELATER_OPTION"},
    {"mail priority 1.5 x", "ELATER_OPTION"},
    {"mail priority nan x", "ELATER_OPTION"},
    {"mail priority 0x5 x", "ELATER_OPTION"},
    {"mail priority '' x", "ELATER_OPTION"},
    {"mail attempts 0 x", "ELATER_OPTION"},
    {"mail attempts 1000001 x", "ELATER_OPTION"},
    {"mail attempts 99999999999999999999 x", "ELATER_OPTION"},
    {"mail priority 1 Priority 2 x", "ELATER_OPTION"},
    {"mail in 5m at 2030-01-01T00:00:00Z x", "ELATER_OPTION"},
    {"mail trace '' x", "ELATER_OPTION"},
    {"mail trace t x", "ELATER_OPTION"},
    {"mail trace a\tb x", "ELATER_OPTION"},
    {"mail key '' x", "ELATER_KEY"},
    {"mail key a\nb x", "ELATER_KEY"},
    {"mail key a\x7f x", "ELATER_KEY"},
    {"mail token '' x", "ELATER_TOKEN"},
    {"mail token a\rb x", "ELATER_TOKEN"},
    {"mail timeout 0s x", "ELATER_TIME"},
    {"mail expire 0ms x", "ELATER_TIME"},
    {"mail keep 1 x", "ELATER_TIME"},
    {"mail in 5 x", "ELATER_TIME"},
    {"mail in -5m x", "ELATER_TIME"},
    {"mail in 5w x", "ELATER_TIME"},
    {"mail in 1.5h x", "ELATER_TIME"},
    {"mail in m x", "ELATER_TIME"},
    {"mail in '' x", "ELATER_TIME"},
    {"mail in nan x", "ELATER_TIME"},
    {"mail in 36526d x", "ELATER_TIME"},
    {"mail in 9999999999999999999d x", "ELATER_TIME"},
    {"mail UNIQUE_MODE drop x", "ELATER_OPTION"},
    {"mail unique_for 5s x", "ELATER_OPTION"},
    {"mail unique K unique_mode first x", "ELATER_OPTION"},
    {"mail unique '' x", "ELATER_OPTION"},
    {"mail lock '' x", "ELATER_GATE"},
    {"mail lock user:{key} x", "ELATER_KEY"},
    {"mail sem S x", "ELATER_LIMIT"},
    {"mail rate R x", "ELATER_LIMIT"},
    {"mail batch b x", "ELATER_NOBATCH"}};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const char *sep = refusals[i].args[0] != '\0' ? " " : "";

        assert_refused(refusals[i].want, "later_add%s%s", sep, refusals[i].args);
        if (strcmp(refusals[i].want, "ELATER_ARGS") != 0 &&
            strncmp(refusals[i].args, "mail token", 10) != 0)
            assert_refused(refusals[i].want, "later_add_many%s%s", sep,
                           strstr(refusals[i].args, "nosuch") || strstr(refusals[i].args, "json")
                               ? "mail priority x y"
                               : refusals[i].args);
    }
    assert_starts(redis("FCALL later_add 1 later:t mail x"), "!ELATER_ROOT");
    assert_starts(redis("FCALL later_add 1 later:{} mail x"), "!ELATER_ROOT");
    assert_starts(redis("FCALL later_add 1 later:{a:b} mail x"), "!ELATER_ROOT");
    assert_starts(redis("FCALL later_add 0 later:{t} mail x"), "!ELATER_ROOT");
    assert_starts(redis("FCALL later_add 2 later:{t} later:{t} mail x"), "!ELATER_ROOT");
    assert_string_equal(redis("DBSIZE"), "0");
}

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT_ID "00f067aa0ba902b7"

/* By whichever function a trace comes in. */
static void test_trace(void **state)
{
    static const char *const good[] = {
        "00-" TRACE_ID "-" PARENT_ID "-00", "00-" TRACE_ID "-0000000000000001-ff",
        "01-" TRACE_ID "-" PARENT_ID "-01", "fe-" TRACE_ID "-" PARENT_ID "-01-what=comes.later"};
    static const char *const bad[] = {
        "00",
        "00-4bf9-01",
        "0-" TRACE_ID "-" PARENT_ID "-01",
        "00-" TRACE_ID "0-" PARENT_ID "-01",
        "00-" TRACE_ID "-" PARENT_ID "0-01",
        "00-" TRACE_ID "-" PARENT_ID,
        "00-" TRACE_ID "-" PARENT_ID "-1",
        "00-" TRACE_ID "-" PARENT_ID "-011",
        "00-" TRACE_ID "-" PARENT_ID "-01-",
        "00-" TRACE_ID "-" PARENT_ID "-01-more",
        "01-" TRACE_ID "-" PARENT_ID "-01more",
        "01-" TRACE_ID "-" PARENT_ID "-01-\tmore",
        "01-" TRACE_ID "-" PARENT_ID "-01-\x7f",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT_ID "-01",
        "00-" TRACE_ID "-00F067AA0BA902B7-01",
        "00-" TRACE_ID "-" PARENT_ID "-0A",
        "0A-" TRACE_ID "-" PARENT_ID "-01",
        "00-" TRACE_ID "-" PARENT_ID "-0g",
        "00-" TRACE_ID "_" PARENT_ID "-01",
        "ff-" TRACE_ID "-" PARENT_ID "-01",
        "00-00000000000000000000000000000000-" PARENT_ID "-01",
        "00-" TRACE_ID "-0000000000000000-01",
    };

    (void)state;
    (void)fcall("later_subscribe news mail");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_refused("ELATER_OPTION", "later_add mail trace %s x", bad[i]);
        assert_non_null(strstr(fcall("later_add mail trace %s x", bad[i]),
                               " is no traceparent of W3C: 00, 32 digits, 16 digits, 2 digits,"));
        assert_refused("ELATER_OPTION", "later_add_many mail trace %s -- x y", bad[i]);
        assert_refused("ELATER_OPTION", "later_v1_import mail 1 trace %s x", bad[i]);
        assert_refused("ELATER_OPTION", "later_publish news trace %s x", bad[i]);
        assert_refused("ELATER_OPTION", "later_broadcast mail trace %s x", bad[i]);
    }
    assert_string_equal(redis("EXISTS R:jobs"), "0");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const char *id = add("mail trace %s x", good[i]);

        assert_string_equal(redis("HGET R:jobs %s", id), text("-mail T=%s\\nx", good[i]));
        assert_starts(fcall("later_v1_import mail 1 trace %s x", good[i]), "[1 added]");
    }
    assert_starts(fcall("later_add mail trace 00-" TRACE_ID " x"),
                  "!ELATER_OPTION trace '00-" TRACE_ID "' is no");
}

static void test_long_words(void **state)
{
    char word[300];

    (void)state;
    memset(word, 'k', sizeof(word));
    word[256] = '\0';
    (void)add("mail key %s trace " LONG_TRACE " x", word);
    word[256] = 'k', word[257] = '\0';
    assert_refused("ELATER_KEY", "later_add mail key %s x", word);
    assert_refused("ELATER_OPTION", "later_add mail trace " LONG_TRACE "0 x");
    word[128] = '\0';
    (void)add("mail token %s x", word);
    word[128] = 'k', word[129] = '\0';
    assert_refused("ELATER_TOKEN", "later_add mail token %s x", word);
}

static void test_times(void **state)
{
    static const struct {
        const char *time;
        int64_t ms; /* 0: now */
    } rows[] = {{"0", 0},
                {"99999999", 0},
                {"100000000001", 0},
                {"1767225600000", 0},
                {"4102444800000", 4102444800000},
                {"100000000000000", 100000000000000},
                {"@4102444800", 4102444800000},
                {"@4102444800.25", 4102444800250},
                {"@4102444800.0006", 4102444800001},
                {"@0", 0},
                {"2032-02-29T12:00:00Z", 1961668800000}, /* leap days, and a year that has none */
                {"2400-02-29T00:00:00Z", 13574563200000},
                {"2100-02-28T24:00:00Z", -1},
                {"2100-03-01T00:00:00Z", 4107542400000},
                {"2099-12-31T23:59:59Z", 4102444799000},
                {"2099-12-31T23:59:60Z", 4102444800000}, /* a leap second is the next one */
                {"2050-06-15T12:30:45.678+05:30", 2538889245678},
                {"2050-06-15t12:30:45.678999999999+05:30", 2538889245678},
                {"2050-01-01T00:00:00-08:00", 2524636800000},
                {"2050-01-01T00:00:00.001z", 2524608000001},
                {"2049-12-31T00:00:00-23:59", 2524608000000 - 60000},
                {"2050-01-01T00:00:00-00:00", 2524608000000},
                {"1969-12-31T23:59:59Z", 0},
                {"0000-01-01T00:00:00Z", 0},
                {"5138-11-16T09:46:40Z", 100000000000000}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].ms < 0) {
            assert_refused("ELATER_TIME", "later_add mail at %s x", rows[i].time);
            continue;
        }
        (void)add("mail at %s x", rows[i].time);
        if (rows[i].ms == 0)
            assert_time(int_at(2, -1), -5000, 0);
        else if (int_at(2, -1) != rows[i].ms)
            fail_msg("%s became %s", rows[i].time, at(2, -1));
    }
    (void)add("mail at +1d x");
    assert_time(int_at(2, -1), 86395000, 86400000);
}

static void test_bad_times(void **state)
{
    static const char *const rows[] = {"''",
                                       "now",
                                       "nan",
                                       "inf",
                                       "-1",
                                       "1.5",
                                       "0x7fffffffffff",
                                       "1e12",
                                       "1767225600",
                                       "100000000",
                                       "100000000000",
                                       "100000000000001",
                                       "99999999999999999999",
                                       "@",
                                       "@-5",
                                       "@1e5",
                                       "@1.",
                                       "@.5",
                                       "@1767225600000",
                                       "@9999999999999999999",
                                       "+",
                                       "+5",
                                       "+-5m",
                                       "2031-02-29T00:00:00Z",
                                       "2100-02-29T00:00:00Z",
                                       "2030-02-30T00:00:00Z",
                                       "2030-04-31T00:00:00Z",
                                       "2030-13-01T00:00:00Z",
                                       "2030-00-10T00:00:00Z",
                                       "2030-01-00T00:00:00Z",
                                       "2030-01-32T00:00:00Z",
                                       "2030-01-01T24:00:00Z",
                                       "2030-01-01T00:60:00Z",
                                       "2030-01-01T00:00:61Z",
                                       "2030-01-01T00:00:00",
                                       "2030-01-01T00:00Z",
                                       "2030-01-01",
                                       "2030-1-1T00:00:00Z",
                                       "2030-01-01T00:00:00.Z",
                                       "2030-01-01T00:00:00,5Z",
                                       "2030-01-01T00:00:00+24:00",
                                       "2030-01-01T00:00:00+05:60",
                                       "2030-01-01T00:00:00+0530",
                                       "2030-01-01T00:00:00Zx",
                                       "2030-01-01T00:00:00Z\n",
                                       "12030-01-01T00:00:00Z",
                                       "9999-12-31T00:00:00Z",
                                       "5138-11-16T09:46:40.001Z"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused("ELATER_TIME", "later_add mail at %s x", rows[i]);
}

static void test_payload_bytes(void **state)
{
    char bytes[20000];
    size_t lens[] = {0, 1, 256, 16384, 16385, 20000};
    char header[] = "-mail\n";

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        bool big = lens[i] > 16384;
        const char *id;
        size_t head = strlen(header);

        assert_starts(fcall_bytes("later_add mail", bytes, lens[i]), "[j");
        id = at(0, -1);
        if (big) {
            assert_string_equal(redis("HGET R:jobs %s", id), "+mail\\n");
            (void)redis("GET R:big:%s", id);
            head = 0;
        } else {
            assert_string_equal(redis("EXISTS R:big:%s", id), "0");
            (void)redis("HGET R:jobs %s", id);
        }
        assert_int_equal(reply_len(fx.last), head + lens[i]);
        assert_memory_equal(reply_str(fx.last) + head, bytes, lens[i]);
    }
}

static void refused_size(size_t n, const char *line, bool refused)
{
    char *bytes = mem_new(n);
    const char *got = fcall_bytes(line, bytes, n);

    assert_starts(got, refused ? "!ELATER_SIZE" : "[");
    free(bytes);
}

static void test_payload_limits(void **state)
{
    (void)state;
    refused_size(1048577, "later_add mail", true);
    refused_size(1048577, "later_add_many mail a", true);
    assert_string_equal(redis("DBSIZE"), "0");
    refused_size(1048576, "later_add mail", false);
    (void)redis("HSET R:config max_payload 2000 max_payload:mail 5000 max_payload:odd ten");
    refused_size(5000, "later_add mail", false);
    refused_size(5001, "later_add mail", true);
    refused_size(2000, "later_add sms", false);
    refused_size(2001, "later_add sms", true);
    refused_size(1048576, "later_add odd", false);
    refused_size(1048577, "later_add odd", true);
    (void)redis("HSET R:config max_payload:wide 20000000");
    refused_size(16777217, "later_add_many wide", true);
    refused_size(16777217, "later_add wide", false);
}

static void test_token(void **state)
{
    const char *id, *due;

    (void)state;
    id = add("mail token T1 in 5m hello");
    due = at(2, -1);
    assert_string_equal(fcall("later_add mail token T1 in 7m hello"),
                        text("[%s repeated %s]", id, due));
    assert_refused("ELATER_TOKEN", "later_add mail token T1 in 5m other");
    assert_refused("ELATER_TOKEN", "later_add sms token T1 in 5m hello");
    assert_string_not_equal(add("mail token T2 in 5m hello"), id);
    assert_in_range(reply_int((redis("TTL R:token:T1"), fx.last)), 86390, 86400);
    /* It also counts after the job has ended. A stranger's text in its key is refused. */
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    assert_starts(fcall("later_add mail token T1 in 5m hello"), text("[%s repeated", id));
    (void)redis("SET R:token:T1 junk");
    assert_refused("ELATER_TOKEN", "later_add mail token T1 in 5m hello");
    (void)redis("DEL R:token:T1");
    (void)redis("SADD R:token:T1 x");
    assert_refused("ELATER_TYPE", "later_add mail token T1 in 5m hello");
    assert_refused("ELATER_OPTION", "later_add_many mail token T9 x");
}

/* An add that fails leaves no token: the next one would be answered with a job that is not there.
 * Not even if the user lacks the right to delete it. */
static void test_token_of_a_failed_add(void **state)
{
    (void)state;
    (void)redis("ACL SETUSER default -del");
    (void)redis("SET R:heads x");
    assert_starts(fcall("later_add mail token T x"), "!ELATER_TYPE ");
    assert_string_equal(redis("EXISTS R:token:T R:jobs"), "0");
    (void)redis("ACL SETUSER default +del");
    (void)redis("DEL R:heads");
    assert_starts(fcall("later_add mail token T x"), "[j");
    assert_string_equal(at(1, -1), "added");
}

static void test_queue_cap(void **state)
{
    struct client *c = listen_to(ROOT ":wake");

    (void)state;
    assert_starts(
        redis("EVAL for\ti=1,10000\tdo\tredis.call('SADD',KEYS[1],'n'..i)\tend 1 R:names"), "nil");
    assert_refused("ELATER_FULL", "later_add fresh x");
    assert_refused("ELATER_FULL", "later_add_many fresh x");
    assert_refused("ELATER_FULL", "later_pause fresh");
    assert_refused("ELATER_FULL", "later_add fresh token T unique U priority 3 %020000d", 1);
    assert_string_equal(heard(c, "R:wake"), "");
    (void)add("n77 x"); /* known queues go on */
    assert_string_equal(heard(c, "R:wake"), "n77");
    (void)redis("SREM R:names n5");
    (void)add("fresh x");
    (void)add("fresh x");
    assert_refused("ELATER_FULL", "later_add n5 x");
    client_close(c);
}

static void test_wrong_types(void **state)
{
    static const char *const keys[] = {"jobs",  "heads", "q:mail:3", "clock",
                                       "names", "prio",  "config"};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)redis("FLUSHALL");
        (void)redis("RPUSH R:%s x", keys[i]);
        assert_refused("ELATER_TYPE", "later_add mail priority 3 %01100d", 1);
        assert_refused("ELATER_TYPE", "later_add_many mail priority 3 %01100d b", 1);
    }
}

/* A wrong type is found only by writing: what was written before is taken back, the clock too, and
 * the error names the key. */
static void test_wrong_types_found_late(void **state)
{
    static const char *const keys[] = {"jobs", "q:mail:5"};
    static const char *const options[] = {"", "in 5m ", "token T ", "unique U ",
                                          "unique U unique_mode move token T "};

    (void)state;
    for (size_t i = 0; i < 4 * sizeof(options) / sizeof(options[0]); i++) {
        const char *key = keys[i % 2];
        const char *line = text("later_add mail %s%020000d", options[i / 4], 1);

        (void)redis("FLUSHALL");
        if (i % 4 < 2)
            (void)redis("SET R:clock 7");
        (void)redis("RPUSH R:%s x", key);
        assert_refused_line("ELATER_TYPE", line);
        assert_non_null(strstr(call_line(line), text("key %s:%s is a list", ROOT, key)));
    }
}

/* A foreign key is found after the head was written: the head of earlier jobs stays. */
static void test_takes_back_no_head_of_others(void **state)
{
    (void)state;
    (void)add("mail in 1h x");
    (void)redis("DEL R:names");
    (void)redis("RPUSH R:names x");
    assert_refused("ELATER_TYPE", "later_add sms y");
    assert_starts(fcall("later_add mail y"), "!ELATER_TYPE");
    assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[mail]");
    assert_string_equal(redis("HLEN R:jobs"), "1");
}

static void test_publishes_only_earlier_heads(void **state)
{
    struct client *c = listen_to(ROOT ":wake");

    (void)state;
    (void)add("mail in 1h x");
    assert_string_equal(heard(c, "R:wake"), "mail");
    (void)add("mail in 2h x");
    (void)add("mail in 1h x");
    (void)fcall("later_add_many mail in 90m a b c");
    assert_string_equal(heard(c, "R:wake"), "");
    (void)add("mail in 30m priority 9 x");
    assert_string_equal(heard(c, "R:wake"), "mail");
    (void)fcall("later_add_many mail in 10m a b c");
    (void)add("sms in 9h x");
    assert_string_equal(heard(c, "R:wake"), "mail,sms");
    assert_refused("ELATER_TIME", "later_add mail in never x");
    assert_string_equal(heard(c, "R:wake"), "");
    client_close(c);
}

static void test_many(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    assert_starts(fcall("later_add_many mail priority 2 key K in 1h a '' in"), "[[j");
    assert_int_equal(len_at(-1), 3);
    assert_true(strcmp(at(0, 0, -1), at(1, 0, -1)) < 0 && strcmp(at(1, 0, -1), at(2, 0, -1)) < 0);
    assert_string_equal(at(0, 2, -1), at(2, 2, -1));
    assert_string_equal(redis("HVALS R:jobs"), "[-mail 2 K=K\\na -mail 2 K=K\\n -mail 2 K=K\\nin]");
    assert_string_equal(redis("ZCARD R:q:mail:2"), "3");
    assert_string_equal(redis("HGET R:prio mail"), "2");
    assert_starts(fcall("later_add_many mail -- in 5m"), "[[j");
    assert_int_equal(len_at(-1), 2);
    assert_refused("ELATER_ARGS", "later_add_many mail");
    assert_refused("ELATER_ARGS", "later_add_many mail --");
    assert_refused("ELATER_ARGS", "later_add_many mail in");
    assert_refused("ELATER_ARGS", "later_add_many mail in 5m");
    buf_puts(&b, "later_add_many bulk");
    for (int i = 0; i < 1000; i++)
        buf_puts(&b, " x");
    assert_starts(call_line(buf_str(&b)), "[[j");
    assert_string_equal(redis("ZCARD R:q:bulk:5"), "1000");
    buf_puts(&b, " x");
    assert_refused_line("ELATER_ARGS", buf_str(&b));
    buf_done(&b);
}

/* A field of INFO memory, in bytes. */
static int64_t memory(const char *field)
{
    const char *name = text("%s:", field);
    const char *line = strstr(redis("INFO memory"), name);

    assert_non_null(line);
    return atoll(line + strlen(name));
}

static int64_t used(void)
{
    test_redis_sweep(&fx.redis);
    return memory("used_memory");
}

static void test_memory_per_job(void **state)
{
    struct buf b = BUF_INIT;
    int64_t before;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, " %0100d", i);
    before = used();
    for (int i = 0; i < 100; i++)
        (void)call_line(text("later_add_many mail in %dh%s", i + 1, buf_str(&b)));
    assert_string_equal(redis("HLEN R:jobs"), "100000");
    before = used() - before;
    if (before / 100000 > 320)
        fail_msg("%lld bytes a job", (long long)before / 100000);
    print_message("             %lld bytes a job of 100 bytes\n", (long long)before / 100000);
    buf_done(&b);
}

/* The garbage collector keeps up with what calls leave behind, even at half its pace. */
static void test_collector(void **state)
{
    static const char library[] =
        "#!lua name=ask\n"
        "redis.register_function('pace', function() return collectgarbage('setstepmul', 100) end)";
    const char *load[] = {"FUNCTION", "LOAD", library};
    static char payload[100000];
    static const char vm[] = "used_memory_vm_functions";
    int64_t before, now, most = 0;

    (void)state;
    (void)add("mail x");
    assert_string_equal(send_args(3, load, NULL), "ask");
    assert_string_equal(redis("FCALL pace 0"), "100");
    (void)redis("FUNCTION DELETE ask");
    before = memory(vm);
    for (int i = 0; i < 500; i++) {
        (void)memset(payload, 'x', sizeof(payload));
        (void)snprintf(payload, 10, "%d", i);
        (void)fcall_bytes("later_add mail", payload, sizeof(payload));
        now = memory(vm);
        most = now > most ? now : most;
    }
    if (most - before > 8 << 20)
        fail_msg("calls of 100 kB leave %lld bytes", (long long)(most - before));
}

/* A full Redis takes no new jobs, and still lets jobs be cancelled. */
static void test_full_redis(void **state)
{
    const char *id = add("mail in 1h x");

    (void)state;
    (void)redis("CONFIG SET maxmemory 1");
    assert_starts(fcall("later_add mail x"), "!OOM");
    assert_starts(fcall("later_add_many mail x"), "!OOM");
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    (void)redis("CONFIG SET maxmemory 0");
    assert_string_equal(redis("HLEN R:jobs"), "0");
}

/* An error of Redis inside a function keeps its own text, which tells what to do about it. */
static void test_missing_rights(void **state)
{
    const char *before = snapshot(), *refusal;

    (void)state;
    (void)redis("ACL SETUSER default -zadd");
    refusal = fcall("later_add mail x");
    /* Redis 7.0, its successors */
    assert_true(strstr(refusal, "can't run this command") != NULL ||
                strstr(refusal, "no permissions to run the 'zadd' command") != NULL);
    assert_null(strstr(refusal, "ELATER_"));
    (void)redis("ACL SETUSER default +zadd");
    assert_string_equal(snapshot(), before);
    (void)add("mail x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, since a connection that once sent much keeps its buffer for a while. */
        FX_TEST(test_memory_per_job),
        FX_TEST(test_reply_and_order),
        FX_TEST(test_options),
        FX_TEST(test_refusals),
        FX_TEST(test_long_words),
        FX_TEST(test_trace),
        FX_TEST(test_times),
        FX_TEST(test_bad_times),
        FX_TEST(test_payload_bytes),
        FX_TEST(test_payload_limits),
        FX_TEST(test_token),
        FX_TEST(test_token_of_a_failed_add),
        FX_TEST(test_queue_cap),
        FX_TEST(test_wrong_types),
        FX_TEST(test_wrong_types_found_late),
        FX_TEST(test_takes_back_no_head_of_others),
        FX_TEST(test_publishes_only_earlier_heads),
        FX_TEST(test_many),
        FX_TEST(test_collector),
        FX_TEST(test_full_redis),
        FX_TEST(test_missing_rights)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
