#include "run/stream/stream_log.h"

#include <inttypes.h>

#include "base/buf.h"
#include "run/exec/output.h"

void stream_log_init(struct stream_log *l, const char *queue)
{
    *l = (struct stream_log){.queue = queue, .id = "-"};
    lines_init(&l->lines, OUTPUT_LINE_BYTES);
}

void stream_log_start(struct stream_log *l, pid_t pid)
{
    l->pid = pid;
    l->since = mono_now();
}

void stream_log_done(struct stream_log *l)
{
    lines_done(&l->lines);
}

static void tell_left_out(struct stream_log *l)
{
    if (l->left_out > 0)
        log_info("queue=%s pid=%d left_out_lines=%" PRId64
                 " msg=\"more than %d lines a minute: the rest was left out of the log\"",
                 l->queue, (int)l->pid, l->left_out, STREAM_LOG_LINES);
    l->left_out = 0;
}

static bool may_log(struct stream_log *l)
{
    struct mono now = mono_now();

    if (!mono_before(now, mono_add_ms(l->since, STREAM_LOG_MS))) {
        tell_left_out(l);
        l->since = now;
        l->logged = 0;
    }
    if (l->logged >= STREAM_LOG_LINES) {
        l->left_out++;
        return false;
    }
    l->logged++;
    return true;
}

void stream_log_line(struct stream_log *l, enum log_level level, const char *stream,
                     const char *line, size_t n, bool cut)
{
    if (may_log(l))
        output_log(level, l->id, l->queue, l->pid, stream, line, n, cut);
}

static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    enum log_level level = LOG_LEVEL_INFO;

    if (n >= 3 && line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>') {
        /* Levels above ERR are for a whole system, not for a job. */
        level = line[1] < '3' ? LOG_LEVEL_ERR : (enum log_level)(line[1] - '0');
        line += 3;
        n -= 3;
    }
    stream_log_line(arg, level, "stderr", line, n, cut);
}

void stream_log_stderr(struct stream_log *l, const char *id, const char *p, size_t n)
{
    l->id = id;
    lines_feed(&l->lines, p, n, on_line, l);
    l->id = "-";
}

void stream_log_end(struct stream_log *l)
{
    lines_end(&l->lines, on_line, l);
    tell_left_out(l);
}
