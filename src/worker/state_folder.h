/*
 * The state folder: one daemon's own. It holds a locked file, `worker`, with the epoch under which
 * we are registered and the fences of the jobs that run, so that the next daemon in this folder
 * knows its dead predecessor: it kills what that left running and has its jobs taken back at once.
 *
 * The table is a shared mapping, which the kernel keeps when we are killed; a fence stands in it
 * before the job's process is made. A process is known by its origin (run/process/origin.h), so
 * neither a reused pid nor the moment of our death can fool the search. Main thread.
 */
#ifndef LATER_WORKER_STATE_FOLDER_H
#define LATER_WORKER_STATE_FOLDER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "worker/identity.h"

struct state_folder;

/*
 * Create dir if it is missing (0700), check that it is ours, lock the file. NULL: err says why;
 * code CONFIG when another daemon has the lock.
 */
struct state_folder *state_folder_open(const char *dir, const struct identity *me, struct err *err);
void state_folder_close(struct state_folder *s); /* NULL is fine */

/*
 * The lock is one of the file, and somebody may remove or move the folder under us: then another
 * daemon could start in it, and the next one would not find what we leave. To be called now and
 * then: 0: all is in its place; 1: it was not, it is made again and has what runs; -1: it is not,
 * err says why (CONFIG: another daemon was quicker).
 */
int state_folder_keep(struct state_folder *s, struct err *err);

/* Epoch of the predecessor, 0: none, or it left in order. */
int64_t state_folder_predecessor(const struct state_folder *s);

/*
 * Kill the processes that the predecessor's running jobs left; returns how many. Nobody is killed
 * where the predecessor lives: then the folder is a copy of its own. Then the table is ours.
 */
int state_folder_take_over(struct state_folder *s);

void state_folder_set_epoch(struct state_folder *s, int64_t epoch); /* 0: left in order */
/* The slot is about to run the job with this fence; 0: nothing runs there any more. */
void state_folder_set_fence(struct state_folder *s, unsigned slot, int64_t fence);

#endif
