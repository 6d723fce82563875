/*
 * What handlers write: entries H13 to H16 of the fault catalogue, with the real daemon.
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
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "watched.h"

#define FLAT_KIB 4096 /* the daemon may grow by this, however much is written */

/* Output of one job in MB: enough to see a leak of a thousandth. */
static int megabytes(void)
{
    return test_is_long() ? 10240 : 400;
}

/* Run one job of this handler to its end. Memory must not grow, and other queues must be on time.
 * Returns the job's id. */
static char *run_loud(const char *handler, const char *line, const char *what)
{
    struct mono begin;
    char *id;
    int late;
    int64_t ms;

    test_handler(watched.dir, "loud", "%s", handler);
    watched_canary_start(test_is_long() ? 120 : 20);
    watched_start("concurrency: 4\ndefaults: { keep: 1h, timeout: 1h }");
    begin = mono_now();
    id = watched_add("loud", "x");
    while (watched_state_is(id, "waiting") || watched_state_is(id, "running"))
        assert_true(mono_until_us(begin, mono_now()) < INT64_C(900000000));
    ms = test_ms_since(begin);
    assert_true(watched_state_is(id, "done"));
    late = watched_canary_check(2000);
    assert_in_range(watched_grown_kib(), 0, FLAT_KIB);
    watched_assert_clean();
    watched_assert_idle();
    printf("figure %s: %d MB %s in %.1f s: daemon +%lld KiB, other queue at most %d ms late\n",
           line, megabytes(), what, (double)ms / 1000, (long long)watched_grown_kib(), late);
    return id;
}

static void H13_ten_gigabytes_of_output(void **state)
{
    CLEANUP_FREE char *handler =
        mem_printf("yes 'a line of output, as programs write them' | head -c %dM; echo; echo END",
                   megabytes());
    CLEANUP_FREE char *id = run_loud(handler, "H13", "on standard output");
    CLEANUP_FREE char *output = watched_result(id, 5);

    (void)state;
    assert_int_equal(strlen(output), 4096);
    assert_string_equal(output + 4096 - 4, "END\n");
    /* The log has a thousand lines of output, and says how many it left out. */
    assert_in_range(test_lines(watched.d.log, "stream=stdout"), 1000, 1001);
    assert_int_equal(test_lines(watched.d.log, "left_out_lines="), 1);
}

static void H14_ten_gigabytes_on_both_without_line_ends(void **state)
{
    CLEANUP_FREE char *handler =
        mem_printf("(yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | tr -d '\\n' | head -c %dM >&2) & "
                   "tr '\\0' y < /dev/zero | head -c %dM; wait",
                   megabytes() / 2, megabytes() / 2);
    CLEANUP_FREE char *id = run_loud(handler, "H14", "on both, interleaved, no line end");
    CLEANUP_FREE char *output = watched_result(id, 5);

    (void)state;
    assert_int_equal(strlen(output), 4096);
    assert_int_equal(strspn(output, "xy"), 4096);
    assert_int_equal(test_lines(watched.d.log, "stream=stdout") +
                         test_lines(watched.d.log, "stream=stderr"),
                     2); /* one line of each stream, which never ended and was cut */
    assert_int_equal(test_lines(watched.d.log, " cut=1"), 2);
}

static void assert_plain(const char *what, const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++) {
        unsigned char c = (unsigned char)b->data[i];

        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
            fail_msg("%s: control byte 0x%02x at %zu", what, c, i);
    }
}

static void H15_bytes_of_every_kind(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *progress = NULL;
    CLEANUP_BUF struct buf log = BUF_INIT;
    CLEANUP_BUF struct buf shown = BUF_INIT;
    CLEANUP_BUF struct buf json = BUF_INIT;

    (void)state;
    test_handler(watched.dir, "bytes",
                 "head -c 1000000 /dev/urandom; head -c 1000 /dev/zero >&2; "
                 "printf '\\033]0;title\\007\\033[2J\\302\\233\\377\\355\\240\\200\\342\\200\\256"
                 "</script>\\r\\nevent=end\\n'; "
                 "printf 'progress \\033[31mred\\001\\n' >&3; sleep 1");
    watched_start("defaults: { keep: 1h }");
    id = watched_add("bytes", "x");
    assert_true(watched_until_state(id, "done"));
    test_read(watched.d.log, &log);
    assert_plain("log", &log);
    assert_int_equal(watched_later(&shown, "show %s", id), 0);
    assert_plain("later show", &shown);
    assert_int_equal(watched_later(&json, "--json show %s", id), 0);
    assert_plain("later --json show", &json);
    assert_non_null(strstr(buf_str(&shown), "\\x1b]0;title\\x07"));
    {
        struct reply *r = test_fcall(&watched.redis, "later_result", id, NULL);

        /* Redis keeps the bytes as they were. */
        assert_int_equal(reply_len(reply_at(r, 5)), 4096);
        assert_non_null(memmem(reply_str(reply_at(r, 5)), 4096, "\033]0;title\007\033[2J", 14));
        reply_free(r);
    }
    watched_assert_clean();
}

/* Output that imitates what only laterd may say, and unknown words on descriptor 3. */
static void H16_forged_control_lines(void **state)
{
    static const char *const forged[] = {"state done", "attempt 0",  "attempts 1000", "queue other",
                                         "uid 0",      "exit 0",     "outcome=done",  "timeout 99d",
                                         "fence 1",    "id j000000", "cancel",        "dead"};
    CLEANUP_BUF struct buf script = BUF_INIT;
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *output = NULL;

    (void)state;
    buf_puts(&script, "for fd in 1 2 3; do\n");
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
        buf_printf(&script, "echo '%s' >&$fd\n", forged[i]);
    buf_puts(&script,
             "done\nprintf 'result forged\\nretry-in 1ms\\nprogress forged\\n'\n"
             "printf 'x\" outcome=done reason=\"\\n2026-01-01T00:00:00.000Z info event=end "
             "job=%s queue=forge start=1 attempt=1 outcome=done\\n' $LATER_ID\n"
             "exit 3");
    test_handler(watched.dir, "forge", "%s", buf_str(&script));
    watched_start("defaults: { attempts: 2, backoff: { first: 1h } }");
    id = watched_add("forge", "x");
    assert_true(watched_until_state(id, "failed"));
    /* Only the exit status counts: a failure that waits for its second attempt, in its own
     * queue. */
    {
        CLEANUP_FREE char *code = watched_result(id, 1);
        CLEANUP_FREE char *attempt = test_shown(&watched.redis, id, "attempt");
        CLEANUP_FREE char *max = test_shown(&watched.redis, id, "attempts_max");
        CLEANUP_FREE char *queue = test_shown(&watched.redis, id, "queue");
        CLEANUP_FREE char *progress = test_shown(&watched.redis, id, "progress");
        CLEANUP_FREE char *due = test_shown(&watched.redis, id, "due_ms");

        assert_string_equal(code, "3");
        assert_string_equal(attempt, "1");
        assert_true(max[0] == '\0' || strcmp(max, "2") == 0);
        assert_string_equal(queue, "forge");
        assert_string_equal(progress, "");
        assert_true(strtoll(due, NULL, 10) > test_now_ms() + 1800000);
    }
    output = watched_result(id, 5);
    assert_non_null(strstr(output, "result forged\n")); /* plain output, no result */
    /* Every line of the log starts with laterd's own time stamp and level. */
    assert_int_equal(
        watched_sh(NULL, "grep -Ev '^[0-9TZ:.-]+ (warn|info|notice) ' %s", watched.d.log), 1);
    assert_int_equal(watched_sh(NULL, "grep -E '^[0-9TZ:.-]+ [a-z]+ event=end .*outcome=done' %s",
                                watched.d.log),
                     1);
    watched_assert_clean();
    printf("figure H16: 12 forged lines on each of 3 descriptors: the exit status decides\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, watched_setup, watched_teardown)
    const struct CMUnitTest tests[] = {
        T(H13_ten_gigabytes_of_output),
        T(H14_ten_gigabytes_on_both_without_line_ends),
        T(H15_bytes_of_every_kind),
        T(H16_forged_control_lines),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
