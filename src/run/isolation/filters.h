/*
 * The filters of a queue: programs that see the payload of a job before its handler does, and may
 * change or refuse it. The process that becomes the handler runs them one after the other
 * (run/isolation/isolation_main.c), in its process group and with its environment.
 */
#ifndef LATER_RUN_ISOLATION_FILTERS_H
#define LATER_RUN_ISOLATION_FILTERS_H

#include <stddef.h>

#define FILTERS_MAX 8
#define FILTERS_CONTROL_FD 3 /* of the handler (run/exec/control_fd.h) */

/*
 * Give each of these programs the payload, from standard input. What it prints is the payload of
 * the next one and at last of the handler, on standard input; a program that prints nothing leaves
 * it unchanged. most: bytes that one may print. The descriptor for control gets `filter NAME`
 * before each, and `filter` behind the last one. 0: all have ended with status 0. Else the exit
 * status: that of the filter, 128 and the signal that killed it, 126 or 127 as shells use them, or
 * ISOLATION_EXIT (standard error says why).
 */
int filters_run(char *const *paths, size_t n, size_t most, char *const *envp);

#endif
