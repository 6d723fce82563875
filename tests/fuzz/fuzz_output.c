/*
 * Output of handlers: the lines do not depend on the pieces in which bytes arrive, and the last
 * bytes are kept.
 */
#include <string.h>

#include "fuzz.h"
#include "run/exec/exec.h"
#include "run/lines.h"
#include "run/exec/output.h"
#include "run/exec/last_bytes.h"

#define LINE_MAX_BYTES 16
#define LAST_BYTES 24

static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    struct buf *all = arg;

    FUZZ_MUST(n <= LINE_MAX_BYTES);
    FUZZ_MUST(!cut || n == LINE_MAX_BYTES);
    FUZZ_MUST(n == 0 || memchr(line, '\n', n) == NULL);
    buf_add(all, line, n);
    buf_puts(all, cut ? "+\n" : "\n");
}

static void cut_up(const char *p, size_t n, size_t piece, struct buf *all, struct buf *end)
{
    struct lines lines;
    struct last_bytes last;

    lines_init(&lines, LINE_MAX_BYTES);
    last_bytes_init(&last, LAST_BYTES);
    for (size_t at = 0; at < n; at += piece) {
        size_t len = n - at < piece ? n - at : piece;

        lines_feed(&lines, p + at, len, on_line, all);
        last_bytes_add(&last, p + at, len);
    }
    lines_end(&lines, on_line, all);
    last_bytes_copy(&last, end);
    lines_done(&lines);
    last_bytes_done(&last);
}

static void log_it(const char *p, size_t n, size_t piece)
{
    struct output o;

    output_init(&o, "j00000000001", "mail");
    for (size_t at = 0; at < n; at += piece)
        output_add(&o, (enum output_stream)(at / piece % OUTPUT_STREAMS), p + at,
                   n - at < piece ? n - at : piece);
    output_end(&o);
    FUZZ_MUST(o.bytes == (int64_t)n && o.logged <= OUTPUT_LOG_LINES && o.left_out >= 0);
    output_done(&o);
}

int fuzz_output(const uint8_t *data, size_t n)
{
    CLEANUP_BUF struct buf whole = BUF_INIT, pieces = BUF_INIT, end = BUF_INIT, end2 = BUF_INIT;
    size_t piece = n > 0 ? data[0] + 1U : 1;
    const char *p = (const char *)data + (n > 0);

    n -= n > 0;
    cut_up(p, n, n + 1, &whole, &end);
    cut_up(p, n, piece, &pieces, &end2);
    FUZZ_MUST(whole.len == pieces.len && end.len == end2.len);
    FUZZ_MUST(end.len == (n < LAST_BYTES ? n : LAST_BYTES));
    FUZZ_MUST(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    FUZZ_MUST(end.len == 0 || memcmp(end.data, p + n - end.len, end.len) == 0);
    FUZZ_MUST(end.len == 0 || memcmp(end.data, end2.data, end.len) == 0);
    log_it(p, n, piece);
    return 0;
}
