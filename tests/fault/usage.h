/*
 * What a process takes, as /proc tells it: of any process, not only of those that the test started.
 * Where there is no such process, the test fails.
 */
#ifndef LATER_TESTS_FAULT_USAGE_H
#define LATER_TESTS_FAULT_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int usage_fds(pid_t pid);
int usage_threads(pid_t pid);
/*
 * Children, the guard of a daemon left out: all, or only those that are zombies; 0 without such a
 * process too.
 */
int usage_children(pid_t pid, bool zombies_only);
int64_t usage_kib(pid_t pid, const char *name); /* VmHWM, VmRSS */
/* Processor time so far. */
int64_t usage_cpu_ms(pid_t pid);

#endif
