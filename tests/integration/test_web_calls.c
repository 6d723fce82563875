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
    assert_int_equal(get("/api/v1/default/queues/mail/jobs?state=lost"), 400);
}

/* A name that nothing can have is a mistake of who asks; what the state of a thing forbids is not.
 */
static void test_a_refusal_says_whose_fault_it_is(void **state)
{
    static const struct {
        const char *path, *body; /* NULL: it is looked at */
        int status;
        const char *says;
    } asked[] = {
        {"queues/a%20b", NULL, 400, "a b"},
        {"queues/a%20b/jobs", NULL, 400, "a b"},
        {"queues/a%20b/reasons", NULL, 400, "a b"},
        {"queues/a%20b/pause", "{}", 400, "a b"},
        {"queues/a%20b/resume", "{}", 400, "a b"},
        {"schedules/a%20b", NULL, 400, "a b"},
        {"schedules/a%20b/run", "{}", 400, "a b"},
        {"schedules/nightly", NULL, 404, "nightly"},
        {"batches/a%20b", NULL, 400, "a b"},
        {"batches/b", NULL, 404, "b"},
        {"jobs/a%20b", NULL, 400, "a b"},
        {"jobs/a%20b/cancel", "{}", 400, "a b"},
        {"jobs/j00000000000", NULL, 404, "j00000000000"},
        {"bulks/a%20b/abort", "{}", 404, "a b"},
        {"gates?gate=bolt:x", NULL, 400, "bolt"},
        {"jobs", "{\"queue\":\"a b\",\"payload\":\"x\"}", 400, "a b"},
        {"jobs", "{\"queue\":\"mail\",\"payload\":\"x\",\"token\":\"a b\"}", 400, "token"},
        {"jobs", "{\"queue\":\"mail\",\"payload\":\"x\",\"token\":\"t\"}", 200, "added"},
        {"jobs", "{\"queue\":\"mail\",\"payload\":\"y\",\"token\":\"t\"}", 409, "another job"},
        {"bulks", "{\"verb\":\"shake\",\"queue\":\"mail\",\"state\":\"dead\"}", 400, "VERB"},
        {"jobs", "{\"queue\":\"foreign\",\"payload\":\"x\",\"in\":\"1h\"}", 502, "string"},
    };

    (void)state;
    do_redis("SET", ROOT ":q:foreign:5", "x");
    start_web("--write");
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        CLEANUP_FREE char *path = mem_printf("/api/v1/default/%s", asked[i].path);
        int status = asked[i].body != NULL ? post(path, asked[i].body) : get(path);

        if (status != asked[i].status)
            fail_msg("%s, %d: %s", path, asked[i].status, buf_str(&out));
        assert_says(&out, asked[i].says);
    }
}

/* An escaped name would be that of another gate. */
static void test_a_gate_whose_name_is_no_text_keeps_its_bytes(void **state)
{
    CLEANUP_FREE char *id = NULL, *job = NULL;

    (void)state;
    start_web(NULL);
    do_redis("FCALL", "later_limit_set", "1", ROOT, "\xff", "semaphore", "2");
    do_redis("FCALL", "later_sem_acquire", "1", ROOT, "\xff", "me", "ttl", "1h");
    assert_int_equal(run("add", "mail", "--sem", "\xff", "x"), 0);
    id = mem_dup(buf_str(&out), 12);
    job = mem_printf("/api/v1/default/jobs/%s", id);
    assert_int_equal(get("/api/v1/default/gates"), 200);
    assert_says(&out, "\"kind\":\"sem\",\"name_base64\":\"/w==\"");
    assert_int_equal(get("/api/v1/default/gates?gate=sem:%ff"), 200);
    assert_says(&out, "\"caller\":\"me\"");
    assert_int_equal(get("/api/v1/default/search?q=%ff"), 200);
    assert_says(&out, "\"kind\":\"sem\",\"name_base64\":\"/w==\"");
    assert_int_equal(get(job), 200);
    assert_says(&out, "\"sem_base64\":\"/w==\"");
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

/* Each shard is a namespace of its own, with jobs of its own. */
static void test_shards_are_namespaces(void **state)
{
    (void)state;
    web_setting(mem_strdup("LATER_NAMESPACE=shop"));
    web_setting(mem_strdup("LATER_SHARDS=3"));
    start_web("--write");
    assert_int_equal(get("/api/v1/"), 200);
    assert_says(&out, "\"namespaces\":[\"shop.0\",\"shop.1\",\"shop.2\"]");
    assert_int_equal(post("/api/v1/shop.1/jobs", "{\"queue\":\"mail\",\"payload\":\"of one\"}"),
                     200);
    /* CRC-16 of acme modulo 3 is 2. */
    assert_int_equal(
        post("/api/v1/shop.1/jobs", "{\"queue\":\"mail\",\"payload\":\"x\",\"key\":\"acme\"}"),
        400);
    assert_says(&out, "key acme belongs to shard 2");
    assert_int_equal(
        post("/api/v1/shop.2/jobs", "{\"queue\":\"mail\",\"payload\":\"x\",\"key\":\"acme\"}"),
        200);
    assert_int_equal(get("/api/v1/shop.1/queues/mail/jobs?state=due"), 200);
    assert_says(&out, "of one");
    assert_int_equal(get("/api/v1/shop.2/queues/mail/jobs?state=due"), 200);
    assert_null(strstr(buf_str(&out), "of one"));
    assert_int_equal(run("--namespace", "shop.1", "ls", "mail"), 0);
    assert_says(&out, "of one");
    assert_int_equal(get("/api/v1/shop/overview"), 404);
    assert_int_equal(get("/api/v1/shop.3/overview"), 404);
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

/* HEAD asks for what GET would say, without saying it. */
static void test_head_has_no_body(void **state)
{
    static const char *const paths[] = {"/", "/api/v1/", "/api/v1/default/queues",
                                        "/api/v1/default/tail", "/api/v1/default/lost"};

    (void)state;
    start_web(NULL);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        CLEANUP_FREE char *text =
            mem_printf("HEAD %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n",
                       paths[i], port, token);
        const char *end;

        assert_int_equal(request(text), i == 4 ? 404 : 200);
        end = strstr(buf_str(&out), "\r\n\r\n");
        assert_non_null(end);
        assert_string_equal(end, "\r\n\r\n");
    }
    assert_int_equal(publish("1 1 0"), 0); /* nobody follows */
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
    static const char *const changes[] = {
        path,
        "/api/v1/default/queues/mail/resume",
        "/api/v1/default/jobs/j00000000001/retry",
        "/api/v1/default/jobs/j00000000001/cancel",
        "/api/v1/default/jobs/j00000000001/run",
        "/api/v1/default/schedules/s/run",
        "/api/v1/default/bulks/b00000000001/abort",
    };

    (void)state;
    start_web("--write");
    assert_int_equal(post_from("Sec-Fetch-Site: cross-site\r\n", path, "{}"), 403);
    assert_int_equal(post_from("Sec-Fetch-Site: same-site\r\n", path, "{}"), 403);
    assert_int_equal(post(path, "[]"), 400);
    assert_int_equal(post(path, "{\"reason\":1,\"reason\":2}"), 400);
    /* What a browser says of the page does not count where it says that it is another one's, and
     * Origin, which can be missing, never does. */
    assert_int_equal(
        post_from("Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n", path, "{}"),
        403);
    assert_int_equal(
        post_from("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", path, "{}"),
        403);
    /* Nothing is changed by looking, */
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        assert_int_equal(get(changes[i]), 404);
    /* or by whoever has not the token, whatever page he is at. */
    token[0] = token[0] == '0' ? '1' : '0';
    assert_int_equal(post(path, "{}"), 401);
    assert_int_equal(post_from("", path, "{}"), 401);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

/* ---- what is no fair question */

/* All that can be looked at. */
static const char *const pages[] = {
    "overview",
    "health",
    "workers",
    "gates",
    "bulks",
    "queues",
    "queues/mail",
    "queues/mail/jobs?state=due",
    "queues/mail/reasons",
    "running",
    "dead",
    "jobs/j00000000001",
    "schedules",
    "schedules/s",
    "batches",
    "batches/b",
    "search?q=mail",
    "jobs/j00000000001/payload",
};
#define PAGES (sizeof(pages) / sizeof(pages[0]))

static int get_page(const char *page, const char *more)
{
    CLEANUP_FREE char *path = mem_printf("/api/v1/default/%s%s%s", page,
                                         more[0] == '\0'             ? ""
                                         : strchr(page, '?') != NULL ? "&"
                                                                     : "?",
                                         more);

    return get(path);
}

/* A number out of its bounds is the usual one, or refused; no answer grows by it. */
static void test_numbers_out_of_bounds_cost_nothing(void **state)
{
    static const char *const numbers[] = {
        "0", "-1", "1000000000000000000", "99999999999999999999999", "1e18", "0x7f", "%00", ""};
    static const char *const names[] = {"count",  "days",  "page", "refresh",
                                        "cursor", "after", "at"};
    long before;

    (void)state;
    for (int i = 0; i < 300; i++)
        do_redis("FCALL", "later_add", "1", ROOT, "mail", "in", "1h", "x");
    start_web(NULL);
    assert_int_equal(get("/api/v1/default/queues/mail/jobs?state=due&count=1"), 200);
    before = resident();
    for (size_t p = 0; p < PAGES; p++)
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
            for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                CLEANUP_FREE char *more = mem_printf("%s=%s", names[n], numbers[i]);
                int status = get_page(pages[p], more);

                if (status != 200 && status != 400 && status != 404 && status != 409)
                    fail_msg("%s %s: %s", pages[p], more, buf_str(&out));
                assert_true(out.len < 262144);
            }
    assert_true(test_is_sanitized() || resident() - before < 16384);
}

/* Texts of producers, handlers and operators stand in JSON, which no browser shows as a page; what
 * a page makes of them in Chromium: tests/web/xss.mjs. */
static void test_hostile_texts_stay_texts(void **state)
{
    static const char *const evil[] = {"<script>alert(1)</script>",
                                       "\"><img src=x onerror=alert(1)>",
                                       "javascript:alert(1)",
                                       "\\u003cscript\\u003e\\\"",
                                       "\xe2\x80\xa8\xe2\x80\xae]]>--></script>",
                                       "\xff\xfe\x80'`${1}"};
    json_t *told;

    (void)state;
    start_web(NULL);
    for (size_t e = 0; e < sizeof(evil) / sizeof(evil[0]); e++) {
        CLEANUP_FREE char *record = mem_printf("-mail 5 K=%s T=%s\n%s", evil[e], evil[e], evil[e]);
        CLEANUP_FREE char *outcome = mem_printf("dead 3 1767225600000 1 %s\n%s", evil[e], evil[e]);
        CLEANUP_FREE char *pause = mem_printf("0 1767225600000 %s %s", evil[e], evil[e]);

        do_redis("FLUSHALL");
        do_redis("SADD", ROOT ":names", "mail", evil[e]);
        do_redis("HSET", ROOT ":jobs", "j00000000001", record);
        do_redis("HSET", ROOT ":tries", "j00000000001", "1 1 0 1000");
        do_redis("HSET", ROOT ":errors", "j00000000001", outcome);
        do_redis("HSET", ROOT ":progress", "j00000000001", evil[e]);
        do_redis("ZADD", ROOT ":dead:mail", "1767225600000", "j00000000001");
        do_redis("HSET", ROOT ":paused", "mail", pause);
        do_redis("HSET", ROOT ":workers", "7", "1");
        do_redis("HSET", ROOT ":worker:7", "link", "1", "inst", evil[e], "host", evil[e], "version",
                 evil[e], "queues", "mail", "started", "1767225600000", "pid", evil[e]);
        for (size_t p = 0; p < PAGES; p++) {
            CLEANUP_FREE char *fresh = mem_printf("n=%zu", e); /* not the answer of a moment ago */
            int status = get_page(pages[p], fresh);

            assert_true(status > 0 && status != 500);
            assert_says(&out, "X-Content-Type-Options: nosniff\r\n");
            assert_says(&out, "default-src 'none'");
            if (strstr(buf_str(&out), "Content-Disposition: attachment") != NULL)
                continue;
            assert_says(&out, "Content-Type: application/json\r\n");
            told = answer();
            json_decref(told);
        }
    }
    assert_int_equal(get("/api/v1/default/%3Cscript%3Ealert(1)%3C%2Fscript%3E"), 404);
    assert_null(strstr(buf_str(&out), "<script>"));
    assert_int_equal(get("/%3Cscript%3Ealert(1)%3C%2Fscript%3E"), 404);
    assert_null(strstr(buf_str(&out), "<script>"));
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
    for (size_t p = 0; p < PAGES; p++)
        assert_int_equal(get_page(pages[p], ""), 503);
    test_redis_restart(&redis);
    test_redis_load(&redis);
    assert_true(test_until(is_back, NULL, LONG_MS));
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
        WEB_TEST(test_a_refusal_says_whose_fault_it_is),
        WEB_TEST(test_a_gate_whose_name_is_no_text_keeps_its_bytes),
        WEB_TEST(test_payloads_are_hidden_everywhere),
        WEB_TEST(test_shards_are_namespaces),
        WEB_TEST(test_a_hundred_viewers_cost_what_one_costs),
        WEB_TEST(test_head_has_no_body),
        WEB_TEST(test_a_page_that_only_looks_changes_nothing),
        WEB_TEST(test_a_page_that_may_write_does_what_the_command_does),
        WEB_TEST(test_each_option_counts_or_is_refused),
        WEB_TEST(test_another_site_changes_nothing),
        WEB_TEST(test_numbers_out_of_bounds_cost_nothing),
        WEB_TEST(test_hostile_texts_stay_texts),
        WEB_TEST(test_without_redis_it_says_so_and_comes_back),
        WEB_TEST(test_it_adds_jobs_again_after_a_restart_of_redis),
    };

    return cmocka_run_group_tests_name("web_calls", tests, start_all, stop_all);
}
