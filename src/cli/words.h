/* The arguments of a call that grows as it is made: bytes one behind the other. */
#ifndef LATER_CLI_WORDS_H
#define LATER_CLI_WORDS_H

#include <stddef.h>

#include "base/buf.h"

struct words {
    struct buf bytes;
    size_t *end; /* of each word, in bytes */
    size_t n, room;
    const char **argv; /* of words_argv */
    size_t *lens;
};

void words_done(struct words *w);
void words_add(struct words *w, const void *p, size_t n);
void words_puts(struct words *w, const char *s);
void words_printf(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Only the first n stay. */
void words_cut(struct words *w, size_t n);
/* The first n words go. */
void words_drop(struct words *w, size_t n);
/* argv and lens of 1 + n words, `first` and the first n; good until the next change. n > 0. */
void words_argv(struct words *w, const char *first, size_t n);

#endif
