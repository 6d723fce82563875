/*
 * What ran for a schedule, as its handlers wrote it down: the referee of all tests of schedules.
 */
#ifndef LATER_TESTS_SUPPORT_OCCURRENCES_H
#define LATER_TESTS_SUPPORT_OCCURRENCES_H

#include <stdbool.h>
#include <stddef.h>

/* One run. */
struct test_occurrence {
    long long at_ms, started_ns;
    char id[16]; /* of the job */
};

/* Write dir/handlers/NAME, which adds a line to path: the occurrence, the job's id, when it
 * started, the schedule and the payload. */
void test_occurrences_handler(const char *dir, const char *name, const char *path);

/* The runs in the order of their occurrences; the caller frees them. */
struct test_occurrence *test_occurrences_read(const char *path, size_t *ret_n);

/* Fail the test if an occurrence has two jobs, or if one is left out from the first to the last.
 * may_repeat: a job may have run twice, since its worker was killed. -> how many occurrences */
size_t test_occurrences_each_once(const char *path, long long every_ms, bool may_repeat);

#endif
