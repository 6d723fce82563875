/*
 * What stream.h and stream_proc.h share: how a queue's processes are, a job for one of them, and
 * what one tells of.
 */
#ifndef LATER_RUN_STREAM_STREAM_CONF_H
#define LATER_RUN_STREAM_STREAM_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "run/guard/guard.h"
#include "run/report.h"

/* stream_new copies all of it. */
struct stream_conf {
    const char *queue;
    char *const *argv; /* argv[0]: absolute path */
    char *const *envp; /* without LATER_WORKER, which each process gets with its own number */
    unsigned processes;
    unsigned places; /* most jobs that may ever run at once: bounds `inflight` */
    int64_t kill_grace_ms, start_timeout_ms;
    int64_t heartbeat_ms;                 /* INT64_MAX: none */
    int64_t recycle_jobs, recycle_memory; /* 0: never */
    int64_t recycle_age_ms;               /* INT64_MAX: never */
};

/* A job. Its texts and payload are copied; only guard must stay valid until `ended`. */
struct stream_job {
    const char *id;
    unsigned place;     /* the job's place in the worker; names the job here */
    const char *header; /* one line for the process, without LF */
    size_t header_len;
    const char *payload;
    size_t payload_len;
    int64_t timeout_ms;  /* INT64_MAX: none */
    struct guard *guard; /* set if the job is guarded (job/job.h); NULL: it is not */
};

struct stream_proc;

struct stream_proc_events {
    /* It has greeted and takes jobs. */
    void (*ready)(void *arg, struct stream_proc *p);
    void (*ended)(void *arg, unsigned place, const struct run_report *report);
    void (*told)(void *arg, unsigned place, enum run_word word, const char *text);
    /* After the last of all events that came at the same time. */
    void (*rest)(void *arg, struct stream_proc *p);
    /* From here on it takes no more jobs, for another cause than `retire`. At most once. */
    void (*ending)(void *arg, struct stream_proc *p);
    /* It has ended; why: a text for people. Do not use p any more. */
    void (*gone)(void *arg, struct stream_proc *p, const char *why);
    void *arg;
};

#endif
