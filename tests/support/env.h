/*
 * What the environment tells a test.
 */
#ifndef LATER_TESTS_SUPPORT_ENV_H
#define LATER_TESTS_SUPPORT_ENV_H

#include <stdbool.h>

/* LATER_BUILD_DIR, where the built programs are; the current folder without it. Do not free. */
const char *test_build_dir(void);
/* LATER_SOURCE_DIR, the root of the tree; the current folder without it. Do not free. */
const char *test_source_dir(void);
/* Is LATER_FULL set? It asks for the long forms, of minutes and hours. */
bool test_is_long(void);
/* Is this a build with a sanitizer? Its memory says nothing, and a process takes many times as
 * long. */
bool test_is_sanitized(void);

#endif
