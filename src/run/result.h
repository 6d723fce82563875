/*
 * What came of one attempt, in whichever way it was run. Policy (retry or not) is not made here.
 */
#ifndef LATER_RUN_RESULT_H
#define LATER_RUN_RESULT_H

#include <signal.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

#define RUN_TAIL_BYTES 4096    /* last output kept with the job */
#define RUN_RESULT_BYTES 16384 /* most that a handler may say as its result */

/* Who ends by a process' end says it by that; who serves many jobs says it in words. */
enum run_end {
    RUN_EXITED,     /* code: exit status 0-255 */
    RUN_SIGNALED,   /* code: signal number */
    RUN_TIMED_OUT,  /* code: as SIGNALED or EXITED would say, see text; 0 only for exit status 0 */
    RUN_STOPPED,    /* ended because it was told to stop (code as above; maybe never started), by
                       the guard, or because a neighbour in its process had to be ended */
    RUN_CANCELLED,  /* told to cancel (the same); outranks STOPPED */
    RUN_NOT_RUN,    /* could not be started: its own fault (code: errno; text: the cure) */
    RUN_HOST_FAULT, /* the host could not start it (no process, memory, descriptor): nobody's */
    RUN_SAID_OK,    /* the handler's own word; code 0 */
    RUN_SAID_RETRY, /* expected, no error; code 75, as sysexits.h has it */
    RUN_SAID_FAIL,  /* code 1 */
    RUN_SAID_DEAD,  /* code 65 */
};

/* Init with run_result_init, release with run_result_done. */
struct run_result {
    enum run_end end;
    int code;
    int64_t retry_in_ms; /* the handler's wish, -1: not said */
    char text[256];      /* one line for people: "exit status 3", "timed out after 1s, killed" */
    struct buf result;   /* what the handler gave as its result */
    struct buf tail;     /* last bytes of stdout and stderr as they came */
    int64_t output_bytes;
    int64_t duration_us;
    struct mono started; /* when it began to run; 0: it never did */
};

/* How a process ended: "exit status 3", "killed by signal 9 (Killed)". */
void run_describe_status(const siginfo_t *st, char *out, size_t size);
/* Why it was ended by us (TIMED_OUT, STOPPED, CANCELLED): "timed out after 1s". */
void run_describe_cause(enum run_end cause, int64_t timeout_ms, char *out, size_t size);
/*
 * The handler's own word, one of SAID_…, and the n bytes with which it says why. One that was told
 * to end (cause is not EXITED, why is that in words) and gave up ends by that; its word holds where
 * it says more: done, or never again.
 */
void run_result_say(struct run_result *r, enum run_end said, const char *p, size_t n,
                    enum run_end cause, const char *why);

void run_result_init(struct run_result *r);
void run_result_done(struct run_result *r);

#endif
