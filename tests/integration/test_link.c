/* The link to a real redis-server: how often it tells that it is up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../support/redis.h"
#include "base/log.h"
#include "redis/link.h"

#define TRIES 10
#define AFTER_MS 50 /* a second connection is there by then */

static struct test_redis redis;

struct seen {
    struct loop *loop;
    struct loop_timer *end;
    unsigned ups, downs;
};

static void on_up(void *arg, const struct probe_result *server)
{
    struct seen *s = arg;

    (void)server;
    s->ups++;
    loop_timer_set(s->end, AFTER_MS);
}

static void on_down(void *arg, enum error_class class, const char *text)
{
    (void)class;
    (void)text;
    ((struct seen *)arg)->downs++;
}

static void on_event(void *arg)
{
    (void)arg;
}

static void on_wake(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)text;
    (void)n;
}

static void on_denied(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void on_end(void *arg)
{
    loop_stop(((struct seen *)arg)->loop);
}

static int same_password(struct url *url, struct err *err)
{
    (void)url;
    (void)err;
    return 0;
}

/* The password is read again while the loop has not heard yet that the probe is done. */
static void test_a_new_password_makes_no_second_connection(void **state)
{
    struct err err = ERR_INIT;
    struct url url;

    (void)state;
    assert_int_equal(url_parse(redis.url, &url, &err), 0);
    url.ask_password = same_password;
    for (int i = 0; i < TRIES; i++) {
        struct seen s = {.loop = loop_new()};
        struct link_events events = {on_up, on_down, on_event, on_wake, NULL, on_denied, NULL, &s};
        struct link *l = link_new(s.loop, &url, "default", 5000, &events);

        assert_non_null(l);
        s.end = loop_timer_new(s.loop, on_end, &s);
        loop_timer_set(s.end, 10000);
        link_start(l);
        (void)poll(NULL, 0, 20 + i); /* the probe ends meanwhile */
        link_ask_password(l);
        loop_run(s.loop);
        assert_int_equal(s.ups, 1);
        assert_int_equal(s.downs, 0);
        link_free(l);
        loop_timer_free(s.end);
        loop_free(s.loop);
    }
}

static int setup(void **state)
{
    (void)state;
    log_init(LOG_LEVEL_ERR);
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_redis_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_password_makes_no_second_connection)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
