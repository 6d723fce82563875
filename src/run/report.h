/*
 * How one run of a job ended, in every mode. What follows from it is decided elsewhere (policy).
 */
#ifndef LATER_RUN_REPORT_H
#define LATER_RUN_REPORT_H

#include <signal.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "job/children.h"

#define RUN_OUTPUT_BYTES 4096     /* last output kept with the job */
#define RUN_RESULT_BYTES 16384    /* longest result that a handler may give */
#define RUN_CHECKPOINT_BYTES 4096 /* longest checkpoint */

/* What a handler tells while its job runs; of each the latest text counts. */
enum run_word {
    RUN_PROGRESS,   /* how far it is: shown, not kept */
    RUN_CHECKPOINT, /* where the next attempt goes on: kept with the job */
};

/* Exec mode reports how the process ended. Streams and plug-ins report in words: SAID_…. */
enum run_end {
    RUN_EXITED,     /* code: exit status 0-255 */
    RUN_SIGNALED,   /* code: signal number */
    RUN_TIMED_OUT,  /* code: as for SIGNALED or EXITED, see text; 0 only for exit status 0 */
    RUN_STOPPED,    /* it was told to stop (code as above; maybe never started), the guard killed
                       it, or another job in its process had to be ended */
    RUN_CANCELLED,  /* it was cancelled (code as above); outranks STOPPED */
    RUN_NOT_RUN,    /* the handler cannot be started (code: errno; text: the cure) */
    RUN_HOST_ILL,   /* the host lacked a process, memory or a descriptor; the handler is fine */
    RUN_SAID_OK,    /* done; code 0 */
    RUN_SAID_RETRY, /* try again, no error; code 75, EX_TEMPFAIL of sysexits.h */
    RUN_SAID_FAIL,  /* failed; code 1 */
    RUN_SAID_DEAD,  /* never try again; code 65 */
};

/* Init with run_report_init, free with run_report_done. */
struct run_report {
    enum run_end end;
    int code;
    int64_t retry_in_ms; /* when the handler wants its retry; -1: it did not say */
    char text[256];      /* one line for people: "exit status 3", "timed out after 1s, killed" */
    struct buf result;   /* what the handler gave as its result */
    struct buf output;   /* last bytes of stdout and stderr, in order of arrival */
    struct children children; /* the jobs that it adds, if it is done */
    int64_t output_bytes;
    int64_t duration_us;
    struct mono started; /* when it began to run; 0: never */
};

/* ten years; due times end with the year 5000 */
#define RUN_RETRY_IN_MAX_MS INT64_C(315360000000)

/* When the handler wants its retry: the n bytes at p are a duration, at most RUN_RETRY_IN_MAX_MS.
 * False: they are none; *ret_ms is not changed then. */
bool run_parse_retry_in(const char *p, size_t n, int64_t *ret_ms);
/* Can the n bytes at p be a checkpoint? If not (too long, or with a NUL byte), that is logged: the
 * job keeps the one that it has. cut: there were more of them. */
bool run_checkpoint_fits(const char *id, const char *queue, const char *p, size_t n, bool cut);
/* How a process ended: "exit status 3", "killed by signal 9 (Killed)". */
void run_describe_status(const siginfo_t *st, char *out, size_t size);
/* Why we ended it (TIMED_OUT, STOPPED, CANCELLED): "timed out after 1s". */
void run_describe_cause(enum run_end cause, int64_t timeout_ms, char *out, size_t size);
/*
 * Store what the handler reported: said is one of SAID_…, the n bytes at p are its reason. If it
 * was told to end (cause is not EXITED; why: the cause in words), only SAID_OK and SAID_DEAD count;
 * for SAID_RETRY and SAID_FAIL the result is the cause.
 */
void run_report_say(struct run_report *r, enum run_end said, const char *p, size_t n,
                    enum run_end cause, const char *why);

/* The n bytes at p are why it failed. n is 0: nothing changes. */
void run_report_reason(struct run_report *r, const char *p, size_t n);

void run_report_init(struct run_report *r);
void run_report_done(struct run_report *r);

#endif
