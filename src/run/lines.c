#include "run/lines.h"

#include <string.h>

void lines_init(struct lines *l, size_t max)
{
    *l = (struct lines){BUF_INIT, max, false};
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

void lines_feed(struct lines *l, const char *p, size_t n, lines_f *cb, void *arg)
{
    const char *lf;

    for (; n > 0 && (lf = memchr(p, '\n', n)) != NULL; n -= (size_t)(lf - p) + 1, p = lf + 1) {
        size_t len = (size_t)(lf - p);

        if (l->part.len == 0 && len <= l->max) {
            cb(arg, p, len, false);
            continue;
        }
        keep(l, p, len);
        hand_out(l, cb, arg);
    }
    keep(l, p, n);
}

void lines_end(struct lines *l, lines_f *cb, void *arg)
{
    if (l->part.len > 0)
        hand_out(l, cb, arg);
}
