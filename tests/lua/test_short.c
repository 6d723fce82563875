/*
 * The short form of later_v1_step: plain jobs come and go as lists, and all that is not plain as
 * ever.
 */
#include "fixture.h"

#define MAIL "mail 600 1048576"
#define SMS "sms 600 1048576"

/* A step that takes the short form, n queues and groups behind them; results as they come. */
FX_FMT static void step(const char *fmt, ...)
{
    FX_FORMAT(rest);
    assert_starts(call_line(text("later_v1_step %s", rest)), "[");
    assert_string_equal(at(1, -1), "ok");
    assert_int_equal(len_at(-1), 11);
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

/* The ids of all short claims, in order, a space before each; *n: how many. */
static const char *short_ids(int *n)
{
    struct buf b = BUF_INIT;

    *n = 0;
    for (int i = 0; i < len_at(10, -1); i++)
        for (int k = 2; k < len_at(10, i, -1); k += 3, ++*n)
            buf_printf(&b, " %s", at(10, i, k, -1));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* The queues and ids of the last short claims: "mail a b, sms c". */
static const char *shorts(void)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < len_at(10, -1); i++) {
        buf_printf(&b, "%s%s", i > 0 ? ", " : "", at(10, i, 0, -1));
        for (int k = 2; k < len_at(10, i, -1); k += 3)
            buf_printf(&b, " %s", at(10, i, k, -1));
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* The ids of the last long claims. */
static const char *longs(void)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < len_at(3, -1); i++)
        buf_printf(&b, "%s%s", i > 0 ? " " : "", at(3, i, 0, -1));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* Plain jobs come as early as the worker can wait for them by itself; no others do. */
static void test_ahead(void **state)
{
    const char *w = worker();
    int64_t began_ms;

    (void)state;
    began_ms = now_ms();
    (void)fcall("later_add mail at %lld near", (long long)began_ms + 60000);
    (void)fcall("later_add mail at %lld far", (long long)began_ms + 70000);
    (void)fcall("later_add sms at %lld priority 3 urgent", (long long)began_ms + 200);
    step("%s 1 0 600 0 2 " MAIL " " SMS " 0", w);
    assert_string_equal(shorts(), "");
    step("%s 1 0 600 0 2 " MAIL " " SMS " 0 1000", w);
    assert_string_equal(shorts(), "");
    assert_string_equal(longs(), "");
    (void)fcall("later_add mail at %lld soon", (long long)now_ms() + 900);
    step("%s 1 0 600 0 2 " MAIL " " SMS " 0 1000", w);
    assert_int_equal(len_at(10, -1), 1);
    assert_int_equal(len_at(10, 0, -1), 5);
    assert_string_equal(at(10, 0, 4, -1), "-mail\\nsoon");
    /* The head that is left is the next one's. */
    assert_true(atoll(at(5, 0, -1)) == began_ms + 60000);
    assert_refused("ELATER_ARGS", "later_v1_step %s 1 0 9 0 1 " MAIL " 0 1001", w);
    assert_refused("ELATER_ARGS", "later_v1_step %s 1 0 9 0 1 " MAIL " 0 x", w);
    assert_refused("ELATER_ARGS", "later_v1_step %s 1 0 9 0 1 " MAIL " 0 1 1", w);
}

static void claim_mail(const char *w)
{
    step("%s 1 0 600 0 1 " MAIL " 0", w);
}

/* Ends these, which are n of queue mail; -> those that are not ok. */
static const char *end_mail(const char *w, int n, const char *ids)
{
    step("%s 1 0 0 0 0 1 mail %d%s%s", w, n, n > 0 ? " " : "", ids);
    return at(9, -1);
}

/* ---- claims */

static void test_claims(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");
    int64_t fence;

    (void)state;
    (void)redis("ZADD R:q:mail:5 1000 %s 2000 %s", a, b);
    claim_mail(w);
    assert_string_equal(longs(), "");
    fence = int_at(10, 0, 1, -1);
    assert_string_equal(at(10, -1), text("[[mail %lld %s 1000 -mail\\na %s 2000 -mail\\nb]]",
                                         (long long)fence, a, b));
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(at(5, -1), "[-1]");
    assert_string_equal(redis("HMGET R:tries %s %s", a, b), "[1 1 0 1000 1 1 0 2000]");
    assert_string_equal(redis("ZMSCORE R:running %s %s", a, b), text("[%s %s]", w, w));
    assert_string_equal(redis("EXISTS R:q:mail:5 R:heads"), "0");
    assert_true(fence > atoll(w) && atoll(redis("GET R:clock")) >= fence + 2);
    claim_mail(w);
    assert_string_equal(shorts(), ""); /* one live copy */
}

/* Who does not ask for it does not get it. */
static void test_long_without_groups(void **state)
{
    const char *w = worker(), *a = add("mail a");

    (void)state;
    assert_string_equal(claim(w, "mail", 9), a);
    assert_int_equal(len_at(-1), 9);
}

static void test_mixed_in_one_queue(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b"), *c = add("mail key K c"),
               *d = add("mail d");

    (void)state;
    for (int i = 0; i < 4; i++)
        (void)redis("ZADD R:q:mail:5 %d %s", 1000 + i, (const char *[]){a, b, c, d}[i]);
    claim_mail(w);
    assert_string_equal(shorts(), text("mail %s %s", a, b));
    assert_string_equal(longs(), text("%s %s", c, d)); /* what is behind one that is not plain */
    assert_true(int_at(3, 0, 5, -1) > int_at(10, 0, 1, -1) + 2); /* fences rise over both */
    assert_true(int_at(3, 1, 5, -1) > int_at(3, 0, 5, -1));
    step("%s 1 0 0 1 %s 1 done mail 0 0 T O 0 1 mail 2 %s %s", w, c, a, d);
    assert_string_equal(text("%s %s", at(2, -1), at(9, -1)), "[ok] []");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", b));
    assert_string_equal(redis("HGET R:stats done:mail"), "3");
}

static void test_over_several_queues(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("sms b"), *c = add("fax keep 1h c"),
               *d = add("log d");

    (void)state;
    step("%s 1 0 3 0 5 fax 9 100 sms 9 100 none 9 100 mail 9 100 log 9 100 0", w);
    assert_string_equal(shorts(), text("sms %s, mail %s", b, a));
    assert_string_equal(longs(), c);
    assert_true(int_at(5, 4, -1) > 0); /* MAX counts both */
    /* A group a queue; the numbers go on from one to the next. */
    step("%s 1 0 9 0 1 log 9 100 3 sms 1 %s none 0 mail 2 j00000000000 %s", w, b, a);
    assert_string_equal(at(9, -1), "[2 settled]");
    assert_string_equal(shorts(), text("log %s", d)); /* ends, then claims */
    assert_string_equal(redis("HMGET R:stats done:mail done:sms done:none"), "[1 1 nil]");
}

static void test_who_stays_long(void **state)
{
    static const char *const adds[] = {
        "mail priority 4 x", "mail keep 1h x",    "mail attempts 3 x",
        "mail unique u x",   "mail lock door x",  "mail sem s x",
        "mail expire 1h x",  "mail timeout 5s x", "mail trace t x"};
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_limit_set s semaphore 1");
    for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
        id = add("%s", adds[i]);
        claim_mail(w);
        assert_string_equal(text("%s|%s", shorts(), longs()), text("|%s", id));
        assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    }
    /* A raw member, an id beside it that waits behind one, a second start, gates of the queue. */
    assert_starts(redis("ZADD R:due:mail 1 r"), "1");
    id = add("mail x");
    claim_mail(w);
    assert_string_equal(shorts(), "");
    assert_int_equal(len_at(3, -1), 2);
    assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
    claim_mail(w);
    assert_string_equal(text("%s|%s", shorts(), longs()), text("|%s", id));
    assert_string_equal(settle(w, id, 2, "done", 0), "ok");
    (void)redis("HSET R:queues sms sem=s");
    id = add("sms x");
    step("%s 1 0 9 0 1 " SMS " 0", w);
    assert_string_equal(text("%s|%s", shorts(), longs()), text("|%s", id));
}

static void test_big_payload_stays_long(void **state)
{
    static const size_t sizes[] = {16384, 16385};
    char bytes[16385];
    const char *w = worker();

    (void)state;
    memset(bytes, 'b', sizeof(bytes));
    for (int i = 0; i < 2; i++) {
        (void)fcall_bytes("later_add mail", bytes, sizes[i]);
        claim_mail(w);
        assert_int_equal(len_at(10, -1), i == 0 ? 1 : 0);
        assert_int_equal(len_at(3, -1), i);
        if (i == 0)
            assert_int_equal(reply_len(node(10, 0, 4, -1)), 6 + sizes[i]);
    }
}

/* The 1 MiB of a step, of which the one that passes it is included. */
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
    step("%s 1 0 200 0 2 " MAIL " " SMS " 0", w);
    (void)short_ids(&all);
    assert_in_range(all, 60, 66);
    assert_int_equal(len_at(3, -1), 0);
    assert_true(int_at(5, 0, -1) > 0 && int_at(5, 1, -1) > 0);
    step("%s 1 0 200 0 2 " MAIL " " SMS " 0", w);
    (void)short_ids(&n);
    assert_int_equal(all + n, 101);
    assert_string_equal(at(5, -1), "[-1 -1]");
}

/* ---- when they are due */

#define LATER INT64_C(4102444800000)

/* Scores of the jobs of a queue, and what a step with this room makes of them. */
static void test_due_times(void **state)
{
    static const struct {
        const char *scores;
        int room, claimed;
        int64_t head; /* -1: none is left */
        const char *dues;
    } rows[] = {
        {"5 5 5 5", 9, 4, -1, "5 5 5 5"},
        {"5 5 5 5", 4, 4, -1, "5 5 5 5"}, /* filled */
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
        /* More due times than are counted one by one. */
        {"1 1 2 3 4 5 5 6 7 8 8 9 10 10 11", 20, 15, -1, "1 1 2 3 4 5 5 6 7 8 8 9 10 10 11"},
        {"1 2 3 4 5 6 7 8 9 10 10 11", 10, 10, 10, "1 2 3 4 5 6 7 8 9 10"},
        {"1 2 3 4 5 6 7 8 9 4102444800000", 20, 9, LATER, "1 2 3 4 5 6 7 8 9"},
        {"1 2 3 4 5 6 7 8 4102444800000", 20, 8, LATER, "1 2 3 4 5 6 7 8"},
        {"1 2 3 4 5 6 7 8 9 10 4102444800000 4102444800001", 20, 10, LATER, "1 2 3 4 5 6 7 8 9 10"},
        {"1 2 3 4 5 6 7 8 9 10 4102444800000 4102444800001", 11, 10, LATER, "1 2 3 4 5 6 7 8 9 10"},
        {"5 4102444800000 4102444800001", 9, 1, LATER, "5"},
    };
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *scores = mem_strdup(rows[i].scores), *next = scores, *score;
        struct buf dues = BUF_INIT;

        (void)keep(scores);
        (void)redis("DEL R:q:mail:5 R:heads R:running R:tries R:jobs");
        while ((score = strsep(&next, " ")) != NULL)
            (void)redis("ZADD R:q:mail:5 %s %s", score, add("mail x"));
        step("%s 1 0 600 0 1 mail %d 100 0", w, rows[i].room);
        assert_int_equal(len_at(3, -1), 0);
        assert_int_equal(len_at(10, -1), rows[i].claimed > 0 ? 1 : 0);
        for (int k = 3; k < len_at(10, 0, -1); k += 3)
            buf_printf(&dues, "%s%s", k > 3 ? " " : "", at(10, 0, k, -1));
        if (strcmp(buf_str(&dues), rows[i].dues) != 0 || int_at(5, 0, -1) != rows[i].head)
            fail_msg("%s, room %d: due %s, head %s", rows[i].scores, rows[i].room, buf_str(&dues),
                     at(5, 0, -1));
        assert_int_equal(atoi(redis("ZCARD R:running")), rows[i].claimed);
        (void)redis("ZRANGE R:q:mail:5 0 0");
        assert_int_equal(len_at(-1), rows[i].head >= 0 ? 1 : 0);
        buf_done(&dues);
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
    step("%s 1 0 9999 0 1 mail 9999 100 0", w);
    ids = short_ids(&n);
    assert_int_equal(n, 512);
    step("%s 1 0 9999 0 1 mail 9999 100 0", other);
    assert_string_equal(redis("ZCARD R:running"), "1024");
    assert_string_equal(redis("HLEN R:tries"), "1024");
    step("%s 1 512 9999 0 1 mail 9999 100 0", w);
    rest = short_ids(&n);
    assert_int_equal(n, 176);
    assert_string_equal(redis("EXISTS R:q:mail:5"), "0");
    /* None of them is the other's; and that one has its own afterwards. */
    step("%s 1 512 0 0 0 1 mail 512%s", other, ids);
    assert_int_equal(len_at(9, -1), 1024);
    assert_string_equal(text("%s %s", at(9, 1022, -1), at(9, 1023, -1)), "512 settled");
    assert_string_equal(redis("ZCARD R:running"), "1200");
    /* Its newest, then its oldest. */
    step("%s 1 512 0 0 0 1 mail 176%s", w, rest);
    assert_string_equal(at(9, -1), "[]");
    step("%s 1 0 0 0 0 1 mail 512%s", w, ids);
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(redis("HGET R:stats done:mail"), "688");
    assert_string_equal(redis("ZCARD R:running"), "512");
    assert_string_equal(redis("HLEN R:tries"), "512");
    assert_string_equal(redis("HLEN R:jobs"), "512");
    assert_string_equal(redis("ZCOUNT R:running %s %s", other, other), "512");
}

/* What makes an index of the two keys leaves nothing in them, and is there when they hold many,
 * from however many queues and steps they are, and whatever the worker holds besides. */
static void test_index(void **state)
{
    static const char *const steps[] = {"1 0 600 0 1 " MAIL " 0", "1 0 600 0 2 " MAIL " " SMS " 0",
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
            step("%s %s", w, steps[i]);
            (void)short_ids(&n);
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
    step("%s 1 0 0 0 0 2 mail 1 %s mail 1 %s", other, theirs, theirs);
    assert_string_equal(at(9, -1), "[2 settled]");
}

/* Those that end in the order of their claims are found at a glance; these are not, or not all. */
static void test_order_of_ends(void **state)
{
    const char *w = worker(), *other = worker(), *ids[12], *theirs, *some;

    (void)state;
    for (int i = 0; i < 12; i++)
        ids[i] = add("mail x");
    step("%s 1 0 99 0 1 mail 12 100 0", w);
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
    step("%s 1 0 99 0 1 mail 10 100 0", w);
    some = text("%s %s %s %s %s", ids[11], ids[10], ids[9], ids[8], ids[7]);
    assert_string_equal(
        end_mail(w, 9, text("%s %s %s %s %s", some, ids[7], theirs, ids[3], ids[2])),
        "[6 settled 7 settled 8 settled 9 settled]");
    assert_string_equal(redis("HGET R:stats done:mail"), "11");
    assert_string_equal(redis("ZCARD R:running"), "12");
    assert_string_equal(redis("HLEN R:jobs"), "12");
    assert_string_equal(redis("HLEN R:tries"), "12");
}

/* Long ones first; what they ended is settled for a short one. */
static void test_long_and_short_of_one_job(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b"), *c = add("mail c");

    (void)state;
    claim_mail(w);
    step("%s 1 0 9 3 %s 1 done mail 0 0 T O %s 1 progress mail 0 0 half '' "
         "%s 1 retry mail 60000 1 T O 0 1 mail 3 %s %s %s",
         w, a, b, c, a, b, c);
    assert_string_equal(text("%s %s", at(2, -1), at(9, -1)), "[ok ok ok] [1 settled 3 settled]");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", c));
    assert_string_equal(redis("EXISTS R:progress R:running"), "0");
    assert_string_equal(redis("HGET R:stats done:mail"), "2");
}

/* Done is done, also of one that is to be cancelled; the flag goes with it. */
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

/* Not claimed short, and yet told so: what it held is free all the same, before the claims. */
static void test_gates_and_unique(void **state)
{
    const char *w = worker(), *a = add("mail lock door unique u a"), *b = add("mail lock door b");

    (void)state;
    claim_mail(w);
    assert_string_equal(longs(), a);
    step("%s 1 0 9 0 1 " MAIL " 1 mail 1 %s", w, a);
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(longs(), b);
    assert_string_equal(redis("EXISTS R:uniq:mail:u"), "0");
    assert_string_equal(redis("HGET R:lock:door holder"), b);
    /* The same on the way of those that somebody may wait for. */
    (void)fcall("later_cancel %s", b);
    a = add("mail unique u a");
    claim_mail(w);
    assert_string_equal(end_mail(w, 2, text("%s %s", a, b)), "[]");
    assert_string_equal(redis("EXISTS R:uniq:mail:u R:lock:door R:holds R:jobs"), "0");
}

/* One that cannot be written is sent again, and is not settled because it was told twice. */
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

static void test_arguments(void **state)
{
    /* Behind a result that would end a job, and behind a queue with claims. */
    static const char *const groups[] = {"x",
                                         "-1",
                                         "1",
                                         "1 mail",
                                         "1 mail 1",
                                         "1 mail 2 j1",
                                         "1 mail 1 j1 j2",
                                         "1 mail x j1",
                                         "1 mail -1 j1",
                                         "1 mail 1e0 j1",
                                         "1 mail 9007199254740991 j1",
                                         "2 mail 1 j1",
                                         "2 mail 1 j1 mail",
                                         "2 mail 1 j1 mail 1",
                                         "0 mail 1 j1",
                                         "0 mail 0",
                                         "5000",
                                         "9007199254740991",
                                         "1 mail 1025 J",
                                         "2 mail 1024 K mail 1 j1",
                                         "0 3 0",
                                         "0 1001",
                                         "0 -1",
                                         "0 x"};
    const char *w = worker(), *a = add("mail a");

    (void)state;
    claim_mail(w);
    (void)add("mail b");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        struct buf b = BUF_INIT;

        buf_printf(&b, "later_v1_step %s 1 0 9 1 %s 1 done mail 0 0 T O 1 " MAIL " ", w, a);
        for (const char *p = groups[i]; *p != '\0'; p++) {
            if (*p != 'J' && *p != 'K')
                buf_add(&b, p, 1);
            for (int k = 0; (*p == 'J' && k < 1025) || (*p == 'K' && k < 1024); k++)
                buf_printf(&b, "%sj%d", k > 0 ? " " : "", k);
        }
        assert_refused_line("ELATER_ARGS", buf_str(&b));
        buf_done(&b);
    }
    assert_refused("ELATER_QUEUE", "later_v1_step %s 1 0 9 0 0 1 a:b 1 %s", w, a);
    assert_refused("ELATER_QUEUE", "later_v1_step %s 1 0 9 0 0 1 '' 1 %s", w, a);
    assert_refused("ELATER_QUEUE", "later_v1_step %s 1 0 9 0 0 2 mail 1 %s a* 0", w, a);
    assert_refused("ELATER_ARGS", "later_v1_step %s 1 0 9 0 1 mail 5 1 ''", w);
}

static void test_status(void **state)
{
    const char *w = worker(), *a = add("mail a"), *before;

    (void)state;
    claim_mail(w);
    before = snapshot();
    assert_non_null(strstr(fcall("later_v1_step %s 2 0 9 0 0 1 mail 1 %s", w, a), " link]"));
    assert_non_null(strstr(fcall("later_v1_step 12345 1 0 9 0 0 1 mail 1 %s", a), " unknown]"));
    assert_string_equal(snapshot(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_claims),
                                       FX_TEST(test_long_without_groups),
                                       FX_TEST(test_mixed_in_one_queue),
                                       FX_TEST(test_over_several_queues),
                                       FX_TEST(test_who_stays_long),
                                       FX_TEST(test_big_payload_stays_long),
                                       FX_TEST(test_byte_bound),
                                       FX_TEST(test_due_times),
                                       FX_TEST(test_ahead),
                                       FX_TEST(test_many),
                                       FX_TEST(test_index),
                                       FX_TEST(test_refused),
                                       FX_TEST(test_order_of_ends),
                                       FX_TEST(test_long_and_short_of_one_job),
                                       FX_TEST(test_cancel_flag),
                                       FX_TEST(test_awaited),
                                       FX_TEST(test_gates_and_unique),
                                       FX_TEST(test_error),
                                       FX_TEST(test_arguments),
                                       FX_TEST(test_status)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
