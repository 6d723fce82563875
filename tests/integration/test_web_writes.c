/*
 * What later-web may change with the users of etc/users.acl: it reads as `dashboard`, which can
 * write nothing whatever is asked of it, and writes as `operator`, whose rights are enough for all
 * that the API can change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/roles.h"
#include "web_fixture.h"

#define API "/api/v1/default/"
#define SECRET "secret"

/* ---- the server and its users */

static void make_user(struct client *c, const char *role)
{
    CLEANUP_FREE char *rights = test_role_rights(role, "default");
    CLEANUP_FREE char *with = mem_printf("resetpass >%s %s", SECRET, rights);

    test_role_set(c, role, with);
}

static int start_users(void **state)
{
    struct err why = ERR_INIT;
    struct client *c;

    assert_int_equal(start_all(state), 0);
    c = test_redis_client(&redis, &why);
    assert_non_null(c);
    make_user(c, "dashboard");
    make_user(c, "operator");
    client_close(c);
    return 0;
}

/* writer: the user in web.write_user; "": there is none. */
static void start_as(const char *writer)
{
    CLEANUP_FREE char *url = mem_printf("unix:dashboard@%s", redis.sock);
    CLEANUP_FREE char *file = mem_printf("%s/password", redis.dir);
    FILE *f = fopen(file, "we");

    assert_non_null(f);
    (void)fprintf(f, "%s\n", SECRET);
    (void)fclose(f);
    assert_int_equal(chmod(file, 0600), 0);
    web_redis = url;
    web_setting(mem_strdup("REDISCLI_AUTH=" SECRET));
    web_setting(mem_printf("LATERD_WEB_WRITE_USER=%s", writer));
    if (writer[0] != '\0')
        web_setting(mem_printf("LATERD_WEB_WRITE_PASSWORD_FILE=%s", file));
    start_web("--write");
    web_redis = NULL;
}

/* ---- what there is to change */

static char job[13], dead[13], bulk[13];

/* The first element of a function's reply. */
static void call(char ret[13], const char *function, const char *const *words, int n)
{
    const char *argv[16] = {"FCALL", function, "1", ROOT};
    struct err why = ERR_INIT;
    struct client *c = test_redis_client(&redis, &why);
    struct reply *r;

    for (int i = 0; i < n; i++)
        argv[4 + i] = words[i];
    r = client_call(c, 4 + n, argv, NULL, &why);
    if (r == NULL)
        fail_msg("%s: %s", function, why.text);
    (void)snprintf(ret, 13, "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
    client_close(c);
}

static void furnish(void)
{
    static const char *const due[] = {"mail", "in", "1h", "x"};
    static const char *const slow[] = {"cancel", "mail", "due", "rate", "1/1h"};

    call(job, "later_add", due, 4);
    call(bulk, "later_bulk", slow, 5);
    (void)snprintf(dead, sizeof(dead), "j00000000001");
    do_redis("ZADD", ROOT ":dead:mail", "1", dead);
    do_redis("HSET", ROOT ":jobs", dead, "-mail\nx");
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "nightly", "cron", "@daily", "queue", "mail",
             "x");
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "weekly", "cron", "@weekly", "queue", "mail",
             "x");
    do_redis("FCALL", "later_schedule_pause", "1", ROOT, "weekly", "by", "anna");
    do_redis("FCALL", "later_pause", "1", ROOT, "off", "by", "anna");
}

/* A digest of all keys. */
static void look_at_keys(char ret[41])
{
    static const char script[] = "local keys, all = redis.call('KEYS', '*'), ''\n"
                                 "table.sort(keys)\n"
                                 "for _, key in ipairs(keys) do\n"
                                 "  all = redis.sha1hex(all .. key .. redis.call('DUMP', key))\n"
                                 "end\n"
                                 "return all";
    struct reply *r = test_redis_call(&redis, "EVAL", script, "0", NULL);

    (void)snprintf(ret, 41, "%s", reply_str(r));
    reply_free(r);
}

/* ---- all that the API can change */

/* $j: a waiting job, $d: a dead one, $b: a bulk. */
static const struct {
    const char *path, *body;
} writes[] = {
    {"jobs", "{\"queue\":\"sms\",\"payload\":\"x\",\"in\":\"1h\",\"key\":\"k\",\"unique\":\"u\","
             "\"attempts\":3,\"priority\":2,\"token\":\"t\"}"},
    {"jobs", "{\"queue\":\"sms\",\"payload\":\"now\"}"},
    {"jobs/$d/retry", "{}"},
    {"jobs/$j/reschedule", "{\"at\":\"+2h\"}"},
    {"jobs/$j/run", "{}"},
    {"jobs/$j/cancel", "{}"},
    {"queues/mail/pause", "{\"reason\":\"deploy\",\"for\":\"1h\"}"},
    {"queues/off/resume", "{}"},
    {"schedules/nightly/pause", "{\"reason\":\"deploy\"}"},
    {"schedules/weekly/resume", "{}"},
    {"schedules/nightly/run", "{}"},
    {"bulks/$b/abort", "{}"},
    {"bulks", "{\"verb\":\"retry\",\"queue\":\"mail\",\"state\":\"dead\",\"to\":\"sms\"}"},
    {"bulks", "{\"verb\":\"reschedule\",\"queue\":\"mail\",\"state\":\"due\",\"at\":\"+1h\"}"},
    {"bulks", "{\"verb\":\"cancel\",\"queue\":\"mail\",\"state\":\"due\",\"rate\":\"10/s\"}"},
    {"bulks", "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"why\":\"old\"}"},
};

static int write_it(size_t i)
{
    CLEANUP_BUF struct buf path = BUF_INIT;

    buf_puts(&path, API);
    for (const char *p = writes[i].path; *p != '\0'; p++) {
        if (*p != '$')
            buf_add(&path, p, 1);
        else
            buf_puts(&path, *++p == 'j' ? job : *p == 'd' ? dead : bulk);
    }
    return post(buf_str(&path), writes[i].body);
}

static void test_each_write_is_the_operators_work(void **state)
{
    (void)state;
    furnish();
    start_as("operator");
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
        if (write_it(i) != 200)
            fail_msg("%s: %s", writes[i].path, buf_str(&out));
    assert_int_equal(count("ZCARD", ROOT ":dead:mail"), 0);
    assert_int_equal(count("HLEN", ROOT ":paused"), 1); /* mail in place of off */
}

/* Refused is each, with the right that is missing, and nothing is half done. */
static void test_who_only_looks_writes_nothing(void **state)
{
    char before[41], after[41];

    (void)state;
    furnish();
    start_as("");
    look_at_keys(before);
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        if (write_it(i) != 403)
            fail_msg("%s: %s", writes[i].path, buf_str(&out));
        assert_says(&out, "user dashboard, function later_");
        assert_says(&out, "a right is missing");
    }
    look_at_keys(after);
    assert_string_equal(before, after);
}

/* ---- all that the API can show */

static void test_the_dashboard_sees_all(void **state)
{
    static const char *const paths[] = {"overview",
                                        "health",
                                        "workers",
                                        "gates",
                                        "gates?gate=lock:x",
                                        "bulks",
                                        "queues",
                                        "queues/mail",
                                        "queues/mail/jobs?state=due",
                                        "queues/mail/jobs?state=dead",
                                        "queues/mail/reasons",
                                        "dead",
                                        "running",
                                        "schedules",
                                        "schedules/nightly",
                                        "batches",
                                        "batches/b",
                                        "search?q=m",
                                        "jobs/j00000000001",
                                        "jobs/j00000000001/payload"};
    char before[41], after[41];
    int fd;

    (void)state;
    furnish();
    do_redis("FCALL", "later_batch", "1", ROOT, "b", "then", "mail", "x");
    start_as("operator");
    look_at_keys(before);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        CLEANUP_FREE char *path = mem_printf(API "%s", paths[i]);

        if (get(path) != 200)
            fail_msg("%s: %s", path, buf_str(&out));
        assert_null(strstr(buf_str(&out), "NOPERM"));
    }
    fd = open_tail();
    assert_says(&out, "200 OK");
    (void)close(fd);
    look_at_keys(after);
    assert_string_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_each_write_is_the_operators_work),
        WEB_TEST(test_who_only_looks_writes_nothing),
        WEB_TEST(test_the_dashboard_sees_all),
    };

    return cmocka_run_group_tests_name("web_writes", tests, start_users, stop_all);
}
