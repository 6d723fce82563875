/*
 * How an attempt or a job ended, as the library writes it (L.outcome in src/lua/core/record.lua):
 * "<state> <code> <when ms> <start> <text>" LF output.
 */
#ifndef LATER_CLI_SHOW_OUTCOME_H
#define LATER_CLI_SHOW_OUTCOME_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"

struct outcome {
    char state[16]; /* failed dead done cancelled; later_result also: waiting running */
    int64_t code;   /* exit status of the handler, 128 + n for signal n, 0 where there is none */
    int64_t when_ms;
    int64_t start;
    const char *text; /* one line, not NUL-ended; text and output are the reply's */
    size_t text_len;
    const char *output;
    size_t output_len;
};

/* From the bytes of one; -1 when they are something else. A first line alone will do. */
int outcome_parse(const char *p, size_t n, struct outcome *ret);
/* From the reply of later_result and later_v1_await; -1 when it is something else. */
int outcome_of_reply(const struct reply *r, struct outcome *ret);
/* Put its fields into the object; the output only if it has one. */
void outcome_to_json(const struct outcome *o, json_t *object);

#endif
