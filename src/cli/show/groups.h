/*
 * Counts jobs by a text: how many have it, when the first and the last of them failed, and the id
 * of that one.
 */
#ifndef LATER_CLI_SHOW_GROUPS_H
#define LATER_CLI_SHOW_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define GROUPS_MAX 10000 /* texts; jobs with further ones are counted as one group */

struct groups;

struct groups *groups_new(void);
void groups_free(struct groups *g); /* NULL is fine */
/* Write a reason with each of its numbers as a *, so that "order 17 is gone" and "order 18 is gone"
 * are one; it is a pattern for --reason. An exit status or a signal stays: it is the cause. The
 * library folds alike (src/lua/calls/reasons.lua). */
void groups_fold(const char *text, size_t n, struct buf *to);
/* Count a job that failed at ms; 0: it has not. The texts need no NUL and are copied. */
void groups_add(struct groups *g, const char *text, size_t n, const char *id, size_t id_len,
                int64_t ms);
/* Add jobs that were counted elsewhere: the first of them failed at first_ms, the last, with this
 * id, at last_ms. Of several that failed last at once, the one that is added first stays. */
void groups_join(struct groups *g, const char *text, size_t n, int64_t count, int64_t first_ms,
                 int64_t last_ms, const char *id);
/* Print them, the largest first. name: what the text is, as the title of its column and in JSON;
 * state: of the jobs. */
void groups_show(const struct groups *g, bool is_json, const char *name, const char *state,
                 int64_t now_ms);

#endif
