/* The arguments of a call that grows as it is made: bytes one behind the other. */
#ifndef LATER_CLI_BULK_CALL_ARGS_H
#define LATER_CLI_BULK_CALL_ARGS_H

#include <stddef.h>

#include "base/buf.h"

struct call_args {
    struct buf bytes;
    size_t *end; /* of each word, in bytes */
    size_t n, room;
    const char **argv; /* of call_args_argv */
    size_t *lens;
};

void call_args_done(struct call_args *w);
void call_args_add(struct call_args *w, const void *p, size_t n);
void call_args_puts(struct call_args *w, const char *s);
void call_args_printf(struct call_args *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Only the first n stay. */
void call_args_cut(struct call_args *w, size_t n);
/* The first n words go. */
void call_args_drop(struct call_args *w, size_t n);
/* argv and lens of 1 + n words, `first` and the first n; good until the next change. n > 0. */
void call_args_argv(struct call_args *w, const char *first, size_t n);

#endif
