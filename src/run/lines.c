#include "run/lines.h"

#include <string.h>

void lines_init(struct lines *l, size_t max)
{
    *l = (struct lines){.part = BUF_INIT, .max = max};
}

void lines_done(struct lines *l)
{
    buf_done(&l->part);
}

static void keep(struct lines *l, const char *p, size_t n)
{
    size_t cap = l->max - l->part.len;

    if (n == 0)
        return;
    l->cut = l->cut || n > cap;
    buf_add(&l->part, p, n < cap ? n : cap);
}

static void hand_out(struct lines *l, lines_f *cb, void *arg)
{
    cb(arg, buf_str(&l->part), l->part.len, l->cut);
    buf_clear(&l->part);
    l->cut = false;
}

/* Hand out what is expected of the n bytes at p. -> how many these are */
static size_t pass_some(struct lines *l, const char *p, size_t n, void *arg)
{
    size_t some = n < l->expected ? n : l->expected;

    if (some == 0)
        return 0;
    l->expected -= some;
    l->on_some(arg, p, some);
    return some;
}

void lines_expect(struct lines *l, size_t n, lines_bytes_f *on_some)
{
    l->expected = n;
    l->on_some = on_some;
}

void lines_feed(struct lines *l, const char *p, size_t n, lines_f *cb, void *arg)
{
    const char *end = p + n, *lf;

    p += pass_some(l, p, n, arg);
    while (p < end && (lf = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        size_t len = (size_t)(lf - p);

        if (l->part.len == 0 && len <= l->max) {
            cb(arg, p, len, false);
        } else {
            keep(l, p, len);
            hand_out(l, cb, arg);
        }
        p = lf + 1;
        p += pass_some(l, p, (size_t)(end - p), arg);
    }
    keep(l, p, (size_t)(end - p));
}

void lines_end(struct lines *l, lines_f *cb, void *arg)
{
    if (l->part.len > 0)
        hand_out(l, cb, arg);
}
