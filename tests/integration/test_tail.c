/* later tail, beside a real laterd: what it tells, how it ends, and what it says when it missed
 * some. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "json/tail_event.h"
#include "fixture.h"

#define LONG_MS 60000

static struct proc tail;
static char tail_log[96];

/* Add a job. Once its event is printed, the command follows. */
static bool follows(void *arg)
{
    (void)arg;
    free(test_add(&redis, "probe", "in", "10h", "x"));
    return test_lines(tail_log, "probe") > 0;
}

static void start_tail(const char *first, const char *second)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    char *argv[] = {later,
                    (char *)(uintptr_t) "--redis",
                    redis.url,
                    (char *)(uintptr_t) "tail",
                    (char *)(uintptr_t)first,
                    (char *)(uintptr_t)second,
                    NULL};

    (void)snprintf(tail_log, sizeof(tail_log), "%s/tail", dir);
    (void)unlink(tail_log);
    proc_start(&tail, argv, NULL, tail_log);
}

static void follow_all(const char *option)
{
    start_tail(option, NULL);
    assert_true(test_until(follows, NULL, LONG_MS));
}

static void end_tail(void)
{
    proc_signal(&tail, SIGINT);
    assert_int_equal(proc_wait(&tail, LONG_MS), 130);
    proc_done(&tail);
}

/* Does a line of the log have both the id and this text? */
static bool tells(const char *id, const char *text)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    CLEANUP_FREE char *bytes = NULL;
    char *rest, *line;

    test_read(tail_log, &log);
    rest = bytes = buf_take(&log);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strstr(line, id) != NULL && strstr(line, text) != NULL)
            return true;
    return false;
}

struct wanted {
    const char *id, *text;
};

static bool is_told(void *arg)
{
    const struct wanted *w = arg;

    return tells(w->id, w->text);
}

#define assert_told(id, text) assert_true(test_until(is_told, &(struct wanted){id, text}, LONG_MS))

static void test_each_event(void **state)
{
    CLEANUP_FREE char *done = NULL, *bad = NULL, *gone = NULL, *cancel = NULL;

    (void)state;
    test_handler(dir, "mail", "exit 0");
    test_handler(dir, "bad", "exit 7");
    test_handler(dir, "gone", "echo 'result no such user' >&3; exit 65");
    start_a("defaults: { backoff: { first: 1h, jitter: 0% } }");
    follow_all(NULL);
    done = test_add(&redis, "mail", "in", "1s", "x");
    bad = test_add(&redis, "bad", NULL, NULL, "x");
    gone = test_add(&redis, "gone", NULL, NULL, "x");
    cancel = test_add(&redis, "mail", "in", "1h", "x");
    reply_free(test_fcall(&redis, "later_cancel", cancel, NULL));
    assert_told(done, "added     ");
    assert_told(done, "due in ");
    assert_told(done, "started   ");
    assert_told(done, "done      ");
    assert_told(bad, "failed    ");
    assert_told(bad, "attempt 1, exit status 7, again in ");
    assert_told(gone, "dead      ");
    assert_told(gone, "exit status 65");
    assert_told(cancel, "cancelled ");
    end_tail();
}

static void test_one_queue_as_json(void **state)
{
    CLEANUP_FREE char *id = NULL, *other = NULL;
    CLEANUP_BUF struct buf log = BUF_INIT;
    CLEANUP_FREE char *bytes = NULL;
    char *rest, *line;

    (void)state;
    test_handler(dir, "mail", "exit 0");
    test_handler(dir, "probe", "exit 0");
    start_a("");
    start_tail("--json", "probe");
    assert_true(test_until(follows, NULL, LONG_MS));
    other = test_add(&redis, "mail", NULL, NULL, "x");
    id = test_add(&redis, "probe", NULL, NULL, "x");
    assert_told(id, "\"event\":\"started\"");
    assert_told(id, "\"event\":\"done\"");
    assert_false(tells(other, "event"));
    test_read(tail_log, &log);
    rest = bytes = buf_take(&log);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

        if (object == NULL)
            fail_msg("no JSON: %s", line);
        assert_string_equal(json_string_value(json_object_get(object, "queue")), "probe");
        assert_true(json_integer_value(json_object_get(object, "time_ms")) > 1000000000000);
        json_decref(object);
    }
    end_tail();
}

static void test_it_comes_back(void **state)
{
    int n;

    (void)state;
    start_a("");
    follow_all(NULL);
    test_redis_kill(&redis, SIGKILL);
    assert_true(test_until_lines(tail_log, "later: ", 1, LONG_MS));
    test_redis_restart(&redis);
    assert_true(test_until_lines(tail_log, "connected again: events since ", 1, LONG_MS));
    n = test_lines(tail_log, "probe");
    (void)follows(NULL);
    assert_true(test_until_lines(tail_log, "probe", n + 1, LONG_MS));
    end_tail();
}

/* A new library forgets its followers: tail tells of the gap within seconds, and goes on. */
static void test_it_is_forgotten(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    char *argv[] = {later,
                    (char *)(uintptr_t) "--redis",
                    redis.url,
                    (char *)(uintptr_t) "setup",
                    (char *)(uintptr_t) "--force",
                    NULL};
    int n;

    (void)state;
    start_a("");
    follow_all("--json");
    reply_free(test_redis_call(&redis, "FUNCTION", "DELETE", "laterd", NULL));
    assert_int_equal(proc_run(argv, NULL, 0, NULL, NULL), 0);
    assert_true(test_until_lines(tail_log, "{\"event\":\"gap\",\"since_ms\":", 1, LONG_MS));
    n = test_lines(tail_log, "probe");
    (void)follows(NULL);
    assert_true(test_until_lines(tail_log, "probe", n + 1, LONG_MS));
    end_tail();
}

static void test_nobody_reads(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    char *argv[] = {later, (char *)(uintptr_t) "--redis", redis.url, (char *)(uintptr_t) "tail",
                    NULL};
    int in, from;

    (void)state;
    proc_start_piped(&tail, argv, &in, &from);
    (void)close(in);
    (void)close(from);
    assert_int_not_equal(proc_wait(&tail, LONG_MS), -1);
    proc_done(&tail);
}

static void test_mistakes(void **state)
{
    (void)state;
    start_tail("ma/il", NULL);
    assert_int_equal(proc_wait(&tail, LONG_MS), 64);
    assert_int_equal(test_lines(tail_log, "is no queue name"), 1);
    proc_done(&tail);
    start_tail("mail", "sms");
    assert_int_equal(proc_wait(&tail, LONG_MS), 64);
    proc_done(&tail);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "resetchannels", NULL));
    start_tail(NULL, NULL);
    assert_int_equal(proc_wait(&tail, LONG_MS), 77);
    proc_done(&tail);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "allchannels", NULL));
}

/* Messages that only a stranger would publish. */
static void test_messages_of_strangers(void **state)
{
    static const char *const bad[] = {
        "",
        "added",
        "added j1",
        "added j1 mail",
        "added j1 mail 1 2 3",
        "added j1 mail 1 2 x 4 t",
        "added j1 mail -1 2 3 4 t",
        "added j1 mail 99999999999999999999 2 3 4 t",
        "ADDED j1 mail 1 2 3 4 t",
        "added \x1b[1m mail 1 2 3 4 t",
        "added j1 ma\xffil 1 2 3 4 t",
        "added  j1 mail 1 2 3 4 t",
        "addedaddedaddedadded j1 mail 1 2 3 4 t",
    };
    struct tail_event e;
    struct tail_page h;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (tail_event_parse(bad[i], strlen(bad[i]), &e) == 0)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(tail_event_parse("dead j1 - - 2 - 7 a b", 21, &e), 0);
    assert_int_equal(e.numbers[TAIL_DUE_MS], -1);
    assert_int_equal(e.numbers[TAIL_CODE], 7);
    assert_int_equal(e.text_len, 3);
    assert_int_equal(tail_event_parse("done j1 q - 2 - 0 -", 19, &e), 0);
    assert_int_equal(e.text_len, 0);
    assert_int_equal(tail_page_parse("1 1767225600000 5", 17, &h), 0);
    assert_int_equal(h.left_out, 5);
    assert_int_equal(tail_page_parse("2 1767225600000 5", 17, &h), -1);
    assert_int_equal(tail_page_parse("1 1767225600000", 15, &h), -1);
    assert_int_equal(tail_page_parse("1 1767225600000 5 6", 19, &h), -1);
    assert_int_equal(tail_page_parse("1 - -", 5, &h), -1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fx_open, fx_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_of_strangers),
        T(test_each_event),
        T(test_one_queue_as_json),
        cmocka_unit_test_setup_teardown(test_it_comes_back, fx_open_aof, fx_close),
        T(test_it_is_forgotten),
        T(test_nobody_reads),
        T(test_mistakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
