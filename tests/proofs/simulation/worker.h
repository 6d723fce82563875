/*
 * A worker: the shipped scheduler, store, runner and what joins them (daemon/wiring.c), on a
 * virtual link, pool, alarm and state folder. Each start of one is a new struct, kept until the run
 * ends.
 */
#ifndef LATER_TESTS_SIMULATION_WORKER_H
#define LATER_TESTS_SIMULATION_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/daemon_priv.h"
#include "plan.h"
#include "world.h"

#define WORKERS_MAX 64
#define WORKERS_FOLDERS 4

/* The virtual loop has no watchers of its own: it knows whose it is. */
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
    int64_t epoch;         /* that it had last, once it is dead */
    int64_t last_beat_us;  /* when Redis took one */
    int64_t cut_off_until; /* it does not reach Redis */
    bool is_stopping, is_quiet;
    int64_t busy_ms; /* this millisecond … */
    unsigned busy;   /* … it has done so many things */
};

void workers_begin(const struct plan *plan);
/* All are gone at once; what is known of them stays until workers_free. */
void workers_end(void);
void workers_free(void);
/* Start one in this state folder, which no other has; SIZE_MAX: without one. NULL: too many. */
struct worker *worker_start(size_t folder);
/* KILL. Its handlers die with it, or live on as orphans. */
void worker_crash(struct worker *w, bool has_orphans);
void worker_freeze(struct worker *w, int64_t us);
/* It does not reach Redis for so long, others do. */
void worker_cut_off(struct worker *w, int64_t us);
void worker_stop(struct worker *w);
void worker_quiet(struct worker *w);
/* HUP: from now on it serves these queues, a bit each. */
void worker_serve(struct worker *w, unsigned queues);

size_t workers_count(void); /* that were started */
struct worker *worker_at(size_t i);
/* A living one by chance, or NULL. */
struct worker *worker_any(void);
/* Nobody lives in this folder. */
bool worker_folder_is_free(size_t folder);
/* It has done something; too much in one millisecond is a busy loop. */
void worker_did(struct worker *w);

#endif
