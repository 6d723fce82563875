/* The log: lines, fields, limits and what the journal gets. The rates run in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/log_journal.h"
#include "base/log_rate.h"
#include "base/mem.h"
#include "daemon/log_json.h"

/* ---- fields */

static void make(struct log_event *r, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void make(struct log_event *r, int level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_event_make(r, level, fmt, &ap);
    va_end(ap);
}

static const char *show(const struct log_event *r)
{
    static struct buf line;

    buf_clear(&line);
    log_event_show(r, &line);
    return buf_str(&line);
}

static void test_event_conversions(void **state)
{
    struct log_event r;

    (void)state;
    make(&r, LOG_LEVEL_INFO,
         "event=e s=%s n=%d u=%u l=%ld ul=%lu ll=%lld ull=%llu z=%zu p=%.3s c=%.*s mixed=%d%%,%s "
         "text=\"%s: %s\"",
         "word", -7, 7U, -8L, 8UL, -9LL, 9ULL, (size_t)10, "abcdef", 4, "a\0b\"c", 50, "x", "one",
         "two three");
    assert_string_equal(show(&r), "event=e s=word n=-7 u=7 l=-8 ul=8 ll=-9 ull=9 z=10 p=abc "
                                  "c=a\\x00b\\x22 mixed=50%,x text=\"one: two three\"");
    assert_true(log_event_find(&r, "n")->is_number);
    assert_true(log_event_find(&r, "z")->is_number);
    assert_false(log_event_find(&r, "mixed")->is_number);
    assert_false(log_event_find(&r, "s")->is_number);
    assert_null(log_event_find(&r, "sy"));
    assert_true(log_field_is(&r, log_event_find(&r, "s"), "word"));
}

static void test_event_leaves_out(void **state)
{
    struct log_event r;

    (void)state;
    make(&r, LOG_LEVEL_INFO, "event=e now=%s reason=\"%s\" cut=%s last=%s", "", "", "", "1");
    assert_string_equal(show(&r), "event=e reason=\"\" last=1");
    make(&r, LOG_LEVEL_INFO, "event=e cut=%s last=%s", "1", "2");
    assert_string_equal(show(&r), "event=e last=2 cut=1");
}

/* Text from a stranger cannot end its value or begin another pair. */
static void test_event_forgery(void **state)
{
    struct log_event r;

    (void)state;
    make(&r, LOG_LEVEL_INFO, "event=e name=%s reason=\"%s\" last=1", "x job=j1", "y\" job=\"j2");
    assert_string_equal(show(&r), "event=e name=\"x job=j1\" reason=\"y\\x22 job=\\x22j2\" last=1");
    assert_null(log_event_find(&r, "job"));
    make(&r, LOG_LEVEL_INFO, "event=e text=\"%s\"", "100%s %n \x1b[31m\xe2\x80\xae");
    assert_string_equal(show(&r), "event=e text=\"100%s %n \\x1b[31m\\xe2\\x80\\xae\"");
}

static void test_event_bounds(void **state)
{
    CLEANUP_FREE char *big = mem_new(9000);
    struct log_event r;

    (void)state;
    memset(big, '\x01', 8999);
    make(&r, LOG_LEVEL_INFO, "event=e a=\"%s\" b=%s n=%d", big, big, 12345);
    assert_true(strlen(show(&r)) < 2000);
    assert_string_equal(strstr(show(&r), " n="), " n=12345 cut=1");
    make(&r, LOG_LEVEL_INFO,
         "a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 "
         "a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1");
    assert_int_equal(r.nfields, LOG_FIELDS_MAX);
}

/* ---- how many */

static struct log_rate rate;

/* How many of n lines of this kind the rate lets through at that time. */
static int take(const void *site, const char *name, int weight, int n, int64_t ms,
                struct log_left_out *out)
{
    struct log_left_out told = {0};
    int taken = 0;

    for (int i = 0; i < n; i++) {
        taken +=
            log_rate_take(&rate, site, 4, name, weight, (struct mono){1000000 + ms * 1000}, &told);
        if (told.lines > 0 && out != NULL)
            *out = told;
    }
    return taken;
}

static void test_rate_burst(void **state)
{
    static const char site[] = "site", other[] = "other";

    (void)state;
    rate = (struct log_rate){.per_s = 20};
    assert_int_equal(take(site, "end mail", 1, 100000, 0, NULL), 1000);
    assert_int_equal(take(site, "end mail", 1, 100, 1000, NULL), 20);
    assert_int_equal(take(site, "end mail", 1, 100, 1050, NULL), 1);
    assert_int_equal(take(site, "end mail", 1, 100000, 61050, NULL), 1000);
    /* Another queue, another call site and output have a limit of their own. */
    assert_int_equal(take(site, "end web", 1, 100000, 61050, NULL), 1000);
    assert_int_equal(take(other, "end mail", 1, 100000, 61050, NULL), 1000);
    assert_int_equal(take(other, "output mail", 10, 100000, 61050, NULL), 10000);
    rate.per_s = 0;
    assert_int_equal(take(site, "end mail", 1, 100000, 61050, NULL), 100000);
}

/* An hour of a storm: 20 lines a second and a burst get through, all others are counted in reports,
 * one every 10 s. */
static void test_rate_tells(void **state)
{
    static const char site[] = "site";
    struct log_left_out out = {0};
    uint64_t told = 0, left = 0;
    int tells = 0;

    (void)state;
    rate = (struct log_rate){.per_s = 20};
    for (int64_t s = 0; s < 3600; s++) {
        out.lines = 0;
        left += 500 - (uint64_t)take(site, "end mail", 1, 500, s * 1000, &out);
        told += out.lines;
        tells += out.lines > 0;
    }
    assert_in_range(3600 * 500 - left, 20 * 3600, 20 * 3600 + 1000);
    assert_in_range(tells, 355, 360);
    assert_false(log_rate_tell(&rate, (struct mono){1000000 + INT64_C(3600) * 1000000}, &out));
    assert_true(log_rate_tell(&rate, (struct mono){1000000 + INT64_C(3620) * 1000000}, &out));
    assert_string_equal(out.name, "end mail");
    assert_int_equal(out.level, 4);
    assert_int_equal(told + out.lines, left);
    assert_false(log_rate_tell(&rate, (struct mono){1000000 + INT64_C(9999) * 1000000}, &out));
}

/* More kinds than the table holds: each line passes or is counted, and each kind is limited. */
static void test_rate_many_kinds(void **state)
{
    static const char site[] = "site";
    struct log_left_out out = {0};
    uint64_t told = 0;
    int taken = 0;
    char name[32];

    (void)state;
    rate = (struct log_rate){.per_s = 1};
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof(name), "end q%d", i);
        taken += take(site, name, 1, 60, 0, NULL);
    }
    assert_in_range(taken, 50, 50 * LOG_RATE_KINDS);
    while (log_rate_tell(&rate, (struct mono){100000000}, &out))
        told += out.lines;
    assert_int_equal(taken + told, 5000 * 60);
    /* Their entries are free again. */
    assert_int_equal(take(site, "end again", 1, 60, 200000, NULL), 50);
}

/* ---- the journal */

static void test_journal_fields(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct log_event r;

    (void)state;
    make(&r, LOG_LEVEL_ERR, "event=end job=%s queue=%s outcome=%s run_ms=%lld reason=\"%s\"",
         "j00000000001", "mail", "dead", 12LL, "a \"b\"\nPRIORITY=0");
    log_journal_write(&r, 77, &out);
    assert_string_equal(
        buf_str(&out),
        "MESSAGE=event=end job=j00000000001 queue=mail outcome=dead run_ms=12 "
        "reason=\"a \\x22b\\x22\\x0aPRIORITY=0\"\n"
        "PRIORITY=3\nSYSLOG_IDENTIFIER=test_log\nMESSAGE_ID=71b865ffcd294b898c6f80f1392e5082\n"
        "LATERD_WORKER=77\nLATERD_EVENT=end\nLATERD_JOB=j00000000001\nLATERD_QUEUE=mail\n"
        "LATERD_OUTCOME=dead\nLATERD_RUN_MS=12\n"
        "LATERD_REASON=a \\x22b\\x22\\x0aPRIORITY=0\n");
}

static void test_journal_ids(void **state)
{
    struct log_event r;

    (void)state;
    make(&r, LOG_LEVEL_INFO, "event=end outcome=done");
    assert_null(log_journal_id(&r));
    make(&r, LOG_LEVEL_INFO, "job=j1 stream=stderr msg=\"event=end outcome=dead\"");
    assert_null(log_journal_id(&r));
    make(&r, LOG_LEVEL_INFO, "event=link state=%s", "up");
    assert_string_equal(log_journal_id(&r), "a1c893e36c494a21a9af5a98dbf63f8b");
    make(&r, LOG_LEVEL_INFO, "event=given-up");
    assert_string_equal(log_journal_id(&r), "29cede4239e7462aa2436480a8f207e4");
}

static void test_json(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_FREE char *big = mem_new(9000);
    struct log_event r;
    json_t *line;

    (void)state;
    make(&r, LOG_LEVEL_WARN, "event=end n=%d text=\"%s\"", -5, "\"\\ \x1b\xff \xc3\xbc");
    r.dropped = 3;
    log_json(&r, "2026-01-01T00:00:00.000Z", 77, &out);
    assert_string_equal(buf_str(&out),
                        "{\"time\":\"2026-01-01T00:00:00.000Z\",\"level\":\"warn\",\"worker\":77,"
                        "\"dropped_lines\":3,\"event\":\"end\",\"n\":-5,"
                        "\"text\":\"\\\\x22\\\\ \\\\x1b\\\\xff \xc3\xbc\"}");
    buf_clear(&out);
    memset(big, '\\', 8999);
    make(&r, LOG_LEVEL_WARN, "event=e a=\"%s\" b=\"%s\" n=%d", big, big, 5);
    log_json(&r, "2026-01-01T00:00:00.000Z", INT64_MAX, &out);
    assert_true(out.len < 4096);
    line = json_loads(buf_str(&out), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(line, "n")), 5);
    assert_true(json_is_true(json_object_get(line, "cut")));
    json_decref(line);
}

/* ---- lines */

/* stderr as the write end of a pipe while a log test runs. */
struct capture {
    int saved;
    int reader;
};

static int capture_start(void **state)
{
    struct capture *c = calloc(1, sizeof(*c));
    int fds[2];

    if (c == NULL || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    c->saved = dup(STDERR_FILENO);
    c->reader = fds[0];
    (void)dup2(fds[1], STDERR_FILENO);
    (void)close(fds[1]);
    (void)unsetenv("JOURNAL_STREAM");
    log_init(LOG_LEVEL_INFO);
    *state = c;
    return 0;
}

static int capture_stop(void **state)
{
    struct capture *c = *state;

    (void)dup2(c->saved, STDERR_FILENO);
    (void)close(c->saved);
    if (c->reader >= 0)
        (void)close(c->reader);
    free(c);
    return 0;
}

static const char *captured(const struct capture *c, char out[8192])
{
    ssize_t n = read(c->reader, out, 8191);

    out[n > 0 ? n : 0] = '\0';
    return out;
}

static void test_log_plain(void **state)
{
    char out[8192];
    int year, month, day, hour, minute, second, ms, end = 0;

    log_warn("event=%s key=%s", "x\nforged", "a b=\"c\"");
    captured(*state, out);
    assert_int_equal(sscanf(out, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ warn %n", &year, &month, &day, &hour,
                            &minute, &second, &ms, &end),
                     7);
    assert_int_equal(end, 30);
    assert_string_equal(out + end, "event=x\\x0aforged key=\"a b=\\x22c\\x22\"\n");
}

static void test_log_level(void **state)
{
    char out[8192];

    log_debug("event=quiet");
    assert_string_equal(captured(*state, out), "");
    log_set_level(LOG_LEVEL_DEBUG);
    errno = EXDEV;
    log_debug("event=loud");
    assert_int_equal(errno, EXDEV);
    assert_non_null(strstr(captured(*state, out), " debug event=loud\n"));
}

static void test_log_journal(void **state)
{
    char out[8192], stream[64];
    struct stat st;

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    (void)setenv("JOURNAL_STREAM", stream, 1);
    log_init(LOG_LEVEL_INFO);
    log_err("event=x");
    assert_string_equal(captured(*state, out), "<3>event=x\n");
    (void)setenv("JOURNAL_STREAM", "1:1", 1);
    log_init(LOG_LEVEL_INFO);
    log_err("event=x");
    assert_non_null(strstr(captured(*state, out), "Z error event=x\n"));
    (void)unsetenv("JOURNAL_STREAM");
}

static void test_log_truncates(void **state)
{
    char out[8192], big[4096];

    memset(big, '\x01', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    log_info("event=x value=%s", big);
    captured(*state, out);
    assert_true(strlen(out) <= 2048);
    assert_string_equal(out + strlen(out) - 10, "... cut=1\n");
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
}

static void test_log_full_pipe(void **state)
{
    char out[8192];
    size_t written = 0;

    while (write(STDERR_FILENO, "0123456789abcde\n", 16) == 16)
        written += 16;
    log_info("event=lost n=1");
    log_info("event=lost n=2");
    for (size_t n = 0; n < written; n += strlen(out))
        captured(*state, out);
    log_info("event=seen");
    captured(*state, out);
    assert_non_null(strstr(out, " info dropped_lines=2 event=seen\n"));
    log_info("event=next");
    captured(*state, out);
    assert_null(strstr(out, "dropped_lines"));
}

static void test_log_reader_gone(void **state)
{
    struct capture *c = *state;
    char out[8192];
    int fds[2];

    (void)close(c->reader);
    log_info("event=lost");
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    (void)dup2(fds[1], STDERR_FILENO);
    (void)close(fds[1]);
    c->reader = fds[0];
    log_info("event=seen");
    assert_non_null(strstr(captured(c, out), " dropped_lines=1 event=seen\n"));
}

static void *log_some(void *arg)
{
    for (int i = 0; i < 10; i++)
        log_info("thread=%s n=%d end=1", (const char *)arg, i);
    return NULL;
}

static void test_log_threads(void **state)
{
    pthread_t a, b;
    char out[8192], *rest = out, *line;
    int lines = 0;

    assert_int_equal(pthread_create(&a, NULL, log_some, (void *)(uintptr_t) "aaaaaaaaaa"), 0);
    assert_int_equal(pthread_create(&b, NULL, log_some, (void *)(uintptr_t) "bbbbbbbbbb"), 0);
    (void)pthread_join(a, NULL);
    (void)pthread_join(b, NULL);
    captured(*state, out);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        assert_string_equal(line + strlen(line) - 6, " end=1");
        assert_ptr_equal(strstr(line, "thread="), line + 30);
        lines++;
    }
    assert_int_equal(lines, 20);
}

/* A storm is limited to its burst. Another queue and another event still get through. */
static void test_log_limit(void **state)
{
    static char big[200000];
    const struct capture *c = *state;
    ssize_t n;

    log_set_rate(2);
    for (int i = 0; i < 150; i++)
        log_info("event=storm queue=mail n=%d", i);
    log_info("event=storm queue=web");
    log_err("event=other");
    log_set_rate(0);
    n = read(c->reader, big, sizeof(big) - 1);
    big[n > 0 ? n : 0] = '\0';
    assert_non_null(strstr(big, "event=storm queue=mail n=99\n"));
    assert_null(strstr(big, "event=storm queue=mail n=105\n"));
    assert_non_null(strstr(big, "event=storm queue=web\n"));
    assert_non_null(strstr(big, "event=other\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_conversions),
        cmocka_unit_test(test_event_leaves_out),
        cmocka_unit_test(test_event_forgery),
        cmocka_unit_test(test_event_bounds),
        cmocka_unit_test(test_rate_burst),
        cmocka_unit_test(test_rate_tells),
        cmocka_unit_test(test_rate_many_kinds),
        cmocka_unit_test(test_journal_fields),
        cmocka_unit_test(test_journal_ids),
        cmocka_unit_test(test_json),
        cmocka_unit_test_setup_teardown(test_log_plain, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_level, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_journal, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_truncates, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_full_pipe, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_reader_gone, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_threads, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_limit, capture_start, capture_stop),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
