/*
 * Hostile bytes are shown safely. They may be in a payload, a name, a reason, an outcome or the
 * host of a worker: anybody who may write the keys can put them there. No verb and no line of the
 * log passes on a terminal escape, a C1 control, a bidirectional override or invalid UTF-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "fixture.h"

#define LONG_MS 60000

/* A title and clear screen, CSI as a C1 control, an override and an isolate, backspace, DEL, bytes
 * that are no UTF-8, an overlong slash, half a sequence. No space and no line end, since it is used
 * in headers. */
#define EVIL                                                                                       \
    "\033]0;x\007\033[2J\302\23331m\342\200\256\342\201\246\342\200\250\b\r\177\377\376\300\257"   \
    "\342\202"
#define ID "j00000000001"
#define DEAD_ID "j00000000002"
#define RUNS_ID "j00000000003"
#define DONE_ID "j00000000004"
#define PARKED_ID "j00000000005"

static int64_t far_ms(void)
{
    return test_now_ms() + 3600000;
}

static void put(const char *command, const char *key, const char *field, const char *value)
{
    CLEANUP_FREE char *whole = mem_printf("%s:%s", ROOT, key);

    reply_free(test_redis_call(&redis, command, whole, field, value, NULL));
}

static void put_jobs(const char *now, const char *far)
{
    static const char *const ids[] = {ID, DEAD_ID, RUNS_ID, DONE_ID, PARKED_ID};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        put("HSET", "jobs", ids[i],
            "-mail K=" EVIL " T=" EVIL " l=" EVIL " s=" EVIL " u=" EVIL "\n" EVIL "\npay\tload");
    put("SADD", "names", "mail", EVIL);
    put("ZADD", "q:mail:5", far, ID);
    put("ZADD", "dead:mail", now, DEAD_ID);
    put("ZADD", "running", "77", RUNS_ID);
    put("ZADD", "done:mail", far, DONE_ID);
    put("ZADD", "parked:mail", "5", PARKED_ID);
    put("HSET", "parked", PARKED_ID, "lock:" EVIL " 5 0 " EVIL);
    put("ZADD", "due:mail", far, EVIL "raw");
    put("HSET", "errors", DEAD_ID, "dead 1 5 1 " EVIL "\n" EVIL "\nout");
    put("HSET", "failures", DEAD_ID, "5 77 - 1 " EVIL "\n4 77 " EVIL " 0 " EVIL);
    put("HSET", "results", DONE_ID, "done 0 5 1 " EVIL "\n" EVIL "\nout");
    put("HSET", "tries", RUNS_ID, "1 1 0 5");
    put("HSET", "progress", RUNS_ID, "40 " EVIL);
}

static void put_others(const char *far)
{
    CLEANUP_FREE char *reason = mem_printf("0 5 " EVIL " " EVIL);
    CLEANUP_FREE char *note_ms = mem_printf("%lld", (long long)test_now_ms());

    put("HSET", "paused", "mail", reason);
    put("HSET", "workers", "77", "3");
    for (const char *const *field =
             (const char *const[]){"host", "version", "queues", "pid", "limits", "gate", NULL};
         *field != NULL; field++)
        put("HSET", "worker:77", *field, EVIL);
    put("HSET", "notes", "stray-key:" EVIL, note_ms);
    put("HSET", "notes", "unserved-queue:" EVIL, note_ms);
    put("HSET", "notes", "no-limit:" EVIL, note_ms);
    put("HSET", "limits", EVIL, "semaphore 3 keep");
    put("HSET", "limits", "x", "rate " EVIL);
    put("HSET", "lock:" EVIL, "holder", "=" EVIL);
    put("HSET", "lock:" EVIL, "until", far);
    put("HSET", "lock:" EVIL, "since", "5");
    put("ZADD", "sem:" EVIL, far, "=" EVIL);
    put("ZADD", "wait:lock:" EVIL, "5", "mail");
    put("ZADD", "line:mail:lock:" EVIL, "5", PARKED_ID);
    put("ZADD", "timers", far, "gate:lock:" EVIL);
    put("SET", EVIL, "a stray key", "GET");
}

/* ---- output */

static bool is_bidi(const unsigned char *p)
{
    return p[0] == 0xe2 &&
           ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

/* The first byte that is not safe to show; NULL: none. */
static const char *unsafe_at(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    for (size_t i = 0, len; i < n; i += len) {
        len = text_utf8_len(p + i, n - i);
        if (len == 0 || (p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f ||
            (len == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0) || (len == 3 && is_bidi(p + i)))
            return text + i;
    }
    return NULL;
}

static void assert_safe(const char *what, struct buf *text)
{
    const char *at = unsafe_at(buf_str(text), text->len);

    if (at != NULL)
        fail_msg("%s: byte %02x at %zu", what, (unsigned char)*at, (size_t)(at - text->data));
}

/* Check both streams of the command, which must have some output. */
static void says_safely(const char *verb)
{
    static const char *const forms[] = {"", "--json "};

    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *line =
            mem_printf("$LATER --redis %s %s%s </dev/null", redis.url, forms[i], verb);
        CLEANUP_BUF struct buf said = BUF_INIT;

        (void)test_sh_out(line, &said);
        if (said.len == 0)
            fail_msg("%s says nothing", line);
        assert_safe(line, &said);
    }
}

static void test_every_verb(void **state)
{
    static const char *const verbs[] = {"show " ID,
                                        "show " DEAD_ID,
                                        "show " RUNS_ID,
                                        "show " DONE_ID,
                                        "show " PARKED_ID,
                                        "explain " ID,
                                        "explain " DEAD_ID,
                                        "explain " RUNS_ID,
                                        "explain " DONE_ID,
                                        "explain " PARKED_ID,
                                        "ls mail --state due",
                                        "ls mail --state dead",
                                        "ls mail --state running",
                                        "ls mail --state done",
                                        "ls mail --state parked",
                                        "stats",
                                        "stats mail",
                                        "stats --prometheus",
                                        "workers",
                                        "limits",
                                        "gates",
                                        "gates \"$EVIL\"",
                                        "health",
                                        "health --live",
                                        "fsck",
                                        "show \"$EVIL\"",
                                        "ls \"$EVIL\"",
                                        "pause \"$EVIL\"",
                                        "add \"$EVIL\" x",
                                        "add mail x --key \"$EVIL\"",
                                        "add mail x --in \"$EVIL\"",
                                        "add mail x --unique \"$EVIL\"",
                                        "cancel \"$EVIL\"",
                                        "retry \"$EVIL\"",
                                        "reschedule " ID " --in \"$EVIL\"",
                                        "quiet \"$EVIL\"",
                                        "throttle \"$EVIL\"",
                                        "limits set \"$EVIL\" semaphore \"$EVIL\"",
                                        "\"$EVIL\"",
                                        "--namespace \"$EVIL\" stats",
                                        "fsck --repair",
                                        "fsck",

                                        "ls mail --state dead"};
    CLEANUP_FREE char *now = mem_printf("%lld", (long long)test_now_ms());
    CLEANUP_FREE char *far = mem_printf("%lld", (long long)far_ms());

    (void)state;
    test_redis_load(&redis);
    (void)setenv("EVIL", EVIL, 1);
    put_jobs(now, far);
    put_others(far);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        says_safely(verbs[i]);
    (void)unsetenv("EVIL");
}

/* The output of a handler, and texts that a daemon finds in Redis, are safe in the log. */
static void test_the_log(void **state)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "mail",
                 "cat\ncat >&2 <<'END'\n%s\nEND\nprintf 'log %s\\nprogress 1 %s\\nnonsense %s\\n' "
                 ">&3\nexit 65",
                 EVIL, "\\033[2J\\302\\233", "\\033[2J\\302\\233", "\\033[2J\\302\\233");
    start_a("log_level: debug\n");
    id = test_add(&redis, "mail", "key", "k", EVIL "\n" EVIL);
    assert_true(test_until_state(&redis, id, "dead", LONG_MS));
    put("HSET", "workers", EVIL, "1");
    put("ZADD", "due:mail", "-inf", EVIL);
    put("HSET", "jobs", "j00000000001", EVIL);
    put("ZADD", "q:mail:5", "1", "j00000000001");
    put("ZADD", "q:mail:5", "1", EVIL);
    free(test_add(&redis, "mail", NULL, NULL, "another"));
    assert_true(test_until_lines(a.log, "event=end", 2, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    test_read(a.log, &log);
    assert_true(test_lines(a.log, "stream=stderr") > 0);
    assert_safe("the log", &log);
}

static int setup(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    return fx_open(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_every_verb), T(test_the_log)};

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
