/* The arguments of a call, as a list of words that grows: their bytes stand in one buffer. */
#ifndef LATER_CLI_BULK_CALL_ARGS_H
#define LATER_CLI_BULK_CALL_ARGS_H

#include <stddef.h>

#include "base/buf.h"

struct call_args {
    struct buf bytes;
    size_t *end; /* offset in bytes of each word's end */
    size_t n, cap;
    const char **argv; /* set by call_args_argv, as lens */
    size_t *lens;
};

void call_args_done(struct call_args *w);
void call_args_add(struct call_args *w, const void *p, size_t n);
void call_args_puts(struct call_args *w, const char *s);
/* Append one word of at most 255 bytes. */
void call_args_printf(struct call_args *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Keep only the first n words. */
void call_args_cut(struct call_args *w, size_t n);
/* Remove the first n words. */
void call_args_drop(struct call_args *w, size_t n);
/* Set argv and lens to `first` and the first n words. Valid until the next change. n > 0. */
void call_args_argv(struct call_args *w, const char *first, size_t n);

#endif
