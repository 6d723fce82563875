#include "run/exec/last_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void last_bytes_init(struct last_bytes *t, size_t cap)
{
    *t = (struct last_bytes){mem_new(cap), cap, 0, 0};
}

void last_bytes_done(struct last_bytes *t)
{
    free(t->ring);
    *t = (struct last_bytes){NULL, 0, 0, 0};
}

void last_bytes_clear(struct last_bytes *t)
{
    t->len = t->next = 0;
}

void last_bytes_add(struct last_bytes *t, const char *p, size_t n)
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

void last_bytes_copy(const struct last_bytes *t, struct buf *out)
{
    size_t start = (t->next + t->cap - t->len) % t->cap;
    size_t first = t->cap - start < t->len ? t->cap - start : t->len;

    buf_add(out, t->ring + start, first);
    buf_add(out, t->ring, t->len - first);
}
