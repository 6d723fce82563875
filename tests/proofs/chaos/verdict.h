/*
 * The first broken rule of a run. Later ones are ignored, since they follow from the first.
 */
#ifndef LATER_TESTS_CHAOS_VERDICT_H
#define LATER_TESTS_CHAOS_VERDICT_H

#include <stdbool.h>

/* rule: a short name, or the kind of a finding of fsck; fmt says what was seen. */
void verdict_break(const char *rule, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ignore these rules (comma separated): they are known to be broken. */
void verdict_forgive(const char *rules);
bool verdict_is_broken(void);
const char *verdict_rule(void);
const char *verdict_text(void);
void verdict_clear(void);

#endif
