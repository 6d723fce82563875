/*
 * The first broken rule of a run. Later ones are ignored, since they follow from the first.
 */
#ifndef LATER_TESTS_CHAOS_FINDING_H
#define LATER_TESTS_CHAOS_FINDING_H

#include <stdbool.h>

/* rule: a short name, or the kind of a finding of fsck; fmt says what was seen. */
void finding_break(const char *rule, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ignore these rules (comma separated): they are known to be broken. */
void finding_forgive(const char *rules);
bool finding_is_broken(void);
const char *finding_rule(void);
const char *finding_text(void);
void finding_clear(void);

#endif
