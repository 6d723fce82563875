/*
 * A worker: the shipped scheduler, store, runner and wiring (daemon/wiring.c) on a virtual link,
 * pool, alarm and state folder. Each start of a worker is a new struct, kept until the run ends.
 */
#ifndef LATER_TESTS_SIMULATION_WORKER_H
#define LATER_TESTS_SIMULATION_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/daemon_priv.h"
#include "plan.h"
#include "world.h"

#define WORKERS_MAX 128
#define WORKERS_FOLDERS 4

/* The virtual loop has no watchers; it only knows its worker. */
struct loop {
    struct worker *worker;
};

struct worker {
    struct owner owner; /* first */
    struct daemon d;
    struct loop loop;
    struct served_queues served;
    struct served_queue served_at[PLAN_QUEUES];
    unsigned pid;
    size_t folder;         /* SIZE_MAX: none */
    int64_t epoch;         /* the last one, once the worker is dead */
    int64_t last_beat_us;  /* when Redis accepted its last beat */
    int64_t cut_off_until; /* it does not reach Redis until then */
    bool is_stopping, is_quiet, is_reloaded;
    int64_t busy_ms; /* in this millisecond … */
    unsigned busy;   /* … it has done so many things */
};

void workers_begin(const struct plan *plan);
/* All workers die at once; the structs stay until workers_free. */
void workers_end(void);
void workers_free(void);
/* Start a worker in this state folder, which no other uses; SIZE_MAX: without a folder. NULL: too
 * many. */
struct worker *worker_start(size_t folder);
/* SIGKILL. Its handlers die, too, or live on as orphans. */
void worker_crash(struct worker *w, bool has_orphans);
void worker_freeze(struct worker *w, int64_t us);
/* Only this worker does not reach Redis for so long. */
void worker_cut_off(struct worker *w, int64_t us);
void worker_stop(struct worker *w);
void worker_quiet(struct worker *w);
/* SIGHUP: from now on it serves these queues, as bits. */
void worker_serve(struct worker *w, unsigned queues);

size_t workers_count(void); /* all that were started */
struct worker *worker_at(size_t i);
/* A random living worker, or NULL. */
struct worker *worker_any(void);
/* Does no living worker use this folder? */
bool worker_folder_is_free(size_t folder);
/* The worker has done something. Too much in one millisecond is a busy loop. */
void worker_did(struct worker *w);

#endif
