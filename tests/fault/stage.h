/*
 * What a fault test stands on: a Redis, a folder, up to two daemons, a ledger, clocks to be set.
 * What cannot be done ends the test program.
 */
#ifndef LATER_TESTS_FAULT_STAGE_H
#define LATER_TESTS_FAULT_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/clock.h"
#include "../support/laterd.h"
#include "ledger.h"

#define STAGE_ROOT "later:{default}"
#define STAGE_WAIT_MS 60000 /* for what takes a moment on an idle machine */

struct stage {
    struct test_redis redis;
    char dir[64];
    char out[96]; /* for scripts to write to */
    struct test_laterd a, b;
    struct ledger ledger;
    struct test_clock *clock; /* of everything started between stage_clock and stage_plain */
    char clock_path[96];
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

/* The folder and the ledger; Redis is started by the test, under a clock or not. */
void stage_begin(struct stage *s);
/* Stops everything. 0, or the exit statuses of the daemons did not say that all is well. */
int stage_end(struct stage *s);

/* For cmocka, the state of the test being the stage: begun, with a Redis that keeps nothing. */
int stage_setup(void **stage);
int stage_teardown(void **stage);

/* Processes started from now on have the stage's clock; tests/support/preload/NAME.so with VARIABLE
 * set to value; nothing of that any more. */
void stage_clock(struct stage *s);
void stage_preload(const char *name, const char *variable, const char *value);
void stage_plain(void);

/* A daemon (&s->a or &s->b) with the ledger's handler for the queue `work`, 20 to 50 ms a job. */
void stage_start(struct stage *s, struct test_laterd *d, const char *name, const char *yaml);
/* Without the ledger's queue. */
void stage_start_plain(struct stage *s, struct test_laterd *d, const char *name, const char *yaml);
/* SIGKILL, and its log into the ledger. */
void stage_kill(struct stage *s, struct test_laterd *d);
/* TERM, and its log into the ledger; the exit status. */
int stage_stop(struct stage *s, struct test_laterd *d);

/* Add one job; its id is the caller's to free. option and value may be NULL. */
char *stage_add(struct stage *s, const char *queue, const char *option, const char *value);
/* later_show of a job: one value as text, "" without it; the caller's to free. */
char *stage_show(struct stage *s, const char *id, const char *name);
/* No job is left that waits or runs; for test_until. */
bool stage_is_drained(void *stage);
/* Wait for that, stop both daemons, and check the ledger; the sum is printed when it is not
 * sound. */
bool stage_is_sound(struct stage *s, struct ledger_sum *ret, int drain_ms);

/* From the environment, or one of the two. */
int stage_number(const char *name, int of_short, int of_long);
/* Seed the random numbers, from LATER_SEED or anew, and print it. */
unsigned stage_seed(void);
int stage_random(int from, int to);

#endif
