/*
 * The arguments of one command, which are put together one by one, and the command as a person
 * would type it.
 */
#ifndef LATER_TESTS_CHAOS_CALL_H
#define LATER_TESTS_CHAOS_CALL_H

#include <stdint.h>

#include "base/buf.h"

#define CALL_ARGS 2048

struct call {
    struct buf bytes; /* a NUL behind each */
    size_t from[CALL_ARGS], len[CALL_ARGS];
    int n;
};

/* Begins anew, with this word. */
void call_begin(struct call *c, const char *word);
/* FCALL function 1 root */
void call_function(struct call *c, const char *function, const char *root);
void call_text(struct call *c, const char *s);
void call_bytes(struct call *c, const char *p, size_t n);
void call_number(struct call *c, int64_t n);
void call_printf(struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For redis-cli. */
void call_show(const struct call *c, struct buf *out);
/* Argument i as text. */
const char *call_word(const struct call *c, int i);
void call_done(struct call *c);

#endif
