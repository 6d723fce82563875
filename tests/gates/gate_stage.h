/*
 * The stage of a gate proof: the stage of the fault tests, gate_handler and its ledger, one lasting
 * connection to Redis, and questions to Redis and to processes. Errors end the test program.
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
    char referee[96]; /* the folder of its lock files */
};

void gates_begin(struct gates *g);
/* Stop everything. Returns 0 if the ledger has no clash, `later fsck` found nothing and all daemons
 * exited 0. */
int gates_end(struct gates *g);

/* The stage of test programs that need only one. */
extern struct gates gates;
int gates_setup(void **state);
int gates_teardown(void **state);

/* Append a line for `queues:`: a queue whose jobs take min to max ms. more: its settings, such as
 * ", lock: x", or "". */
void gates_yaml(const struct gates *g, struct buf *ret, const char *queue, int min_ms, int max_ms,
                const char *more);
/* The same with the referee. */
void gates_yaml_alone(const struct gates *g, struct buf *ret, const char *queue, int min_ms,
                      int max_ms, const char *more);
/* Start a daemon with so many places. The yaml ends with the lines of `queues:`. */
void gates_start(struct gates *g, struct test_laterd *d, const char *name, int places,
                 const char *yaml);

/* Wait until Redis knows the gates that a configuration declares for the queue. */
void gates_until_declared(struct gates *g, const char *queue);

/* Call FCALL function 1 R args…, or any command; an error reply ends the program. */
struct reply *gates_fcall(struct gates *g, const char *function, ...) __attribute__((sentinel));
struct reply *gates_call(struct gates *g, ...) __attribute__((sentinel));
int64_t gates_int(struct gates *g, ...) __attribute__((sentinel));
/* The same without the reply. */
void gates_do(struct gates *g, const char *function, ...) __attribute__((sentinel));
/* True if it is refused with an error that begins with code. */
bool gates_is_refused(struct gates *g, const char *code, const char *function, ...)
    __attribute__((sentinel));

/* Call later_add QUEUE options… PAYLOAD; id (may be NULL) gets the id. */
void gates_add(struct gates *g, char id[16], const char *queue, ...) __attribute__((sentinel));
/* Add n jobs without options. */
void gates_add_many(struct gates *g, const char *queue, int n);

/* Wait until there are n jobs in all, n jobs of the queue parked, n lines with the text, or the job
 * has this state. False at the deadline. */
bool gates_until_jobs(struct gates *g, int64_t n, int deadline_ms);
bool gates_until_parked(struct gates *g, const char *queue, int64_t n, int deadline_ms);
bool gates_until_lines(struct gates *g, const char *text, int n, int deadline_ms);
bool gates_until_state(struct gates *g, const char *id, const char *state);
/* Wait for the first start of a job and return its time in us; fails the test at the deadline. */
int64_t gates_started_us(struct gates *g, const char *id, int deadline_ms);

/* How many commands Redis has run, also inside functions, without the INFO that asks this. */
int64_t gates_commands(struct gates *g);
/* How many function calls there were, and how long they took in us. */
int64_t gates_calls(struct gates *g);
int64_t gates_busy_us(struct gates *g);
/* One number of INFO SECTION; ends the program if it is missing. */
int64_t gates_info(struct gates *g, const char *section, const char *name);
int64_t gates_now_us(void);

/* How much slower a handler is now than on an idle machine, at least 1; sanitizers count, too. */
double gates_slowness(const struct gates *g);

/* The median of n values; sorts them. */
double gates_median(double *values, int n);

#endif
