/* Dead jobs by the reason of their death and by key: later ls and later retry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "cli/show/groups.h"
#include "command.h"

static char epoch[24];

static int begin(void **state)
{
    (void)flush_all(state);
    register_worker("mail", epoch);
    return 0;
}

/* A job of queue mail with this key that died for this reason. */
static void die(const char *key, const char *reason)
{
    struct reply *r =
        test_redis_call(&redis, "FCALL", "later_add", "1", ROOT, "mail", "key", key, "x", NULL);
    char id[16];

    (void)snprintf(id, sizeof(id), "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
    do_redis("FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "1", "0", "1", "mail", "1",
             "9999", "0");
    do_redis("FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "0", "1", id, "1", "dead",
             "mail", "60000", "1", reason, "", "0", "0");
}

static int64_t dead(void)
{
    return test_int(&redis, "ZCARD", ROOT ":dead:mail");
}

static void three_reasons(void)
{
    die("a", "no route to host 1");
    die("b", "no route to host 2");
    die("a", "full");
    die("b", "full");
    die("a", "full [0]");
}

static void test_they_are_counted(void **state)
{
    (void)state;
    three_reasons();
    assert_int_equal(run("ls", "mail", "--by", "reason"), 0);
    assert_says(&out, "COUNT");
    assert_says(&out, "REASON\n    2 ");
    assert_int_equal(run("ls", "mail", "--by", "reason", "--json"), 0);
    assert_says(&out, "{\"reason\":\"full\",\"state\":\"dead\",\"count\":2,\"first_ms\":");
    assert_says(&out, "{\"reason\":\"no route to host *\",\"state\":\"dead\",\"count\":2,");
    assert_says(&out, "{\"reason\":\"full [*]\",\"state\":\"dead\",\"count\":1,");
    assert_int_equal(run("ls", "mail", "--by", "reason", "--key", "b", "--json"), 0);
    assert_says(&out, "{\"reason\":\"full\",\"state\":\"dead\",\"count\":1,");
    assert_int_equal(run("ls", "mail", "--by", "size"), 64);
    assert_int_equal(run("ls", "mail", "--by", "key", "--state", "dead", "--json"), 0);
    assert_says(&out, "{\"key\":\"a\",\"state\":\"dead\",\"count\":3,");
}

/* Redis counts the dead jobs; with a limit the command does. Both tell the same. */
static void test_both_ways_tell_the_same(void **state)
{
    CLEANUP_BUF struct buf counted = BUF_INIT;

    (void)state;
    three_reasons();
    for (int i = 0; i < 600; i++) {
        char reason[64];

        (void)snprintf(reason, sizeof(reason), "exit status %d: order %d is gone", i % 7, i);
        die("c", reason);
    }
    assert_int_equal(run("ls", "mail", "--by", "reason", "--json"), 0);
    buf_add(&counted, out.data, out.len);
    assert_says(&counted, "\"exit status 6: order * is gone\"");
    assert_int_equal(run("ls", "mail", "--by", "reason", "--json", "--limit", "1000"), 0);
    assert_string_equal(buf_str(&counted), buf_str(&out));
    assert_int_equal(run("ls", "mail", "--by", "reason", "--json", "--state", "all"), 0);
    assert_string_equal(buf_str(&counted), buf_str(&out));
}

static void test_they_are_listed(void **state)
{
    (void)state;
    three_reasons();
    assert_int_equal(run("ls", "mail", "--reason", "full", "--json"), 0);
    assert_says(&out, "\"key\":\"a\"");
    assert_says(&out, "\"key\":\"b\"");
    assert_null(strstr(buf_str(&out), "route"));
    assert_int_equal(run("ls", "mail", "--state", "all", "--key", "a"), 0);
    assert_says(&out, "  KEY  ");
    assert_says(&out, "full [0]");
    assert_null(strstr(buf_str(&out), "host 2"));
}

static void test_they_are_retried(void **state)
{
    (void)state;
    three_reasons();
    assert_int_equal(run("retry", "mail", "--reason", "nothing"), 66);
    assert_says(&err, "no dead job of queue mail has that reason: later ls mail --by reason");
    assert_int_equal(run("retry", "mail", "--key", "nothing"), 66);
    assert_says(&err, "no dead job of queue mail has that key");
    assert_int_equal(run("retry", "mail", "--reason", "full [*]"), 0);
    assert_out("1 job retried\n");
    assert_int_equal(run("retry", "mail", "--reason", "no route to *", "--spread", "1h"), 0);
    assert_out("2 jobs retried\n");
    assert_int_equal(dead(), 2);
    assert_int_equal(run("retry", "mail", "--reason", "full", "--key", "b"), 0);
    assert_int_equal(dead(), 1);
    assert_int_equal(run("retry", "mail", "web", "--reason", "full"), 64);
    assert_int_equal(run("retry", "mial", "--reason", "full"), 66);
}

/* `--key "$KEY"` of a script whose variable is not set would mean every job without a key. */
static void test_an_empty_key_is_refused(void **state)
{
    (void)state;
    die("a", "full");
    assert_int_equal(run("retry", "mail", "--key", ""), 64);
    assert_says(&err, "--key is empty");
    assert_int_equal(run("ls", "mail", "--key", ""), 64);
    assert_says(&err, "--key is empty");
    assert_int_equal(dead(), 1);
}

/* Lines to import: jobs with as many keys. */
static void put_keys(struct buf *lines, int keys)
{
    for (int i = 0; i < keys; i++)
        buf_printf(lines, "{\"payload\":\"x\",\"key\":\"k%d\"}\n", i);
}

/* So many keys would take much memory, and nobody reads them. */
static void test_further_groups_are_one(void **state)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;
    size_t n = 0;

    (void)state;
    put_keys(&lines, GROUPS_MAX + 3);
    assert_int_equal(feed(buf_str(&lines), "import", "mail", "-"), 0);
    assert_int_equal(run("ls", "mail", "--by", "key", "--json"), 0);
    for (size_t i = 0; i < out.len; i++)
        n += out.data[i] == '\n';
    assert_int_equal(n, GROUPS_MAX + 1);
    assert_says(&out, "{\"key\":\"(further ones)\",\"state\":\"due\",\"count\":3,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_they_are_counted, begin),
        cmocka_unit_test_setup(test_both_ways_tell_the_same, begin),
        cmocka_unit_test_setup(test_they_are_listed, begin),
        cmocka_unit_test_setup(test_they_are_retried, begin),
        cmocka_unit_test_setup(test_further_groups_are_one, begin),
        cmocka_unit_test_setup(test_an_empty_key_is_refused, begin),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
