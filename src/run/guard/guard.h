/*
 * The guard: a small process beside a worker that kills handlers which hold locks when the worker
 * was not heard of for so long that others may soon pass its locks on, and at once when it dies.
 * It does so when the worker itself is stopped, hangs or is cut off from Redis.
 *
 * The two share a table in memory: when the last acknowledged beat was sent, and for each place of
 * the worker the fence of the job that runs there, if that holds a lock. The worker stores into it,
 * the guard looks when that beat is GUARD_SILENCE_MS old: no message, no system call on a job's
 * way. The end of the worker is the end of a pipe.
 *
 * The others take a worker for dead 19.6 s after its last beat at the earliest (sched/silence.h).
 * All instants are CLOCK_BOOTTIME: those others do not sleep with this machine.
 *
 * How a job starts (the pool thread that runs it, in this order): guard_set, guard_admits, the
 * process, guard_set_process. So when the guard looks, either the fence stands there, or the thread
 * will see that the beat is too old.
 *
 * The guard's own death is the worker's to notice (guard_pidfd); the table stays, and the next one
 * goes on with it.
 */
#ifndef LATER_RUN_GUARD_GUARD_H
#define LATER_RUN_GUARD_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define GUARD_ARG "--guard" /* the program's only argument when it is to be a guard */
#define GUARD_SILENCE_MS 15000
/* For guard_is_fresh before a job is given to its thread: guard_admits comes so much later. */
#define GUARD_SPARE_MS 100

struct guard;

/*
 * A table for so many places; no process yet. silence_ms: 0 for GUARD_SILENCE_MS; tests are in more
 * of a hurry. NULL: no memory or descriptors.
 */
struct guard *guard_new(unsigned slots, int64_t silence_ms, struct err *err);
/* An orderly stop: whatever still runs is let alone. Waits for the guard's end, which is near.
 * NULL is fine. */
void guard_free(struct guard *g);

/*
 * Start the process: the running program, with GUARD_ARG, in a session of its own. Main thread,
 * before the loop turns or after the last one died; blocks until exec. 0, or -1 with err.
 */
int guard_start(struct guard *g, struct err *err);
/* Readable when it has died (pidwatch.h); -1 while there is none. Ours, as long as it lives. */
int guard_pidfd(const struct guard *g);
pid_t guard_pid(const struct guard *g); /* 0 while there is none */
/* Behind a readable guard_pidfd, which is closed: take note. Exit status, 128 + n for signal n. */
int guard_ended(struct guard *g);

/* Any thread. */
bool guard_is_up(const struct guard *g);
/* Was the last acknowledged beat sent less than a third of the silence ago (5 s), and will that be
 * true for spare_ms more? Any thread. */
bool guard_is_fresh(const struct guard *g, int64_t spare_ms);
/* Does it log in guard_main's format, or as text, as it does at first? Any thread. */
void guard_log_formatted(struct guard *g, bool is_formatted);
/* A beat sent then was acknowledged. Older news than the last are none. Main thread. */
void guard_alive(struct guard *g, struct boot sent);

/* ---- for the thread that runs a job on this slot */

void guard_set(struct guard *g, unsigned slot, int64_t fence);
/* May the process be made? Up and fresh. After guard_set. */
bool guard_admits(const struct guard *g);
/* It was made; it leads its group. 0: it is about to be reaped. Finds those that cannot be known by
 * their environment. */
void guard_set_process(struct guard *g, unsigned slot, pid_t pid);
/* Nothing runs there any more. */
void guard_clear(struct guard *g, unsigned slot);
/* Did the guard kill what was set last? */
bool guard_has_killed(const struct guard *g, unsigned slot);

/*
 * What the program does with GUARD_ARG, before anything else: be a guard. 0-2 and the table are the
 * only open descriptors. Returns the exit status. Nothing else runs in this process; it logs, and
 * in this format where guard_log_formatted says so. NULL: as text.
 */
int guard_main(log_format_f *format);

#endif
