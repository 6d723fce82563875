#include "run/exec/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "run/stream/stream_line.h"

#define ERROR_BYTES 512 /* of stderr that may hold its last line */

static const char *const stream_name[OUTPUT_STREAMS] = {"stdout", "stderr"};

void output_init(struct output *o, const char *id, const char *queue)
{
    *o = (struct output){.id = id, .queue = queue};
    for (int i = 0; i < OUTPUT_STREAMS; i++)
        lines_init(&o->lines[i], OUTPUT_LINE_BYTES);
    last_bytes_init(&o->last, RUN_OUTPUT_BYTES);
    last_bytes_init(&o->errors, ERROR_BYTES);
}

void output_done(struct output *o)
{
    for (int i = 0; i < OUTPUT_STREAMS; i++)
        lines_done(&o->lines[i]);
    last_bytes_done(&o->last);
    last_bytes_done(&o->errors);
}

void output_log(enum log_level level, const char *id, const char *queue, pid_t pid,
                const char *stream, const char *p, size_t n, bool cut)
{
    char shown_pid[16] = "";

    if (pid > 0)
        (void)snprintf(shown_pid, sizeof(shown_pid), "%d", (int)pid);
    log_output(level, "job=%s queue=%s pid=%s stream=%s msg=\"%.*s\" cut=%s", id, queue, shown_pid,
               stream, (int)(n < OUTPUT_LINE_BYTES ? n : OUTPUT_LINE_BYTES), p,
               cut || n > OUTPUT_LINE_BYTES ? "1" : "");
}

void output_line(struct output *o, const char *stream, const char *p, size_t n, bool cut)
{
    if (o->logged >= OUTPUT_LOG_LINES) {
        o->left_out++;
        return;
    }
    o->logged++;
    output_log(LOG_LEVEL_INFO, o->id, o->queue, 0, stream, p, n, cut);
}

static void on_stdout(void *arg, const char *line, size_t n, bool cut)
{
    output_line(arg, stream_name[OUTPUT_STDOUT], line, n, cut);
}

static void on_stderr(void *arg, const char *line, size_t n, bool cut)
{
    output_line(arg, stream_name[OUTPUT_STDERR], line, n, cut);
}

static lines_f *const on_line[OUTPUT_STREAMS] = {on_stdout, on_stderr};

static int64_t count_lf(const char *p, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += p[i] == '\n';
    return (int64_t)found;
}

static void keep_begin(struct output *o, const char *p, size_t n)
{
    size_t more = n < sizeof(o->begin) - o->nbegin ? n : sizeof(o->begin) - o->nbegin;

    memcpy(o->begin + o->nbegin, p, more);
    o->nbegin += more;
}

bool output_is_greeting(const struct output *o)
{
    size_t n = strlen(STREAM_GREETING);

    return o->nbegin > n && memcmp(o->begin, STREAM_GREETING, n) == 0 && o->begin[n] >= '0' &&
           o->begin[n] <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void output_last_error(const struct output *o, struct buf *ret)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    size_t end, begin;

    last_bytes_copy(&o->errors, &all);
    for (end = all.len; end > 0 && is_space(all.data[end - 1]); end--)
        continue;
    for (begin = end; begin > 0 && all.data[begin - 1] != '\n' && all.data[begin - 1] != '\r';
         begin--)
        continue;
    while (begin < end && is_space(all.data[begin]))
        begin++;
    buf_add(ret, all.data + begin, end - begin);
}

void output_forget_error(struct output *o)
{
    last_bytes_clear(&o->errors);
}

void output_add(struct output *o, enum output_stream which, const char *p, size_t n)
{
    if (n == 0)
        return;
    o->bytes += (int64_t)n;
    if (which == OUTPUT_STDOUT)
        keep_begin(o, p, n);
    else
        last_bytes_add(&o->errors, p, n);
    last_bytes_add(&o->last, p, n);
    if (o->logged < OUTPUT_LOG_LINES) {
        lines_feed(&o->lines[which], p, n, on_line[which], o);
        return;
    }
    /* A line that began earlier is counted at its LF, like any other. */
    buf_clear(&o->lines[which].part);
    o->left_out += count_lf(p, n);
    o->open[which] = p[n - 1] != '\n';
}

void output_end(struct output *o)
{
    for (int i = 0; i < OUTPUT_STREAMS; i++) {
        lines_end(&o->lines[i], on_line[i], o);
        o->left_out += o->open[i];
    }
    if (o->left_out > 0)
        log_info("job=%s queue=%s left_out_lines=%" PRId64 " output_bytes=%" PRId64
                 " msg=\"more output than %d lines: the rest was left out of the log\"",
                 o->id, o->queue, o->left_out, o->bytes, OUTPUT_LOG_LINES);
}
