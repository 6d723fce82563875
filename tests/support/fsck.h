/*
 * Audits the namespace at the end of a test, by the built `later fsck` (invariant I8).
 */
#ifndef LATER_TESTS_SUPPORT_FSCK_H
#define LATER_TESTS_SUPPORT_FSCK_H

#include "redis.h"

/*
 * `later --redis URL fsck --json` on namespace default. Returns how many findings there are, each
 * printed; ends the test program when it cannot be run to its end.
 */
int test_fsck(struct test_redis *r);
/* The same with --repair: how many findings it left. */
int test_fsck_repair(struct test_redis *r);

#endif
