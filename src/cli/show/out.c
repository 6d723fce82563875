#include "cli/show/out.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define PENDING_MAX 65536 /* bytes; a terminal gets each line at once */

static struct {
    bool is_tty;
    bool has_colour;
    size_t width;
    struct buf pending; /* not yet written; once a write has failed, the begin of what was not */
    size_t lost;        /* bytes that were not written, in all */
    int errnum;         /* of the first write that failed */
    char heading[80];   /* to be written before the next bytes; "": none */
} out;

static size_t terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int64_t n;

    if (columns != NULL && text_parse_int(columns, WIDTH_MIN, 10000, &n) == 0)
        return (size_t)n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
        return size.ws_col;
    return WIDTH_DEFAULT;
}

void out_init(void)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    out.is_tty = isatty(STDOUT_FILENO) == 1;
    out.has_colour = out.is_tty && (no_colour == NULL || no_colour[0] == '\0') && term != NULL &&
                     strcmp(term, "dumb") != 0;
    out.width = out.is_tty ? terminal_width() : 0;
}

bool out_is_tty(void)
{
    return out.is_tty;
}

size_t out_width(void)
{
    return out.width;
}

bool out_is_utf8(void)
{
    locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool is_utf8 = user != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, user), "UTF-8") == 0;

    if (user != (locale_t)0)
        freelocale(user);
    return is_utf8;
}

const char *out_style(enum out_style style)
{
    static const char *const sequence[OUT_STYLES] = {"\033[0m", "\033[1m", "\033[32m", "\033[31m"};

    return out.has_colour ? sequence[style] : "";
}

static void lose(int errnum)
{
    out.errnum = errnum;
    out.lost = out.pending.len;
    if (out.pending.len > OUT_LOST_MAX)
        out.pending.len = OUT_LOST_MAX;
}

/* Standard output may have been made non-blocking by whoever gave it to us. */
static void wait_for_room(void)
{
    struct pollfd fd = {STDOUT_FILENO, POLLOUT, 0};

    (void)poll(&fd, 1, -1);
}

bool out_flush(void)
{
    size_t done = 0;

    while (out.errnum == 0 && done < out.pending.len) {
        ssize_t n = write(STDOUT_FILENO, out.pending.data + done, out.pending.len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            wait_for_room();
        else if (n == 0 || errno != EINTR) {
            int errnum = n == 0 ? EIO : errno;

            buf_drop(&out.pending, done);
            lose(errnum);
        }
    }
    if (out.errnum == 0)
        buf_clear(&out.pending);
    return out.errnum == 0;
}

void out_printf(const char *fmt, ...)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    out_bytes(text.data, text.len);
}

void out_label(const char *label)
{
    out_printf("%s%-17s%s ", out_style(OUT_BOLD), label, out_style(OUT_PLAIN));
}

void out_heading(const char *text)
{
    (void)snprintf(out.heading, sizeof(out.heading), "%s", text != NULL ? text : "");
}

static void put_heading(void)
{
    char text[sizeof(out.heading)];

    if (out.heading[0] == '\0')
        return;
    memcpy(text, out.heading, sizeof(text));
    out.heading[0] = '\0';
    out_printf("%s%s:%s\n", out_style(OUT_BOLD), text, out_style(OUT_PLAIN));
}

void out_bytes(const void *p, size_t n)
{
    size_t kept = n;

    if (n == 0)
        return;
    put_heading();
    if (out.errnum != 0) {
        out.lost += n;
        kept = out.pending.len < OUT_LOST_MAX ? OUT_LOST_MAX - out.pending.len : 0;
    }
    buf_add(&out.pending, p, kept < n ? kept : n);
    if (out.errnum == 0 &&
        (out.pending.len >= PENDING_MAX || (out.is_tty && memchr(p, '\n', n) != NULL)))
        (void)out_flush();
}

void out_text(const void *p, size_t n)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    text_escape(&safe, p, n);
    out_bytes(safe.data, safe.len);
}

void out_lines(const void *p, size_t n)
{
    const char *s = p;
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\n' && s[i] != '\t')
            continue;
        out_text(s + from, i - from);
        out_bytes(s + i, 1);
        from = i + 1;
    }
    out_text(s + from, n - from);
    if (n > 0 && s[n - 1] != '\n')
        out_bytes("\n", 1);
}

bool out_has_failed(void)
{
    return out.errnum != 0;
}

int out_finish(struct err *err)
{
    if (out_flush())
        return 0;
    (void)err_sys(err, out.errnum, "cannot write the output");
    err->code = ERR_OUTPUT;
    return -1;
}

size_t out_lost(const char **ret, size_t *ret_n)
{
    *ret = buf_str(&out.pending);
    *ret_n = out.pending.len;
    return out.lost;
}

const char *out_instant(int64_t ms, char text[48])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (localtime_r(&seconds, &tm) == NULL || strftime(text, 48, "%Y-%m-%d %H:%M:%S %z", &tm) == 0)
        (void)snprintf(text, 48, "%lld ms", (long long)ms);
    return text;
}

const char *out_when(int64_t ms, int64_t now_ms, char text[48])
{
    char span[48];
    int64_t diff;

    if (now_ms == 0 || __builtin_sub_overflow(ms, now_ms, &diff) || diff == INT64_MIN)
        return out_instant(ms, text);
    if (diff == 0)
        (void)snprintf(text, 48, "now");
    else
        (void)snprintf(text, 48, diff > 0 ? "in %.40s" : "%.40s ago",
                       text_span(diff > 0 ? diff : -diff, span));
    return text;
}
