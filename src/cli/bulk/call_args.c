#include "cli/bulk/call_args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CAP_FIRST 1024

void call_args_done(struct call_args *w)
{
    buf_done(&w->bytes);
    free(w->end);
    free(w->argv);
    free(w->lens);
    memset(w, 0, sizeof(*w));
}

static void end_word(struct call_args *w)
{
    if (w->n == w->cap) {
        w->cap = w->cap > 0 ? 2 * w->cap : CAP_FIRST;
        w->end = mem_grow(w->end, w->cap, sizeof(*w->end));
        w->argv = mem_grow(w->argv, w->cap + 1, sizeof(*w->argv));
        w->lens = mem_grow(w->lens, w->cap + 1, sizeof(*w->lens));
    }
    w->end[w->n++] = w->bytes.len;
}

void call_args_add(struct call_args *w, const void *p, size_t n)
{
    buf_add(&w->bytes, p, n);
    end_word(w);
}

void call_args_puts(struct call_args *w, const char *s)
{
    call_args_add(w, s, strlen(s));
}

void call_args_printf(struct call_args *w, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    call_args_puts(w, text);
}

void call_args_cut(struct call_args *w, size_t n)
{
    w->n = n;
    w->bytes.len = n > 0 ? w->end[n - 1] : 0;
}

void call_args_drop(struct call_args *w, size_t n)
{
    size_t bytes = n > 0 ? w->end[n - 1] : 0;

    buf_drop(&w->bytes, bytes);
    for (size_t i = n; i < w->n; i++)
        w->end[i - n] = w->end[i] - bytes;
    w->n -= n;
}

void call_args_argv(struct call_args *w, const char *first, size_t n)
{
    const char *bytes = buf_str(&w->bytes);

    w->argv[0] = first;
    w->lens[0] = strlen(first);
    for (size_t i = 0, from = 0; i < n; from = w->end[i++]) {
        w->argv[i + 1] = bytes + from;
        w->lens[i + 1] = w->end[i] - from;
    }
}
