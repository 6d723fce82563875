/*
 * The names that calls use. They are few, so that calls meet.
 */
#ifndef LATER_TESTS_CHAOS_NAMES_H
#define LATER_TESTS_CHAOS_NAMES_H

#define QUEUES 4
#define LOCKS 4
#define LIMITED 4 /* names that are used for semaphores and for rates */
#define DEFINED 3 /* names for which a limit can be defined; the last one is a template */
#define KEYS 2
#define UNIQUES 3
#define OWNERS 5
#define SPACES 2
#define BATCHES 5
#define PRIORITIES 3

extern const char *const names_queue[QUEUES];
extern const char *const names_lock[LOCKS];
extern const char *const names_limited[LIMITED];
extern const char *const names_defined[DEFINED];
extern const char *const names_key[KEYS];
extern const char *const names_unique[UNIQUES];
extern const char *const names_owner[OWNERS];
extern const char *const names_space[SPACES];
extern const char *const names_batch[BATCHES];
extern const int names_priority[PRIORITIES];

/* The index of a name in a list, or -1. */
int names_find(const char *const *list, int n, const char *name);

#endif
