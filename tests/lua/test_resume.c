/*
 * What a job keeps for its next attempt: its checkpoint, and the outputs of its steps; that only
 * the attempt that runs writes them, and that nothing of them is left behind.
 */
#include "sync.h"

#include <unistd.h>

#define OUTPUT_MAX 16384

/* Claim the one job of queue q that is due. -> its id */
static const char *take(const char *w)
{
    (void)do_sync(w, "0", "q", "0");
    assert_int_equal(len_at(3, -1), 1);
    return at(3, 0, 6, -1);
}

/* One result of a job in its start, in a sync that claims nothing. */
static const char *tell(const char *w, const char *id, int start, const char *verb,
                        const char *amount, const char *output)
{
    (void)do_sync(w, text("1 %s %d %s q %s 0 why %s", id, start, verb, amount, output), "none",
                  "0");
    return at(2, 0, -1);
}

static const char *keep_step(const char *w, const char *id, int start, const char *name,
                             const char *output)
{
    return fcall("later_v1_keep %s %s %d %s %s", w, id, start, name, output);
}

static const char *ask_step(const char *w, const char *id, int start, const char *name)
{
    return fcall("later_v1_keep %s %s %d %s", w, id, start, name);
}

/* Nothing that a job has kept is there. */
static void assert_clean(void)
{
    assert_string_equal(redis("EXISTS R:resume"), "0");
    assert_string_equal(redis("KEYS R:steps:*"), "[]");
}

static void test_the_next_attempt_gets_the_checkpoint(void **state)
{
    const char *w = worker(), *id = add("q x");

    (void)state;
    assert_string_equal(take(w), id);
    assert_string_equal(at(10, -1), "[]");
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "one"), "ok");
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "line=2;of=60"), "ok");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("checkpoint"), "line=2;of=60");
    assert_string_equal(tell(w, id, 1, "retry", "1", "''"), "ok");
    usleep(2000);
    assert_string_equal(take(w), id);
    assert_string_equal(at(10, -1), text("[%s line=2;of=60]", id));
    /* An older attempt writes nothing. */
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "old"), "settled");
    assert_string_equal(tell(worker(), id, 2, "checkpoint", "0", "other"), "settled");
    assert_string_equal(redis("HGET R:resume %s", id), "0 0 line=2;of=60");
    /* An empty one takes it back; it goes with the job. */
    assert_string_equal(tell(w, id, 2, "checkpoint", "0", "''"), "ok");
    assert_clean();
    assert_string_equal(tell(w, id, 2, "checkpoint", "0", "again"), "ok");
    (void)do_sync(w, "0", "none", text("1 q 2 1 %s", id));
    assert_string_equal(at(9, -1), "[]");
    assert_clean();
}

static void test_a_checkpoint_and_the_end_in_one_call(void **state)
{
    const char *w = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    (void)do_sync(w, text("2 %s 1 checkpoint q 0 0 '' p %s 1 retry q 1 0 why ''", id, id), "none",
                  "0");
    assert_string_equal(at(2, -1), "[ok ok]");
    usleep(2000);
    (void)take(w);
    assert_string_equal(at(10, -1), text("[%s p]", id));
}

/* The largest one is kept, one byte more is refused, and what was there stays. */
static void test_the_size_of_a_checkpoint(void **state)
{
    const char *w = worker(), *id = add("q x"), *most = text("%04096d", 7);

    (void)state;
    (void)take(w);
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", most), "ok");
    assert_starts(tell(w, id, 1, "checkpoint", "0", text("%s8", most)), "error ELATER_SIZE");
    assert_string_equal(redis("HSTRLEN R:resume %s", id), text("%d", 4 + 4096));
}

/* Jobs that have the largest ones come by several calls. */
static void test_checkpoints_count_for_the_bytes_of_a_call(void **state)
{
    const char *w = worker(), *most = text("0 0 %04096d", 7);
    int calls = 0, n = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        const char *argv[] = {"HSET", ROOT ":resume", add("q x"), most};

        assert_string_equal(send_args(4, argv, NULL), "1");
    }
    for (; n < 400 && calls < 10; calls++) {
        int claimed = 0;

        (void)fcall("later_v1_sync %s 1 0 400 0 1 q 400 1048576 0", w);
        for (int i = 0; i < len_at(3, -1); i++)
            claimed += (len_at(3, i, -1) - 6) / 3;
        assert_int_equal(len_at(10, -1), 2 * claimed);
        assert_in_range(claimed, 1, 300);
        n += claimed;
    }
    assert_int_equal(n, 400);
}

static void test_a_step_is_kept_once(void **state)
{
    const char *w = worker(), *other = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    assert_string_equal(ask_step(w, id, 1, "charge"), "[run]");
    assert_clean();
    assert_string_equal(keep_step(w, id, 1, "charge", "tx-1"), "[kept tx-1]");
    /* The answer was lost: again. Another process was quicker: its output counts. */
    assert_string_equal(keep_step(w, id, 1, "charge", "tx-1"), "[kept tx-1]");
    assert_string_equal(keep_step(w, id, 1, "charge", "tx-2"), "[kept tx-1]");
    assert_string_equal(ask_step(w, id, 1, "charge"), "[kept tx-1]");
    assert_string_equal(keep_step(w, id, 1, "empty", "''"), "[kept ]");
    assert_string_equal(redis("HGET R:resume %s", id), text("2 %zu", strlen("chargetx-1empty")));
    (void)fcall("later_show %s", id);
    assert_string_equal(named("steps"), "charge 4\\ntx-1empty 0\\n");
    /* A stale attempt, and another worker, keep and learn nothing. */
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "cp"), "ok");
    assert_string_equal(tell(w, id, 1, "retry", "1", "''"), "ok");
    assert_string_equal(keep_step(w, id, 1, "ship", "x"), "[settled]");
    usleep(2000);
    assert_string_equal(take(other), id);
    assert_string_equal(at(10, -1), text("[%s cp]", id));
    assert_string_equal(keep_step(w, id, 1, "ship", "x"), "[settled]");
    assert_string_equal(ask_step(w, id, 2, "charge"), "[settled]");
    assert_string_equal(keep_step(other, id, 1, "ship", "x"), "[settled]");
    assert_string_equal(ask_step(other, id, 2, "charge"), "[kept tx-1]");
    assert_string_equal(ask_step(other, id, 2, "ship"), "[run]");
    assert_string_equal(tell(other, id, 2, "done", "0", "''"), "ok");
    assert_clean();
    assert_string_equal(ask_step(other, id, 2, "charge"), "[settled]");
}

/* Any bytes; the largest output; one more. */
static void test_the_bytes_of_a_step(void **state)
{
    const char *w = worker(), *id = add("q x");
    char bytes[OUTPUT_MAX + 1];
    const char *argv[] = {"FCALL", "later_v1_keep", "1", ROOT, w, id, "1", "all", bytes};
    size_t lens[9];

    (void)state;
    (void)take(w);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % 256);
    for (size_t i = 0; i < 8; i++)
        lens[i] = strlen(argv[i]);
    lens[8] = OUTPUT_MAX;
    (void)send_args(9, argv, lens);
    assert_int_equal(reply_len(reply_at(fx.last, 1)), OUTPUT_MAX);
    assert_memory_equal(reply_str(reply_at(fx.last, 1)), bytes, OUTPUT_MAX);
    argv[7] = "more";
    lens[7] = 4;
    lens[8] = OUTPUT_MAX + 1;
    assert_starts(send_args(9, argv, lens),
                  "!ELATER_SIZE the output of step more has 16385 bytes, a step may keep 16384");
    assert_string_equal(redis("HLEN R:steps:%s", id), "1");
}

static void test_how_much_a_job_keeps(void **state)
{
    const char *w = worker(), *id = add("q x"), *large = text("%016380d", 1);

    (void)state;
    (void)take(w);
    for (int i = 0; i < 16; i++)
        assert_starts(keep_step(w, id, 1, text("s%03d", i), large), "[kept");
    /* 16 * (4 + 16380) = 262144 */
    assert_starts(keep_step(w, id, 1, "x", "''"), "!ELATER_FULL the steps of job");
    assert_starts(ask_step(w, id, 1, "x"), "!ELATER_FULL");
    assert_starts(ask_step(w, id, 1, "s003"), "[kept");
    assert_string_equal(redis("HGET R:resume %s", id), "16 262144");
    assert_string_equal(tell(w, id, 1, "done", "0", "''"), "ok");
    assert_clean();

    id = add("q x");
    (void)take(w);
    for (int i = 0; i < 100; i++)
        assert_string_equal(keep_step(w, id, 1, text("s%d", i), "o"), "[kept o]");
    assert_starts(keep_step(w, id, 1, "s100", "o"),
                  text("!ELATER_FULL job %s has kept 100 steps, as many as it may", id));
    assert_starts(ask_step(w, id, 1, "s100"), "!ELATER_FULL");
    assert_string_equal(ask_step(w, id, 1, "s99"), "[kept o]");
    assert_string_equal(redis("HLEN R:steps:%s", id), "100");
}

static void test_what_is_refused(void **state)
{
    const char *w = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    assert_starts(ask_step(w, id, 1, ".x"), "!ELATER_ARGS '.x' is no name of a step");
    assert_starts(ask_step(w, id, 1, text("%065d", 1)), "!ELATER_ARGS");
    assert_starts(ask_step(w, id, 1, "''"), "!ELATER_ARGS");
    assert_starts(fcall("later_v1_keep %s %s 1", w, id), "!ELATER_ARGS give EPOCH ID START NAME");
    assert_starts(fcall("later_v1_keep %s %s x n", w, id), "!ELATER_ARGS");
    assert_starts(fcall("later_v1_keep %s %s 1 n o p", w, id), "!ELATER_ARGS");
    assert_starts(fcall("later_v1_keep %s j 1 n", w), "!ELATER_NOJOB");
    assert_string_equal(ask_step(w, "j00000000001", 1, "n"), "[settled]");
    assert_clean();
    /* A foreign type is told, and keeps no other job from its end. */
    (void)redis("SET R:steps:%s x", id);
    assert_starts(ask_step(w, id, 1, "n"), "!ELATER_TYPE");
    (void)redis("DEL R:steps:%s", id);
    (void)redis("SET R:resume x");
    assert_starts(keep_step(w, id, 1, "n", "o"), "!ELATER_TYPE");
    assert_starts(tell(w, id, 1, "checkpoint", "0", "c"), "error ELATER_TYPE");
    assert_string_equal(redis("GET R:resume"), "x");
}

/* A dead job keeps both; a retry goes on from them, one from the start does not. */
static void test_death_and_retry(void **state)
{
    const char *w = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    assert_string_equal(keep_step(w, id, 1, "a", "o"), "[kept o]");
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "c"), "ok");
    assert_string_equal(tell(w, id, 1, "dead", "100", "''"), "ok");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("checkpoint"), "c");
    assert_string_equal(named("steps"), "a 1\\no");
    assert_starts(fcall("later_retry %s", id), text("[%s retried", id));
    assert_string_equal(take(w), id);
    assert_string_equal(at(10, -1), text("[%s c]", id));
    assert_string_equal(ask_step(w, id, 2, "a"), "[kept o]");
    assert_string_equal(tell(w, id, 2, "dead", "100", "''"), "ok");
    assert_starts(fcall("later_retry %s from_start x", id), "!ELATER_");
    assert_starts(fcall("later_retry %s +0ms from_start", id), text("[%s retried", id));
    assert_clean();
    assert_string_equal(take(w), id);
    assert_string_equal(at(10, -1), "[]");
    assert_string_equal(tell(w, id, 3, "dead", "100", "''"), "ok");
    assert_starts(fcall("later_retry %s from_start", id), text("[%s retried", id));
}

/* Another payload under the id of a job that has failed is another piece of work. */
static void test_a_replaced_job_begins_anew(void **state)
{
    static const char *const modes[] = {"replace", "move"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *w = worker(), *id = add("q unique u x");

        assert_string_equal(take(w), id);
        assert_string_equal(keep_step(w, id, 1, "a", "o"), "[kept o]");
        assert_string_equal(tell(w, id, 1, "checkpoint", "0", "c"), "ok");
        assert_string_equal(tell(w, id, 1, "retry", "60000", "''"), "ok");
        assert_string_equal(add("q unique u y"), id); /* dropped */
        assert_string_equal(redis("HGET R:resume %s", id), "1 2 c");
        assert_string_equal(add("q unique u unique_mode %s y", modes[i]), id);
        assert_clean();
        (void)redis("FLUSHDB");
    }
}

/* Jobs that a call has read and not started cost none of its bytes. */
static void test_jobs_that_stay_give_their_bytes_back(void **state)
{
    const char *w = worker(), *most = text("0 0 %04096d", 7);
    int claimed = 0;

    (void)state;
    for (int q = 0; q < 6; q++) {
        (void)add("q%d lock one x", q);
        for (int i = 0; i < 64; i++) {
            const char *argv[] = {"HSET", ROOT ":resume", add("q%d x", q), most};

            assert_string_equal(send_args(4, argv, NULL), "1");
        }
    }
    (void)fcall("later_lock one me ttl 1h");
    (void)fcall("later_v1_sync %s 1 0 400 0 6 q0 1 99 q1 1 99 q2 1 99 q3 1 99 q4 1 99 q5 1 99 0",
                w);
    for (int i = 0; i < len_at(3, -1); i++)
        claimed += (len_at(3, i, -1) - 6) / 3;
    assert_int_equal(claimed, 6);
}

/* Every way on which a job goes takes along what it has kept. */
static void test_nothing_is_left(void **state)
{
    static const char *const ways[] = {"done", "kept",        "cancel", "purge",
                                       "trim", "expire-kept", "chain",  "batch"};

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *way = ways[i], *w = worker(), *id;

        (void)fcall("later_batch b"); /* for one of the ways */
        id = add(strcmp(way, "chain") == 0   ? "q then r x"
                 : strcmp(way, "batch") == 0 ? "q batch b x"
                                             : "q x");
        assert_string_equal(take(w), id);
        assert_string_equal(keep_step(w, id, 1, "a", "o"), "[kept o]");
        assert_string_equal(tell(w, id, 1, "checkpoint", "0", "c"), "ok");
        if (strcmp(way, "done") == 0 || strcmp(way, "chain") == 0 || strcmp(way, "batch") == 0) {
            (void)do_sync(w, "0", "none", text("1 q 1 1 %s", id));
            assert_string_equal(at(9, -1), "[]");
        } else if (strncmp(way, "kept", 4) == 0) {
            assert_string_equal(tell(w, id, 1, "done", "60000", "''"), "ok");
            assert_clean();
            (void)fcall("later_v1_purge q done 100");
        } else if (strcmp(way, "expire-kept") == 0) {
            assert_string_equal(tell(w, id, 1, "done", "1", "''"), "ok");
            usleep(2000);
            id = add("q x");
            (void)take(w);
            assert_string_equal(tell(w, id, 1, "done", "1", "''"), "ok");
        } else if (strcmp(way, "cancel") == 0) {
            assert_string_equal(tell(w, id, 1, "retry", "60000", "''"), "ok");
            assert_string_equal(fcall("later_cancel %s", id), "cancelled");
        } else {
            assert_string_equal(tell(w, id, 1, "dead", "1", "''"), "ok");
            assert_string_equal(redis("HLEN R:resume"), "1");
            if (strcmp(way, "purge") == 0)
                assert_starts(fcall("later_v1_purge q dead 100"), "[");
            for (int k = 0; strcmp(way, "trim") == 0 && k < 2; k++) {
                id = add("q x");
                (void)take(w);
                assert_string_equal(tell(w, id, 1, "dead", "1", "''"), "ok");
            }
        }
        assert_clean();
        (void)redis("FLUSHDB");
    }
}

/* An export has both, and an import takes them. */
static void test_export_and_import(void **state)
{
    const char *w = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    assert_string_equal(keep_step(w, id, 1, "a", "o1"), "[kept o1]");
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "c"), "ok");
    assert_string_equal(tell(w, id, 1, "retry", "1", "''"), "ok");
    usleep(2000);
    (void)fcall("later_v1_export q due 1 '' '' 10");
    assert_int_equal(len_at(4, -1), 9);
    assert_string_equal(at(4, 7, -1), "c");
    assert_string_equal(at(4, 8, -1), "a 2\\no1");
    (void)fcall("later_cancel %s", id);
    assert_clean();
    {
        const char *argv[] = {"FCALL", "later_v1_import", "1",          ROOT, "q", "2",
                              "steps", "a 2\no1b 0\n",    "checkpoint", "c",  "x"};

        assert_string_equal(send_args(11, argv, NULL), "[1 added]");
    }
    id = take(w);
    assert_string_equal(at(10, -1), text("[%s c]", id));
    assert_string_equal(ask_step(w, id, 1, "a"), "[kept o1]");
    assert_string_equal(ask_step(w, id, 1, "b"), "[kept ]");
    assert_string_equal(redis("HGET R:resume %s", id), "2 4 c");
    assert_starts(fcall("later_v1_import q 1 steps a x"),
                  "!ELATER_OPTION steps: they do not add up");
    assert_starts(fcall("later_v1_import q 1 checkpoint %s x", text("%04097d", 1)),
                  "!ELATER_OPTION checkpoint: it has 4097 bytes");
    assert_starts(fcall("later_v1_import q 1 checkpoint c x 0 y"),
                  "!ELATER_OPTION checkpoint goes alone [record 1]");
}

/* A worker that dies leaves both to the next one, and a reap takes nothing away. */
static void test_the_death_of_a_worker(void **state)
{
    const char *w = worker(), *other = worker(), *id = add("q x");

    (void)state;
    (void)take(w);
    assert_string_equal(keep_step(w, id, 1, "a", "o"), "[kept o]");
    assert_string_equal(tell(w, id, 1, "checkpoint", "0", "c"), "ok");
    (void)fcall("later_v1_reap %s %s 1 9 100", other, w);
    assert_string_equal(take(other), id);
    assert_string_equal(at(10, -1), text("[%s c]", id));
    assert_string_equal(keep_step(w, id, 1, "b", "o"), "[settled]");
    assert_string_equal(ask_step(other, id, 2, "a"), "[kept o]");
}

/* fsck sees what no job has, and removes it. */
static void test_leftovers(void **state)
{
    const char *w = worker();

    (void)state;
    (void)w;
    (void)redis("HSET R:resume j00000000001 1");
    (void)redis("HSET R:steps:j00000000002 a b");
    assert_starts(fcall("later_v1_audit resume '' 100"), "[ 1 [leftover j00000000001 ");
    assert_non_null(strstr(fcall("later_v1_audit keys '' 100 steps:j00000000002 hash"),
                           "leftover j00000000002"));
    (void)fcall("later_v1_repair resume '' 100");
    (void)fcall("later_v1_repair keys '' 100 steps:j00000000002 hash");
    assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_the_next_attempt_gets_the_checkpoint),
                                       FX_TEST(test_a_checkpoint_and_the_end_in_one_call),
                                       FX_TEST(test_the_size_of_a_checkpoint),
                                       FX_TEST(test_checkpoints_count_for_the_bytes_of_a_call),
                                       FX_TEST(test_a_step_is_kept_once),
                                       FX_TEST(test_the_bytes_of_a_step),
                                       FX_TEST(test_how_much_a_job_keeps),
                                       FX_TEST(test_what_is_refused),
                                       FX_TEST(test_death_and_retry),
                                       FX_TEST(test_a_replaced_job_begins_anew),
                                       FX_TEST(test_jobs_that_stay_give_their_bytes_back),
                                       FX_TEST(test_nothing_is_left),
                                       FX_TEST(test_export_and_import),
                                       FX_TEST(test_the_death_of_a_worker),
                                       FX_TEST(test_leftovers)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
