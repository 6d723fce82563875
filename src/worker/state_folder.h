/*
 * The state folder of a daemon, which no other daemon may use. It holds a locked file, `worker`,
 * with the epoch under which we are registered and the fences of the running jobs (of a stream's
 * jobs, the number of the process). By this file the next daemon in the folder knows its
 * predecessor that died: it kills what that left running, and has its jobs taken back at once.
 *
 * What is written the kernel keeps when we are killed. A fence is written before the job's process
 * is made. A process is known by its origin (run/process/origin.h), so neither a reused pid nor the
 * moment of our death can mislead the search. Main thread.
 */
#ifndef LATER_WORKER_STATE_FOLDER_H
#define LATER_WORKER_STATE_FOLDER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "worker/identity.h"

struct state_folder;

/*
 * Create dir if it is missing (0700), check that it is ours, lock the file; blocks for up to 5 s.
 * NULL: err says why; code CONFIG when another daemon has the lock.
 */
struct state_folder *state_folder_open(const char *dir, const struct identity *me, struct err *err);
void state_folder_close(struct state_folder *s); /* NULL is fine */

/*
 * Check that the file still has its path; call it now and then. The lock belongs to the file, and
 * somebody may remove or move the folder: then another daemon could start with it, and the next one
 * would not find what we leave. 0: it has. 1: it had not; it was made again, with the fences of
 * what runs. -1: it has not; err says why (CONFIG: another daemon was quicker).
 */
int state_folder_keep(struct state_folder *s, struct err *err);

/* Epoch of the predecessor; 0: there was none, or it left in order. */
int64_t state_folder_predecessor(const struct state_folder *s);

/*
 * Kill the processes that the running jobs of the predecessor left, and take the table over; blocks
 * for up to 10 s. Returns how many were found. None is killed if the predecessor lives: then this
 * folder is a copy of the one that it uses.
 */
int state_folder_take_over(struct state_folder *s);

void state_folder_set_epoch(struct state_folder *s, int64_t epoch); /* 0: left in order */
/* The place is about to run the job with this fence; 0: nothing runs there any more. */
void state_folder_set_fence(struct state_folder *s, unsigned place, int64_t fence);

#endif
