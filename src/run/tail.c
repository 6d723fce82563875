#include "run/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void tail_init(struct tail *t, size_t cap)
{
    *t = (struct tail){mem_new(cap), cap, 0, 0};
}

void tail_done(struct tail *t)
{
    free(t->ring);
    *t = (struct tail){NULL, 0, 0, 0};
}

void tail_add(struct tail *t, const char *p, size_t n)
{
    size_t first;

    if (n > t->cap) {
        p += n - t->cap;
        n = t->cap;
    }
    first = t->cap - t->next < n ? t->cap - t->next : n;
    memcpy(t->ring + t->next, p, first);
    memcpy(t->ring, p + first, n - first);
    t->next = (t->next + n) % t->cap;
    t->len = t->len + n < t->cap ? t->len + n : t->cap;
}

void tail_copy(const struct tail *t, struct buf *out)
{
    size_t start = (t->next + t->cap - t->len) % t->cap;
    size_t first = t->cap - start < t->len ? t->cap - start : t->len;

    buf_add(out, t->ring + start, first);
    buf_add(out, t->ring, t->len - first);
}
