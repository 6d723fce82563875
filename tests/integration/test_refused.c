/* The command where Redis refuses writes: it ends in time, with 69 and what Redis says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lock_fixture.h"

#define config(...) reply_free(test_redis_call(&redis, "CONFIG", "SET", __VA_ARGS__, NULL))

static int open_redis(void **state)
{
    static const char *const args[] = {"--enable-protected-configs", "yes", NULL};

    (void)state;
    return setup_with(args);
}

/* ---- four ways to refuse, and back */

static void fill(void)
{
    config("maxmemory", "1");
}

static void empty(void)
{
    config("maxmemory", "0");
}

/* Redis fails to save into a folder that is gone. */
static void lose_the_disk(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/data", redis.dir);
    struct reply *r;

    assert_int_equal(mkdir(path, 0755), 0);
    config("save", "3600 1000000", "dir", path);
    assert_int_equal(rmdir(path), 0);
    r = test_redis_call(&redis, "SAVE", NULL);
    assert_null(r);
    reply_free(test_redis_call(&redis, "BGSAVE", NULL));
    for (int i = 0; i < LONG_MS / 10; i++) {
        struct reply *info = test_redis_call(&redis, "INFO", "persistence", NULL);
        bool is_lost = strstr(reply_str(info), "rdb_last_bgsave_status:err") != NULL;

        reply_free(info);
        if (is_lost)
            return;
        test_pause(10);
    }
    fail_msg("Redis does not notice that its folder is gone");
}

static void find_the_disk(void)
{
    config("dir", redis.dir, "save", "");
}

static void want_replicas(void)
{
    config("min-replicas-to-write", "1");
}

static void want_none(void)
{
    config("min-replicas-to-write", "0");
}

static void become_replica(void)
{
    reply_free(test_redis_call(&redis, "REPLICAOF", "127.0.0.1", "1", NULL));
}

static void become_master(void)
{
    reply_free(test_redis_call(&redis, "REPLICAOF", "NO", "ONE", NULL));
}

static const struct refusing {
    void (*begin)(void), (*end)(void);
    const char *word, *cure;
} refusing[] = {
    {fill, empty, "OOM", "raise maxmemory"},
    {lose_the_disk, find_the_disk, "MISCONF", "cannot save"},
    {want_replicas, want_none, "NOREPLICAS", "too few replicas"},
    {become_replica, become_master, "READONLY", "master"},
};
#define N (sizeof(refusing) / sizeof(refusing[0]))

/* Every verb that adds something; what only moves or ends it is taken where Redis is full. */
static const char *const writers[] = {
    "lock -w 0.3 a true",
    "lock -n a true",
    "sem -w 0.3 s true",
    "sem -n s true",
    "once --per 1m a true",
    "once --per 1m -w 0.3 a true",
    "throttle r",
    "add q x",
    "add q x --wait",
    "schedule add m every 1h x --queue q",
    "schedule run-now n",
    "topic subscribe t.x q2",
    "publish t.y x",
    "seen s k",
    "limits set l semaphore 2",
    "batch add b x",
    "import q",
};

static void test_the_verbs_end_in_time(void **state)
{
    (void)state;
    assert_int_equal(
        test_sh("$LATER limits set s semaphore 2 && $LATER limits set r rate 9/1h --burst 9 && "
                "$LATER topic subscribe t.y q && $LATER add q x && "
                "$LATER schedule add n every 1h x --queue q && $LATER seen s k --for 1h"),
        0);
    for (size_t i = 0; i < N; i++) {
        refusing[i].begin();
        for (size_t w = 0; w < sizeof(writers) / sizeof(writers[0]); w++) {
            CLEANUP_FREE char *line =
                mem_printf("echo '{\"payload\":\"x\"}' | timeout 50 $LATER %s", writers[w]);
            CLEANUP_BUF struct buf said = BUF_INIT;
            int status = test_sh_out(line, &said);

            if (status != 69 || strstr(buf_str(&said), refusing[i].word) == NULL ||
                strstr(buf_str(&said), refusing[i].cure) == NULL)
                fail_msg("%s, %s: %d %s", refusing[i].word, writers[w], status, buf_str(&said));
        }
        refusing[i].end();
    }
}

/* Without -n and -w it waits, and says what for, once; then it runs. */
static void test_who_waits_says_what_for(void **state)
{
    (void)state;
    test_redis_load(&redis);
    for (size_t i = 0; i < N; i++) {
        CLEANUP_FREE char *said = mem_printf("%s/said", dir);

        refusing[i].begin();
        (void)unlink(said);
        test_sh_start(&procs[i], "$LATER lock a true");
        if (!test_until_lines(said, refusing[i].word, 1, LONG_MS))
            fail_msg("it does not say %s", refusing[i].word);
        refusing[i].end();
        assert_int_equal(proc_wait(&procs[i], LONG_MS), 0);
        assert_int_equal(test_lines(said, NULL), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_verbs_end_in_time, open_redis, teardown),
        cmocka_unit_test_setup_teardown(test_who_waits_says_what_for, open_redis, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
