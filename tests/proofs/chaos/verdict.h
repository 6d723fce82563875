/*
 * What was found broken: the first of it counts, since what follows comes of it.
 */
#ifndef LATER_TESTS_CHAOS_VERDICT_H
#define LATER_TESTS_CHAOS_VERDICT_H

#include <stdbool.h>

/* rule: a short name, or the kind of a finding of fsck; the rest says what was seen. */
void verdict_break(const char *rule, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Rules (comma separated) that are known to be broken: not looked at. */
void verdict_forgive(const char *rules);
bool verdict_is_broken(void);
const char *verdict_rule(void);
const char *verdict_text(void);
void verdict_clear(void);

#endif
