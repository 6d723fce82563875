/*
 * clients/: the thin client of each language whose client of Redis is installed here, driven by a
 * program of that language (clients/drive.*) as user `manager` of etc/users.acl, through a proxy
 * that counts its calls and loses their answers; beside a real laterd. What the drivers print is
 * the same in all languages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault/proxy_client.h"
#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/redis.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/client.h"

#define LONG_MS 60000
#define BULK 1000
#define WAITS_MS 1500 /* a client that polls would ask several times */

struct language {
    const char *name;
    const char *probe; /* a line of shell that succeeds where the client of Redis is installed */
    const char *drive; /* one that takes words behind it */
    const char *cure;
    int subscribes;    /* how often it does so for a wait */
    const char *build; /* NULL, or what makes its driver in $MADE */
};

static struct test_redis redis;
static struct proxy proxy;
static struct test_laterd worker;
static const struct language *language;
static char dir[64], made[64]; /* of a test; of all */

/* ---- the languages */

/* The python3 that Debian's python3-redis is for. */
#define PYTHON "PATH=/usr/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CLIENTS/python python3 "

static struct language python = {"python",
                                 PYTHON "-c 'import redis; redis.Redis.fcall'",
                                 PYTHON "$DRIVERS/drive.py",
                                 "apt install python3-redis",
                                 1,
                                 NULL};

#define NODE "NODE_PATH=${NODE_REDIS:-/usr/share/nodejs} node "

static struct language javascript = {"javascript",
                                     NODE "-e 'require(\"redis\").createClient().sendCommand'",
                                     NODE "$DRIVERS/drive.js",
                                     "apt install node-redis",
                                     1,
                                     NULL};

static struct language ruby = {"ruby",
                               "ruby -e 'require \"redis\"; Redis.instance_method(:call)'",
                               "ruby $DRIVERS/drive.rb",
                               "apt install ruby-redis",
                               1,
                               NULL};

static struct language php = {"php",
                              "php -r 'exit(class_exists(\"Redis\") ? 0 : 1);'",
                              "php -d display_errors=stderr $DRIVERS/drive.php",
                              "apt install php-cli php-redis",
                              2,
                              NULL};

/* Debian's redigo, without modules. */
static struct language go = {
    "go",
    "go version && test -d /usr/share/gocode/src/github.com/gomodule/redigo",
    "$MADE/drive",
    "apt install golang-go golang-github-gomodule-redigo-dev",
    1,
    "mkdir -p $MADE/src/later && cp $CLIENTS/go/later.go $MADE/src/later && cd $MADE && "
    "GO111MODULE=off GOPATH=$MADE:/usr/share/gocode GOCACHE=$MADE/cache "
    "go build -o drive $DRIVERS/drive.go"};

/* ---- driving */

/* Run the driver with these words; what it prints goes to ret. It must succeed. */
static void drive(struct buf *ret, const char *words)
{
    CLEANUP_FREE char *line = mem_printf("%s %s 2>&1", language->drive, words);

    buf_clear(ret);
    if (test_sh_out(line, ret) != 0)
        fail_msg("%s: %s", line, buf_str(ret));
}

static void assert_drives(const char *words, const char *says)
{
    CLEANUP_BUF struct buf said = BUF_INIT;

    drive(&said, words);
    assert_string_equal(buf_str(&said), says);
}

static int64_t jobs_in_redis(void)
{
    return test_int(&redis, "HLEN", "later:{default}:jobs");
}

/* ---- many jobs */

static const char *value_of(const struct reply *shown, const char *name, size_t *len)
{
    for (size_t i = 0; i + 1 < reply_count(shown); i += 2) {
        if (strcmp(reply_str(reply_at(shown, i)), name) == 0) {
            *len = reply_len(reply_at(shown, i + 1));
            return reply_str(reply_at(shown, i + 1));
        }
    }
    fail_msg("no %s", name);
    return NULL;
}

/* The job has the k-th payload: the two bytes of k, twice. */
static void assert_payload(struct client *c, const char *id, int k, bool *seen)
{
    struct err err = ERR_INIT;
    struct reply *r = client_fcall(c, "default", "later_show", 1, &id, NULL, &err);
    const char low = (char)(k % 256), high = (char)(k / 256);
    const char want[4] = {low, high, low, high};
    const char *payload;
    size_t len = 0;

    assert_non_null(r);
    payload = value_of(r, "payload", &len);
    assert_int_equal(len, sizeof(want));
    assert_memory_equal(payload, want, sizeof(want));
    seen[(unsigned char)low] = true;
    reply_free(r);
}

static void test_many_jobs_have_every_byte(void **state)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(&redis, &err);
    bool seen[256] = {false};
    char *line;
    int k = 0;

    (void)state;
    assert_non_null(c);
    drive(&said, "bulk");
    for (line = strtok(said.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_string_equal(line + 12, " added");
        line[12] = '\0';
        assert_payload(c, line, k++, seen);
    }
    client_close(c);
    assert_int_equal(k, BULK);
    assert_int_equal(jobs_in_redis(), BULK);
    assert_int_equal(proxy_tell(&proxy, "seen later_add_many"), 1);
    for (int byte = 0; byte < 256; byte++)
        assert_true(seen[byte]);
}

/* ---- lost answers */

static void assert_added_once(int times)
{
    CLEANUP_BUF struct buf said = BUF_INIT;

    drive(&said, "add 1");
    assert_string_equal(buf_str(&said) + 12, " repeated\n");
    assert_int_equal(jobs_in_redis(), times);
    assert_int_equal(proxy_tell(&proxy, "seen later_add"), 2 * times);
}

/* Redis did it, and the connection is cut before its answer; then it is whole and the answer late.
 */
static void test_a_lost_answer_is_asked_for_once_more(void **state)
{
    (void)state;
    proxy_tell(&proxy, "on later_add dropreply");
    assert_added_once(1);
    proxy_tell(&proxy, "on later_add late:%d", LONG_MS);
    (void)setenv("TIMEOUT", "1", 1);
    assert_added_once(2);
    (void)unsetenv("TIMEOUT");
}

/* It has no token: the program is told, and nothing is added again. */
static void test_many_jobs_are_never_added_twice(void **state)
{
    (void)state;
    proxy_tell(&proxy, "on later_add_many dropreply");
    assert_drives("bulk", "lost\n");
    assert_int_equal(jobs_in_redis(), BULK);
    assert_int_equal(proxy_tell(&proxy, "seen later_add_many"), 1);
}

/* ---- the end of a job */

static void start_worker(void)
{
    test_handler(dir, "mail", "printf '\\000\\377\\r\\n\\200'; exit 65");
    test_laterd_conf(&worker, dir, "a", redis.url, "");
    test_laterd_start(&worker);
}

static bool is_awaited(void *id)
{
    struct reply *r = test_redis_call(&redis, "HEXISTS", "later:{default}:await", id, NULL);
    bool is = reply_int(r) == 1;

    reply_free(r);
    return is;
}

static bool has_subscribed(void *arg)
{
    (void)arg;
    return proxy_tell(&proxy, "seen SUBSCRIBE") == language->subscribes;
}

static void pass(int64_t ms)
{
    const struct mono until = mono_add_ms(mono_now(), ms);

    while (mono_before(mono_now(), until))
        (void)usleep(10000);
}

/* From when it listens to the message of the end it asks nothing. */
static void test_a_wait_does_not_poll(void **state)
{
    CLEANUP_FREE char *id = test_add(&redis, "mail", "in", "1h", "x");
    CLEANUP_FREE char *line = mem_printf("%s wait %s 60", language->drive, id);
    CLEANUP_FREE char *log = mem_printf("%s/said", dir);
    CLEANUP_FREE char *words = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", line, NULL};
    CLEANUP_BUF struct buf said = BUF_INIT;
    struct proc p;
    int64_t before, calls;

    (void)state;
    start_worker();
    proxy_tell(&proxy, "on * delay:0 0");
    proc_start(&p, argv, NULL, log);
    assert_true(test_until(is_awaited, id, LONG_MS));
    assert_true(test_until(has_subscribed, NULL, LONG_MS));
    before = proxy_tell(&proxy, "fired");
    pass(WAITS_MS);
    assert_int_equal(proxy_tell(&proxy, "fired"), before);
    reply_free(test_fcall(&redis, "later_run_now", id, NULL));
    assert_int_equal(proc_wait(&p, LONG_MS), 0);
    proc_done(&p);
    test_read(log, &said);
    assert_string_equal(buf_str(&said), "dead 65 1 exit status 65\n00ff0d0a80\n");
    calls = proxy_tell(&proxy, "fired");
    print_message("%s: %d commands of Redis for a wait\n", language->name, (int)calls);
    assert_in_range(calls, before, before + 1); /* UNSUBSCRIBE */
    assert_int_equal(proxy_tell(&proxy, "seen later_v1_await"), 1);
    /* Now the answer has it, byte for byte. */
    words = mem_printf("wait %s 60", id);
    assert_drives(words, buf_str(&said));
    assert_int_equal(test_laterd_stop(&worker), 0);
}

/* ---- one job, errors */

static void test_a_job_is_looked_at_and_cancelled(void **state)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    CLEANUP_FREE char *then = NULL;
    CLEANUP_FREE char *payload = NULL;
    char *due;
    CLEANUP_FREE char *want = NULL;
    char id[13] = "";

    (void)state;
    drive(&said, "look");
    (void)snprintf(id, sizeof(id), "%s", buf_str(&said));
    want = mem_printf("%s added ", id);
    assert_memory_equal(buf_str(&said), want, strlen(want));
    assert_true(strtoll(buf_str(&said) + strlen(want), &due, 10) > test_now_ms());
    assert_string_equal(due, "\nrepeated\nwaiting 0 0 \n\nnone\ncancelled\nELATER_STATE mistake\n"
                             "cancelled 0 0 cancelled while waiting\n\nELATER_NOJOB mistake\n");
    payload = test_shown(&redis, id, "payload");
    assert_string_equal(payload, "gr\303\274\303\237e");
    then = test_shown(&redis, id, "then");
    assert_string_equal(then, "first,second");
}

/* Redis says this in answer to the next add. */
static void answer_with(const char *error)
{
    CLEANUP_FREE char *line = mem_printf("-%s text\r\n", error);

    proxy_tell(&proxy, "on later_add garbage:%s", proxy_hex(line));
}

static void test_errors_are_told_by_their_codes(void **state)
{
    static const char *const codes[] = {"LOADING",    "BUSY",        "OOM",      "READONLY",
                                        "MASTERDOWN", "ELATER_FULL", "TRYAGAIN", "CLUSTERDOWN",
                                        "NOPERM",     "WRONGPASS",   "WRONGTYPE"};
    CLEANUP_BUF struct buf want = BUF_INIT;
    CLEANUP_FREE char *words = NULL;
    const int n = sizeof(codes) / sizeof(codes[0]);

    (void)state;
    for (int i = 0; i < n; i++) {
        answer_with(codes[i]);
        buf_printf(&want, "%s %s\n", codes[i],
                   i < 8    ? "temporary"
                   : i < 10 ? "not allowed"
                            : "other");
    }
    words = mem_printf("add %d", n);
    assert_drives(words, buf_str(&want));
    /* None was asked again. */
    assert_int_equal(proxy_tell(&proxy, "seen later_add"), n);
}

static void test_errors_of_a_real_server(void **state)
{
    (void)state;
    assert_drives("add 1 soon", "ELATER_TIME mistake\n");
    (void)setenv("REDIS_USER", "caller", 1);
    assert_drives("add 1", "NOPERM not allowed\n");
    assert_drives("wait j0000000000a 1", "NOPERM not allowed\n");
    (void)unsetenv("REDIS_USER");
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "1", NULL));
    assert_drives("add 1", "OOM temporary\n");
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "0", NULL));
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    assert_drives("add 1", "ERR not allowed\n");
    assert_int_equal(proxy_tell(&proxy, "seen later_add"), 4);
}

/* The table of doc/clients.md. */
static void test_the_page_has_their_lines(void **state)
{
    (void)state;
    assert_int_equal(
        test_sh("cd $CLIENTS && for f in */later.* */Later.php; do test ! -e $f || "
                "grep -q \"(../clients/$f) | $(wc -l <$f) |\" ../doc/clients.md || exit 1; done"),
        0);
}

/* A connection with which outputs are no bytes, or with which many jobs would be added twice. */
static void test_a_connection_that_does_not_fit(void **state)
{
    (void)state;
    assert_drives("refused", "outputs are bytes: connect without decode_responses\n"
                             "redis-py would add them again: connect with Retry(NoBackoff(), 0)\n");
    assert_int_equal(jobs_in_redis(), 0);
}

/* ---- cmocka */

static void set_path(const char *name, const char *folder)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", test_source_dir(), folder);

    (void)setenv(name, path, 1);
}

/* Unless it is made. */
static void make_driver(void)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    CLEANUP_FREE char *line = mem_printf("test -e $MADE/drive || { %s; } 2>&1", language->build);

    if (test_sh_out(line, &said) != 0)
        fail_msg("%s", buf_str(&said));
}

static int start(void **state)
{
    language = *state;
    if (language->build != NULL)
        make_driver();
    test_folder_make(dir);
    test_redis_start_with_users(&redis, dir);
    proxy_start(&proxy, &redis);
    (void)setenv("DIR", dir, 1);
    (void)setenv("REDIS_PORT", strrchr(proxy.url, ':') + 1, 1);
    (void)setenv("REDISCLI_AUTH", "secret", 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    (void)unsetenv("REDIS_PORT");
    (void)unsetenv("REDISCLI_AUTH");
    (void)unsetenv("REDIS_USER"); /* of a test that failed */
    (void)unsetenv("TIMEOUT");
    (void)test_laterd_stop(&worker);
    proxy_stop(&proxy);
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return 0;
}

static void test_is_not_installed(void **state)
{
    const struct language *l = *state;

    print_message("skipped: no client of Redis for %s is installed (%s)\n", l->name, l->cure);
    skip();
}

static bool is_installed(const struct language *l)
{
    CLEANUP_FREE char *quiet = mem_printf("%s >/dev/null 2>&1", l->probe);

    return test_sh(quiet) == 0;
}

#define TEST(language, what)                                                                       \
    {                                                                                              \
        "test_" #language "_" #what, test_##what, start, stop, &(language)                         \
    }
#define TESTS(language)                                                                            \
    TEST(language, many_jobs_have_every_byte),                                                     \
        TEST(language, a_lost_answer_is_asked_for_once_more),                                      \
        TEST(language, many_jobs_are_never_added_twice), TEST(language, a_wait_does_not_poll),     \
        TEST(language, a_job_is_looked_at_and_cancelled),                                          \
        TEST(language, errors_are_told_by_their_codes), TEST(language, errors_of_a_real_server)

int main(void)
{
    struct CMUnitTest tests[] = {TESTS(python),
                                 TESTS(javascript),
                                 TESTS(ruby),
                                 TESTS(php),
                                 TESTS(go),
                                 TEST(python, a_connection_that_does_not_fit),
                                 cmocka_unit_test(test_the_page_has_their_lines)};
    const struct language *last = NULL;
    bool is_there = false;
    int failed;

    test_folder_make(made);
    (void)setenv("MADE", made, 1);
    set_path("CLIENTS", "clients");
    set_path("DRIVERS", "tests/integration/clients");
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (tests[i].initial_state != last && tests[i].initial_state != NULL)
            is_there = is_installed(last = tests[i].initial_state);
        if (tests[i].initial_state != NULL && !is_there) {
            tests[i].test_func = test_is_not_installed;
            tests[i].setup_func = tests[i].teardown_func = NULL;
        }
    }
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove(made);
    return failed;
}
