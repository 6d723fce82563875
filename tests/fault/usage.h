/*
 * What any process uses, as /proc tells: not only processes that the test started. Fails the test
 * if the process does not exist.
 */
#ifndef LATER_TESTS_FAULT_USAGE_H
#define LATER_TESTS_FAULT_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int usage_fds(pid_t pid);
int usage_threads(pid_t pid);
/*
 * Children, or only zombies, without the guard of a daemon. 0 if there is no such process.
 */
int usage_children(pid_t pid, bool zombies_only);
int64_t usage_kib(pid_t pid, const char *name); /* name: VmHWM, VmRSS */
/* Processor time used so far. */
int64_t usage_cpu_ms(pid_t pid);

#endif
