/*
 * Filters with a real daemon: what they pass, change, refuse and put off; and those that print too
 * much, never read, hang or cannot be trusted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "fixture.h"

#define LONG_MS 60000

static char folder[128]; /* has handlers/, the filters */

static int open_all(void **state)
{
    CLEANUP_FREE char *inner = NULL;
    int rc = fx_open(state);

    (void)snprintf(folder, sizeof(folder), "%s/filters", dir);
    inner = mem_printf("%s/handlers", folder);
    return rc != 0 || mkdir(folder, 0755) != 0 || mkdir(inner, 0755) != 0;
}

#define filter(name, ...) test_handler(folder, name, __VA_ARGS__)

/* Serve the queue q with these filters, and what else the queue says. */
static void serve(const char *filters, const char *more)
{
    CLEANUP_FREE char *yaml =
        mem_printf("filters_dir: %s/handlers\ndefaults: { attempts: 2, backoff: { first: 50ms } }\n"
                   "queues: { q: { filters: [%s]%s } }\n",
                   folder, filters, more);

    start_a(yaml);
}

static bool has_ended(const char *id, char **ret_outcome)
{
    struct reply *r = test_fcall(&redis, "later_result", id, NULL);
    bool is_over = reply_is(reply_at(r, 0), "done") || reply_is(reply_at(r, 0), "dead");

    if (is_over)
        *ret_outcome = mem_printf("%s %s", reply_str(reply_at(r, 0)), reply_str(reply_at(r, 4)));
    reply_free(r);
    return is_over;
}

/* Wait for the end of the job. Returns its outcome; the caller frees it. */
static char *outcome_of(const char *id)
{
    char *outcome = NULL;

    for (int i = 0; i < LONG_MS / 10 && !has_ended(id, &outcome); i++)
        (void)usleep(10000);
    assert_non_null(outcome);
    return outcome;
}

static void assert_ends(const char *payload, const char *how)
{
    CLEANUP_FREE char *id = test_add(&redis, "q", "keep", "1h", payload);
    CLEANUP_FREE char *outcome = outcome_of(id);

    if (strncmp(outcome, how, strlen(how)) != 0)
        fail_msg("%s, not %s", outcome, how);
}

static void add_file(const char *path)
{
    CLEANUP_FREE char *line = mem_printf("%s/later --redis %s add q - < %s > /dev/null",
                                         test_build_dir(), redis.url, path);

    assert_int_equal(system(line), 0);
}

static void test_pass_and_rewrite(void **state)
{
    CLEANUP_BUF struct buf got = BUF_INIT;
    CLEANUP_FREE char *large = mem_new(1 << 20), *path = mem_printf("%s/payload", dir);
    FILE *f = fopen(path, "we");

    (void)state;
    test_handler(dir, "q", "cat > %s\n", out);
    filter("silent", "cat >/dev/null\n");
    filter("deaf", "exit 0\n"); /* never reads */
    filter("same", "cat\n");
    serve("silent, same, deaf", "");
    for (size_t i = 0; i < 1 << 20; i++)
        large[i] = (char)(i * 7 % 256);
    assert_non_null(f);
    assert_int_equal(fwrite(large, 1, 1 << 20, f), 1 << 20);
    assert_int_equal(fclose(f), 0);
    add_file(path);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    test_read(out, &got);
    assert_int_equal(got.len, 1 << 20);
    assert_memory_equal(got.data, large, 1 << 20);
}

/* They change it in turn, with the variables of the job; each attempt starts from the original. */
static void test_in_turn(void **state)
{
    (void)state;
    test_handler(dir, "q", "cat >> %s; echo >> %s; [ $LATER_ATTEMPT = 2 ]\n", out, out);
    filter("one", "printf '1%%s' \"$(cat)\"\n");
    filter("two", "printf '2%%s:%%s' \"$LATER_QUEUE\" \"$(cat)\"\n");
    serve("one, two, one", "");
    assert_ends("x", "done exit status 0");
    assert_true(test_until_lines(out, "12q:1x", 2, LONG_MS));
}

static void test_filter_refuses(void **state)
{
    (void)state;
    test_handler(dir, "q", "echo ran >> %s\n", out);
    filter("fine", "cat\n");
    filter("no", "[ \"$(cat)\" != bad ] || exit 65\n");
    filter("why", "[ \"$(cat)\" != odd ] || { echo 'reason it is odd' >&3; exit 65; }\n");
    filter("later",
           "[ \"$(cat)\" != early ] || [ $LATER_ATTEMPT = 2 ] || { echo 'retry-in 10ms' >&3; "
           "exit 75; }\n");
    filter("broken", "[ \"$(cat)\" != worse ] || exit 3\n");
    filter("killed", "[ \"$(cat)\" != kill ] || kill -9 $$\n");
    serve("fine, no, why, later, broken, killed", "");
    assert_ends("good", "done exit status 0");
    assert_ends("bad", "dead filter no: exit status 65");
    assert_ends("odd", "dead filter why: it is odd");
    assert_ends("early", "done exit status 0");
    assert_ends("worse", "dead filter broken: exit status 3");
    assert_ends("kill", "dead filter killed: killed by signal 9");
    assert_true(test_until_lines(out, "ran", 2, LONG_MS));
}

/* -> the path of a file in the folder of the test; the caller frees it */
static char *file_of(const char *name, const char *command)
{
    char *path = mem_printf("%s/%s", dir, name);
    CLEANUP_FREE char *line = mem_printf("%s > %s", command, path);

    assert_int_equal(system(line), 0);
    return path;
}

static void test_examples(void **state)
{
    CLEANUP_FREE char *install =
        mem_printf("install -m 755 '%s/handlers/examples/filters/gunzip.sh' "
                   "'%s/handlers/examples/filters/need-json.py' %s/handlers/",
                   test_source_dir(), test_source_dir(), folder);
    CLEANUP_FREE char *packed = file_of("packed", "echo '{\"n\": 1}' | gzip");
    CLEANUP_FREE char *cut = file_of("cut", "echo '{\"n\": 1}' | gzip | head -c 15");

    (void)state;
    assert_int_equal(system(install), 0);
    test_handler(dir, "q", "cat >> %s; echo >> %s\n", out, out);
    serve("gunzip.sh, need-json.py", "");
    assert_ends("{\"n\": 2}", "done exit status 0");
    assert_ends("[1]", "dead filter need-json.py: no JSON object");
    assert_ends("{", "dead filter need-json.py: no JSON: ");
    add_file(packed);
    assert_true(test_until_lines(out, "{\"n\": 1}", 1, LONG_MS));
    assert_int_equal(test_lines(out, "{\"n\": 2}"), 1);
    add_file(cut);
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 3, LONG_MS));
}

/* What one leaves behind does not reach the next: an open output, words, a half line, the payload.
 */
static void test_filters_apart(void **state)
{
    (void)state;
    test_handler(dir, "q", "p=$(cat); echo \"$p\" >> %s; [ \"$p\" != odd ]\n", out);
    filter("lasting", "sleep 5 & [ \"$(cat)\" != bad ] || exit 65\n");
    filter("reader", "exec 4<&0; { sleep 0.05; cat <&4; } </dev/null >/dev/null 2>&1 &\n");
    filter("writer", "printf HACK 1>&0; :\n");
    filter("talker", "echo 'retry-in 1h' >&3; echo odd words >&2; printf 'reason no end' >&3\n");
    serve("lasting, reader, writer, talker", ", timeout: 10s");
    assert_ends("good", "done exit status 0");
    assert_ends("bad", "dead filter lasting: exit status 65");
    assert_ends("odd", "dead exit status 1");
    assert_true(test_until_lines(out, "good", 1, LONG_MS));
    assert_int_equal(test_lines(out, "HACK"), 0);
}

static void test_filter_too_much_or_long(void **state)
{
    (void)state;
    test_handler(dir, "q", "cat >/dev/null\n");
    filter("much", "[ \"$(cat)\" != flood ] || yes\n");
    filter("hang", "sleep 600\n");
    serve("much", ", max_payload: 2KiB");
    assert_ends("x", "done exit status 0");
    assert_ends("flood", "dead filter much: prints more than 2048 bytes");
    assert_int_equal(test_laterd_stop(&a), 0);
    serve("hang", ", timeout: 1s, kill_grace: 100ms");
    assert_ends("x", "dead filter hang: timed out after 1s");
}

/* A filter that has closed all its descriptors has its grace like any other. */
static void test_filter_has_its_grace(void **state)
{
    (void)state;
    test_handler(dir, "q", "echo handler >> %s\n", out);
    filter("tidy",
           "trap 'sleep 0.3; echo tidied >> %s; exit 0' TERM\n"
           "exec <&- >&- 2>&- 3>&-\nwhile :; do sleep 0.05; done\n",
           out);
    serve("tidy", ", timeout: 2s, kill_grace: 1m");
    assert_ends("x", "dead filter tidy: timed out after 2s");
    assert_int_equal(test_lines(out, "tidied"), 2);
    assert_int_equal(test_lines(out, "handler"), 0);
}

/* With settings of isolation: the filters have them, too. */
static void test_isolation(void **state)
{
    (void)state;
    test_handler(dir, "q", "printf '%%s %%s\\n' \"$(cat)\" \"$(umask)\" >> %s\n", out);
    filter("mask", "umask; pwd\n");
    serve("mask", ", umask: '027', cwd: /usr, env: { LD_SECRET: x }");
    assert_ends("x", "done exit status 0");
    assert_true(test_until_lines(out, "0027", 1, LONG_MS));
    assert_true(test_until_lines(out, "/usr 0027", 1, LONG_MS));
}

/* A filter runs as the user of its queue. */
static void test_user(void **state)
{
    FILE *f;

    (void)state;
    if (geteuid() != 0)
        skip();
    f = fopen(out, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(chmod(out, 0666), 0);
    assert_int_equal(chmod(dir, 0755), 0);
    test_handler(dir, "q", "echo \"$(cat) $(id -un)\" >> %s\n", out);
    filter("who", "id -un\n");
    serve("who", ", user: nobody");
    assert_ends("x", "done exit status 0");
    assert_true(test_until_lines(out, "nobody nobody", 1, LONG_MS));
}

static bool is_process_gone(void *arg)
{
    return kill(*(const pid_t *)arg, 0) < 0;
}

/* A job that holds a lock is in its filter when its worker stands still: the guard kills it. */
static void test_guard_kills_filter(void **state)
{
    CLEANUP_FREE char *mark = mem_printf("%s/mark", dir), *id = NULL;
    CLEANUP_BUF struct buf text = BUF_INIT;
    pid_t pid;

    (void)state;
    test_handler(dir, "q", "true\n");
    filter("slow", "echo pid $$ > %s\nexec sleep 600\n", mark);
    serve("slow", ", lock: door");
    id = test_add(&redis, "q", NULL, NULL, "x");
    assert_true(test_until_lines(mark, "pid", 1, LONG_MS));
    test_read(mark, &text);
    assert_int_equal(sscanf(buf_str(&text), "pid %d", &pid), 1);
    test_laterd_kill(&a, SIGSTOP);
    assert_true(test_until(is_process_gone, &pid, LONG_MS));
    test_laterd_kill(&a, SIGCONT);
    reply_free(test_fcall(&redis, "later_cancel", id, NULL));
}

static void test_filter_not_trusted(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/handlers/open", folder);
    struct test_laterd bad;

    (void)state;
    test_handler(dir, "q", "true\n");
    filter("open", "cat\n");
    assert_int_equal(chmod(path, 0777), 0);
    {
        CLEANUP_FREE char *yaml = mem_printf("check_permissions: strict\nfilters_dir: %s/handlers\n"
                                             "queues: { q: { filters: [open] } }\n",
                                             folder);
        start_a(yaml);
    }
    assert_true(test_laterd_says(&a, "handlers/open", LONG_MS));
    assert_int_equal(chmod(path, 0755), 0); /* put right, it is served at once */
    assert_true(test_laterd_says(&a, "event=serving queues=1", LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    memset(&bad, 0, sizeof(bad));
    test_laterd_conf(&bad, dir, "bad", redis.url,
                     "queues: { q: { mode: stream, filters: [x] } }\n");
    test_laterd_launch(&bad);
    assert_int_equal(test_laterd_wait(&bad, LONG_MS), 78);
    test_laterd_conf(&bad, dir, "bad", redis.url,
                     "queues: { q: { rlimits: { fsize: 1KiB }, filters: [x] } }\n");
    test_laterd_launch(&bad);
    assert_int_equal(test_laterd_wait(&bad, LONG_MS), 78);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pass_and_rewrite, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_in_turn, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_filter_refuses, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_examples, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_filters_apart, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_filter_too_much_or_long, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_filter_has_its_grace, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_isolation, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_user, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_guard_kills_filter, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_filter_not_trusted, open_all, fx_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
