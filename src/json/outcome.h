/*
 * How an attempt or a job ended, as the library writes it (jobs.outcome in src/lua/core/jobs.lua):
 * "<state> <code> <when ms> <start> <reason>" LF output.
 */
#ifndef LATER_JSON_OUTCOME_H
#define LATER_JSON_OUTCOME_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"

struct outcome {
    char state[16]; /* failed dead done cancelled; in a reply also: waiting parked running */
    int64_t code;   /* exit status of the handler, 128 + n for signal n, 0 where there is none */
    int64_t when_ms;
    int64_t start;
    const char *reason; /* one line, not NUL-ended; reason and output point into what was read */
    size_t reason_len;
    const char *output;
    size_t output_len;
};

/* From the bytes of an outcome, or of its first line. 0, or -1 if they are something else. */
int outcome_parse(const char *p, size_t n, struct outcome *ret);
/* From a reply of later_result or later_v1_await. 0, or -1 if it is something else. */
int outcome_of_reply(const struct reply *r, struct outcome *ret);
/* Put the fields into object; the output only if there is one. */
void outcome_to_json(const struct outcome *o, json_t *object);

#endif
