/*
 * later-web with a real server: what is answered, what may be changed, and what it costs Redis.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "web_fixture.h"

static void test_the_api_tells_what_the_command_tells(void **state)
{
    static const char payload[] = "<script>alert(1)</script>\"&\x7f\xff";
    CLEANUP_FREE char *id = NULL;
    json_t *all, *one, *listed;

    (void)state;
    start_web(NULL);
    assert_int_equal(run_in(payload, sizeof(payload) - 1, "add", "mail", "-", NULL), 0);
    id = mem_dup(buf_str(&out), 12);
    assert_int_equal(run("--json", "stats", "mail"), 0);
    all = json_loads(buf_str(&out), 0, NULL);
    listed = json_array_get(json_object_get(all, "queues"), 0);
    assert_int_equal(get("/api/v1/default/queues/mail"), 200);
    one = answer();
    assert_true(json_equal(json_object_get(one, "queue"), listed));
    json_decref(one);
    json_decref(all);

    {
        CLEANUP_FREE char *path = mem_printf("/api/v1/default/jobs/%s", id);
        CLEANUP_FREE char *bytes = mem_printf("/api/v1/default/jobs/%s/payload", id);

        assert_int_equal(get(path), 200);
        one = answer();
        assert_string_equal(text_of(json_object_get(one, "job"), "id"), id);
        assert_string_equal(text_of(json_object_get(one, "explain"), "waits_for"), "worker");
        json_decref(one);
        assert_int_equal(get(bytes), 200);
        assert_says(&out, "Content-Type: text/plain; charset=utf-8\r\n");
        assert_says(&out, "Content-Disposition: attachment; filename=\"payload.txt\"");
        assert_says(&out, "Content-Security-Policy: sandbox; default-src 'none'");
        assert_memory_equal(out.data + out.len - (sizeof(payload) - 1), payload,
                            sizeof(payload) - 1);
    }
    assert_int_equal(get("/api/v1/default/jobs/j00000000000"), 404);
    assert_int_equal(get("/api/v1/other/queues"), 404);
    assert_int_equal(get("/api/v1/default/queues/a%20b"), 409);
    assert_int_equal(get("/api/v1/default/queues/mail/jobs?state=lost"), 400);
}

/* No answer has the bytes, as text or as base64. */
static void assert_hidden(const char *path)
{
    assert_int_equal(get(path), 200);
    assert_null(strstr(buf_str(&out), "\"payload_start"));
    assert_null(strstr(buf_str(&out), "\"payload\""));
    assert_null(strstr(buf_str(&out), "_base64"));
    assert_null(strstr(buf_str(&out), "hidden"));
}

static void test_payloads_are_hidden_everywhere(void **state)
{
    static const char payload[] = "hidden\xff";
    CLEANUP_FREE char *id = NULL;

    (void)state;
    assert_int_equal(run_in(payload, sizeof(payload) - 1, "add", "mail", "-", NULL), 0);
    id = mem_dup(buf_str(&out), 12);
    do_redis("FCALL", "later_batch", "1", ROOT, "b", "then", "mail", payload);
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "s", "every", "1h", "queue", "mail",
             payload);
    web_setting(mem_strdup("LATERD_WEB_PAYLOADS=false"));
    start_web(NULL);
    {
        CLEANUP_FREE char *job = mem_printf("/api/v1/default/jobs/%s", id);
        CLEANUP_FREE char *bytes = mem_printf("/api/v1/default/jobs/%s/payload", id);
        CLEANUP_FREE char *search = mem_printf("/api/v1/default/search?q=%s", id);

        assert_hidden(job);
        assert_hidden(search);
        assert_int_equal(get(bytes), 403);
    }
    assert_hidden("/api/v1/default/queues/mail/jobs?state=due");
    assert_hidden("/api/v1/default/queues/mail");
    assert_hidden("/api/v1/default/running");
    assert_hidden("/api/v1/default/batches/b");
    assert_hidden("/api/v1/default/batches");
    assert_hidden("/api/v1/default/schedules/s");
    assert_hidden("/api/v1/default/schedules");
}

/* How often functions were called since the server's statistics were reset. */
static int64_t calls(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_fcall:calls=");
    int64_t n = at != NULL ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;

    reply_free(r);
    return n;
}

static void test_a_hundred_viewers_cost_what_one_costs(void **state)
{
    struct mono begin = mono_now();
    int64_t ms, of_one;

    (void)state;
    start_web(NULL);
    do_redis("CONFIG", "RESETSTAT");
    assert_int_equal(get("/api/v1/default/workers"), 200);
    of_one = calls();
    assert_true(of_one >= 2); /* workers, suspects */
    for (int i = 1; i < 100; i++)
        assert_int_equal(get("/api/v1/default/workers"), 200);
    ms = test_ms_since(begin);
    assert_true(calls() <= of_one * (ms / 1900 + 1));
    do_redis("CONFIG", "RESETSTAT");
    assert_int_equal(calls(), 0); /* nobody looks */
}

static void test_a_page_that_only_looks_changes_nothing(void **state)
{
    (void)state;
    start_web(NULL);
    assert_int_equal(post("/api/v1/default/jobs", "{\"queue\":\"mail\",\"payload\":\"x\"}"), 403);
    assert_int_equal(post("/api/v1/default/queues/mail/pause", "{}"), 403);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

static void test_a_page_that_may_write_does_what_the_command_does(void **state)
{
    json_t *told;

    (void)state;
    start_web("--write");
    assert_int_equal(post("/api/v1/default/jobs",
                          "{\"queue\":\"mail\",\"payload\":\"x\",\"in\":\"1h\",\"key\":\"k\"}"),
                     200);
    told = answer();
    assert_string_equal(text_of(told, "status"), "added");
    {
        CLEANUP_FREE char *cancel =
            mem_printf("/api/v1/default/jobs/%s/cancel", text_of(told, "id"));

        assert_int_equal(count("HLEN", ROOT ":jobs"), 1);
        assert_int_equal(post(cancel, "{}"), 200);
        assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
        assert_int_equal(post(cancel, "{}"), 404);
    }
    json_decref(told);
    assert_int_equal(post("/api/v1/default/queues/mail/pause", "{\"reason\":\"deploy\"}"), 200);
    assert_int_equal(run("--json", "stats", "mail"), 0);
    assert_says(&out, "\"by\":\"web\",\"reason\":\"deploy\"");
    assert_int_equal(post("/api/v1/default/queues/mail/resume", "{}"), 200);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

/* A page sends numbers as numbers. What is not understood is refused: without its reason a bulk
 * would mean all jobs. */
static void test_each_option_counts_or_is_refused(void **state)
{
    static const char bulk[] = "/api/v1/default/bulks", jobs[] = "/api/v1/default/jobs";

    (void)state;
    start_web("--write");
    assert_int_equal(
        post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"in\":\"1h\",\"priority\":0}"), 200);
    assert_int_equal(count("ZCARD", ROOT ":q:mail:0"), 1);
    assert_int_equal(post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"priority\":true}"), 400);
    assert_int_equal(post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"key\":\"a\\u0000b\"}"),
                     400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"reason\":[\"x\"]}"),
        400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"reason\":\"\"}"),
        400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"key\":\"\"}"), 400);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 1);
}

static void test_another_site_changes_nothing(void **state)
{
    static const char path[] = "/api/v1/default/queues/mail/pause";

    (void)state;
    start_web("--write");
    assert_int_equal(post_from("Sec-Fetch-Site: cross-site\r\n", path, "{}"), 403);
    assert_int_equal(post_from("Sec-Fetch-Site: same-site\r\n", path, "{}"), 403);
    assert_int_equal(post(path, "[]"), 400);
    assert_int_equal(post(path, "{\"reason\":1,\"reason\":2}"), 400);
    assert_int_equal(get(path), 404);
    token[0] = token[0] == '0' ? '1' : '0';
    assert_int_equal(post(path, "{}"), 401);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

static bool is_back(void *arg)
{
    (void)arg;
    return get("/api/v1/default/queues") == 200;
}

static void test_without_redis_it_says_so_and_comes_back(void **state)
{
    json_t *said;

    (void)state;
    start_web(NULL);
    assert_int_equal(get("/api/v1/default/queues"), 200);
    test_redis_kill(&redis, SIGKILL);
    test_pause(2000); /* the last answer is shown for so long */
    assert_int_equal(get("/api/v1/default/queues"), 503);
    said = answer();
    assert_true(strlen(text_of(said, "text")) > 10);
    json_decref(said);
    assert_int_equal(get_as("", "/"), 200);
    test_redis_restart(&redis);
    test_redis_load(&redis);
    assert_true(test_until(is_back, NULL, LONG_MS));
}

static bool can_add(void *arg)
{
    (void)arg;
    return post("/api/v1/default/jobs", "{\"queue\":\"mail\",\"payload\":\"x\"}") == 200;
}

/* Each kind of question makes the connection anew, not only some. */
static void test_it_adds_jobs_again_after_a_restart_of_redis(void **state)
{
    (void)state;
    start_web("--write");
    assert_true(can_add(NULL));
    test_redis_kill(&redis, SIGKILL);
    test_redis_restart(&redis);
    test_redis_load(&redis);
    assert_true(test_until(can_add, NULL, LONG_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_the_api_tells_what_the_command_tells),
        WEB_TEST(test_payloads_are_hidden_everywhere),
        WEB_TEST(test_a_hundred_viewers_cost_what_one_costs),
        WEB_TEST(test_a_page_that_only_looks_changes_nothing),
        WEB_TEST(test_a_page_that_may_write_does_what_the_command_does),
        WEB_TEST(test_each_option_counts_or_is_refused),
        WEB_TEST(test_another_site_changes_nothing),
        WEB_TEST(test_without_redis_it_says_so_and_comes_back),
        WEB_TEST(test_it_adds_jobs_again_after_a_restart_of_redis),
    };

    return cmocka_run_group_tests_name("web_calls", tests, start_all, stop_all);
}
