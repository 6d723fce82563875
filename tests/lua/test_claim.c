/*
 * later_v1_sync: claims come as groups of jobs that begin alike; jobs that ended well and leave
 * nothing are told as lists of ids.
 */
#include "fixture.h"

#define MAIL "mail 600 1048576"
#define SMS "sms 600 1048576"
#define NEW "mail 1 1 0 0" /* begin_of a group of first starts without gates */

/* A group: queue, fence of the first, start, attempt, crashes, gated, {id, due ms, record}*. */

/* What all jobs of a group have in common: queue, start, attempt, crashes, gated. */
static const char *begin_of(int group)
{
    return text("%s %s %s %s %s", at(3, group, 0, -1), at(3, group, 2, -1), at(3, group, 3, -1),
                at(3, group, 4, -1), at(3, group, 5, -1));
}

/* Fences rise by 2 in a group and by no less from one group to the next. Neighbouring groups begin
 * alike only where a number between them was taken by a job that was not claimed. */
static void assert_groups(void)
{
    int64_t next = 0;

    for (int i = 0; i < len_at(3, -1); i++) {
        int size = len_at(3, i, -1);
        int64_t fence = int_at(3, i, 1, -1);

        assert_true(size > GROUP_COMMON && size % 3 == 0);
        assert_true(fence >= next);
        if (i > 0 && strcmp(begin_of(i), begin_of(i - 1)) == 0)
            assert_true(fence > next);
        next = fence + (int64_t)2 * (size - GROUP_COMMON) / 3;
    }
}

/* A later_v1_sync with these arguments. It is accepted, and its groups are in order. */
FX_FMT static void sync_line(const char *fmt, ...)
{
    FX_FORMAT(rest);
    assert_starts(call_line(text("later_v1_sync %s", rest)), "[");
    assert_string_equal(at(1, -1), "ok");
    assert_int_equal(len_at(-1), 11);
    assert_groups();
}

/* n jobs `x` in a queue, in one call. */
static void add_many(const char *queue, int n)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "later_add_many %s", queue);
    for (int i = 0; i < n; i++)
        buf_puts(&b, " x");
    assert_starts(call_line(buf_str(&b)), "[");
    buf_done(&b);
}

/* The ids of all claims, in order, a space before each; *n: how many. */
static const char *claimed_ids(int *n)
{
    struct buf b = BUF_INIT;

    *n = 0;
    for (int i = 0; i < len_at(3, -1); i++)
        for (int k = GROUP_COMMON; k < len_at(3, i, -1); k += 3, ++*n)
            buf_printf(&b, " %s", at(3, i, k, -1));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* The queues and ids of the last groups: "mail a b, sms c". */
static const char *all_claims(void)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < len_at(3, -1); i++) {
        buf_printf(&b, "%s%s", i > 0 ? ", " : "", at(3, i, 0, -1));
        for (int k = GROUP_COMMON; k < len_at(3, i, -1); k += 3)
            buf_printf(&b, " %s", at(3, i, k, -1));
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static void claim_mail(const char *w)
{
    sync_line("%s 1 0 600 0 1 " MAIL " 0", w);
}

/* End n jobs of queue mail at their first start; -> number and answer of those that are not ok. */
static const char *end_mail(const char *w, int n, const char *ids)
{
    sync_line("%s 1 0 0 0 0 1 mail 1 %d%s%s", w, n, n > 0 ? " " : "", ids);
    return at(9, -1);
}

/* Set what Redis knows of the starts of a job: "starts attempts crashes due_ms". */
static void set_tries(const char *id, const char *tries)
{
    const char *argv[] = {"HSET", ROOT ":tries", id, tries};

    assert_true(send_args(4, argv, NULL)[0] != '!');
}

/* Add jobs to queue mail that are due in this order. */
static void add_in_order(const char *const *adds, int n, const char **ids)
{
    for (int i = 0; i < n; i++) {
        ids[i] = add("mail %s", adds[i]);
        (void)redis("ZADD R:q:mail:5 %d %s", 1000 + i, ids[i]);
    }
}

/* ---- claims */

static void test_claims(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");
    int64_t fence;

    (void)state;
    (void)redis("ZADD R:q:mail:5 1000 %s 2000 %s", a, b);
    claim_mail(w);
    fence = int_at(3, 0, 1, -1);
    assert_string_equal(at(3, -1), text("[[mail %lld 1 1 0 0 %s 1000 -mail\\na %s 2000 -mail\\nb]]",
                                        (long long)fence, a, b));
    assert_string_equal(at(2, -1), "[]");
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(at(5, -1), "[-1]");
    assert_string_equal(redis("HGET R:tries %s", a), "1 1 0 1000");
    assert_string_equal(redis("HGET R:tries %s", b), "1 1 0 2000");
    assert_string_equal(redis("ZMSCORE R:running %s %s", a, b), text("[%s %s]", w, w));
    assert_string_equal(redis("EXISTS R:q:mail:5 R:heads"), "0");
    assert_true(fence > atoll(w) && atoll(redis("GET R:clock")) >= fence + 2);
    claim_mail(w);
    assert_string_equal(all_claims(), ""); /* a claimed job is not claimed again */
}

/* Options alone begin no new group. */
static void test_options_in_one_group(void **state)
{
    static const char *const adds[] = {
        "x",         "key K x",     "attempts 3 x",      "timeout 5s x",
        "keep 1h x", "expire 1h x", "trace " TRACE " x", "unique u x",
        "x"};
    enum { N = sizeof(adds) / sizeof(adds[0]) };
    const char *w = worker(), *ids[N], *first, *last;
    struct buf want = BUF_INIT;

    (void)state;
    for (int i = 0; i < N; i++)
        ids[i] = add("mail %s", adds[i]);
    last = add("mail priority 6 x");
    first = add("mail priority 4 x");
    claim_mail(w);
    buf_printf(&want, "mail %s", first);
    for (int i = 0; i < N; i++)
        buf_printf(&want, " %s", ids[i]);
    buf_printf(&want, " %s", last);
    assert_string_equal(all_claims(), buf_str(&want));
    assert_string_equal(begin_of(0), NEW);
    assert_starts(at(3, 0, GROUP_COMMON + 3 * 8 + 2, -1),
                  "-mail u=u"); /* each has its own record */
    buf_done(&want);
}

/* Jobs that begin differently have their own groups: retried, released, after a crash, with
 * gates. */
static void test_beginnings(void **state)
{
    static const struct {
        const char *add, *tries, *begin;
    } rows[] = {
        {"x", NULL, NEW},
        {"x", "1 0 0 5", "mail 2 1 0 0"},
        {"x", "1 1 0 5", "mail 2 2 0 0"},
        {"x", "1 1 1 5", "mail 2 2 1 0"},
        {"x", "2 1 1 5", "mail 3 2 1 0"},
        {"lock a x", NULL, "mail 1 1 0 2"},
        {"sem one x", NULL, "mail 1 1 0 1"},
        {"sem two x", NULL, "mail 1 1 0 2"},
        {"sem one x", "1 1 0 5", "mail 2 2 0 1"},
        {"x", NULL, NEW},
    };
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    const char *w = worker(), *ids[N];
    int64_t fence;

    (void)state;
    (void)fcall("later_limit_set one semaphore 9");
    (void)fcall("later_limit_set two semaphore 9 on_lost kill");
    for (int i = 0; i < N; i++) {
        add_in_order(&rows[i].add, 1, &ids[i]);
        (void)redis("ZADD R:q:mail:5 %d %s", 1000 + i, ids[i]);
        if (rows[i].tries != NULL)
            set_tries(ids[i], rows[i].tries);
    }
    claim_mail(w);
    assert_int_equal(len_at(3, -1), N);
    fence = int_at(3, 0, 1, -1);
    for (int i = 0; i < N; i++) {
        assert_string_equal(begin_of(i), rows[i].begin);
        assert_string_equal(at(3, i, GROUP_COMMON, -1), ids[i]);
        assert_true(int_at(3, i, 1, -1) == fence + (int64_t)2 * i);
    }
    assert_string_equal(redis("HGET R:lock:a fence"), text("%lld", (long long)fence + 10));
    assert_string_equal(redis("HGET R:tries %s", ids[4]), "3 2 1 1004");
}

/* Jobs that begin alike come in one group, even if they were due at different times before, or have
 * different gates. */
static void test_alike(void **state)
{
    static const char *const adds[] = {"x",        "key K x", "lock a x", "sem s lock b x",
                                       "lock c x", "x"};
    const char *w = worker(), *ids[6];
    int64_t fence;

    (void)state;
    (void)fcall("later_limit_set s semaphore 9");
    add_in_order(adds, 6, ids);
    set_tries(ids[0], "1 1 0 5");
    set_tries(ids[1], "1 1 0 6");
    claim_mail(w);
    assert_string_equal(all_claims(), text("mail %s %s, mail %s %s %s, mail %s", ids[0], ids[1],
                                           ids[2], ids[3], ids[4], ids[5]));
    assert_string_equal(text("%s|%s|%s", begin_of(0), begin_of(1), begin_of(2)),
                        "mail 2 2 0 0|mail 1 1 0 2|" NEW);
    /* The locks have the fences that the worker computes. */
    fence = int_at(3, 1, 1, -1);
    assert_true(fence == int_at(3, 0, 1, -1) + 4 && int_at(3, 2, 1, -1) == fence + 6);
    assert_string_equal(redis("HGET R:lock:b fence"), text("%lld", (long long)fence + 2));
    assert_string_equal(redis("HGET R:lock:c fence"), text("%lld", (long long)fence + 4));
}

/* A job that is buried, or that is parked, takes a number that becomes no fence: the jobs
 * behind it have a group of their own. */
static void test_gap(void **state)
{
    static const char *const adds[] = {"x",           "x", "broken",      "x",
                                       "lock door x", "x", "lock door x", "x"};
    const char *w = worker(), *ids[8];

    (void)state;
    add_in_order(adds, 8, ids);
    (void)redis("HSET R:jobs %s broken", ids[2]);
    claim_mail(w);
    assert_string_equal(all_claims(), text("mail %s %s, mail %s, mail %s, mail %s, mail %s", ids[0],
                                           ids[1], ids[3], ids[4], ids[5], ids[7]));
    assert_string_equal(begin_of(4), NEW);
    assert_string_equal(redis("HKEYS R:parked"), text("[%s]", ids[6]));
    assert_string_equal(redis("ZRANGE R:dead:mail 0 -1"), text("[%s]", ids[2]));
}

/* Jobs come by priority, due time and id. Raw members between them get their ids now. */
static void test_order(void **state)
{
    const char *w = worker(), *a, *b, *c, *d, *raw, *record;

    (void)state;
    d = add("mail priority 9 d");
    c = add("mail c");
    b = add("mail key K b");
    a = add("mail priority 0 a");
    (void)redis("ZADD R:q:mail:5 3 %s 1 %s", c, b);
    (void)redis("ZADD R:due:mail 2 r");
    claim_mail(w);
    raw = at(3, 0, GROUP_COMMON + 6, -1);
    assert_string_equal(all_claims(), text("mail %s %s %s %s %s", a, b, raw, c, d));
    assert_string_equal(begin_of(0), NEW);
    record = at(3, 0, GROUP_COMMON + 8, -1);
    assert_string_equal(record, "-mail\\nr");
    assert_string_equal(redis("HGET R:jobs %s", raw), record);
    assert_string_equal(redis("ZSCORE R:running %s", raw), w);
    assert_string_equal(redis("EXISTS R:due:mail"), "0");
    /* Equal times: by id. */
    a = add("mail a");
    b = add("mail b");
    (void)redis("ZADD R:q:mail:5 7 %s 7 %s", b, a);
    claim_mail(w);
    assert_string_equal(all_claims(), text("mail %s %s", a, b));
}

static void test_mixed_in_one_queue(void **state)
{
    static const char *const adds[] = {"a", "b", "lock door c", "d"};
    const char *w = worker(), *ids[4];

    (void)state;
    add_in_order(adds, 4, ids);
    claim_mail(w);
    assert_string_equal(all_claims(),
                        text("mail %s %s, mail %s, mail %s", ids[0], ids[1], ids[2], ids[3]));
    assert_true(int_at(3, 1, 1, -1) == int_at(3, 0, 1, -1) + 4); /* fences go on */
    assert_true(int_at(3, 2, 1, -1) == int_at(3, 1, 1, -1) + 2);
    sync_line("%s 1 0 0 1 %s 1 done mail 0 0 T O 0 1 mail 1 2 %s %s", w, ids[2], ids[0], ids[3]);
    assert_string_equal(text("%s %s", at(2, -1), at(9, -1)), "[ok] []");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", ids[1]));
    assert_string_equal(redis("HGET R:stats done:mail"), "3");
    assert_string_equal(redis("EXISTS R:lock:door R:holds"), "0");
}

static void test_over_several_queues(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("sms b"), *c = add("fax keep 1h c"),
               *d = add("log d"), *e = add("log e");

    (void)state;
    sync_line("%s 1 0 3 0 5 fax 9 100 sms 9 100 none 9 100 mail 9 100 log 9 100 0", w);
    assert_string_equal(all_claims(), text("fax %s, sms %s, mail %s", c, b, a));
    assert_true(int_at(5, 4, -1) > 0); /* MAX counts the claims of all queues */
    /* One group for each queue. The numbers in the answer go on from one group to the next. */
    sync_line("%s 1 0 9 0 1 log 1 100 3 sms 1 1 %s none 1 0 mail 1 2 j00000000000 %s", w, b, a);
    assert_string_equal(at(9, -1), "[2 settled]");
    assert_string_equal(all_claims(), text("log %s", d)); /* ends are taken before claims */
    assert_true(int_at(5, 0, -1) > 0);                    /* one is left for want of room */
    assert_string_equal(redis("HMGET R:stats done:mail done:sms done:none"), "[1 1 nil]");
    /* Without room only the head is told. */
    sync_line("%s 1 1 9 0 1 log 0 100 0", w);
    assert_string_equal(all_claims(), "");
    assert_true(int_at(5, 0, -1) > 0);
    sync_line("%s 1 1 9 0 1 log 9 100 0", w);
    assert_string_equal(all_claims(), text("log %s", e));
}

/* Jobs with options come and end in groups, as all others do. */
static void test_options_end(void **state)
{
    static const char *const adds[] = {
        "mail priority 4 x", "mail attempts 3 x",      "mail unique u x",
        "mail lock door x",  "mail sem s x",           "mail expire 1h x",
        "mail timeout 5s x", "mail trace " TRACE " x", "mail key K x"};
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_limit_set s semaphore 1");
    for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
        id = add("%s", adds[i]);
        claim_mail(w);
        assert_string_equal(all_claims(), text("mail %s", id));
        assert_string_equal(end_mail(w, 1, id), "[]");
        assert_string_equal(
            redis("EXISTS R:jobs R:tries R:running R:holds R:uniq:mail:u R:lock:door "
                  "R:sem:s R:await"),
            "0");
    }
    /* Gates of the queue. */
    (void)redis("HSET R:queues sms sem=s");
    id = add("sms x");
    (void)add("sms x");
    sync_line("%s 1 0 9 0 1 " SMS " 0", w);
    assert_string_equal(text("%s %s", all_claims(), begin_of(0)), text("sms %s sms 1 1 0 1", id));
}

/* A payload that has a key of its own, in a group with others. */
static void test_big_payload(void **state)
{
    static const size_t sizes[] = {16384, 16385, 1};
    char bytes[16385];
    const char *w = worker(), *big;

    (void)state;
    memset(bytes, 'b', sizeof(bytes));
    for (int i = 0; i < 3; i++) {
        assert_starts(fcall_bytes("later_add mail", bytes, sizes[i]), "[j");
        (void)redis("ZADD R:q:mail:5 %d %s", 1000 + i, at(0, -1));
    }
    claim_mail(w);
    assert_int_equal(len_at(3, -1), 1);
    assert_int_equal(len_at(3, 0, -1), GROUP_COMMON + 9);
    assert_string_equal(begin_of(0), NEW);
    assert_int_equal(reply_len(node(3, 0, GROUP_COMMON + 2, -1)), 6 + sizes[0]);
    assert_string_equal(at(3, 0, GROUP_COMMON + 5, -1), "+mail\\n");
    assert_string_equal(at(3, 0, GROUP_COMMON + 8, -1), "-mail\\nb");
    big = at(3, 0, GROUP_COMMON + 3, -1);
    assert_string_equal(redis("STRLEN R:big:%s", big), "16385");
    /* It ends by a result of its own. */
    sync_line("%s 1 2 0 1 %s 1 done mail 0 0 ok '' 0 0", w, big);
    assert_string_equal(at(2, -1), "[ok]");
    assert_string_equal(redis("EXISTS R:big:%s", big), "0");
}

/* A sync brings 1 MiB, the record that passes the limit included. */
static void test_byte_bound(void **state)
{
    char bytes[16000];
    const char *w = worker();
    int n, all = 0;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 100; i++)
        (void)fcall_bytes("later_add mail", bytes, sizeof(bytes));
    add_many("sms", 1);
    sync_line("%s 1 0 200 0 2 " MAIL " " SMS " 0", w);
    (void)claimed_ids(&all);
    assert_in_range(all, 60, 66);
    assert_int_equal(len_at(3, -1), 1);
    assert_true(int_at(5, 0, -1) > 0 && int_at(5, 1, -1) > 0);
    sync_line("%s 1 0 200 0 2 " MAIL " " SMS " 0", w);
    (void)claimed_ids(&n);
    assert_int_equal(all + n, 101);
    assert_string_equal(at(5, -1), "[-1 -1]");
}

/* ---- due times */

#define LATER INT64_C(4102444800000)

/* Scores of the jobs of a queue, and what a sync with this room makes of them. */
static const struct {
    const char *scores;
    int room, claimed;
    int64_t head; /* -1: none is left */
    const char *dues;
} due_rows[] = {
    {"5 5 5 5", 9, 4, -1, "5 5 5 5"},
    {"5 5 5 5", 4, 4, -1, "5 5 5 5"}, /* as many as room */
    {"5 5 5 5", 3, 3, 5, "5 5 5"},    /* one more than room */
    {"5 5 5 5", 1, 1, 5, "5"},
    {"5", 1, 1, -1, "5"},
    {"5 6 7 8", 9, 4, -1, "5 6 7 8"},
    {"5 6 7 8", 4, 4, -1, "5 6 7 8"},
    {"5 6 7 8", 3, 3, 8, "5 6 7"},
    {"5 5 5 8", 3, 3, 8, "5 5 5"},
    {"5 5 8 8", 3, 3, 8, "5 5 8"},
    {"5 6 6 5", 9, 4, -1, "5 5 6 6"},
    {"5 5 4102444800000", 9, 2, LATER, "5 5"},
    {"5 6 4102444800000", 9, 2, LATER, "5 6"},
    {"5 6 4102444800000", 3, 2, LATER, "5 6"},
    {"5 6 4102444800000", 2, 2, LATER, "5 6"},
    {"5 6 4102444800000", 1, 1, 6, "5"},
    {"5 4102444800000 4102444800000", 2, 1, LATER, "5"},
    {"4102444800000 4102444800000", 9, 0, LATER, ""},
    {"4102444800000 4102444800001", 1, 0, LATER, ""},
    {"-7 -7 -3 0", 9, 4, -1, "0 0 0 0"},
    {"-inf 1000.2 1000.9 1001", 9, 4, -1, "0 1001 1001 1001"},
    {"1000.2 1000.9", 9, 2, -1, "1001 1001"},
    {"1000.2 1000.9 1000.95", 2, 2, 1001, "1001 1001"},
    {"5 inf", 9, 1, INT64_C(100000000000000), "5"},
    /* More runs of one due time than Redis is asked to count (RUNS in waiting.lua). */
    {"1 1 2 3 4 5 5 6 7 8 8 9 10 10 11", 20, 15, -1, "1 1 2 3 4 5 5 6 7 8 8 9 10 10 11"},
    {"1 2 3 4 5 6 7 8 9 10 10 11", 10, 10, 10, "1 2 3 4 5 6 7 8 9 10"},
    {"1 2 3 4 5 6 7 8 9 4102444800000", 20, 9, LATER, "1 2 3 4 5 6 7 8 9"},
    {"1 2 3 4 5 6 7 8 4102444800000", 20, 8, LATER, "1 2 3 4 5 6 7 8"},
    {"1 2 3 4 5 6 7 8 9 10 4102444800000 4102444800001", 20, 10, LATER, "1 2 3 4 5 6 7 8 9 10"},
    {"1 2 3 4 5 6 7 8 9 10 4102444800000 4102444800001", 11, 10, LATER, "1 2 3 4 5 6 7 8 9 10"},
    {"5 4102444800000 4102444800001", 9, 1, LATER, "5"},
};

static void test_due_times(void **state)
{
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(due_rows) / sizeof(due_rows[0]); i++) {
        char *scores = mem_strdup(due_rows[i].scores), *next = scores, *score;
        struct buf dues = BUF_INIT;

        (void)keep(scores);
        (void)redis("DEL R:q:mail:5 R:heads R:running R:tries R:jobs");
        while ((score = strsep(&next, " ")) != NULL)
            (void)redis("ZADD R:q:mail:5 %s %s", score, add("mail x"));
        sync_line("%s 1 0 600 0 1 mail %d 100 0", w, due_rows[i].room);
        assert_int_equal(len_at(3, -1), due_rows[i].claimed > 0 ? 1 : 0);
        for (int k = GROUP_COMMON + 1; k < len_at(3, 0, -1); k += 3)
            buf_printf(&dues, "%s%s", dues.len > 0 ? " " : "", at(3, 0, k, -1));
        if (strcmp(buf_str(&dues), due_rows[i].dues) != 0 || int_at(5, 0, -1) != due_rows[i].head)
            fail_msg("%s, room %d: due %s, head %s", due_rows[i].scores, due_rows[i].room,
                     buf_str(&dues), at(5, 0, -1));
        assert_int_equal(atoi(redis("ZCARD R:running")), due_rows[i].claimed);
        (void)redis("ZRANGE R:q:mail:5 0 0");
        assert_int_equal(len_at(-1), due_rows[i].head >= 0 ? 1 : 0);
        buf_done(&dues);
    }
}

/* ---- ahead */

/* Jobs are claimed up to AHEAD ms before they are due; the worker waits until then. */
static void test_ahead(void **state)
{
    const char *w = worker();
    int64_t began_ms;

    (void)state;
    began_ms = now_ms();
    (void)fcall("later_add mail at %lld near", (long long)began_ms + 60000);
    (void)fcall("later_add mail at %lld far", (long long)began_ms + 70000);
    sync_line("%s 1 0 600 0 1 " MAIL " 0 1000", w);
    assert_string_equal(all_claims(), "");
    (void)fcall("later_add mail at %lld soon", (long long)now_ms() + 900);
    sync_line("%s 1 0 600 0 1 " MAIL " 0", w);
    assert_string_equal(all_claims(), "");
    sync_line("%s 1 0 600 0 1 " MAIL " 0 0", w);
    assert_string_equal(all_claims(), "");
    sync_line("%s 1 0 600 0 1 " MAIL " 0 1000", w);
    assert_int_equal(len_at(3, -1), 1);
    assert_int_equal(len_at(3, 0, -1), GROUP_COMMON + 3);
    assert_string_equal(at(3, 0, GROUP_COMMON + 2, -1), "-mail\\nsoon");
    /* The head is that of the next job. */
    assert_true(int_at(5, 0, -1) == began_ms + 60000);
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 1 " MAIL " 0 1001", w);
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 1 " MAIL " 0 x", w);
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 1 " MAIL " 0 1 1", w);
}

/* Options, or an earlier start, do not keep a job from being claimed ahead. Gates do, and no job
 * behind one with gates is claimed ahead. */
static void test_ahead_with_options(void **state)
{
    static const char *const adds[] = {"attempts 3 x", "key K x", "keep 1h x", "unique u x", "x"};
    const char *w = worker(), *ids[5], *gated, *behind;
    int64_t due_ms = now_ms() + 800;

    (void)state;
    for (int i = 0; i < 5; i++)
        ids[i] = add("mail at %lld %s", (long long)due_ms + i, adds[i]);
    set_tries(ids[4], "1 1 0 5");
    gated = add("mail at %lld lock door x", (long long)due_ms + 5);
    behind = add("mail at %lld x", (long long)due_ms + 6);
    sync_line("%s 1 0 600 0 1 " MAIL " 0 1000", w);
    assert_string_equal(all_claims(),
                        text("mail %s %s %s %s, mail %s", ids[0], ids[1], ids[2], ids[3], ids[4]));
    assert_string_equal(begin_of(1), "mail 2 2 0 0");
    assert_true(int_at(3, 0, GROUP_COMMON + 4, -1) == due_ms + 1);
    assert_true(int_at(5, 0, -1) == due_ms + 5);
    assert_string_equal(redis("EXISTS R:lock:door R:parked"), "0");
    (void)fcall("later_run_now %s", gated);
    sync_line("%s 1 0 600 0 1 " MAIL " 0 1000", w);
    assert_string_equal(all_claims(), text("mail %s, mail %s", gated, behind));
}

/* A job with gates, or in a queue where something may come between, is claimed when it is due. */
static void test_not_ahead(void **state)
{
    static const struct {
        const char *before, *add;
    } rows[] = {
        {"PING", "lock door x"},
        {"PING", "sem s x"},
        {"PING", "rate r x"},
        {"HSET R:queues mail sem=s", "x"},
        {"HSET R:queues mail lock=door", "x"},
        {"PING", "priority 3 x"},
        {"FCALL later_add 1 " ROOT " mail in 1h priority 3 urgent", "x"},
        {"ZADD R:due:mail 4102444800000 raw", "x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *w, *id;
        int64_t due_ms;

        (void)redis("FLUSHALL");
        w = worker();
        (void)fcall("later_limit_set s semaphore 1");
        (void)fcall("later_limit_set r rate 9/1s");
        assert_true(redis("%s", rows[i].before)[0] != '!');
        due_ms = now_ms() + 900;
        id = add("mail at %lld %s", (long long)due_ms, rows[i].add);
        sync_line("%s 1 0 600 0 1 " MAIL " 0 1000", w);
        assert_string_equal(all_claims(), "");
        assert_true(int_at(5, 0, -1) == due_ms);
        (void)fcall("later_run_now %s", id);
        claim_mail(w);
        assert_string_equal(all_claims(), text("mail %s", id));
    }
}

/* ---- many */

static void test_many(void **state)
{
    const char *w = worker(), *other = worker(), *ids, *rest;
    int n;

    (void)state;
    add_many("mail", 600);
    add_many("mail", 600);
    sync_line("%s 1 0 9999 0 1 mail 9999 100 0", w);
    ids = claimed_ids(&n);
    assert_int_equal(n, 512);
    sync_line("%s 1 0 9999 0 1 mail 9999 100 0", other);
    assert_string_equal(redis("ZCARD R:running"), "1024");
    assert_string_equal(redis("HLEN R:tries"), "1024");
    sync_line("%s 1 512 9999 0 1 mail 9999 100 0", w);
    rest = claimed_ids(&n);
    assert_int_equal(n, 176);
    assert_string_equal(redis("EXISTS R:q:mail:5"), "0");
    /* The other worker cannot end jobs that it does not hold, and it still holds its own. */
    sync_line("%s 1 512 0 0 0 1 mail 1 512%s", other, ids);
    assert_int_equal(len_at(9, -1), 1024);
    assert_string_equal(text("%s %s", at(9, 1022, -1), at(9, 1023, -1)), "512 settled");
    assert_string_equal(redis("ZCARD R:running"), "1200");
    /* The worker ends its newest jobs, then its oldest. */
    sync_line("%s 1 512 0 0 0 1 mail 1 176%s", w, rest);
    assert_string_equal(at(9, -1), "[]");
    sync_line("%s 1 0 0 0 0 1 mail 1 512%s", w, ids);
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(redis("HGET R:stats done:mail"), "688");
    assert_string_equal(redis("ZCARD R:running"), "512");
    assert_string_equal(redis("HLEN R:tries"), "512");
    assert_string_equal(redis("HLEN R:jobs"), "512");
    assert_string_equal(redis("ZCOUNT R:running %s %s", other, other), "512");
}

/* R:tries and R:running become a hash table and a skip list when they come to hold many, from
 * however many queues and syncs, and whatever the worker holds besides. The value that the library
 * writes for that is removed again. */
static void test_index(void **state)
{
    static const char *const syncs[] = {"1 0 600 0 1 " MAIL " 0", "1 0 600 0 2 " MAIL " " SMS " 0",
                                        "1 600 600 0 1 " MAIL " 0", "1 0 20 0 1 " MAIL " 0"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *w;
        int n, held = 0;

        (void)redis("FLUSHALL");
        w = worker();
        add_many("mail", i == 1 ? 20 : 40);
        add_many("sms", 20);
        for (; held < 40; held += n) {
            sync_line("%s %s", w, syncs[i]);
            (void)claimed_ids(&n);
            assert_int_equal(n, i == 3 ? 20 : 40);
        }
        assert_string_equal(redis("OBJECT ENCODING R:tries"), "hashtable");
        assert_string_equal(redis("OBJECT ENCODING R:running"), "skiplist");
        assert_string_equal(redis("ZCARD R:running"), "40");
        assert_string_equal(redis("HLEN R:tries"), "40");
    }
}

/* ---- ends */

static void test_refused(void **state)
{
    const char *w = worker(), *other = worker(), *a = add("mail a"), *b = add("mail b"), *theirs,
               *second, *waits, *before;

    (void)state;
    claim_mail(w);
    theirs = add("mail x");
    claim_mail(other);
    second = add("mail x");
    claim_mail(w);
    assert_string_equal(settle(w, second, 1, "retry", 0), "ok");
    claim_mail(w);
    waits = add("mail x");
    before = snapshot();
    assert_string_equal(end_mail(w, 5, text("%s %s j00000000000 '' %s", theirs, second, waits)),
                        "[1 settled 2 settled 3 settled 4 settled 5 settled]");
    assert_string_equal(snapshot(), before);
    assert_string_equal(end_mail(w, 6, text("%s %s %s %s %s %s", a, theirs, a, b, second, b)),
                        "[2 settled 3 settled 5 settled 6 settled]");
    assert_string_equal(redis("HGET R:stats done:mail"), "2");
    before = snapshot();
    assert_string_equal(end_mail(w, 2, text("%s %s", b, a)), "[1 settled 2 settled]");
    assert_string_equal(end_mail(w, 0, ""), "[]");
    assert_string_equal(snapshot(), before);
    sync_line("%s 1 0 0 0 0 2 mail 1 1 %s mail 1 1 %s", other, theirs, theirs);
    assert_string_equal(at(9, -1), "[2 settled]");
}

/* An end counts only with the number of the start that runs. */
static void test_start_numbers(void **state)
{
    static const char *const wrong[] = {"1", "3", "0", "02", "22", "x", "''", "-2", "2.0"};
    const char *w = worker(), *a = add("mail a"), *b = add("mail b"), *c, *before;

    (void)state;
    claim_mail(w);
    assert_string_equal(settle(w, b, 1, "retry", 0), "ok");
    c = add("mail c");
    claim_mail(w);
    assert_string_equal(all_claims(), text("mail %s, mail %s", b, c));
    assert_string_equal(text("%s|%s", begin_of(0), begin_of(1)), "mail 2 2 0 0|" NEW);
    before = snapshot();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        sync_line("%s 1 0 0 0 0 1 mail %s 1 %s", w, wrong[i], b);
        assert_string_equal(at(9, -1), "[1 settled]");
    }
    sync_line("%s 1 0 0 0 0 1 mail 2 2 %s %s", w, a, c);
    assert_string_equal(at(9, -1), "[1 settled 2 settled]");
    assert_string_equal(snapshot(), before);
    /* A group for each start, some with a wrong number, in no order. */
    sync_line("%s 1 0 0 0 0 4 mail 1 2 %s %s mail 2 1 %s sms 2 0 mail 1 2 %s %s", w, c, b, b, a, c);
    assert_string_equal(at(9, -1), "[2 settled 5 settled]");
    assert_string_equal(redis("HGET R:stats done:mail"), "3");
    assert_string_equal(redis("EXISTS R:jobs R:running R:tries"), "0");
}

/* The same for many jobs that end in the order of their claims, which are checked together. */
static void test_start_numbers_of_many(void **state)
{
    const char *w = worker(), *ids, *before;
    int n;

    (void)state;
    add_many("mail", 12);
    claim_mail(w);
    ids = claimed_ids(&n);
    before = snapshot();
    sync_line("%s 1 0 0 0 0 1 mail 2 12%s", w, ids);
    assert_int_equal(len_at(9, -1), 24);
    assert_string_equal(snapshot(), before);
    set_tries(text("%.12s", ids + 1 + 5 * 13), "2 2 0 5");
    assert_string_equal(end_mail(w, 12, ids + 1), "[6 settled]");
    assert_string_equal(redis("HVALS R:tries"), "[2 2 0 5]");
    assert_string_equal(redis("HGET R:stats done:mail"), "11");
}

/* The same for jobs that are checked one by one, because somebody waits for one of them. */
static void test_start_numbers_of_watched(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");

    (void)state;
    claim_mail(w);
    assert_string_equal(settle(w, b, 1, "retry", 0), "ok");
    claim_mail(w);
    assert_starts(fcall("later_v1_await %s", b), "[running ");
    assert_string_equal(end_mail(w, 2, text("%s %s", b, a)), "[1 settled]");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", b));
    sync_line("%s 1 0 0 0 0 2 mail 1 1 %s mail 2 1 %s", w, b, b);
    assert_string_equal(at(9, -1), "[1 settled]");
    assert_string_equal(redis("EXISTS R:jobs R:running R:tries R:await"), "0");
    assert_string_equal(redis("HGET R:stats done:mail"), "2");
}

/* Ends in the order of the claims are found at once. These are in another, wholly or in part. */
static void test_order_of_ends(void **state)
{
    const char *w = worker(), *other = worker(), *ids[12], *theirs, *some;

    (void)state;
    for (int i = 0; i < 12; i++)
        ids[i] = add("mail x");
    sync_line("%s 1 0 99 0 1 mail 12 100 0", w);
    theirs = add("mail x");
    claim_mail(other);
    assert_string_equal(settle(w, ids[3], 1, "retry", 0), "ok");
    claim_mail(w);
    some = text("%s %s %s %s %s %s", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5]);
    assert_string_equal(
        end_mail(w, 10, text("%s %s %s j00000000000 %s", some, theirs, ids[6], ids[1])),
        "[4 settled 7 settled 9 settled 10 settled]");
    assert_string_equal(redis("HGET R:stats done:mail"), "6");
    for (int i = 0; i < 10; i++)
        (void)add("mail x");
    sync_line("%s 1 0 99 0 1 mail 10 100 0", w);
    some = text("%s %s %s %s %s", ids[11], ids[10], ids[9], ids[8], ids[7]);
    assert_string_equal(
        end_mail(w, 9, text("%s %s %s %s %s", some, ids[7], theirs, ids[3], ids[2])),
        "[6 settled 7 settled 8 settled 9 settled]");
    assert_string_equal(redis("HGET R:stats done:mail"), "11");
    assert_string_equal(redis("ZCARD R:running"), "12");
    assert_string_equal(redis("HLEN R:jobs"), "12");
    assert_string_equal(redis("HLEN R:tries"), "12");
}

/* Results are taken first. A job that a result has ended is settled when a group names it, too. */
static void test_result_and_end_of_one_job(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b"), *c = add("mail c");

    (void)state;
    claim_mail(w);
    sync_line("%s 1 0 9 3 %s 1 done mail 0 0 T O %s 1 progress mail 0 0 half '' "
              "%s 1 retry mail 60000 1 T O 0 1 mail 1 3 %s %s %s",
              w, a, b, c, a, b, c);
    assert_string_equal(text("%s %s", at(2, -1), at(9, -1)), "[ok ok ok] [1 settled 3 settled]");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", c));
    assert_string_equal(redis("EXISTS R:progress R:running"), "0");
    assert_string_equal(redis("HGET R:stats done:mail"), "2");
}

/* A job that is done is done, even if it is to be cancelled; its flag is removed. */
static void test_cancel_flag(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");

    (void)state;
    claim_mail(w);
    assert_string_equal(fcall("later_cancel %s", a), "cancelling");
    assert_string_equal(end_mail(w, 3, text("%s %s %s", a, b, a)), "[3 settled]");
    assert_string_equal(at(4, -1), "[]");
    assert_string_equal(redis("EXISTS R:cancel R:jobs R:tries R:running"), "0");
    assert_string_equal(redis("HGET R:stats done:mail"), "2");
    assert_string_equal(redis("HGET R:stats cancelled:mail"), "nil");
}

static void test_awaited(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");
    const char *channel = text(ROOT ":ended:%s", a);
    struct client *c = listen_to(channel);

    (void)state;
    claim_mail(w);
    assert_starts(fcall("later_v1_await %s", a), "[running ");
    assert_string_equal(end_mail(w, 3, text("%s %s j00000000000", b, a)), "[3 settled]");
    assert_string_equal(redis("EXISTS R:await R:jobs R:tries R:running"), "0");
    (void)redis("PUBLISH %s .", channel);
    {
        struct err err = ERR_INIT;
        struct reply *r = client_message(c, 5000, &err);

        assert_non_null(r);
        assert_starts(reply_str(reply_at(r, 2)), "done 0 ");
        assert_non_null(strstr(reply_str(reply_at(r, 2)), " 1 ok\n"));
        reply_free(r);
    }
    client_close(c);
}

/* Gates and unique keys of jobs that end in groups are free before the claims. */
static void test_gates_and_unique(void **state)
{
    const char *w = worker(), *a = add("mail lock door unique u a"), *b = add("mail lock door b");

    (void)state;
    claim_mail(w);
    assert_string_equal(text("%s %s", all_claims(), begin_of(0)), text("mail %s mail 1 1 0 2", a));
    sync_line("%s 1 0 9 0 1 " MAIL " 1 mail 1 1 %s", w, a);
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(text("%s %s", all_claims(), begin_of(0)), text("mail %s mail 1 1 0 2", b));
    assert_string_equal(redis("EXISTS R:uniq:mail:u"), "0");
    assert_string_equal(redis("HGET R:lock:door holder"), b);
    /* The same for jobs that are checked one by one, since somebody may wait for them. */
    (void)fcall("later_cancel %s", b);
    a = add("mail unique u a");
    claim_mail(w);
    assert_string_equal(end_mail(w, 2, text("%s %s", a, b)), "[]");
    assert_string_equal(redis("EXISTS R:uniq:mail:u R:lock:door R:holds R:jobs"), "0");
}

/* When R:limits cannot be read, the jobs still end and give back their locks. */
static void test_ends_beside_foreign_limits(void **state)
{
    const char *w = worker(), *a, *b, *c;

    (void)state;
    (void)fcall("later_limit_set s semaphore 9");
    a = add("mail sem s x");
    b = add("mail lock door x");
    c = add("mail x");
    claim_mail(w);
    (void)redis("DEL R:limits");
    (void)redis("SET R:limits foreign");
    assert_string_equal(end_mail(w, 3, text("%s %s %s", a, b, c)), "[]");
    assert_string_equal(redis("EXISTS R:jobs R:tries R:running R:holds R:lock:door"), "0");
}

/* An end that cannot be written may be sent again. It is not settled because it was told twice. */
static void test_error(void **state)
{
    const char *w = worker(), *a = add("mail a"), *before;

    (void)state;
    claim_mail(w);
    (void)fcall("later_v1_await %s", a);
    (void)redis("SET R:progress x");
    before = snapshot();
    (void)end_mail(w, 2, text("%s %s", a, a));
    assert_int_equal(len_at(9, -1), 4);
    assert_starts(at(9, 1, -1), "error ELATER_TYPE ");
    assert_starts(at(9, 3, -1), "error ELATER_TYPE ");
    assert_string_equal(snapshot(), before);
    (void)redis("DEL R:progress");
    assert_string_equal(end_mail(w, 2, text("%s %s", a, a)), "[2 settled]");
}

/* ---- refusals */

/* Groups of ended jobs that do not add up. J, K: 1025 and 1024 ids. */
static const char *const bad_ends[] = {"x",
                                       "-1",
                                       "1",
                                       "1 mail",
                                       "1 mail 1",
                                       "1 mail 1 1",
                                       "1 mail 1 2 j1",
                                       "1 mail 1 1 j1 j2",
                                       "1 mail 1 x j1",
                                       "1 mail 1 -1 j1",
                                       "1 mail 1 1e0 j1",
                                       "1 mail 1 9007199254740991 j1",
                                       "1 mail 2 j1 j2",
                                       "2 mail 1 1 j1",
                                       "2 mail 1 1 j1 mail",
                                       "2 mail 1 1 j1 mail 1",
                                       "2 mail 1 1 j1 mail 1 1",
                                       "0 mail 1 1 j1",
                                       "0 mail 1 0",
                                       "5000",
                                       "9007199254740991",
                                       "1 mail 1 1025 J",
                                       "2 mail 1 1024 K mail 1 1 j1",
                                       "0 3 0",
                                       "0 1001",
                                       "0 -1",
                                       "0 x"};

static void test_arguments(void **state)
{
    const char *w = worker(), *a = add("mail a");

    (void)state;
    claim_mail(w);
    (void)add("mail b");
    /* Each comes behind a result that would end a job, and behind a queue with claims. */
    for (size_t i = 0; i < sizeof(bad_ends) / sizeof(bad_ends[0]); i++) {
        struct buf b = BUF_INIT;

        buf_printf(&b, "later_v1_sync %s 1 0 9 1 %s 1 done mail 0 0 T O 1 " MAIL " ", w, a);
        for (const char *p = bad_ends[i]; *p != '\0'; p++) {
            if (*p != 'J' && *p != 'K')
                buf_add(&b, p, 1);
            for (int k = 0; (*p == 'J' && k < 1025) || (*p == 'K' && k < 1024); k++)
                buf_printf(&b, "%sj%d", k > 0 ? " " : "", k);
        }
        assert_refused_line("ELATER_ARGS", buf_str(&b));
        buf_done(&b);
    }
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 9 0 0 1 a:b 1 1 %s", w, a);
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 9 0 0 1 '' 1 1 %s", w, a);
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 9 0 0 2 mail 1 1 %s a* 1 0", w, a);
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 1 mail 5 1 ''", w);
    /* NG is required. */
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 1 mail 5 1", w);
    assert_refused("ELATER_ARGS", "later_v1_sync %s 1 0 9 0 0", w);
}

static void test_status(void **state)
{
    const char *w = worker(), *a = add("mail a"), *before;

    (void)state;
    claim_mail(w);
    before = snapshot();
    assert_non_null(strstr(fcall("later_v1_sync %s 2 0 9 0 0 1 mail 1 1 %s", w, a), " link]"));
    assert_non_null(strstr(fcall("later_v1_sync 12345 1 0 9 0 0 1 mail 1 1 %s", a), " unknown]"));
    assert_string_equal(snapshot(), before);
}

/* A worker of which a fair queue `mail` knows, with no job. */
static const char *worker_of_fair(void)
{
    const char *w = worker();

    (void)fcall("later_v1_declare %s 0 1 mail fair=1", w);
    for (int i = 0; i < 2; i++)
        (void)fcall_sync("%s 1 0 9 0 1 mail 9 9999", w);
    return w;
}

/* In a fair queue whose tenants share one job ends, so nobody has due jobs and the debts go; then a
 * suspect starts. Its tick is not one of those debts. */
static void test_a_start_behind_forgiven_debts(void **state)
{
    const char *w = worker_of_fair(), *a, *b;

    (void)state;
    a = add("mail key a x");
    assert_string_equal(claim(w, "mail", 1), a);
    b = add("mail key b y");
    (void)redis("DEL R:q:mail:5 R:fair-jobs:mail R:fair-next:mail");
    (void)redis("ZADD R:solo:mail 1 %s", b);
    (void)send_args(4, (const char *[]){"HSET", ROOT ":tries", b, "2 2 2 1"}, NULL);
    (void)redis("HSET R:prio mail sf");
    (void)redis("ZADD R:fair-debts:mail 9000000 gone");
    (void)send_args(4, (const char *[]){"HSET", ROOT ":fair", "mail", "0 1"}, NULL);
    (void)fcall("later_v1_sync %s 1 0 9 1 %s 1 done mail 0 0 T O 1 mail 9 9999 0", w, a);
    assert_string_equal(claimed(0, CLAIM_ID), b);
    assert_string_equal(redis("ZRANGE R:fair-debts:mail 0 -1 WITHSCORES"), "[b 1000]");
}

/* Tenants whose debts count no more, and one whose debt does: a tidy drops some of them, and the
 * syncs behind it the rest. A queue with a due job never drops them all. */
static void test_forgiving_goes_on(void **state)
{
    const char *w = worker_of_fair();

    (void)state;
    (void)add("mail key a x");
    (void)redis("ZADD R:fair-debts:mail 5001 owes");
    (void)redis("EVAL for\ti=1,7000\tdo\tredis.call('ZADD',KEYS[1],5000,i)\tend 1 "
                "R:fair-debts:mail");
    (void)send_args(4, (const char *[]){"HSET", ROOT ":fair", "mail", "5000 1"}, NULL);
    (void)fcall("later_v1_tidy %s 1 mail 5000", w);
    assert_string_equal(redis("ZCARD R:fair-debts:mail"), "5001");
    for (int i = 0; i < 3; i++)
        (void)fcall_sync("%s 1 0 9 0 1 mail 0 9999", w);
    assert_string_equal(redis("ZCARD R:fair-debts:mail"), "1");
    assert_string_equal(redis("ZSCORE R:fair-debts:mail owes"), "5001");
    assert_string_equal(redis("HGET R:fair mail"), "5000 1");
}

/* Tenants who all owe something: the time of the queue passes the least of over 10,000 debts. */
static void test_debts_have_a_bound(void **state)
{
    const char *w = worker_of_fair();

    (void)state;
    (void)add("mail key a x");
    (void)redis("EVAL for\ti=1,10100\tdo\tredis.call('ZADD',KEYS[1],1000+i,i)\tend 1 "
                "R:fair-debts:mail");
    (void)send_args(4, (const char *[]){"HSET", ROOT ":fair", "mail", "1000 1"}, NULL);
    (void)fcall("later_v1_tidy %s 1 mail 5000", w);
    assert_string_equal(redis("HGET R:fair mail"), "1100 1");
    assert_string_equal(redis("ZCARD R:fair-debts:mail"), "10000");
    assert_string_equal(redis("ZRANGE R:fair-debts:mail 0 0 WITHSCORES"), "[101 1101]");
    (void)fcall("later_v1_tidy %s 1 mail 5000", w);
    assert_string_equal(redis("HGET R:fair mail"), "1100 1");
}

/* Tenants with one job each do not fill the sync: those that have more get the rest of it. */
static void test_turns_fill_a_sync(void **state)
{
    const char *w = worker_of_fair();

    (void)state;
    (void)add("mail key a x");
    (void)add("mail key b x");
    for (int i = 0; i < 3; i++)
        (void)add("mail key c x");
    (void)add("mail key d x");
    (void)fcall_sync("%s 1 0 5 0 1 mail 5 9999", w);
    assert_int_equal(count_claimed(), 5);
}

/* A queue becomes fair in the same sync in which a child gives a waiting job another key. */
static void test_a_new_key_while_a_queue_becomes_fair(void **state)
{
    const char *w = worker(), *a, *b;

    (void)state;
    a = add("sms x");
    assert_string_equal(claim(w, "sms", 1), a);
    b = add("mail unique u in 1h x");
    (void)fcall("later_v1_declare %s 0 1 mail fair=1", w);
    (void)fcall("later_v1_sync %s 1 0 0 1 %s 1 done sms 0 0 T O 1 mail 9 9999 0 0 1 1 1 8 mail "
                "key k unique u unique_mode replace x",
                w, a);
    assert_string_equal(redis("ZCARD R:fair-jobs:mail"), "1");
    assert_starts(redis("ZRANGE R:fair-jobs:mail 0 -1"), "[k 5");
    assert_non_null(strstr(redis("ZRANGE R:fair-jobs:mail 0 -1"), b));
    assert_string_equal(redis("ZRANGE R:fair-next:mail 0 -1"), "[k]");
}

/* A queue becomes fair in the sync in which a job of it expires, tells the queue of its death, and
 * what it told starts: that one does not stay among those that wait. */
static void test_what_starts_while_a_queue_becomes_fair(void **state)
{
    const char *w = worker();

    (void)state;
    (void)redis("ZADD R:q:mail:5 1 %s", add("mail key k expire 1ms on_dead mail x"));
    (void)redis("HSET R:queues mail fair=1");
    (void)fcall("later_v1_sync %s 1 0 9 0 1 mail 9 9999 0", w);
    assert_string_equal(redis("ZCARD R:running"), "1");
    assert_string_equal(redis("ZCARD R:fair-jobs:mail"), "0");
    assert_string_equal(redis("ZCARD R:fair-next:mail"), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_claims),
                                       FX_TEST(test_options_in_one_group),
                                       FX_TEST(test_beginnings),
                                       FX_TEST(test_alike),
                                       FX_TEST(test_gap),
                                       FX_TEST(test_order),
                                       FX_TEST(test_mixed_in_one_queue),
                                       FX_TEST(test_over_several_queues),
                                       FX_TEST(test_options_end),
                                       FX_TEST(test_big_payload),
                                       FX_TEST(test_byte_bound),
                                       FX_TEST(test_due_times),
                                       FX_TEST(test_ahead),
                                       FX_TEST(test_ahead_with_options),
                                       FX_TEST(test_not_ahead),
                                       FX_TEST(test_many),
                                       FX_TEST(test_index),
                                       FX_TEST(test_refused),
                                       FX_TEST(test_start_numbers),
                                       FX_TEST(test_start_numbers_of_many),
                                       FX_TEST(test_start_numbers_of_watched),
                                       FX_TEST(test_order_of_ends),
                                       FX_TEST(test_result_and_end_of_one_job),
                                       FX_TEST(test_cancel_flag),
                                       FX_TEST(test_awaited),
                                       FX_TEST(test_gates_and_unique),
                                       FX_TEST(test_ends_beside_foreign_limits),
                                       FX_TEST(test_error),
                                       FX_TEST(test_arguments),
                                       FX_TEST(test_a_start_behind_forgiven_debts),
                                       FX_TEST(test_forgiving_goes_on),
                                       FX_TEST(test_debts_have_a_bound),
                                       FX_TEST(test_turns_fill_a_sync),
                                       FX_TEST(test_a_new_key_while_a_queue_becomes_fair),
                                       FX_TEST(test_what_starts_while_a_queue_becomes_fair),
                                       FX_TEST(test_status)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
