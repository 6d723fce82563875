/*
 * later_v1_sync: claims in their order and bounds, raw members, broken keys and records, results.
 *
 * Reason for its length: one function, tested mostly by tables of small cases.
 */
#include "fixture.h"

#define MAIL "mail 10 1048576"

/* A sync without results; -> the claimed payloads, joined. */
static const char *payloads(const char *w, int max, const char *queues, int n)
{
    struct buf b = BUF_INIT;

    assert_starts(fcall_sync("%s 1 0 %d 0 %d %s", w, max, n, queues), "[");
    assert_string_equal(at(1, -1), "ok");
    for (int i = 0; i < count_claimed(); i++) {
        const struct reply *record = claimed_node(i, CLAIM_RECORD);
        const char *lf = memchr(reply_str(record), '\n', reply_len(record));

        assert_non_null(lf);
        buf_add(&b, lf + 1, (size_t)(reply_str(record) + reply_len(record) - lf - 1));
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static void raw(const char *queue, const char *score, const char *member)
{
    assert_starts(redis("ZADD R:due:%s %s %s", queue, score, member), "1");
}

/* The reason of the only dead job of mail. */
static const char *dead_reason(void)
{
    const char *id;

    (void)redis("ZRANGE R:dead:mail 0 -1");
    assert_int_equal(len_at(-1), 1);
    id = at(0, -1);
    (void)redis("HGET R:errors %s", id);
    return shown(fx.last);
}

static const char *dead_id(void)
{
    (void)redis("ZRANGE R:dead:mail 0 -1");
    return at(0, -1);
}

/* ---- claims */

static void test_claim(void **state)
{
    const char *w = worker(), *id = add("mail key K in 1h hi");
    int64_t id_clock, fence;

    (void)state;
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_time(int_at(5, 0, -1), 3595000, 3600000);
    (void)redis("ZADD R:q:mail:5 1000 %s", id);
    assert_string_equal(claim(w, "mail", 1), id);
    fence = atoll(claimed(0, CLAIM_FENCE));
    assert_string_equal(at(3, 0, -1),
                        text("[mail %lld 1 1 0 0 %s 1000 -mail K=K\\nhi]", (long long)fence, id));
    assert_string_equal(at(5, -1), "[-1]");
    assert_string_equal(at(6, -1), "[]");
    assert_string_equal(at(7, -1), "0");
    assert_string_equal(redis("ZSCORE R:running %s", id), w);
    assert_string_equal(redis("HGET R:tries %s", id), "1 1 0 1000");
    assert_string_equal(redis("EXISTS R:q:mail:5 R:heads"), "0");
    assert_string_equal(claim(w, "mail", 1), "nil"); /* a claimed job is not claimed again */
    (void)redis("GET R:clock");
    id_clock = reply_int(fx.last);
    assert_true(id_clock >= fence && fence > atoll(w));
}

static void test_order_in_a_queue(void **state)
{
    const char *w = worker();
    int64_t now = now_ms();

    (void)state;
    raw("mail", text("%lld", (long long)now - 3000), "r");
    (void)add("mail a");
    (void)add("mail b");
    (void)redis("ZADD R:q:mail:5 %lld %s", (long long)now - 4000, add("mail c"));
    (void)redis("ZADD R:q:mail:5 %lld %s", (long long)now - 3000, add("mail d"));
    raw("mail", text("%lld", (long long)now - 2000), "s");
    (void)add("mail priority 9 z");
    (void)add("mail priority 0 A");
    (void)add("mail priority 4 B");
    assert_string_equal(payloads(w, 2, MAIL, 1), "AB");
    assert_string_equal(payloads(w, 4, MAIL, 1), "cdrs");
    assert_string_equal(payloads(w, 99, MAIL, 1), "abz");
    assert_string_equal(redis("HGET R:prio mail"), "9");
    assert_string_equal(payloads(w, 99, MAIL, 1), "");
    assert_string_equal(redis("EXISTS R:prio R:heads"), "0");
}

static void test_queues_room_and_max(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_add_many mail m m m");
    (void)fcall("later_add_many sms s s s");
    (void)fcall("later_add_many fax f f f");
    assert_string_equal(payloads(w, 4, "sms 2 1000 fax 0 1000 mail 9 1000", 3), "ssmm");
    assert_true(int_at(5, 0, -1) > 0 && int_at(5, 1, -1) > 0 && int_at(5, 2, -1) > 0);
    assert_string_equal(payloads(w, 0, "sms 2 1000", 1), "");
    assert_string_equal(payloads(w, 9, "nosuch 2 1000 fax 2 1000 sms 9 1000", 3), "ffs");
    assert_string_equal(at(5, 0, -1), "-1");
    assert_string_equal(at(5, 2, -1), "-1");
    (void)fcall("later_pause fax");
    assert_string_equal(payloads(w, 9, "fax 2 1000 mail 9 1000", 2), "m");
    assert_string_equal(at(5, -1), "[-1 -1]");
}

static bool is_in_an_hour(const char *head)
{
    return llabs(atoll(head) - now_ms() - 3600000) < 60000;
}

/* A sync may name very many queues: each is told the same as when it is named alone, and is claimed
 * from. Only the head of a queue whose first job was cancelled may be too early, until the queue is
 * checked in its turn. */
static void test_many_names_at_once(void **state)
{
    const char *w = worker();
    struct buf many = BUF_INIT;
    char alone[64][24];
    int64_t now = now_ms();

    (void)state;
    (void)add("q03 in 1h later");
    (void)add("q04 in 1h priority 2 later");
    (void)fcall("later_cancel %s", add("q05 in 1h gone"));
    (void)add("q05 in 2h later");
    (void)fcall("later_cancel %s", add("q06 in 1h gone"));
    (void)add("q07 paused");
    (void)fcall("later_pause q07");
    raw("q08", text("%lld", (long long)now + 3600000), "r");
    (void)add("q09 in 1h unknown");
    (void)redis("ZREM R:heads q09");
    (void)redis("SET R:q:q10:5 foreign");
    (void)redis("SET R:due:q11 foreign");
    raw("q12", text("%lld", (long long)now - 1000), "R");
    (void)add("q13 J");
    for (int i = 0; i < 64; i++)
        buf_printf(&many, " q%02d %d 1000", i, i % 20 != 9);
    for (int round = 0; round < 3; round++) {
        /* With few heads and pauses; with many; and again, as the first round repaired them. */
        for (int i = 20; round == 1 && i < 40; i++) {
            (void)add("q%02d in 1h x", i);
            (void)fcall("later_pause q%02d for 1h", i);
        }
        assert_starts(fcall_sync("%s 1 0 9 0 64%s", w, buf_str(&many)), "[");
        assert_int_equal(count_claimed(), round == 0 ? 2 : 0);
        assert_int_equal(reply_count(reply_at(fx.last, 6)), 4);
        for (int i = 0; i < 64; i++)
            (void)snprintf(alone[i], sizeof(alone[i]), "%s", at(5, i, -1));
        for (int i = 0; i < 64; i++) {
            (void)fcall_sync("%s 1 0 9 0 1 q%02d %d 1000", w, i, i % 20 != 9);
            if (strcmp(at(5, 0, -1), alone[i]) != 0 &&
                !(round == 0 && (i == 5 || i == 6) && is_in_an_hour(alone[i])))
                fail_msg("round %d, q%02d: %s, alone %s", round, i, alone[i], at(5, 0, -1));
        }
    }
    assert_time(atoll(alone[5]), 7100000, 7200000);
    assert_string_equal(alone[6], "-1");
    assert_string_equal(redis("ZSCORE R:heads q06"), "nil");
    assert_string_equal(redis("ZSCORE R:heads q09"), alone[9]);
    assert_string_equal(redis("ZSCORE R:heads q08"), alone[8]);
    buf_done(&many);
}

static void test_most_jobs_in_one_sync(void **state)
{
    struct buf b = BUF_INIT;
    const char *w = worker();

    (void)state;
    buf_puts(&b, "later_add_many mail");
    for (int i = 0; i < 600; i++)
        buf_puts(&b, " x");
    (void)call_line(buf_str(&b));
    assert_int_equal(strlen(payloads(w, 9999, "mail 9999 1000", 1)), 512);
    assert_string_equal(redis("ZCARD R:running"), "512");
    assert_int_equal(strlen(payloads(w, 9999, "mail 9999 1000", 1)), 88);
    buf_done(&b);
}

static void test_byte_bound(void **state)
{
    char bytes[16000];
    const char *w = worker();
    int n;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 100; i++)
        (void)fcall_bytes("later_add mail", bytes, sizeof(bytes));
    (void)add("sms x");
    (void)fcall_sync("%s 1 0 200 0 2 mail 200 100000 sms 1 100", w);
    n = count_claimed();
    assert_in_range(n, 60, 66);
    assert_true(int_at(5, 0, -1) > 0); /* the rest is still due, and so is the other queue */
    assert_true(int_at(5, 1, -1) > 0);
    assert_int_equal(strlen(payloads(w, 200, "mail 200 100000", 1)), (100 - n) * 16000);
}

static void test_big_payload(void **state)
{
    char bytes[20000];
    const char *w = worker(), *id;

    (void)state;
    memset(bytes, 'b', sizeof(bytes));
    (void)fcall_bytes("later_add mail", bytes, sizeof(bytes));
    id = at(0, -1);
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(claimed(0, CLAIM_RECORD), "+mail\\n");
    assert_string_equal(redis("STRLEN R:big:%s", id), "20000");
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("EXISTS R:big:%s", id), "0");
}

/* ---- raw members */

static void test_raw_scores(void **state)
{
    static const struct {
        const char *score, *want; /* ok, later, or the reason of its burial */
    } rows[] = {{"0", "ok"},
                {"-1", "ok"},
                {"-0.5", "ok"},
                {"1e-300", "ok"},
                {"99999999", "ok"},
                {"100000000", "its score looks like seconds"},
                {"1767225600", "its score looks like seconds"},
                {"1767225600.5", "its score looks like seconds"},
                {"100000000000", "its score looks like seconds"},
                {"100000000001", "ok"},
                {"1767225600000", "ok"},
                {"1767225600000.7", "ok"},
                {"-1e308", "ok"},
                {"-inf", "its score is not finite"},
                {"inf", "later"},
                {"1e308", "later"},
                {"9007199254740993", "later"},
                {"100000000000001", "later"},
                {"100000000000000", "later"},
                {"4102444800000", "later"}};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *want = rows[i].want, *got;

        (void)redis("DEL R:due:mail R:dead:mail R:heads");
        raw("mail", rows[i].score, "x");
        (void)claim(w, "mail", 0); /* only asked for the head */
        assert_in_range(int_at(5, 0, -1), 0, 100000000000000);
        got = payloads(w, 1, MAIL, 1);
        if (strcmp(want, "ok") == 0
                ? got[0] != 'x' || atoll(claimed(0, CLAIM_DUE)) < 0 || len_at(6, -1) != 0
                : got[0] != '\0')
            fail_msg("score %s: %s", rows[i].score, shown(fx.last));
        if (strcmp(want, "ok") == 0)
            assert_starts(redis("HGET R:tries %s", claimed(0, CLAIM_ID)), "1 1 0 ");
        if (strcmp(want, "ok") != 0 && strcmp(want, "later") != 0)
            assert_non_null(strstr(dead_reason(), want));
        assert_string_equal(redis("EXISTS R:due:mail"), strcmp(want, "later") == 0 ? "1" : "0");
    }
}

/* A score with a fraction is due at the next ms. A wake for it must not be sent again and again. */
static void test_raw_fraction_makes_no_storm(void **state)
{
    struct client *c = listen_to(ROOT ":wake");
    const char *w = worker();

    (void)state;
    raw("mail", "4102444800000.7", "x");
    (void)claim(w, "mail", 1);
    assert_string_equal(at(5, 0, -1), "4102444800001");
    assert_string_equal(heard(c, "R:wake"), "mail");
    for (int i = 0; i < 3; i++)
        (void)claim(w, "mail", 1);
    (void)fcall("later_v1_note raw-queue mail");
    assert_string_equal(heard(c, "R:wake"), "");
    client_close(c);
}

/* A raw member that is claimed at once never had a head; its queue becomes known all the same. */
static void test_raw_makes_the_queue_known(void **state)
{
    const char *w = worker();

    (void)state;
    raw("mail", "1", "x");
    (void)claim(w, "mail", 1);
    assert_string_equal(redis("SMEMBERS R:names"), "[mail]");
}

static void test_raw_payloads(void **state)
{
    static const size_t lens[] = {0, 1, 100, 16384, 16385, 70000};
    char *bytes = mem_new(70000);
    const char *w = worker();

    (void)state;
    for (size_t k = 1; k < sizeof(lens) / sizeof(lens[0]); k++) {
        const char *argv[] = {"ZADD", ROOT ":due:mail", "1", bytes};
        size_t argl[] = {4, sizeof(ROOT ":due:mail") - 1, 1, lens[k]};

        for (size_t i = 0; i < lens[k]; i++)
            bytes[i] = (char)(k == 2 ? 0 : i * 31 + i / 256);
        (void)send_args(4, argv, argl);
        (void)claim(w, "mail", 1);
        assert_int_equal(count_claimed(), 1);
        if (lens[k] > 16384) {
            assert_string_equal(claimed(0, CLAIM_RECORD), "+mail\\n");
            (void)redis("GET R:big:%s", claimed(0, CLAIM_ID));
            assert_int_equal(reply_len(fx.last), lens[k]);
            assert_memory_equal(reply_str(fx.last), bytes, lens[k]);
        } else {
            assert_int_equal(reply_len(claimed_node(0, CLAIM_RECORD)), 6 + lens[k]);
            assert_memory_equal(reply_str(claimed_node(0, CLAIM_RECORD)) + 6, bytes, lens[k]);
        }
    }
    raw("mail", "0", "''");
    assert_string_equal(payloads(w, 1, MAIL, 1), "");
    assert_int_equal(count_claimed(), 1);
    assert_string_equal(redis("EXISTS R:due:mail"), "0");
    raw("mail", "1", text("%02000d", 7));
    assert_string_equal(payloads(w, 1, "mail 1 1999", 1), "");
    assert_non_null(strstr(dead_reason(), "the payload has 2000 bytes, queue mail takes 1999"));
    assert_string_equal(redis("HSTRLEN R:jobs %s", dead_id()), "2006");
    assert_starts(fcall("later_retry %s", dead_id()), "[j");
    free(bytes);
}

/* Large raw members count for the limit of a call, although the reply does not have their bytes. */
static void test_raw_bytes_are_bounded(void **state)
{
    char *bytes = mem_new(600000);
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *argv[] = {"ZADD", ROOT ":due:mail", "1", bytes};
        size_t argl[] = {4, sizeof(ROOT ":due:mail") - 1, 1, 600000};

        bytes[0] = (char)('a' + i);
        (void)send_args(4, argv, argl);
    }
    (void)claim(w, "mail", 10);
    assert_int_equal(count_claimed(), 2);
    assert_true(int_at(5, 0, -1) >= 0);
    (void)claim(w, "mail", 10);
    assert_int_equal(count_claimed(), 2);
    free(bytes);
}

static void test_raw_same_bytes(void **state)
{
    const char *w = worker(), *first;

    (void)state;
    raw("mail", "4102444800000", "x");
    (void)redis("ZADD R:due:mail 1 x"); /* moved */
    first = claim(w, "mail", 5);
    assert_int_equal(count_claimed(), 1);
    raw("mail", "1", "x"); /* claimed before: a new job */
    assert_string_not_equal(claim(w, "mail", 5), first);
    assert_int_equal(count_claimed(), 1);
}

/* Members with very old scores do not keep back others, nor are they kept back. */
static void test_raw_turns(void **state)
{
    const char *w = worker();

    (void)state;
    raw("mail", "0", "r");
    raw("mail", text("%lld", (long long)now_ms() - 9000), "s");
    for (int i = 0; i < 5; i++)
        (void)redis("ZADD R:q:mail:5 %lld %s", (long long)now_ms() - 5000, add("mail a"));
    assert_string_equal(payloads(w, 3, MAIL, 1), "rsa");
    for (int i = 0; i < 40; i++)
        raw("sms", "1", text("%c", 'A' + i));
    assert_int_equal(strlen(payloads(w, 99, "sms 99 1000", 1)), 16);
    assert_true(int_at(5, 0, -1) >= 0); /* more of them are due */
}

/* ---- broken keys and records stop only themselves */

static void set_record(const char *id, const char *record)
{
    const char *argv[] = {"HSET", ROOT ":jobs", id, record};

    (void)send_args(4, argv, NULL);
}

static void test_broken_records(void **state)
{
    static const struct {
        const char *record, *reason; /* NULL: no record */
    } rows[] = {{NULL, "its record is missing"},
                {"", "its record is corrupt"},
                {"hello", "its record is corrupt"},
                {"\n", "its record is corrupt"},
                {"-sms 5\nx", "its record is corrupt"},
                {"*mail 5\nx", "its record is corrupt"},
                {"-mail x\nx", "its record is corrupt"},
                {"-mail 55\nx", "its record is corrupt"},
                {"-mail 5 x=soon\nx", "its record is corrupt"},
                {"-mail 5 k=-1\nx", "its record is corrupt"},
                {"-mail 5 a=1e9\nx", "its record is corrupt"},
                {"-mail 5 t=99999999999999999999\nx", "its record is corrupt"}};
    const char *w = worker(), *bad, *good;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)redis("DEL R:dead:mail");
        bad = add("mail x");
        good = add("mail y");
        (void)redis("HDEL R:jobs %s", bad);
        if (rows[i].record != NULL)
            set_record(bad, rows[i].record);
        assert_string_equal(claim(w, "mail", 10), good);
        assert_int_equal(count_claimed(), 1);
        assert_int_equal(len_at(6, -1), 0);
        if (strstr(dead_reason(), rows[i].reason) == NULL)
            fail_msg("\"%s\": %s", rows[i].record, dead_reason());
        /* The dead job keeps all bytes of the bad record as its payload. */
        (void)fcall("later_show %s", bad);
        assert_int_equal(reply_len(reply_named(fx.last, "payload")),
                         rows[i].record ? strlen(rows[i].record) : 0);
    }
    (void)redis("DEL R:dead:mail");
    bad = add("mail x");
    (void)redis("HSET R:tries %s junk", bad);
    assert_string_equal(claim(w, "mail", 10), "nil");
    assert_non_null(strstr(dead_reason(), "its tries are corrupt"));
}

static void test_newer_records_pass(void **state)
{
    const char *w = worker(), *id = add("mail x");

    (void)state;
    set_record(id, "-mail 5 Z=new K=k\nhi");
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(claimed(0, CLAIM_RECORD), "-mail 5 Z=new K=k\\nhi");
}

static void test_expired(void **state)
{
    const char *w = worker(), *old = add("mail expire 10s x"), *older = add("mail expire 10s y"),
               *fresh = add("mail expire 10s z");

    (void)state;
    (void)redis("ZADD R:q:mail:5 1000 %s 999 %s", old, older);
    assert_string_equal(claim(w, "mail", 9), fresh);
    assert_string_equal(redis("ZCARD R:dead:mail"), "2");
    assert_starts(fcall("later_result %s", old), "[dead 0 ");
    assert_non_null(strstr(at(4, -1), "expired: not started within 10000 ms"));
    /* A job that was started in time does not expire any more. */
    assert_string_equal(settle(w, fresh, 1, "retry", 0), "ok");
    (void)redis("ZADD R:q:mail:5 1000 %s", fresh);
    assert_string_equal(claim(w, "mail", 9), fresh);
}

static void test_wrong_types_stop_one_queue(void **state)
{
    static const char *const keys[] = {"q:mail:5", "q:mail:3", "due:mail", "solo:mail",
                                       "dead:mail"};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *w, *id;

        (void)redis("FLUSHALL");
        w = worker();
        if (strcmp(keys[i], "dead:mail") == 0)
            raw("mail", "1767225600", "x"); /* has to be buried */
        else
            (void)redis("HSET R:prio mail 3s");
        (void)redis("SET R:%s x", keys[i]);
        id = add("sms x");
        (void)fcall_sync("%s 1 0 10 0 2 mail 5 1000 sms 5 1000", w);
        assert_string_equal(claimed(0, CLAIM_ID), id);
        assert_string_equal(at(5, -1), "[-1 -1]");
        assert_string_equal(at(6, 0, -1), "mail");
        assert_true(strstr(at(6, 1, -1), "WRONGTYPE") != NULL ||
                    strstr(at(6, 1, -1), "ELATER_TYPE") != NULL);
        assert_int_equal(len_at(6, -1), 2);
        if (strcmp(keys[i], "dead:mail") == 0)
            assert_string_equal(redis("ZCARD R:due:mail"), "1");
    }
}

/* A result that cannot be written changes nothing and may be sent again. */
static void test_wrong_types_keep_results(void **state)
{
    static const char *const rows[][2] = {{"q:mail:5", "retry"},
                                          {"q:mail:5", "release"},
                                          {"dead:mail", "dead"},
                                          {"done:mail", "done"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *w, *id, *before;

        (void)redis("FLUSHALL");
        w = worker();
        id = add("mail x");
        assert_string_equal(claim(w, "mail", 1), id);
        (void)redis("SET R:%s x", rows[i][0]);
        before = snapshot();
        assert_starts(settle(w, id, 1, rows[i][1], 1000), "error ELATER_TYPE ");
        assert_string_equal(snapshot(), before);
        (void)redis("DEL R:%s", rows[i][0]);
        assert_string_equal(settle(w, id, 1, rows[i][1], 1000), "ok");
    }
}

/* ---- results */

static void test_results(void **state)
{
    const char *w = worker(), *id = add("mail x");

    (void)state;
    (void)claim(w, "mail", 1);
    (void)redis("HSET R:progress %s 50", id);
    assert_string_equal(settle(w, id, 1, "retry", 60000), "ok");
    assert_time(atoll(redis("ZSCORE R:q:mail:5 %s", id)), 55000, 60000);
    assert_string_equal(redis("EXISTS R:running R:progress"), "0");
    assert_starts(redis("HGET R:tries %s", id), "1 1 0 ");
    assert_starts(redis("HGET R:errors %s", id), "failed 7 ");
    (void)fcall("later_run_now %s", id);
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(text("%s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT)), "2 2");
    assert_string_equal(settle(w, id, 2, "release", 0), "ok");
    assert_starts(redis("HGET R:tries %s", id), "2 1 0 ");
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(text("%s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT)),
                        "3 2"); /* no start number comes twice */
    assert_string_equal(settle(w, id, 3, "release", 60000), "ok");
    assert_time(atoll(redis("ZSCORE R:q:mail:5 %s", id)), 55000, 60000);
    (void)fcall("later_run_now %s", id);
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 4, "dead", 10), "ok");
    assert_string_equal(redis("ZCARD R:dead:mail"), "1");
    assert_string_equal(redis("HGET R:stats dead:mail"), "1");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "done", 60000), "ok");
    assert_time(atoll(redis("ZSCORE R:done:mail %s", id)), 55000, 60000);
    assert_starts(redis("HGET R:results %s", id), "done 7 ");
    assert_string_equal(redis("HGET R:stats done:mail"), "1");
}

static void test_settled_changes_nothing(void **state)
{
    const char *w = worker(), *other = worker(), *id = add("mail x"), *before;

    (void)state;
    (void)claim(w, "mail", 1);
    for (int i = 0; i < 5; i++) {
        static const char *const verbs[] = {"done", "retry", "dead", "release", "progress"};

        before = snapshot();
        assert_string_equal(settle(other, id, 1, verbs[i], 0), "settled"); /* not its own */
        assert_string_equal(settle(w, id, 2, verbs[i], 0), "settled");     /* not this start */
        assert_string_equal(settle(w, id, 0, verbs[i], 0), "settled");
        assert_string_equal(settle(w, "j00000000000", 1, verbs[i], 0), "settled");
        assert_string_equal(snapshot(), before);
    }
    before = snapshot();
    assert_starts(settle(w, id, 1, "explode", 0), "error ELATER_ARGS");
    (void)fcall("later_cancel %s", id);
    before = snapshot();
    assert_starts(settle(w, id, 1, "explode", 0), "error ELATER_ARGS");
    assert_string_equal(snapshot(), before);
}

static void test_results_of_one_batch(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b");

    (void)state;
    (void)claim(w, "mail", 9);
    (void)fcall_sync(
        "%s 1 0 9 6 "
        "%s 1 progress mail 0 0 half '' %s 1 done mail 0 0 '' '' %s 1 retry mail 0 1 '' '' "
        "%s 1 retry mail 0 1 '' '' %s 1 retry mail 0 1 '' '' %s 1 done mail 0 0 '' '' 1 " MAIL,
        w, a, a, a, b, b, b);
    assert_string_equal(at(2, -1), "[ok ok settled ok settled settled]");
    /* Results are taken before claims: the job comes back in the same call. */
    assert_string_equal(claimed(0, CLAIM_ID), b);
    assert_string_equal(redis("HGET R:stats done:mail"), "1");
    assert_string_equal(redis("HKEYS R:jobs"), text("[%s]", b));
}

/* A job without a good record may be done. After any other end it is buried, not ignored. */
static void test_results_of_broken_records(void **state)
{
    static const char *const records[] = {"-mail 5 k=x\nhi", NULL};
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int done = 0; done < 2; done++) {
            const char *id = add("mail x");

            (void)redis("DEL R:dead:mail");
            (void)claim(w, "mail", 1);
            (void)redis("HDEL R:jobs %s", id);
            if (records[i] != NULL)
                set_record(id, records[i]);
            assert_string_equal(settle(w, id, 1, done ? "done" : "retry", 5), "ok");
            assert_string_equal(redis("ZCARD R:dead:mail"), done ? "0" : "1");
            assert_string_equal(redis("HEXISTS R:jobs %s", id), done ? "0" : "1");
            assert_string_equal(redis("EXISTS R:running"), "0");
        }
    }
}

static void test_dead_max(void **state)
{
    const char *w = worker(), *first = NULL;

    (void)state;
    for (int i = 0; i < 5; i++) {
        const char *id = add("mail x");

        first = first == NULL ? id : first;
        (void)claim(w, "mail", 1);
        assert_string_equal(settle(w, id, 1, "dead", 3), "ok");
    }
    assert_string_equal(redis("ZCARD R:dead:mail"), "3");
    assert_string_equal(redis("HLEN R:jobs"), "3");
    assert_string_equal(redis("HLEN R:errors"), "3");
    assert_refused("ELATER_NOJOB", "later_show %s", first);
}

/* ---- suspects run alone */

static void test_solo(void **state)
{
    const char *w = worker(), *a = add("mail a"), *b = add("mail b"), *c = add("mail c");

    (void)state;
    (void)redis("ZREM R:q:mail:5 %s %s", a, b);
    (void)redis("ZADD R:solo:mail 1000 %s 2000 %s", a, b);
    (void)redis("HSET R:prio mail s");
    for (int i = 0; i < 2; i++) {
        const char *id = i == 0 ? a : b;
        const char *argv[] = {"HSET", ROOT ":tries", id, "2 2 2 1000"};

        (void)send_args(4, argv, NULL);
    }
    /* A busy worker gets other jobs, and is told that a suspect waits. */
    (void)fcall_sync("%s 1 1 1 0 1 " MAIL, w);
    assert_string_equal(text("%s %s", claimed(0, CLAIM_ID), at(7, -1)), text("%s 1", c));
    (void)add("sms y");
    (void)add("mail y");
    (void)fcall("later_pause mail"); /* the paused suspects do not hold up the others */
    (void)fcall_sync("%s 1 0 1 0 2 " MAIL " sms 9 9999", w);
    assert_string_equal(text("%s %s", claimed(0, CLAIM_QUEUE), at(7, -1)), "sms 0");
    (void)add("sms y");
    (void)fcall("later_resume mail");
    (void)fcall_sync("%s 1 0 9 0 2 sms 9 9999 " MAIL, w);
    assert_int_equal(count_claimed(), 1); /* the suspect comes before all others, and alone */
    assert_string_equal(text("%s %s", claimed(0, CLAIM_ID), claimed(0, CLAIM_CRASHES)),
                        text("%s 2", a));
    assert_string_equal(at(7, -1), "1"); /* and one more waits */
    assert_true(int_at(5, 0, -1) > 0 && int_at(5, 1, -1) > 0);
    assert_starts(fcall("later_show %s", b), text("[id %s queue mail state waiting", b));
    assert_string_equal(fcall("later_cancel %s", b), "cancelled");
    assert_string_equal(settle(w, a, 3, "done", 0), "ok");
    (void)claim(w, "mail", 9);
    assert_string_equal(at(7, -1), "0");
    assert_string_equal(redis("HEXISTS R:prio mail"), "0");
    /* A suspect that is due later does not put its queue in front. */
    (void)redis("ZADD R:solo:mail 4102444800000 %s", add("mail m"));
    (void)redis("HSET R:prio mail s");
    (void)add("mail n");
    (void)fcall_sync("%s 1 0 1 0 2 sms 9 9999 " MAIL, w);
    assert_string_equal(claimed(0, CLAIM_QUEUE), "sms");
}

/* ---- callers and arguments */

/* A library that was just loaded has no transaction yet. */
static void test_the_first_call_is_a_sync(void **state)
{
    const char *w = worker(), *id = add("mail x");

    (void)state;
    (void)redis("FUNCTION DELETE laterd");
    test_redis_load(&fx.redis);
    assert_string_equal(claim(w, "mail", 1), id);
}

static void test_status(void **state)
{
    const char *w = worker(), *before;

    (void)state;
    (void)add("mail x");
    before = snapshot();
    assert_non_null(strstr(fcall_sync("%s 2 0 9 0 1 " MAIL, w), " link]"));
    assert_non_null(strstr(fcall_sync("12345 1 0 9 0 1 " MAIL), " unknown]"));
    assert_string_equal(snapshot(), before);
    (void)redis("HSET R:workers %s dead", w);
    before = snapshot();
    assert_non_null(strstr(fcall_sync("%s 1 0 9 0 1 " MAIL, w), " dead]"));
    assert_string_equal(snapshot(), before);
}

static void test_arguments(void **state)
{
    static const char *const rows[] = {"",
                                       "E",
                                       "E 1",
                                       "E 1 0",
                                       "E 1 0 9",
                                       "E 1 0 9 0",
                                       "E 1 0 9 1 0 0",
                                       "E 1 0 9 0 1 0",
                                       "E 1 0 9 0 1 mail 5 0",
                                       "E 1 0 9 0 1 mail 5 100 more 0",
                                       "E 1 0 9 0 1 mail -1 100 0",
                                       "E 1 0 9 0 1 mail nan 100 0",
                                       "E 1 0 9 0 1 mail 0x5 100 0",
                                       "E 1 0 9 0 1 mail 1e1 100 0",
                                       "E 1 0 9 0 1 mail 5 inf 0",
                                       "E 1 0 -9 0 1 mail 5 100 0",
                                       "E 1 nan 9 0 1 mail 5 100 0",
                                       "E 1 0 9 nan 1 mail 5 100 0",
                                       "E 1 0 9 0 nan mail 5 100 0",
                                       "E 1 0 9 0 0.5 mail 5 100 0",
                                       "E 1 0 9 1025 0 0",
                                       "E 1 0 9 0 2001 0",
                                       "nan 1 0 9 0 0 0",
                                       "-1 1 0 9 0 0 0"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf b = BUF_INIT;

        for (const char *p = rows[i]; *p != '\0'; p++)
            buf_printf(&b, "%.*s", *p == 'E' ? 20 : 1, *p == 'E' ? w : p);
        assert_refused("ELATER_ARGS", "later_v1_sync%s%s", rows[i][0] != '\0' ? " " : "",
                       buf_str(&b));
        buf_done(&b);
    }
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 9 0 1 a:b 5 100 0", w);
    (void)redis("DEL R:tries");
    (void)redis("SET R:tries x");
    (void)add("mail x");
    assert_refused("ELATER_TYPE", "later_v1_sync %s 1 0 9 0 1 " MAIL " 0", w);
}

/* A bad result is answered by itself: it stops no other result of its sync, and no claim. */
static void test_bad_numbers_of_one_result(void **state)
{
    static const char *const amounts[] = {"nan", "-5", "inf", "17280000000000000"};
    const char *w = worker(), *id = add("mail x");

    (void)state;
    (void)claim(w, "mail", 1);
    for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
        (void)fcall_sync("%s 1 0 9 1 %s 1 retry mail %s 0 t o 0", w, id, amounts[i]);
        assert_string_equal(at(1, -1), "ok");
        assert_non_null(strstr(at(2, 0, -1), "ELATER_ARGS"));
    }
    (void)fcall_sync("%s 1 0 9 1 %s nan done mail 0 0 t o 0", w, id);
    assert_string_equal(at(2, 0, -1), "settled");
    (void)fcall_sync("%s 1 0 9 1 %s 1 done mail 0 0 t o 0", w, id);
    assert_string_equal(at(2, 0, -1), "ok");
}

/* Fences and ids rise, even when the clock was lost. */
static void test_clock_was_lost(void **state)
{
    const char *w = worker(), *id;
    int64_t fence, far = now_ms() * 1000 + 3600000000;

    (void)state;
    (void)redis("SET R:clock %lld", (long long)far);
    raw("mail", "1", "x");
    id = claim(w, "mail", 1);
    fence = atoll(claimed(0, CLAIM_FENCE));
    assert_true(fence > far);
    (void)redis("FLUSHALL");
    (void)fcall("later_v1_register %lld i 1 %s 0 0 0", (long long)fence, w);
    w = at(1, -1);
    assert_string_equal(at(3, -1), "1");
    assert_true(atoll(w) > fence);
    raw("mail", "1", "x");
    assert_true(strcmp(claim(w, "mail", 1), id) > 0);
    assert_true(atoll(claimed(0, CLAIM_FENCE)) > fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_claim),
                                       FX_TEST(test_order_in_a_queue),
                                       FX_TEST(test_queues_room_and_max),
                                       FX_TEST(test_most_jobs_in_one_sync),
                                       FX_TEST(test_byte_bound),
                                       FX_TEST(test_big_payload),
                                       FX_TEST(test_raw_scores),
                                       FX_TEST(test_raw_fraction_makes_no_storm),
                                       FX_TEST(test_raw_makes_the_queue_known),
                                       FX_TEST(test_raw_payloads),
                                       FX_TEST(test_raw_bytes_are_bounded),
                                       FX_TEST(test_raw_same_bytes),
                                       FX_TEST(test_raw_turns),
                                       FX_TEST(test_broken_records),
                                       FX_TEST(test_newer_records_pass),
                                       FX_TEST(test_expired),
                                       FX_TEST(test_wrong_types_stop_one_queue),
                                       FX_TEST(test_wrong_types_keep_results),
                                       FX_TEST(test_results),
                                       FX_TEST(test_settled_changes_nothing),
                                       FX_TEST(test_results_of_one_batch),
                                       FX_TEST(test_many_names_at_once),
                                       FX_TEST(test_results_of_broken_records),
                                       FX_TEST(test_dead_max),
                                       FX_TEST(test_solo),
                                       FX_TEST(test_the_first_call_is_a_sync),
                                       FX_TEST(test_status),
                                       FX_TEST(test_arguments),
                                       FX_TEST(test_bad_numbers_of_one_result),
                                       FX_TEST(test_clock_was_lost)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
