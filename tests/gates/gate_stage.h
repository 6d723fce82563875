/*
 * What a gate proof stands on: the stage of the fault tests, gate_handler and its ledger, one
 * connection to Redis that stays, and what is asked of Redis and of processes. What cannot be done
 * ends the test program.
 */
#ifndef LATER_TESTS_GATES_GATE_STAGE_H
#define LATER_TESTS_GATES_GATE_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "../fault/stage.h"
#include "../support/env.h"
#include "gate_judge.h"

#define GATE_WAIT_MS 60000

struct gates {
    struct stage s;
    struct client *c;
    char path[96];    /* the ledger */
    char handler[96]; /* gate_handler */
    char referee[96]; /* a folder */
};

void gates_begin(struct gates *g);
/* The ledger says of nobody that he was not alone, the audit finds nothing, all daemons end with 0.
 */
int gates_end(struct gates *g);

/* The stage of a test program that needs one only. */
extern struct gates gates;
int gates_setup(void **state);
int gates_teardown(void **state);

/* A queue for `queues:`, one line, jobs of min to max ms; more: settings of it, "" or ", lock: x".
 */
void gates_yaml(const struct gates *g, struct buf *ret, const char *queue, int min_ms, int max_ms,
                const char *more);
/* The same with the referee. */
void gates_yaml_alone(const struct gates *g, struct buf *ret, const char *queue, int min_ms,
                      int max_ms, const char *more);
/* A daemon of so many places, the yaml ending in the lines of `queues:`. */
void gates_start(struct gates *g, struct test_laterd *d, const char *name, int places,
                 const char *yaml);

/* Until the gates of a queue, which a file names, are known to the fleet. */
void gates_until_declared(struct gates *g, const char *queue);

/* FCALL function 1 R args…, and any command; an error reply ends the program. */
struct reply *gates_fcall(struct gates *g, const char *function, ...) __attribute__((sentinel));
struct reply *gates_call(struct gates *g, ...) __attribute__((sentinel));
int64_t gates_int(struct gates *g, ...) __attribute__((sentinel));
/* The same where the reply is of no interest. */
void gates_do(struct gates *g, const char *function, ...) __attribute__((sentinel));
/* Is it refused with this code? */
bool gates_is_refused(struct gates *g, const char *code, const char *function, ...)
    __attribute__((sentinel));

/* later_add QUEUE options… PAYLOAD; the id. */
void gates_add(struct gates *g, char id[16], const char *queue, ...) __attribute__((sentinel));
/* n plain jobs. */
void gates_add_many(struct gates *g, const char *queue, int n);

/* Until there are so many jobs in all, so many parked in a queue, so many lines with the text. */
bool gates_until_jobs(struct gates *g, int64_t n, int deadline_ms);
bool gates_until_parked(struct gates *g, const char *queue, int64_t n, int deadline_ms);
bool gates_until_lines(struct gates *g, const char *text, int n, int deadline_ms);
bool gates_until_state(struct gates *g, const char *id, const char *state);
/* The time of the first start of a job, waited for; fails the test without. */
int64_t gates_started_us(struct gates *g, const char *id, int deadline_ms);

/* Commands that Redis has run, those inside functions included, but what this asks. */
int64_t gates_commands(struct gates *g);
/* Calls of functions, and the time that they took. */
int64_t gates_calls(struct gates *g);
int64_t gates_busy_us(struct gates *g);
/* One figure of INFO SECTION. */
int64_t gates_info(struct gates *g, const char *section, const char *name);
int64_t gates_now_us(void);

/* How many times longer than on an idle machine a handler takes now; sanitizers count, too. */
double gates_slowness(const struct gates *g);

/* The middle of n values, which are sorted. */
double gates_median(double *values, int n);

#endif
