/*
 * A namespace that is cut into three shards, on a Redis Cluster of three primaries: where jobs,
 * locks, batches and schedules are, and how the verbs of `later` find them.
 */
#include "cluster_fixture.h"

#include <signal.h>
#include <sys/stat.h>

#include "base/crc16.h"

#define SHARDS CLUSTER_PRIMARIES

/* Run a line; $L means all shards. The caller's buf gets what it prints. */
static int shards_out(const char *line, struct buf *out)
{
    CLEANUP_FREE char *whole = mem_printf(
        "L=\"$LATER --redis $BY --namespace shop --shards %d\"; { %s; } 2>&1", SHARDS, line);

    return test_sh_out(whole, out);
}

static void shards_say(const char *line, int status, const char *says)
{
    CLEANUP_FREE char *whole =
        mem_printf("L=\"$LATER --redis $BY --namespace shop --shards %d\"; %s", SHARDS, line);

    test_says(whole, status, says);
}

static void shards_must(const char *line, const char *says)
{
    shards_say(line, 0, says);
}

static long number_of(const char *line)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(shards_out(line, &out), 0);
    return atol(buf_str(&out));
}

/* The shard of the job that the line adds: it prints "jABC.2". */
static int shard_added(const char *line)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    const char *dot;

    assert_int_equal(shards_out(line, &out), 0);
    dot = strchr(buf_str(&out), '.');
    assert_non_null(dot);
    return atoi(dot + 1);
}

static int shard_of_text(const char *text)
{
    return (int)(crc16(text, strlen(text)) % SHARDS);
}

static void start_shards(void)
{
    test_handler(dir, "tick", "true\n");
    for (int i = 0; i < SHARDS; i++) {
        CLEANUP_FREE char *name = mem_printf("d%d", i);
        CLEANUP_FREE char *yaml =
            mem_printf("namespace: shop\nshards: %d\nshard: %d\nschedules: { tick: { every: 1s, "
                       "queue: tick }, tock: { every: 1s, queue: tick } }\n",
                       SHARDS, i);

        test_laterd_conf(&d[i], dir, name, c.by, yaml);
        test_laterd_start(&d[i]);
    }
}

/* ---- what a daemon serves */

static void test_a_daemon_serves_one_shard(void **state)
{
    CLEANUP_FREE char *shared = mem_printf("%s/shop.yaml", dir);
    FILE *f = fopen(shared, "we");

    (void)state;
    assert_non_null(f);
    (void)fprintf(f, "namespace: shop\nshards: 8\nstate_dir: none\nhandlers_dir: %s/handlers\n",
                  dir);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(shared, 0644), 0);
    /* laterd@shop.3 takes the file of all of them. */
    shards_must("LATERD_CONFIG=$DIR/shop.3.yaml $LATERD --print-config | grep '^shard:'",
                "shard: 3");
    shards_must("LATERD_CONFIG=$DIR/shop.3.yaml $LATERD --print-config | grep '^namespace:'",
                "namespace: shop\n");
    shards_must("$LATERD -c $DIR/shop.yaml --check-config", "ok");
    shards_say("$LATERD -c $DIR/shop.yaml", 78,
               "a daemon serves one: start laterd@shop.0 to "
               "laterd@shop.7");
    shards_say("LATERD_CONFIG=$DIR/shop.8.yaml $LATERD --check-config", 78,
               "shard: 8 is not one of 0 to 7 (shards: 8)");
    shards_say("LATERD_CONFIG=$DIR/shop.x.yaml $LATERD --check-config", 78, "shop.x.yaml");
    shards_say("LATERD_SHARD=0 LATERD_SHARDS=0 $LATERD -c $DIR/shop.yaml --check-config", 78,
               "shard: 0 goes with shards:");
    shards_say("LATERD_REDIS=embedded LATERD_STATE_DIR=$DIR $LATERD -c $DIR/shop.yaml "
               "--check-config",
               78, "a server of each daemon's own");
    shards_say("$LATER --redis $BY --shards 65 stats", 64, "--shards 65: write a number from 0");
    shards_must("LATER_NAMESPACE=shop LATER_SHARDS=8 $LATER --redis $BY add n --in 1h --key acme x",
                ".");
    /* The file says it of its namespace, and of no other. */
    shards_must("$LATER -c $DIR/shop.yaml --namespace alone stats 2>&1 | grep -c shop || true",
                "0");
}

/* ---- where things are */

static void test_a_job_is_in_the_shard_of_its_key(void **state)
{
    int by_any[SHARDS] = {0};

    (void)state;
    for (int i = 0; i < 12; i++) {
        CLEANUP_FREE char *key = mem_printf("k%d", i);
        CLEANUP_FREE char *by_key = mem_printf("$L add idle --in 1h --key %s x", key);
        CLEANUP_FREE char *by_unique = mem_printf("$L add idle --in 1h --unique %s x", key);
        CLEANUP_FREE char *by_both =
            mem_printf("$L add idle --in 1h --unique u%d --key %s x", i, key);

        assert_int_equal(shard_added(by_key), shard_of_text(key));
        assert_int_equal(shard_added(by_unique), shard_of_text(key));
        assert_int_equal(shard_added(by_both), shard_of_text(key));
        by_any[shard_added("$L add idle --in 1h x")]++;
    }
    /* Without a key by chance: that 12 are in one shard is one in 177,147. */
    assert_true(by_any[0] < 12 && by_any[1] < 12 && by_any[2] < 12);
    shards_must("$L purge idle --state due --yes", "removed");
}

static void test_lines_go_to_all_shards(void **state)
{
    (void)state;
    shards_must("seq 3000 | $L add many --in 1h --from -", "3000 jobs added");
    for (int i = 0; i < SHARDS; i++) {
        CLEANUP_FREE char *line =
            mem_printf("$LATER --redis $BY --namespace shop.%d export many | wc -l", i);

        assert_true(number_of(line) > 0);
    }
    assert_int_equal(number_of("$L export many | wc -l"), 3000);
    /* Those of a key are together, in whatever order lines come. */
    shards_must("for i in $(seq 300); do echo "
                "'{\"payload\":\"'$i'\",\"key\":\"k'$((i % 7))'\",\"due_ms\":4102444800000}'; done "
                "| $L import keyed",
                "300 jobs added");
    for (int k = 0; k < 7; k++) {
        CLEANUP_FREE char *line =
            mem_printf("$LATER --redis $BY --namespace shop.%d export keyed | grep -c "
                       "'\"key\":\"k%d\"'",
                       shard_of_text((char[]){'k', (char)('0' + k), '\0'}), k);

        assert_int_equal(number_of(line), k == 0 ? 42 : 43);
    }
    /* And into another number of shards. */
    shards_must("$L export keyed | $LATER --redis $BY --namespace two --shards 2 import keyed "
                "--once",
                "300 jobs added");
    assert_int_equal(
        number_of("$LATER --redis $BY --namespace two --shards 2 export keyed | wc -l"), 300);
    shards_must("$L purge many --state due --yes && $L purge keyed --state due --yes", "removed");
}

/* A job that stands where it was exported is not added beside itself, with and without a key. */
static void test_an_import_finds_its_own_jobs(void **state)
{
    (void)state;
    shards_must("for i in 1 2 3 4 5 6 7 8; do $L add same --in 1h --key k$i x && "
                "$L add same --in 1h y || exit 1; done; "
                "$L export same >$DIR/lines && $L import same $DIR/lines --once",
                "0 jobs added, 16 repeated");
    assert_int_equal(number_of("$L export same | wc -l"), 16);
    shards_must("$L purge same --state due --yes", "removed");
}

/* Lines that may go to any shard share calls, as they do without shards. */
static void test_lines_without_a_key_share_calls(void **state)
{
    static const char *const count =
        "for i in 0 1 2; do $LATER --redis $BY --namespace shop.$i cli info commandstats | "
        "sed -n 's/^cmdstat_fcall:calls=\\([0-9]*\\).*/\\1/p'; done | "
        "awk '{ n += $1 } END { print n + 0 }'";
    long before;

    (void)state;
    before = number_of(count);
    shards_must("for i in $(seq 3000); do echo '{\"payload\":\"x\",\"due_ms\":4102444800000}'; "
                "done | $L import any",
                "3000 jobs added");
    assert_true(number_of(count) - before < 1000);
    shards_must("$L purge any --state due --yes", "removed");
}

/* ---- finding a job */

static void test_an_id_is_looked_for_in_all(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_FREE char *id = NULL, *bare = NULL, *copy = NULL, *drop = NULL;
    int shard = shard_of_text("acme"), other = (shard + 1) % SHARDS;

    (void)state;
    assert_int_equal(shards_out("$L add idle --in 1h --key acme payload 2>/dev/null", &out), 0);
    id = mem_printf("%.14s", buf_str(&out));
    bare = mem_printf("%.12s", buf_str(&out));
    assert_int_equal(setenv("ID", id, 1), 0);
    assert_int_equal(setenv("BARE", bare, 1), 0);
    shards_must("$L show $ID", "payload");
    shards_must("$L show $BARE", "payload");
    shards_must("$L explain $BARE", "not due");
    shards_must("$L reschedule $BARE --in 2h", "due");
    shards_say("$L show j00000000000", 66, "no job");
    /* The key of a job that has ended is in the shard of the key. */
    shards_must("$L add idle --in 1h --unique u1 --unique-for 1h x && $L cancel idle@u1",
                "cancelled");
    shards_must("$L cancel idle@u1", "freed");
    shards_say("$L cancel idle@u1", 66, "no job has the unique key");
    shards_say("$L show $BARE.9", 66, "");
    /* Another shard has a job of this id: neither is taken for the other. */
    copy = mem_printf("C=\"$LATER --redis $BY --namespace shop.%d cli\"; "
                      "R=$($LATER --redis $BY --namespace shop.%d cli hget "
                      "'later:{shop.%d}:jobs' $BARE); "
                      "$C hset 'later:{shop.%d}:jobs' $BARE \"$R\" && "
                      "$C zadd 'later:{shop.%d}:q:idle:5' 4102444800000 $BARE",
                      other, shard, shard, other, other);
    shards_must(copy, "1");
    shards_say("$L show $BARE", 65, "name one, as ID.");
    shards_say("$L cancel $BARE", 65, "name one, as ID.");
    shards_must("$L show $ID", "payload");
    shards_say("$L wait $ID --timeout 1s", 75, "has not ended yet");
    shards_must("$L cancel $ID", "cancelled");
    /* It is another one that ends, and the wait for this one is not for that. */
    shards_say("$L wait $ID --timeout 1s", 66, "outcome was not kept");
    drop = mem_printf("C=\"$LATER --redis $BY --namespace shop.%d cli\"; "
                      "$C hdel 'later:{shop.%d}:jobs' $BARE && "
                      "$C zrem 'later:{shop.%d}:q:idle:5' $BARE; $L fsck --repair",
                      other, other, other);
    shards_must(drop, "1");
}

/* ---- with daemons */

static void test_what_has_a_name_is_in_its_shard(void **state)
{
    (void)state;
    start_shards();
    /* A member of a batch has no key of another shard: nobody would find it there. */
    shards_must("seq 50 >$DIR/lines && $L batch run b1 work --from $DIR/lines", "50 jobs added");
    shards_must("$L batch wait b1", "");
    shards_must("$L batch show b1", "50");
    shards_must("$L batch ls", "b1");
    shards_must("$L batch add b2", "");
    {
        CLEANUP_FREE char *line = NULL;
        int key = 0;

        while (shard_of_text((char[]){(char)('a' + key), '\0'}) == shard_of_text("b2"))
            key++;
        line = mem_printf("$L add idle --batch b2 --key %c x", 'a' + key);
        shards_say(line, 64, "members of a batch have no key");
    }
    shards_must("$L batch seal b2", "");
    shards_must("$L lock deploy -- sh -c \"$L lock -n deploy -- echo inner\"", "inner");
    shards_say("$L lock deploy -- sh -c \"unset LATER_LOCK_TOKEN; $L lock -n deploy -- true\"", 1,
               "");
    shards_must("$L limits set smtp rate 1/1h && $L throttle smtp", "0 1 0");
    shards_say("$L throttle smtp", 1, "1 1 0");
    shards_must("$L seen uploads a", "new");
    shards_say("$L seen uploads a", 1, "seen");
    shards_must("$L schedule add nightly cron '0 3 * * *' && $L schedule show nightly", "0 3");
    shards_must("$L schedule ls", "nightly");
    /* The file of all daemons has two schedules; each is in one shard, not in three. */
    assert_int_equal(number_of("$L --json schedule ls | grep -c '\"schedule\":\"t[io]ck\"'"), 2);
}

/* Whoever waits hears the end at once, and does not find it by asking again half a minute later. */
static void test_a_batch_is_waited_for_in_its_shard(void **state)
{
    (void)state;
    test_handler(dir, "slow", "sleep 1\n");
    start_shards();
    for (int i = 0; i < SHARDS; i++) {
        CLEANUP_FREE char *line =
            mem_printf("echo x >$DIR/line && $L batch run w%d slow --from $DIR/line && "
                       "timeout 25 $L batch wait w%d",
                       i, i);

        assert_int_not_equal(shard_of_text((char[]){'w', (char)('0' + i), '\0'}),
                             shard_of_text((char[]){'w', (char)('1' + i), '\0'}));
        shards_must(line, "ended");
    }
}

static void test_a_worker_is_found_in_its_shard(void **state)
{
    (void)state;
    start_shards();
    for (int i = 0; i < SHARDS; i++) {
        CLEANUP_FREE char *line = mem_printf(
            "W=$($LATER --redis $BY --namespace shop.%d --json workers | sed -n "
            "'s/.*\"worker\":\"*\\([0-9]*\\).*/\\1/p'); $L quiet $W && $L quiet $W --off",
            i);

        shards_must(line, "1 worker told to start jobs again");
    }
    shards_say("$L quiet 1", 66, "there is no worker");
}

static void test_a_broadcast_is_the_same_in_all_shards(void **state)
{
    CLEANUP_FREE char *heard = mem_printf("%s/heard", dir);

    (void)state;
    test_handler(dir, "hear", "echo \"heard $(cat)\" >>%s/heard\n", dir);
    start_shards();
    shards_must("echo body | $L broadcast hear - --wait", "shop.2:");
    assert_int_equal(test_lines(heard, "heard body"), SHARDS);
    /* A shard without a worker keeps it from none of the others. */
    assert_int_equal(test_laterd_stop(&d[0]), 0);
    shards_must("$L broadcast hear more --wait", "shop.2:");
    assert_int_equal(test_lines(heard, "heard more"), SHARDS - 1);
    shards_say("$L broadcast nobody more --wait", 66, "no worker serves queue nobody");
}

static void test_a_pause_is_in_all_shards(void **state)
{
    (void)state;
    shards_must("$L add held --in 1h --key acme x", "j");
    shards_must("$L pause held | grep -c paused", "3");
    shards_must("$L add held --in 1h --key k1 x && $L add held --in 1h --key k2 x && "
                "$L add held --in 1h --key k3 x",
                "j");
    shards_must("$L --json stats | grep -o '\"paused\":{' | wc -l", "3");
    shards_must("$L resume held | grep -c resumed", "3");
    shards_must("$L purge held --state due --yes", "removed");
}

static void test_jobs_run_in_all_shards(void **state)
{
    CLEANUP_FREE char *told = mem_printf("%s/told", dir);
    CLEANUP_FREE char *alone = mem_printf("%s/alone", dir);

    (void)state;
    test_handler(dir, "tell",
                 "echo $LATER_KEY $LATER_NAMESPACE $LATER_SHARDS $LATER_SHARD >>%s/told\n", dir);
    start_shards();
    for (int i = 0; i < 9; i++) {
        CLEANUP_FREE char *line = mem_printf("$L add tell --key k%d --wait x", i);

        shards_must(line, "");
    }
    assert_true(test_until_lines(told, " shop 3 ", 9, LONG_MS));
    for (int i = 0; i < 9; i++) {
        CLEANUP_FREE char *key = mem_printf("k%d", i);
        CLEANUP_FREE char *line = mem_printf("%s shop %d %d", key, SHARDS, shard_of_text(key));

        assert_int_equal(test_lines(told, line), 1);
    }
    /* All of a key are in one shard, so a lock of the key holds for all of them. */
    test_handler(dir, "alone",
                 "exec 9>%s/alone.$LATER_KEY; flock -n 9 && echo free >>%s/alone || echo met "
                 ">>%s/alone; sleep 0.02\n",
                 dir, dir, dir);
    shards_must("for i in $(seq 10); do for k in 1 2 3; do $L add alone --key k$k "
                "--lock 'tenant:{key}' x || exit 1; done; done",
                "");
    assert_true(test_until_lines(alone, NULL, 30, LONG_MS));
    assert_int_equal(test_lines(alone, "met"), 0);
    shards_must("id=$($L add work --in 300ms --keep 1h x) && $L wait --timeout 1m ${id%.*}", "");
    shards_must("$L add doomed --attempts 1 --key k1 x && $L add doomed --attempts 1 --key k2 x && "
                "$L add doomed --attempts 1 --key k3 x",
                "j");
    shards_must("until [ $($L --json ls doomed --state dead | wc -l) -eq 3 ]; do sleep 0.1; done",
                "");
    shards_must("$L --json ls doomed --state dead | grep -o '\"shard\":[0-9]' | sort -u | wc -l | "
                "grep -v '^1$'",
                "");
    shards_must("$L retry doomed --all", "shop.");
}

static void test_verbs_ask_all_shards(void **state)
{
    (void)state;
    start_shards();
    shards_must("$L health", "shop.2:");
    assert_int_equal(number_of("$L health --json | grep -c '\"workers\":1'"), SHARDS);
    shards_must("$L health --ready", "ready: 3 daemons of namespace shop");
    shards_must("$L workers | grep -c live", "3");
    shards_must("$L fsck", "shop.2:");
    shards_must("$L find work", "work");
    shards_must("$L pause work && $L --json stats work | grep -c '\"paused\"'", "3");
    shards_must("$L resume work", "resumed");
    shards_say("$L pause nothing-of-that-name", 66, "there is no queue");
    assert_int_equal(number_of("$L stats --prometheus | grep -c '^# TYPE laterd_jobs gauge$'"), 1);
    assert_int_equal(number_of("$L stats --prometheus | grep -c "
                               "'laterd_jobs{namespace=\"shop\",shard=\"[0-2]\",queue=\"work\","
                               "state=\"due\"}'"),
                     SHARDS);
    shards_must("$L bulk purge work --state dead --yes", "done");
    shards_say("$L show @", 64, "write the id");
}

static void test_tail_follows_all_shards(void **state)
{
    struct proc tail;

    (void)state;
    start_shards();
    test_sh_start(&tail, "$LATER --redis $BY --namespace shop --shards 3 --json tail");
    shards_must("has() { grep -q '\"added.*\"shard\":'$1 $DIR/said; }; "
                "until has 0 && has 1 && has 2; do for k in 1 2 3 4 5 6; do "
                "$L add work --key k$k x; done; sleep 0.2; done",
                "");
    proc_signal(&tail, SIGTERM);
    (void)proc_wait(&tail, LONG_MS);
    proc_done(&tail);
}

int main(void)
{
#define DAEMON_TEST(f) cmocka_unit_test_teardown(f, stop_daemons)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_daemon_serves_one_shard),
        cmocka_unit_test(test_a_job_is_in_the_shard_of_its_key),
        cmocka_unit_test(test_lines_go_to_all_shards),
        cmocka_unit_test(test_an_import_finds_its_own_jobs),
        cmocka_unit_test(test_lines_without_a_key_share_calls),
        cmocka_unit_test(test_an_id_is_looked_for_in_all),
        DAEMON_TEST(test_what_has_a_name_is_in_its_shard),
        DAEMON_TEST(test_a_batch_is_waited_for_in_its_shard),
        DAEMON_TEST(test_a_worker_is_found_in_its_shard),
        DAEMON_TEST(test_a_broadcast_is_the_same_in_all_shards),
        cmocka_unit_test(test_a_pause_is_in_all_shards),
        DAEMON_TEST(test_jobs_run_in_all_shards),
        DAEMON_TEST(test_verbs_ask_all_shards),
        DAEMON_TEST(test_tail_follows_all_shards),
    };
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());

    assert_int_equal(setenv("LATERD", laterd, 1), 0);
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
