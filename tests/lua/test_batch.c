/*
 * Batches: who joins them, what every way on which a job ends does to them, when their callbacks
 * come, and when they are forgotten.
 */
#include "sync.h"

/* Claim all of the queue. */
static void claim_all(const char *w, const char *queue)
{
    (void)do_sync(w, "0", queue, "0");
}

static void open_it(const char *words)
{
    assert_starts(fcall("later_batch %s", words), "[");
}

/* "total live done dead cancelled state" of batch b. */
static const char *counts(void)
{
    static const char *const names[] = {"total", "live", "done", "dead", "cancelled", "state"};
    const char *out = "";

    (void)fcall("later_batch_show b");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        out = text("%s%s%s", out, i > 0 ? " " : "", reply_str(reply_named(fx.last, names[i])));
    return out;
}

/* What its callbacks in this queue are told: "" for none. */
static const char *told(const char *queue)
{
    const char *ids = redis("ZRANGE R:q:%s:5 0 -1", queue), *out = "";
    size_t n = (size_t)len_at(-1);

    for (size_t i = 0; i < n; i++) {
        (void)redis("ZRANGE R:q:%s:5 0 -1", queue);
        out = text("%s%s", out, redis("HGET R:jobs %s", at((int)i, -1)));
    }
    (void)ids;
    return out;
}

static void test_opening(void **state)
{
    (void)state;
    assert_string_equal(fcall("later_batch b then t finally f on_dead d keep 1h x"), "[b opened]");
    assert_string_equal(fcall("later_batch b then t finally f on_dead d keep 1h x"),
                        "[b repeated]");
    assert_starts(fcall("later_batch b then t x"), "!ELATER_BATCH");
    assert_starts(fcall("later_batch b/c"), "!ELATER_BATCH");
    assert_starts(fcall("later_batch %0129d", 1), "!ELATER_BATCH");
    assert_starts(fcall("later_batch %0128d", 1), "[");
    assert_starts(fcall("later_batch c then ?"), "!ELATER_QUEUE");
    assert_starts(fcall("later_batch c then a batch b"), "!ELATER_OPTION");
    assert_starts(fcall("later_batch c after a"), "!ELATER_OPTION");
    assert_starts(fcall("later_batch c keep soon"), "!ELATER_TIME");
    assert_starts(fcall("later_batch c %016385d", 1), "!ELATER_SIZE");
    assert_starts(fcall("later_batch_seal c"), "!ELATER_NOBATCH");
    assert_starts(fcall("later_batch_show c"), "!ELATER_NOBATCH");
    assert_string_equal(redis("HLEN R:batches"), "2");
}

static void test_joining(void **state)
{
    (void)state;
    open_it("b");
    assert_starts(fcall("later_add q batch nosuch x"), "!ELATER_NOBATCH");
    assert_starts(fcall("later_add q batch b unique u x"), "!ELATER_OPTION");
    assert_starts(fcall("later_add q batch b token t x"), "[");
    assert_starts(fcall("later_add q batch b token t x"), "[");
    assert_string_equal(at(1, -1), "repeated");
    assert_starts(fcall("later_add_many q batch b priority 3 -- x y z"), "[");
    assert_starts(fcall("later_v1_import q 2 batch b due 1000 x"), "[");
    assert_string_equal(counts(), "5 5 0 0 0 open");
    assert_string_equal(fcall("later_batch_seal b"), "[b sealed]");
    assert_string_equal(fcall("later_batch_seal b"), "[b repeated]");
    assert_starts(fcall("later_add q batch b x"), "!ELATER_BATCH");
    assert_starts(fcall("later_add_many q batch b x"), "!ELATER_BATCH");
    assert_string_equal(counts(), "5 5 0 0 0 sealed");
}

/* Jobs that end before the seal: nothing comes until it is sealed. */
static void test_all_are_done(void **state)
{
    const char *w = worker(), *a, *b;

    (void)state;
    open_it("b then t finally f hello");
    a = add("q batch b x");
    b = add("q batch b key k y");
    claim_all(w, "q");
    (void)do_sync(w, "0", "none", text("1 q 1 2 %s %s", a, b));
    assert_string_equal(counts(), "2 0 2 0 0 open");
    assert_string_equal(told("f"), "");
    assert_string_equal(fcall("later_batch_seal b"), "[b sealed]");
    assert_string_equal(told("f"), "-f B=b,2,2,0,0\\nhello");
    assert_string_equal(told("t"), "-t B=b,2,2,0,0\\nhello");
    assert_string_equal(counts(), "2 0 2 0 0 ended");
    assert_string_equal(redis("EXISTS R:holds R:running R:tries"), "0");
    /* Never twice. */
    assert_string_equal(fcall("later_batch_seal b"), "[b repeated]");
    assert_string_equal(told("f"), "-f B=b,2,2,0,0\\nhello");
}

static void test_an_empty_one(void **state)
{
    (void)state;
    open_it("b then t finally f on_dead d");
    (void)fcall("later_batch_seal b");
    assert_string_equal(told("t"), "-t B=b,0,0,0,0\\n");
    assert_string_equal(told("f"), "-f B=b,0,0,0,0\\n");
    assert_string_equal(told("d"), "");
}

static void test_a_death_and_a_retry(void **state)
{
    const char *w = worker(), *a, *b;

    (void)state;
    open_it("b then t finally f on_dead d");
    a = add("q batch b x");
    b = add("q batch b y");
    (void)fcall("later_batch_seal b");
    claim_all(w, "q");
    (void)do_sync(w, text("2 %s 1 dead q 10 7 no '' %s 1 dead q 10 7 no ''", a, b), "none", "0");
    assert_string_equal(counts(), "2 0 0 2 0 ended");
    assert_string_equal(told("d"), "-d B=b,2,0,1,0\\n");
    assert_string_equal(told("f"), "-f B=b,2,0,2,0\\n");
    assert_string_equal(told("t"), "");
    assert_starts(fcall("later_retry %s", a), "[");
    assert_string_equal(counts(), "2 1 0 1 0 sealed");
    assert_string_equal(redis("ZCARD R:batch:ended"), "0");
    claim_all(w, "q");
    (void)do_sync(w, text("1 %s 2 done q 60000 0 ok ''", a), "none", "0");
    assert_string_equal(told("t"), "");
    assert_starts(fcall("later_retry %s", b), "[");
    claim_all(w, "q");
    (void)do_sync(w, "0", "none", text("1 q 2 1 %s", b));
    assert_string_equal(counts(), "2 0 2 0 0 ended");
    assert_string_equal(told("t"), "-t B=b,2,2,0,0\\n");
    assert_string_equal(told("f"), "-f B=b,2,0,2,0\\n");
    assert_string_equal(told("d"), "-d B=b,2,0,1,0\\n");
}

/* Each way on which a job ends without its worker. */
static void test_other_ends(void **state)
{
    const char *w = worker(), *a;

    (void)state;
    open_it("b finally f");
    a = add("q batch b x");
    (void)add("p batch b priority 3 x");
    assert_starts(fcall("later_v1_import e 3 batch b expire 1ms due 1000 x"), "[1 added");
    assert_string_equal(fcall("later_cancel %s", a), "cancelled");
    assert_string_equal(counts(), "3 2 0 0 1 open");
    assert_starts(fcall("later_v1_purge p due 10"), "[1");
    assert_string_equal(counts(), "3 1 0 0 2 open");
    claim_all(w, "e");
    assert_string_equal(counts(), "3 0 0 1 2 open");
    /* Its record is lost while it runs: what it holds names its batch. */
    a = add("q batch b x");
    claim_all(w, "q");
    assert_string_equal(redis("HGET R:holds %s", a), "batch b");
    (void)redis("HDEL R:jobs %s", a);
    (void)do_sync(w, text("1 %s 1 done q 0 0 ok ''", a), "none", "0");
    assert_string_equal(counts(), "4 0 1 1 2 open");
    /* A removed dead member stays dead. */
    (void)fcall("later_v1_purge e dead 10");
    (void)fcall("later_batch_seal b");
    assert_string_equal(told("f"), "-f B=b,4,1,1,2\\n");
}

/* A chain is live to its end; children of members join a sealed batch, others do not. */
static void test_chains_and_children(void **state)
{
    const char *w = worker(), *a;

    (void)state;
    open_it("b then t");
    open_it("c");
    a = add("q batch b then r on_dead d x");
    (void)fcall("later_batch_seal b");
    claim_all(w, "q");
    (void)do_sync(w, text("1 %s 1 done q 0 0 ok ''", a), "none", "0");
    assert_string_equal(counts(), "2 1 1 0 0 sealed");
    claim_all(w, "r");
    assert_string_equal(at(3, 0, 8, -1), text("-r d=d p=%s b=b\\nx", a));
    a = at(3, 0, 6, -1);
    (void)fcall("later_v1_sync %s 1 0 50 1 %s 1 done r 0 0 ok '' 1 none 50 1048576 0 0 1 1 1 4 q "
                "batch b y",
                w, a);
    assert_string_equal(at(2, -1), "[ok]");
    assert_string_equal(counts(), "3 1 2 0 0 sealed");
    claim_all(w, "q");
    a = at(3, 0, 6, -1);
    (void)add("q batch c x");
    (void)fcall("later_batch_seal c");
    (void)fcall("later_v1_sync %s 1 0 50 1 %s 1 done q 0 0 ok '' 1 none 50 1048576 0 0 1 1 1 4 q "
                "batch c y",
                w, a);
    assert_non_null(strstr(at(2, -1), "refused child 1: ELATER_BATCH"));
    assert_string_equal(counts(), "3 1 2 0 0 sealed");
    (void)do_sync(w, "0", "none", text("1 q 1 1 %s", a));
    assert_string_equal(told("t"), "-t B=b,3,3,0,0\\n");
}

static void test_cancelling(void **state)
{
    const char *w = worker(), *runs, *after = "''";
    int calls = 0, cancelled = 0;

    (void)state;
    open_it("b finally f");
    runs = add("q batch b then r x");
    claim_all(w, "q");
    for (int i = 0; i < 25; i++)
        (void)fcall("later_add_many p batch b -- 0 1 2 3 4 5 6 7 8 9");
    do {
        assert_starts(fcall("later_batch_cancel b %s", after), "[");
        cancelled += (int)reply_int(reply_at(fx.last, 0));
        after = at(2, -1);
    } while (++calls < 10 && after[0] == 'j');
    assert_int_equal(calls, 3);
    assert_int_equal(cancelled, 250);
    assert_string_equal(counts(), "251 1 0 0 250 cancelled");
    assert_string_equal(redis("EXISTS R:q:p:5"), "0");
    assert_string_equal(redis("HLEN R:cancel"), "1");
    assert_starts(fcall("later_add p batch b x"), "!ELATER_BATCH");
    /* It ends well all the same: then its chain does not go on. */
    (void)do_sync(w, "0", "none", text("1 q 1 1 %s", runs));
    assert_string_equal(counts(), "251 0 1 0 250 ended");
    assert_string_equal(redis("EXISTS R:q:r:5"), "0");
    assert_string_equal(told("f"), "-f B=b,251,1,0,250\\n");
}

/* A foreign key must not keep a member from ending; seal adds the callback later. */
static void test_foreign_keys(void **state)
{
    const char *w = worker(), *a = NULL;

    (void)state;
    open_it("b finally f");
    a = add("q batch b x");
    (void)fcall("later_batch_seal b");
    (void)redis("SET R:q:f:5 x");
    claim_all(w, "q");
    (void)do_sync(w, "0", "none", text("1 q 1 1 %s", a));
    assert_string_equal(at(9, -1), "[]");
    assert_string_equal(counts(), "1 0 1 0 0 ended");
    (void)redis("DEL R:q:f:5");
    assert_string_equal(fcall("later_batch_seal b"), "[b repeated]");
    assert_string_equal(told("f"), "-f B=b,1,1,0,0\\n");
    /* So is that of a death, with the seal or the next death. */
    open_it("e on_dead d");
    a = add("q batch e x");
    (void)redis("SET R:q:d:5 x");
    claim_all(w, "q");
    (void)do_sync(w, text("1 %s 1 dead q 10 0 no x", a), "none", "0");
    assert_string_equal(fcall("later_batch_seal e"), "[e sealed]");
    (void)redis("DEL R:q:d:5");
    assert_string_equal(fcall("later_batch_seal e"), "[e repeated]");
    assert_string_equal(told("d"), "-d B=e,1,0,1,0\\n");
    (void)redis("SET R:members:c x");
    open_it("c");
    assert_starts(fcall("later_add q batch c x"), "!ELATER_TYPE");
    assert_starts(fcall("later_batch_show c"), "!ELATER_TYPE");
    assert_starts(fcall("later_batch_cancel c"), "!ELATER_TYPE");
}

static void test_listing(void **state)
{
    const char *a;

    (void)state;
    open_it("b");
    a = add("q batch b x");
    assert_string_equal(fcall("later_batch_jobs b"), text("[0 [%s live]]", a));
    assert_string_equal(fcall("later_batch_jobs b done 0"), "[0]");
    assert_starts(fcall("later_batch_jobs b nosuch"), "!ELATER_ARGS");
    assert_starts(fcall("later_batch_jobs b live 99999999999999999999"), "!ELATER_ARGS");
    assert_starts(fcall("later_v1_batches 99999999999999999999"), "!ELATER_ARGS");
    (void)fcall("later_v1_batches 0");
    assert_string_equal(at(1, 0, -1), "b");
    assert_string_equal(at(1, 1, -1), "open");
    assert_string_equal(at(1, 3, -1), "1");
}

static void tidy(const char *w)
{
    assert_starts(fcall("later_v1_tidy %s 0", w), "[");
}

/* keep, and a week for one that nobody seals or touches. */
static void test_forgetting(void **state)
{
    const char *w = worker(), *a;

    (void)state;
    open_it("b keep 0s");
    a = add("q batch b x");
    (void)fcall("later_cancel %s", a);
    (void)fcall("later_batch_seal b");
    tidy(w);
    assert_string_equal(redis("EXISTS R:batches R:batch:ended R:batch:open R:members:b"), "0");
    open_it("b");
    (void)redis("ZADD R:batch:open 1000 b");
    tidy(w);
    assert_string_equal(counts(), "0 0 0 0 0 open"); /* it was opened now, whatever the set says */
    (void)fcall("later_v1_health 1000");
    assert_string_equal(at(7, -1), "[]");
    (void)redis("HSET R:batches b %s", "created_ms=1000");
    (void)redis("DEL R:batches");
    (void)redis("ZADD R:batch:open 1000 b");
    tidy(w);
    assert_string_equal(redis("EXISTS R:batch:open"), "0");
}

static void audit_finds(const char *function, const char *phase, const char *kind)
{
    (void)fcall("%s %s '' 100%s", function, phase,
                strcmp(phase, "members") == 0 ? " members:b" : "");
    if (kind == NULL) {
        assert_int_equal(len_at(-1), 2);
        return;
    }
    assert_int_equal(len_at(-1), 3);
    assert_string_equal(at(2, 0, -1), kind);
}

static void test_batches_are_mended(void **state)
{
    const char *w = worker(), *a;

    (void)state;
    open_it("b finally f");
    a = add("q batch b x");
    audit_finds("later_v1_audit", "batches", NULL);
    audit_finds("later_v1_audit", "members", NULL);
    (void)fcall("later_batch_seal b");
    /* A member that is gone without a word. */
    (void)redis("ZREM R:q:q:5 %s", a);
    (void)redis("HDEL R:jobs %s", a);
    audit_finds("later_v1_audit", "members", "lost-member");
    audit_finds("later_v1_repair", "members", "lost-member");
    assert_string_equal(counts(), "1 0 0 0 1 ended");
    assert_string_equal(told("f"), "-f B=b,1,0,0,1\\n");
    audit_finds("later_v1_audit", "batches", NULL);
    (void)redis("ZREM R:batch:ended b");
    audit_finds("later_v1_repair", "batches", "lost-batch");
    audit_finds("later_v1_audit", "batches", NULL);
    (void)redis("HSET R:batches b garbage");
    audit_finds("later_v1_repair", "batches", "broken-batch");
    assert_string_equal(redis("EXISTS R:batches R:batch:ended R:members:b"), "0");
    (void)redis("ZADD R:members:b 0 x");
    audit_finds("later_v1_repair", "members", "leftover");
    assert_string_equal(redis("EXISTS R:members:b"), "0");
    /* Callbacks that a foreign key kept away. */
    open_it("b finally f on_dead d");
    a = add("q batch b x");
    (void)fcall("later_batch_seal b");
    (void)redis("SET R:q:d:5 x");
    claim_all(w, "q");
    (void)do_sync(w, text("1 %s 1 dead q 10 0 no x", a), "none", "0");
    audit_finds("later_v1_audit", "batches", "lost-callback");
    (void)redis("DEL R:q:d:5");
    audit_finds("later_v1_repair", "batches", "lost-callback");
    audit_finds("later_v1_audit", "batches", NULL);
    assert_string_equal(told("d"), "-d B=b,1,0,1,0\\n");
}

/* A definition with this text in place of another: batch b, and nothing else, waits for its repair.
 */
static void damage(const char *was, const char *is)
{
    const char *w, *a, *whole, *argv[] = {"HSET", ROOT ":batches", "b", NULL}, *at_word;

    (void)fx_clear(NULL);
    w = worker();
    open_it("b then t finally f keep 1h hello");
    a = add("q batch b x");
    (void)fcall("later_batch_seal b");
    claim_all(w, "q");
    (void)add("other y");
    (void)redis("HGET R:batches b");
    whole = text("%s", reply_str(fx.last));
    at_word = strstr(whole, was);
    assert_non_null(at_word);
    argv[3] = text("%.*s%s%s", (int)(at_word - whole), whole, is, at_word + strlen(was));
    (void)send_args(4, argv, NULL);
    /* The sync that ends its last member ends it, and claims from other queues. */
    (void)do_sync(w, "0", "other", text("1 q 1 1 %s", a));
    assert_int_equal(len_at(3, -1), 1);
    assert_string_equal(redis("HEXISTS R:jobs %s", a), "0");
    assert_string_equal(redis("ZCARD R:running"), "1");
    assert_starts(redis("HKEYS R:notes"), "[bad-batch:b its definition is corrupt");
    assert_starts(fcall("later_v1_health 0"), "[");
    assert_starts(fcall("later_v1_batches 0"), "[");
    assert_refused("ELATER_BATCH", "later_batch_show b");
    assert_refused("ELATER_BATCH", "later_batch b finally f x");
    assert_refused("ELATER_BATCH", "later_add q batch b x");
    assert_starts(fcall("later_v1_tidy %s 0", w), "[");
    /* The repair keeps what can be read, and calls back. */
    audit_finds("later_v1_audit", "batches", "broken-batch");
    audit_finds("later_v1_repair", "batches", "broken-batch");
    audit_finds("later_v1_audit", "batches", NULL);
    assert_string_equal(counts(), "1 0 1 0 0 ended");
    assert_string_equal(told("t"), "-t B=b,1,1,0,0\\nhello");
}

static void test_damage_stays_in_its_batch(void **state)
{
    (void)state;
    damage("keep_ms=3600000", "keep=3600000");
    damage("keep_ms=3600000", "keep_ms=nan");
    damage("keep_ms=3600000", "keep_ms=");
    damage("keep_ms=", "keep_ms=-");
    damage("created_ms=", "created_ms=x");
    damage("created_ms=", "created_ms=99999");
    damage("sealed_ms=", "sealed_ms=1e400");
    damage("finally=f", "finally=\xff");
    damage(" sealed_ms", " dead=nobody sealed_ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_opening),
        FX_TEST(test_joining),
        FX_TEST(test_all_are_done),
        FX_TEST(test_an_empty_one),
        FX_TEST(test_a_death_and_a_retry),
        FX_TEST(test_other_ends),
        FX_TEST(test_chains_and_children),
        FX_TEST(test_cancelling),
        FX_TEST(test_foreign_keys),
        FX_TEST(test_listing),
        FX_TEST(test_forgetting),
        FX_TEST(test_batches_are_mended),
        FX_TEST(test_damage_stays_in_its_batch),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
