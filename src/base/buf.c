#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->cap < b->len + n + 1) {
        size_t cap = b->cap < 64 ? 64 : b->cap;

        while (cap < b->len + n + 1)
            cap *= 2;
        b->data = mem_grow(b->data, cap, 1);
        b->cap = cap;
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    char *at = buf_reserve(b, n);

    if (n > 0)
        memcpy(at, p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        (void)buf_reserve(b, (size_t)n);
        (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_drop(struct buf *b, size_t n)
{
    if (n >= b->len) {
        buf_clear(b);
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

const char *buf_str(struct buf *b)
{
    (void)buf_reserve(b, 0);
    b->data[b->len] = '\0'; /* the caller may have written into reserved space */
    return b->data;
}

char *buf_take(struct buf *b)
{
    char *data;

    (void)buf_str(b);
    data = b->data;
    *b = (struct buf)BUF_INIT;
    return data;
}
