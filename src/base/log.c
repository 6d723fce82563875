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
#include "base/text.h"

#define LOG_LINE_BYTES 2048 /* under PIPE_BUF, so that a write to a pipe is all or nothing */

static const struct {
    const char *name;
    enum log_level level;
} levels[] = {{"error", LOG_LEVEL_ERR},
              {"warn", LOG_LEVEL_WARN},
              {"notice", LOG_LEVEL_NOTICE},
              {"info", LOG_LEVEL_INFO},
              {"debug", LOG_LEVEL_DEBUG}};

static atomic_int level_max = LOG_LEVEL_INFO;
static bool to_journal;      /* written by log_init only */
static atomic_ulong dropped; /* lines lost since the last one that got through */
static atomic_bool is_torn;  /* the last write stopped in the middle of a line */

/* $JOURNAL_STREAM is the DEV:INODE of the stream the journal reads; ours may since be another. */
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
    log_set_level(max);
}

void log_set_level(enum log_level max)
{
    atomic_store(&level_max, (int)max);
}

int log_level_parse(const char *name)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (strcmp(levels[i].name, name) == 0)
            return (int)levels[i].level;
    return -1;
}

static const char *level_name(enum log_level level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (levels[i].level == level)
            return levels[i].name;
    return "info";
}

static void add_prefix(struct buf *line, enum log_level level)
{
    char when[32] = "";
    struct timespec ts = {0, 0};
    struct tm tm;

    if (to_journal) {
        buf_printf(line, "<%d>", (int)level);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (gmtime_r(&ts.tv_sec, &tm) != NULL)
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(line, "%s.%03dZ %s ", when, (int)(ts.tv_nsec / 1000000), level_name(level));
}

__attribute__((format(printf, 2, 0))) static void add_message(struct buf *line, const char *fmt,
                                                              va_list ap)
{
    char msg[LOG_LINE_BYTES];
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);

    if (n > 0)
        text_escape(line, msg, (size_t)n < sizeof(msg) ? (size_t)n : sizeof(msg) - 1);
    text_cut(line, LOG_LINE_BYTES - 1);
    buf_puts(line, "\n");
}

/* A full disk, a full pipe, a reader that is gone: the line is lost, the jobs go on. */
static int write_line(const struct buf *line)
{
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
    struct pollfd p = {STDERR_FILENO, POLLOUT, 0};
    ssize_t n = -1;

    /* stderr blocks, and making it not would do so for all who share it. A pipe that is ready takes
     * a page without blocking; the lock keeps our own threads from taking its room in between. */
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

void log_line(enum log_level level, const char *fmt, ...)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    int saved = errno;
    unsigned long lost;
    bool torn;
    va_list ap;

    if ((int)level > atomic_load(&level_max))
        return;
    lost = atomic_exchange(&dropped, 0);
    torn = atomic_exchange(&is_torn, false);
    if (torn)
        buf_puts(&line, "\n");
    add_prefix(&line, level);
    if (lost > 0)
        buf_printf(&line, "dropped_lines=%lu ", lost);
    va_start(ap, fmt);
    add_message(&line, fmt, ap);
    va_end(ap);
    if (write_line(&line) < 0) {
        (void)atomic_fetch_add(&dropped, lost + 1);
        if (torn)
            atomic_store(&is_torn, true);
    }
    errno = saved;
}
