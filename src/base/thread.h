/*
 * Threads as this program makes them: a small stack, and all signals blocked, since signals belong
 * to the main thread.
 */
#ifndef LATER_BASE_THREAD_H
#define LATER_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* ret: where the thread is told, for pthread_join; NULL: it is detached. 0 or an errno. */
int thread_start(void *(*run)(void *), void *arg, size_t stack_bytes, pthread_t *ret);

#endif
