/*
 * Memory that a test shares with a process that it starts: a file, mapped by both.
 */
#ifndef LATER_TESTS_SUPPORT_SHARED_H
#define LATER_TESTS_SUPPORT_SHARED_H

#include <stddef.h>

/* Make the file (n bytes, zeroed) and map it; ends the test program when it cannot. The caller
 * calls munmap. */
void *test_shared_make(const char *path, size_t n);

#endif
