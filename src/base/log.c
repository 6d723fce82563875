#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log_journal.h"
#include "base/log_rate.h"

#define OUTPUT_WEIGHT 10

static const struct {
    const char *name;
    enum log_level level;
} levels[] = {{"error", LOG_LEVEL_ERR},
              {"warn", LOG_LEVEL_WARN},
              {"notice", LOG_LEVEL_NOTICE},
              {"info", LOG_LEVEL_INFO},
              {"debug", LOG_LEVEL_DEBUG}};

static atomic_int level_max = LOG_LEVEL_INFO;
static atomic_llong worker;
static _Atomic(log_format_f *) format;
static bool to_journal;      /* written by log_init only */
static atomic_ulong dropped; /* lines lost since the last one that got through */
static atomic_bool is_torn;  /* the last write stopped in the middle of a line */
static pthread_mutex_t rate_mu = PTHREAD_MUTEX_INITIALIZER; /* protects rate; innermost lock */
static struct log_rate rate;

/* $JOURNAL_STREAM is DEV:INODE of the stream that the journal reads. Our stderr may have been
 * redirected since. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t dev, inode;
    struct stat st;
    char *end;

    if (stream == NULL || fstat(STDERR_FILENO, &st) < 0)
        return false;
    dev = strtoumax(stream, &end, 10);
    if (end == stream || *end != ':')
        return false;
    stream = end + 1;
    inode = strtoumax(stream, &end, 10);
    return end != stream && *end == '\0' && dev == st.st_dev && inode == st.st_ino;
}

void log_init(enum log_level max)
{
    to_journal = is_journal();
    if (to_journal)
        log_journal_open();
    log_set_level(max);
}

void log_set_level(enum log_level max)
{
    atomic_store(&level_max, (int)max);
}

void log_set_rate(int64_t per_s)
{
    (void)pthread_mutex_lock(&rate_mu);
    rate.per_s = per_s;
    (void)pthread_mutex_unlock(&rate_mu);
}

void log_set_format(log_format_f *f)
{
    atomic_store(&format, f);
}

void log_set_worker(int64_t epoch)
{
    atomic_store(&worker, epoch);
}

const char *log_level_name(int level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if ((int)levels[i].level == level)
            return levels[i].name;
    return "info";
}

static void add_time(char when[40])
{
    char second[32] = "";
    struct timespec ts = {0, 0};
    struct tm tm;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (gmtime_r(&ts.tv_sec, &tm) != NULL)
        (void)strftime(second, sizeof(second), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(when, 40, "%s.%03dZ", second, (int)(ts.tv_nsec / 1000000));
}

static void add_line(struct buf *line, const struct log_event *r)
{
    log_format_f *f = atomic_load(&format);
    char when[40];

    if (to_journal) {
        buf_printf(line, "<%d>", r->level);
    } else {
        add_time(when);
        if (f != NULL) {
            f(r, when, atomic_load(&worker), line);
            buf_puts(line, "\n");
            return;
        }
        buf_printf(line, "%s %s ", when, log_level_name(r->level));
    }
    if (r->dropped > 0)
        buf_printf(line, "dropped_lines=%lu ", r->dropped);
    log_event_show(r, line);
    buf_puts(line, "\n");
}

/* On a full disk, a full pipe or without a reader the line is lost; the jobs go on. */
static int write_line(const struct buf *line)
{
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* innermost lock */
    struct pollfd p = {STDERR_FILENO, POLLOUT, 0};
    ssize_t n = -1;

    /* stderr blocks, and O_NONBLOCK would hold for every process that shares it. A pipe that is
     * ready takes a page without blocking; the lock keeps our other threads from filling it before
     * the write. */
    (void)pthread_mutex_lock(&mu);
    if (poll(&p, 1, 0) == 1) {
        do
            n = write(STDERR_FILENO, line->data, line->len);
        while (n < 0 && errno == EINTR);
    }
    (void)pthread_mutex_unlock(&mu);
    if (n > 0 && (size_t)n < line->len)
        atomic_store(&is_torn, true);
    return n == (ssize_t)line->len ? 0 : -1;
}

static void write_out(struct log_event *r)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    bool torn;

    if (to_journal && log_journal_send(r, atomic_load(&worker)) == 0)
        return;
    r->dropped = atomic_exchange(&dropped, 0);
    torn = atomic_exchange(&is_torn, false);
    if (torn)
        buf_puts(&line, "\n");
    add_line(&line, r);
    if (write_line(&line) < 0) {
        (void)atomic_fetch_add(&dropped, r->dropped + 1);
        if (torn)
            atomic_store(&is_torn, true);
    }
}

static void write_event(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void write_event(int level, const char *fmt, ...)
{
    struct log_event r;
    va_list ap;

    va_start(ap, fmt);
    log_event_make(&r, level, fmt, &ap);
    va_end(ap);
    write_out(&r);
}

static void tell_suppressed(const struct log_left_out *out)
{
    const char *queue = strchr(out->name, ' ');

    write_event(out->level < LOG_LEVEL_NOTICE ? out->level : LOG_LEVEL_NOTICE,
                "event=suppressed of=%.*s of_level=%s queue=%s suppressed_lines=%llu",
                queue != NULL ? (int)(queue - out->name) : (int)strlen(out->name), out->name,
                log_level_name(out->level), queue != NULL ? queue + 1 : "",
                (unsigned long long)out->lines);
}

void log_tick(void)
{
    struct log_left_out out;
    bool is_due;

    do {
        (void)pthread_mutex_lock(&rate_mu);
        is_due = log_rate_tell(&rate, mono_now(), &out);
        (void)pthread_mutex_unlock(&rate_mu);
        if (is_due)
            tell_suppressed(&out);
    } while (is_due);
}

/* "EVENT[ QUEUE]"; tell_suppressed splits it again. */
static void name_kind(const struct log_event *r, char name[80])
{
    const struct log_field *event = log_event_find(r, "event");
    const struct log_field *queue = log_event_find(r, "queue");
    int n = event != NULL ? event->len : 0, m = queue != NULL ? queue->len : 0;

    (void)snprintf(name, 80, "%.*s%s%.*s", n > 0 ? (n < 32 ? n : 32) : 6,
                   n > 0 ? r->values + event->at : "output", m > 0 ? " " : "", m,
                   m > 0 ? r->values + queue->at : "");
}

static bool may_write(const struct log_event *r, const void *site, int weight)
{
    struct log_left_out out;
    char name[80];
    bool may;

    if (r->level >= LOG_LEVEL_DEBUG)
        return true;
    name_kind(r, name);
    (void)pthread_mutex_lock(&rate_mu);
    may = log_rate_take(&rate, site, r->level, name, weight, mono_now(), &out);
    (void)pthread_mutex_unlock(&rate_mu);
    if (out.lines > 0)
        tell_suppressed(&out);
    return may;
}

static void write_limited(enum log_level level, int weight, const char *fmt, va_list *args)
{
    struct log_event r;
    int saved = errno;

    log_event_make(&r, (int)level, fmt, args);
    if (may_write(&r, fmt, weight))
        write_out(&r);
    errno = saved;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if ((int)level > atomic_load(&level_max))
        return;
    va_start(ap, fmt);
    write_limited(level, 1, fmt, &ap);
    va_end(ap);
}

void log_output(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if ((int)level > atomic_load(&level_max))
        return;
    va_start(ap, fmt);
    write_limited(level, OUTPUT_WEIGHT, fmt, &ap);
    va_end(ap);
}
