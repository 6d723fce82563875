/*
 * The arguments of one command, added one by one. Can also show the command as a person would type
 * it.
 */
#ifndef LATER_TESTS_CHAOS_CALL_H
#define LATER_TESTS_CHAOS_CALL_H

#include <stdint.h>

#include "base/buf.h"

#define CALL_ARGS 2048

struct call {
    struct buf bytes; /* each argument ends with a NUL */
    size_t from[CALL_ARGS], len[CALL_ARGS];
    int n;
};

/* Start a new command with this word. */
void call_begin(struct call *c, const char *word);
/* Start a new command: FCALL function 1 root */
void call_function(struct call *c, const char *function, const char *root);
void call_text(struct call *c, const char *s);
void call_bytes(struct call *c, const char *p, size_t n);
void call_number(struct call *c, int64_t n);
void call_printf(struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append the command as redis-cli takes it. */
void call_show(const struct call *c, struct buf *out);
/* Returns argument i as text. */
const char *call_word(const struct call *c, int i);
void call_done(struct call *c);

#endif
