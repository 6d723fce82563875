/*
 * The stage of a fault test: a Redis, a folder, up to two daemons, a ledger, and a clock that the
 * test sets. Errors end the test program.
 */
#ifndef LATER_TESTS_FAULT_STAGE_H
#define LATER_TESTS_FAULT_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/clock.h"
#include "../support/laterd.h"
#include "ledger.h"

#define STAGE_ROOT "later:{default}"
#define STAGE_WAIT_MS 60000 /* deadline for what takes a moment on an idle machine */

struct stage {
    struct test_redis redis;
    char dir[64];
    char out[96]; /* file for the lines of scripts */
    struct test_laterd a, b;
    struct ledger ledger;
    struct test_clock *clock; /* of processes started between stage_clock and stage_plain */
    char clock_path[96];
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

/* Make the folder and the ledger. The test starts Redis itself, under the clock or not. */
void stage_begin(struct stage *s);
/* Stop everything. Returns 0 if all daemons exited 0 and `later fsck` found nothing (skipped if
 * unsound is set). */
int stage_end(struct stage *s);

/* For cmocka; the test's state is the stage. Setup also starts a Redis without persistence. */
int stage_setup(void **stage);
int stage_teardown(void **stage);

/* For processes started from now on: use the stage's clock; preload tests/support/preload/NAME.so
 * with this variable (NULL: none) set to value; undo both. */
void stage_clock(struct stage *s);
void stage_preload(const char *name, const char *variable, const char *value);
void stage_plain(void);

/* Start a daemon (&s->a or &s->b). The ledger's handler serves queue `work`, 20 to 50 ms a job. */
void stage_start(struct stage *s, struct test_laterd *d, const char *name, const char *yaml);
/* The same without the ledger's queue. */
void stage_start_plain(struct stage *s, struct test_laterd *d, const char *name, const char *yaml);
/* Send SIGKILL, wait, read its log into the ledger. */
void stage_kill(struct stage *s, struct test_laterd *d);
/* Send TERM, wait, read its log into the ledger. Returns the exit status. */
int stage_stop(struct stage *s, struct test_laterd *d);

/* Add one job. option and value may be NULL. The id is the caller's to free. */
char *stage_add(struct stage *s, const char *queue, const char *option, const char *value);
/* Wait until R:jobs is empty; false at the deadline, so always while dead jobs are kept. */
bool stage_until_drained(struct stage *s, int deadline_ms);
/* Wait until so many queues are fair; false at the deadline. */
bool stage_until_fair(struct stage *s, int queues);
/* Has Redis no row of any tenant of this queue? So it must be while none of its jobs waits or
 * runs. */
bool stage_tenants_are_gone(struct stage *s, const char *queue);
/* Wait until it is drained, stop both daemons, compute the sum. False, with the reasons on stderr,
 * if it is not drained, a daemon did not exit 0 or the ledger is not sound. */
bool stage_is_sound(struct stage *s, struct ledger_sum *ret, int drain_ms);

/* The number in environment variable name; without it of_long in the long form, else of_short. */
int stage_number(const char *name, int of_short, int of_long);
/* Seed the random numbers from LATER_SEED or the clock, and print the seed. */
unsigned stage_seed(void);
/* A random number of from..to, both included. */
int stage_random(int from, int to);

#endif
