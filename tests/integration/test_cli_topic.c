/* `later publish` and `later topic`: what they print, refuse and answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "command.h"

static void test_subscribe(void **state)
{
    (void)state;
    assert_int_equal(run("topic", "subscribe", "order.*", "mail"), 0);
    assert_out("subscribed\n");
    assert_says(&err, "no running worker serves queue mail: copies wait until one does");
    assert_int_equal(run("topic", "subscribe", "order.*", "mail"), 0);
    assert_out("subscribed already\n");
    assert_int_equal(run("topic", "unsubscribe", "nobody", "mail"), 0);
    assert_out("was not subscribed\n");
    assert_int_equal(run("--json", "topic", "subscribe", "order.*", "mail"), 0);
    assert_out("{\"topic\":\"order.*\",\"queue\":\"mail\",\"status\":\"repeated\"}\n");
    assert_int_equal(run("topic", "ls"), 0);
    assert_out("TOPIC    QUEUE  ORIGIN  PUBLISHED\norder.*  mail   call            0\n");
    assert_int_equal(run("--json", "topic", "ls"), 0);
    assert_out("{\"topic\":\"order.*\",\"queue\":\"mail\",\"origin\":\"call\",\"published\":0}\n");
    assert_int_equal(run("topic", "subscribe", "a/b", "mail"), 65);
    assert_says(&err, "'a/b' is no subscription");
    assert_int_equal(run("topic", "subscribe", "a"), 64);
    assert_int_equal(run("topic", "unsubscribe", "order.*", "mail"), 0);
    assert_out("unsubscribed\n");
}

static void test_publish(void **state)
{
    (void)state;
    assert_int_equal(run("topic", "subscribe", "a", "one"), 0);
    assert_int_equal(run("topic", "subscribe", "a", "two"), 0);
    assert_int_equal(feed("the payload", "--json", "publish", "a", "--key", "k", "-"), 0);
    assert_says(&out, "\"queue\":\"one\"");
    assert_says(&out, "\"queue\":\"two\"");
    assert_says(&out, "\"status\":\"added\"");
    assert_int_equal(run("ls", "one", "--json"), 0);
    assert_says(&out, "\"key\":\"k\"");
    assert_int_equal(run("publish", "a", "x", "--require", "2"), 0);
    assert_int_equal(run("publish", "a", "x", "--require", "3"), 1);
    assert_says(&err, "only 2 of the required 3 queues");
    assert_int_equal(run("publish", "nobody", "x"), 0);
    assert_out("");
    assert_says(&err, "no queue has got a copy");
    assert_int_equal(run("publish", "a", "x", "--require", "many"), 64);
    assert_int_equal(run("publish", "a.*", "x"), 65);
    assert_says(&err, "'a.*' is no topic");
}

static void test_metrics(void **state)
{
    (void)state;
    assert_int_equal(run("topic", "subscribe", "a.*", "one"), 0);
    assert_int_equal(run("topic", "subscribe", "a.*", "two"), 0);
    assert_int_equal(run("topic", "subscribe", "b", "two"), 0);
    assert_int_equal(run("publish", "a.b", "x"), 0);
    assert_int_equal(run("publish", "a.c", "x"), 0);
    assert_int_equal(run("publish", "nobody", "x"), 0);
    assert_int_equal(run("stats", "--prometheus"), 0);
    assert_says(&out, "laterd_topic_queues{namespace=\"default\",topic=\"a.*\"} 2\n"
                      "laterd_topic_queues{namespace=\"default\",topic=\"b\"} 1\n");
    assert_says(&out, "laterd_topic_published_total{namespace=\"default\",topic=\"a.*\"} 2\n"
                      "laterd_topic_published_total{namespace=\"default\",topic=\"b\"} 0\n");
    assert_says(&out, "laterd_topic_unheard_total{namespace=\"default\"} 1\n");
}

/* Which topic a job is of survives a move to another server. */
static void test_export_and_import(void **state)
{
    CLEANUP_FREE char *line = NULL;

    (void)state;
    assert_int_equal(run("topic", "subscribe", "a", "one"), 0);
    assert_int_equal(run("publish", "a", "x"), 0);
    assert_int_equal(run("export", "one"), 0);
    assert_says(&out, "\"topic\":\"a\"");
    line = mem_dup(out.data, out.len);
    assert_int_equal(feed(line, "import", "other"), 0);
    assert_int_equal(run("export", "other"), 0);
    assert_says(&out, "\"topic\":\"a\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_subscribe, flush_all),
        cmocka_unit_test_setup(test_publish, flush_all),
        cmocka_unit_test_setup(test_metrics, flush_all),
        cmocka_unit_test_setup(test_export_and_import, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
