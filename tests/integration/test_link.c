/* The link to a real redis-server: how often it tells that it is up; its subscription. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/redis.h"
#include "base/log.h"
#include "redis/link.h"
#include "redis/sub.h"

#define TRIES 10
#define AFTER_MS 50 /* a second connection is there by then */

static struct test_redis redis;

struct seen {
    struct loop *loop;
    struct loop_timer *end;
    unsigned ups, downs, denied;
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
    (void)text;
    ((struct seen *)arg)->denied++;
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

/* ---- the subscription */

static bool is_watched(void)
{
    struct reply *r = test_redis_call(&redis, "PUBSUB", "NUMSUB", "__keyspace@0__:k", NULL);
    bool is = reply_int(reply_at(r, 1)) == 1;

    reply_free(r);
    return is;
}

static void run_for(struct seen *s, int64_t ms)
{
    loop_timer_set(s->end, ms);
    loop_run(s->loop);
}

/* The connection that brings the new key cannot be made for a while; the old one goes on. */
static void test_what_is_watched_comes_with_a_later_connection(void **state)
{
    static const char *const keys[] = {"k", NULL};
    struct seen s = {.loop = loop_new()};
    struct sub_events events = {on_event, on_wake, NULL, on_denied, &s};
    struct err err = ERR_INIT;
    struct sub *sub = sub_new(s.loop, "default", 5000, &events);
    struct mono until = mono_add_ms(mono_now(), 60000);
    struct url url;
    char away[128];

    (void)state;
    assert_int_equal(url_parse(redis.url, &url, &err), 0);
    s.end = loop_timer_new(s.loop, on_end, &s);
    sub_start(sub, &url);
    run_for(&s, 300);
    (void)snprintf(away, sizeof(away), "%s.away", redis.sock);
    assert_int_equal(rename(redis.sock, away), 0);
    sub_watch(sub, keys);
    run_for(&s, 300);
    assert_int_equal(rename(away, redis.sock), 0);
    assert_false(is_watched());
    while (!is_watched() && mono_before(mono_now(), until))
        run_for(&s, 50);
    assert_true(is_watched());
    sub_free(sub);
    loop_timer_free(s.end);
    loop_free(s.loop);
}

/* ---- a password that the server learns late */

static const char *secret;
static unsigned refusals;

static int give_secret(struct url *url, struct err *err)
{
    (void)err;
    (void)snprintf(url->password, sizeof(url->password), "%s", secret);
    return 1;
}

static void on_password(void *arg, const char *text)
{
    (void)arg;
    (void)text;
    refusals++;
}

/* AUTH was sent on both connections, and none was refused. */
static bool has_logged_in(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_auth:");
    bool has = at != NULL && atoi(at + strlen("cmdstat_auth:calls=")) >= 2 &&
               strncmp(strstr(at, "failed_calls="), "failed_calls=0", 14) == 0;

    reply_free(r);
    return has;
}

static void test_a_refused_password_is_sent_again(void **state)
{
    struct seen s = {.loop = loop_new()};
    struct link_events events = {on_up, on_down,   on_event,    on_wake,
                                 NULL,  on_denied, on_password, &s};
    struct mono until = mono_add_ms(mono_now(), 60000);
    struct err err = ERR_INIT;
    struct url url;
    struct link *l;

    (void)state;
    assert_int_equal(url_parse(redis.url, &url, &err), 0);
    (void)snprintf(url.user, sizeof(url.user), "u");
    url.ask_password = give_secret;
    secret = "old";
    reply_free(
        test_redis_call(&redis, "ACL", "SETUSER", "u", "on", ">old", "~*", "&*", "+@all", NULL));
    l = link_new(s.loop, &url, "default", 5000, &events);
    s.end = loop_timer_new(s.loop, on_end, &s);
    link_start(l);
    while (s.ups == 0 && mono_before(mono_now(), until))
        run_for(&s, 50);
    secret = "new";
    link_ask_password(l);
    while ((refusals == 0 || s.denied == 0) && mono_before(mono_now(), until))
        run_for(&s, 50);
    assert_int_equal(s.denied, 1); /* the subscription says so, too */
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "u", ">new", NULL));
    reply_free(test_redis_call(&redis, "CONFIG", "RESETSTAT", NULL));
    link_ask_password(l);
    while (!has_logged_in() && mono_before(mono_now(), until))
        run_for(&s, 50);
    assert_true(has_logged_in());
    assert_int_equal(refusals, 1);
    assert_int_equal(s.downs, 0);
    link_free(l);
    loop_timer_free(s.end);
    loop_free(s.loop);
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
        cmocka_unit_test(test_a_new_password_makes_no_second_connection),
        cmocka_unit_test(test_what_is_watched_comes_with_a_later_connection),
        cmocka_unit_test(test_a_refused_password_is_sent_again),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
