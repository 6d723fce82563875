/*
 * Counts jobs by a text: how many have it, when the first and the last of them failed, and the id
 * of that one.
 */
#ifndef LATER_CLI_SHOW_GROUPS_H
#define LATER_CLI_SHOW_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUPS_MAX 10000 /* texts; jobs with further ones are counted as one group */

struct groups;

struct groups *groups_new(void);
void groups_free(struct groups *g); /* NULL is fine */
/* Count a job that failed at ms; 0: it has not. The texts need no NUL and are copied. */
void groups_add(struct groups *g, const char *text, size_t n, const char *id, size_t id_len,
                int64_t ms);
/* Print them, the largest first. name: what the text is, as the title of its column and in JSON;
 * state: of the jobs. */
void groups_show(const struct groups *g, bool is_json, const char *name, const char *state,
                 int64_t now_ms);

#endif
