/*
 * The guard: a small process beside a worker. It kills guarded handlers, those of jobs under a lock
 * or under a semaphore with on_lost: kill, when the last acknowledged beat is so old that other
 * workers may soon pass their permits on, and at once when the worker dies. It works even while the
 * worker is stopped, hangs or is cut off from Redis.
 *
 * Worker and guard share a table in memory: when the last acknowledged beat was sent, and for each
 * place of the worker the fence of its job, if that job is guarded. The worker stores into the
 * table. The guard reads it when that beat is GUARD_UNACKED_MS old. So a job costs no message and
 * no system call. The guard sees the end of the worker as the end of a pipe.
 *
 * Other workers give a worker up 19.6 s after its last beat at the earliest
 * (sched/silence.h). All times are CLOCK_BOOTTIME, since the other workers go on while this machine
 * sleeps.
 *
 * To start a job, call these in this order: guard_set, guard_admits, create the process,
 * guard_set_process. So when the guard reads the table, either it finds the fence, or the starting
 * thread will find that the beat is too old.
 *
 * The worker has to notice when the guard dies (guard_pidfd). The table stays, and the next guard
 * uses it.
 */
#ifndef LATER_RUN_GUARD_GUARD_H
#define LATER_RUN_GUARD_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define GUARD_ARG "--guard" /* the only argument of a program that is to be a guard */
#define GUARD_UNACKED_MS 15000
/* spare_ms before a job is given to its thread: guard_admits comes about so much later. */
#define GUARD_SPARE_MS 100

struct guard;

/*
 * Make a table for this many places, but no process yet. unacked_ms: 0 for GUARD_UNACKED_MS; tests
 * use less. NULL: no memory or descriptors.
 */
struct guard *guard_new(unsigned places, int64_t unacked_ms, struct err *err);
/* Stop the guard without killing what still runs. Waits for its end, 5 s at most. NULL is fine. */
void guard_free(struct guard *g);

/*
 * Start the process: the running program with GUARD_ARG, in a session of its own. Main thread,
 * before the loop runs or after the last guard died; blocks until exec. 0, or -1 with err.
 */
int guard_start(struct guard *g, struct err *err);
/* Readable when the guard has died (pidwatch.h); -1 while there is none. Owned by g. */
int guard_pidfd(const struct guard *g);
pid_t guard_pid(const struct guard *g); /* 0 while there is no guard process */
/* Call this when guard_pidfd is readable: waits for the guard and closes that descriptor. Returns
 * the exit status, 128 + n for signal n. */
int guard_ended(struct guard *g);

/* Does the guard process run? Any thread. */
bool guard_is_up(const struct guard *g);
/* Was the last acknowledged beat sent less than a third of unacked_ms ago (5 s), and does that stay
 * true for spare_ms more? Any thread. */
bool guard_is_fresh(const struct guard *g, int64_t spare_ms);
/* is_formatted: the guard logs in guard_main's format; false, as at first: as text. Any thread. */
void guard_log_formatted(struct guard *g, bool is_formatted);
/* A beat that was sent at this time was acknowledged. Older times are ignored. Main thread. */
void guard_alive(struct guard *g, struct boot sent);

/* ---- for the thread that starts a job in this place of the worker */

/* First of all: store the fence. */
void guard_set(struct guard *g, unsigned place, int64_t fence);
/* May the process be created? The guard must be up and the beat fresh. After guard_set. */
bool guard_admits(const struct guard *g);
/* pid was created and leads its process group. 0: it is about to be waited for. By the pid the
 * guard finds processes that it cannot know by their environment. */
void guard_set_process(struct guard *g, unsigned place, pid_t pid);
/* Nothing runs in this place any more. */
void guard_clear(struct guard *g, unsigned place);
/* Did the guard kill the job whose fence was set last? */
bool guard_has_killed(const struct guard *g, unsigned place);

/*
 * Be a guard. main calls this before anything else when it is started with GUARD_ARG. Descriptors
 * 0-2 and the table are the only open ones, and nothing else runs in this process. format: the log
 * format after guard_log_formatted; NULL: text. Returns the exit status.
 */
int guard_main(log_format_f *format);

#endif
