/*
 * The clock of a preloaded process (tests/support/preload/clock.c), as set by the test.
 */
#ifndef LATER_TESTS_SUPPORT_CLOCK_H
#define LATER_TESTS_SUPPORT_CLOCK_H

#include <stdint.h>

/* In a shared mapping of a file; each field is written whole, at any time. */
struct test_clock {
    int64_t fixed_us;  /* the wall clock stands still at this; 0: it runs */
    int64_t offset_us; /* added to the real time while it runs */
    int64_t ahead_s;   /* added to the monotonic clocks; it only grows */
};

/* Make the file (zeroed) and map it; ends the test program when it cannot. */
struct test_clock *test_clock_make(const char *path);
void test_clock_free(struct test_clock *clock);

/* "LD_PRELOAD=…" and "LATER_TEST_CLOCK=path" for a process' environment; the caller's. */
char *test_clock_preload(void);
char *test_clock_variable(const char *path);
/* "ASAN_OPTIONS=…": our own, and that another library may come before the sanitizer's. */
char *test_clock_sanitizer(void);

#endif
