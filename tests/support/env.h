/*
 * What a test is told by its environment.
 */
#ifndef LATER_TESTS_SUPPORT_ENV_H
#define LATER_TESTS_SUPPORT_ENV_H

/* LATER_BUILD_DIR, where the built programs are; the current folder without it. Do not free. */
const char *test_build_dir(void);

#endif
