/*
 * doc/clients.md: each example whose client is installed here is taken out of the page and run as
 * it stands, as user `manager` of etc/users.acl; then Redis is asked what it did.
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

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/redis.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"

static struct test_redis redis;
static char dir[64];

/* ---- the page */

/* Write the only block of this language to $DIR/example. */
static void take_example(const char *language)
{
    CLEANUP_FREE char *line = mem_printf(
        "awk -v f='```%s' '$0 == f { n++; inside = 1; next } /^```/ { inside = 0 } inside { print }"
        " END { exit n != 1 }' %s/doc/clients.md >$DIR/example",
        language, test_source_dir());

    assert_int_equal(test_sh(line), 0);
}

/* ---- Redis */

/* The value of a name in what later_show says of the job. */
static void assert_shown(const char *id, const char *name, const char *value)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    size_t i = 0;

    assert_non_null(r);
    while (i + 1 < reply_count(r) && strcmp(reply_str(reply_at(r, i)), name) != 0)
        i += 2;
    assert_string_equal(reply_str(reply_at(r, i + 1)), value);
    reply_free(r);
}

static void assert_done_in_redis(const char *id)
{
    struct reply *stats, *tokens;
    const struct reply *mail; /* ten values, flat: doc/protocol.md, later_stats */

    assert_shown(id, "state", "waiting");
    assert_shown(id, "queue", "mail");
    assert_shown(id, "payload", "{\"to\":\"a@b.c\"}");
    assert_shown(id, "key", "user:42");
    /* The other job was added and is cancelled. */
    stats = test_fcall(&redis, "later_stats", "mail", NULL);
    mail = reply_at(stats, 5);
    assert_int_equal(reply_int(reply_at(stats, 3)), 1);
    assert_int_equal(reply_int(reply_at(mail, 1)), 1);
    assert_string_equal(reply_str(reply_at(mail, 9)), "1");
    reply_free(stats);
    /* Each add had a token of its own. */
    tokens = test_redis_call(&redis, "KEYS", "later:{default}:token:*", NULL);
    assert_int_equal(reply_count(tokens), 2);
    reply_free(tokens);
}

/* ---- the examples */

/* The python3 that Debian's python3-redis is for. */
#define HAS_PYTHON "PATH=/usr/bin:$PATH python3 -c 'import redis; redis.Redis.fcall'"
#define PYTHON "PATH=/usr/bin:$PATH timeout 60 python3 $DIR/example 2>&1"
#define PYTHON_WITH(words) "PATH=/usr/bin:$PATH timeout 60 python3 $DIR/example " words " 2>&1"
#define NODE_PATH                                                                                  \
    "NODE_PATH=${NODE_PATH:-${XDG_CACHE_HOME:-$HOME/.cache}/laterd-peers/node_modules} "
#define HAS_JAVASCRIPT NODE_PATH "node -e 'require(\"ioredis\")'"
#define JAVASCRIPT NODE_PATH "timeout 60 node $DIR/example 2>&1"
#define HAS_NODE_REDIS                                                                             \
    "NODE_PATH=/usr/share/nodejs node -e 'require(\"redis\").createClient().sendCommand'"
#define NODE_REDIS "NODE_PATH=/usr/share/nodejs timeout 60 node $DIR/example 2>&1"
#define HAS_RUBY "ruby -e 'require \"redis\"; Redis.instance_method(:call)'"
#define RUBY "timeout 60 ruby $DIR/example 2>&1"
#define HAS_PERL "perl -MRedis -e 1"
#define PERL "timeout 60 perl $DIR/example 2>&1"
#define HAS_PHP "php -r 'exit(class_exists(\"Redis\") ? 0 : 1);'"
#define PHP "timeout 60 php $DIR/example 2>&1"

/* A line of shell succeeds. */
static bool is_success(const char *probe)
{
    CLEANUP_FREE char *quiet = mem_printf("%s >/dev/null 2>&1", probe);

    return test_sh(quiet) == 0;
}

/* Take the example of the page. probe: a line of shell that succeeds where the client is installed;
 * else the test is skipped. */
static void take_if_installed(const char *language, const char *probe, const char *cure)
{
    take_example(language);
    if (!is_success(probe)) {
        print_message("skipped: no client of Redis for %s is installed (%s)\n", language, cure);
        skip();
    }
}

static void take_python(void)
{
    take_if_installed("python", HAS_PYTHON, "apt install python3-redis");
}

static void take_php(void)
{
    take_if_installed("php", HAS_PHP, "apt install php-cli php-redis");
}

/* Run $DIR/example, and look at what it says and did. */
static void run_example(const char *line)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    char id[16];

    if (test_sh_out(line, &said) != 0)
        fail_msg("%s", buf_str(&said));
    (void)snprintf(id, sizeof(id), "%.12s", buf_str(&said));
    assert_int_equal(id[0], 'j');
    assert_string_equal(buf_str(&said) + 12, "\ncancelled gone\n");
    assert_done_in_redis(id);
}

static void test_python(void **state)
{
    (void)state;
    take_python();
    run_example(PYTHON);
}

static void test_javascript(void **state)
{
    (void)state;
    take_if_installed("javascript", HAS_JAVASCRIPT, "scripts/bench --setup installs ioredis");
    run_example(JAVASCRIPT);
}

static void test_node_redis(void **state)
{
    (void)state;
    take_if_installed("javascript node-redis", HAS_NODE_REDIS, "apt install node-redis");
    run_example(NODE_REDIS);
}

static void test_ruby(void **state)
{
    (void)state;
    take_if_installed("ruby", HAS_RUBY, "apt install ruby-redis");
    run_example(RUBY);
}

static void test_perl(void **state)
{
    (void)state;
    take_if_installed("perl", HAS_PERL, "apt install libredis-perl");
    run_example(PERL);
}

static void test_php(void **state)
{
    (void)state;
    take_php();
    run_example(PHP);
}

/* Change the example by sed; it must change. */
static void edit_example(const char *edit)
{
    CLEANUP_FREE char *line = mem_printf("cp $DIR/example $DIR/whole && sed -i '%s' $DIR/example "
                                         "&& ! cmp -s $DIR/whole $DIR/example",
                                         edit);

    assert_int_equal(test_sh(line), 0);
}

/* A pipeline of which one call is refused, and the results of a job that has ended and of one that
 * has not. */
static void test_many_in_python(void **state)
{
    (void)state;
    take_if_installed("python many", HAS_PYTHON, "apt install python3-redis");
    test_says(PYTHON, 0, "added ELATER_QUEUE added\ncancelled waiting\n");
    edit_example("s/transaction=False/transaction=True/");
    test_says(PYTHON, 1, "multi");
}

/* The answer of each first call is lost: the second one, with the same token, adds nothing. */
static void test_lost_answer_in_python(void **state)
{
    (void)state;
    take_python();
    edit_example("s/return later(\\*call) .*# \\[id.*/later(*call); "
                 "raise redis.ConnectionError(\"lost\")/");
    run_example(PYTHON);
}

static void test_lost_answer_in_php(void **state)
{
    (void)state;
    take_php();
    edit_example(
        "s/return \\(later(.*;\\) *\\/\\/ \\[id.*/\\1 throw new RedisException(\"lost\");/");
    run_example(PHP);
}

static void test_lost_answer_in_node_redis(void **state)
{
    (void)state;
    take_if_installed("javascript node-redis", HAS_NODE_REDIS, "apt install node-redis");
    edit_example("s/return later(...args).catch/return later(...args).then(() => { throw new "
                 "Error(\"lost\"); }).catch/");
    run_example(NODE_REDIS);
}

static void test_lost_answer_in_ruby(void **state)
{
    (void)state;
    take_if_installed("ruby", HAS_RUBY, "apt install ruby-redis");
    edit_example("s/^    later(\\*call)$/    later(*call); raise Redis::ConnectionError/");
    run_example(RUBY);
}

static void test_lost_answer_in_perl(void **state)
{
    (void)state;
    take_if_installed("perl", HAS_PERL, "apt install libredis-perl");
    edit_example("s/my .added = eval { later(@call) };/later(@call); my $added; $@ = \"lost\";/");
    run_example(PERL);
}

/* The relay dies behind an add, before its row is deleted: the next run adds nothing again. */
static void test_outbox(void **state)
{
#define SQL                                                                                        \
    "PATH=/usr/bin:$PATH python3 -c 'import sqlite3, sys; "                                        \
    "d = sqlite3.connect(sys.argv[1]); print(*d.execute(sys.argv[2])); d.commit()' $DIR/db "

    (void)state;
    take_if_installed("python outbox", HAS_PYTHON, "apt install python3-redis");
    test_must(SQL "'CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, queue, payload)'");
    test_must(SQL "\"INSERT INTO outbox (queue, payload) VALUES ('mail', '42'), ('mail', '43')\"");
    edit_example("s/^    db.execute/    sys.exit(1)/");
    assert_int_equal(test_sh(PYTHON_WITH("$DIR/db")), 1);
    test_must("cp $DIR/whole $DIR/example");
    assert_int_equal(test_sh(PYTHON_WITH("$DIR/db")), 0);
    test_must(SQL "'SELECT count(*) FROM outbox' | grep -qx '(0,)'");
    assert_int_equal(test_int(&redis, "HLEN", "later:{default}:jobs"), 2);
#undef SQL
}

/* A wrong value, a wrong password and a missing library are told, and the program fails. */
static void test_errors_are_told(void **state)
{
    (void)state;
    take_python();
    test_says("REDISCLI_AUTH=wrong; " PYTHON, 1, "invalid");
    edit_example("s/\"1h\", \"key\"/\"soon\", \"key\"/");
    test_says(PYTHON, 1, "ELATER_TIME");
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    test_says(PYTHON, 1, "Function not found");
}

/* The blocks that are not run are there at least. */
static void test_text_only(void **state)
{
    (void)state;
    take_example("java");
    assert_int_equal(test_sh("grep -q later_add $DIR/example"), 0);
    take_example("go");
    assert_int_equal(test_sh("grep -q later_add $DIR/example"), 0);
}

/* ---- cmocka */

static int start(void **state)
{
    (void)state;
    test_folder_make(dir);
    test_redis_start_with_users(&redis, dir);
    (void)setenv("DIR", dir, 1);
    (void)setenv("REDIS_SOCKET", redis.sock, 1);
    (void)setenv("REDISCLI_AUTH", "secret", 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    (void)unsetenv("REDISCLI_AUTH");
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return 0;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {T(test_python),
                                       T(test_javascript),
                                       T(test_node_redis),
                                       T(test_ruby),
                                       T(test_perl),
                                       T(test_many_in_python),
                                       T(test_php),
                                       T(test_lost_answer_in_python),
                                       T(test_lost_answer_in_php),
                                       T(test_lost_answer_in_node_redis),
                                       T(test_lost_answer_in_ruby),
                                       T(test_lost_answer_in_perl),
                                       T(test_outbox),
                                       T(test_errors_are_told),
                                       T(test_text_only)};

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
