/*
 * The ledger of a fault test: which jobs were attempted and acknowledged, what their handlers wrote
 * down, and what laterd recorded of it; then the arithmetic that finds lost and doubled jobs.
 *
 * Each job's payload is a number of its own, so that an add whose answer never came is told from
 * one that never happened. The handler (tests/fault/ledger_handler) appends a line at its start and
 * one at its end to DIR/ledger, each in one write.
 *
 * A second execution of a job has a recorded cause when laterd logged one: a start line that says
 * how many crashes of its workers were counted, an end line with retry or released, or a result
 * that it dropped or that was refused. Logs are read by ledger_log, before a restart of the daemon
 * removes them. One thread; what cannot be done ends the test program.
 */
#ifndef LATER_TESTS_FAULT_LEDGER_H
#define LATER_TESTS_FAULT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "../support/redis.h"

struct ledger_cause;

struct ledger {
    char path[96];      /* what the handlers write */
    char handler[96];   /* their program, in the test's folder */
    struct buf numbers; /* a byte per number: LEDGER_… */
    struct ledger_cause *causes;
    size_t ncauses;
    int64_t reaped; /* jobs in the lines event=reaped */
};

struct ledger_sum {
    int attempted;     /* adds that were sent */
    int acked;         /* adds that were answered */
    int starts, ends;  /* lines of the handlers */
    int lost;          /* acknowledged, without an end; to be read when all is drained */
    int unexpected;    /* starts or ends of what was never attempted */
    int twins;         /* two ids for one add */
    int duplicates;    /* ends beyond the first of a job */
    int double_starts; /* two starts of one (id, attempt), or of one fence */
    int again;         /* starts beyond the first of a job */
    int unexplained;   /* of these, those without a recorded cause */
    int crashes;       /* of these, those that the crash of a worker explains */
};

/* In a folder of test_folder_make: installs the handler there. */
void ledger_open(struct ledger *l, const char *dir);
void ledger_close(struct ledger *l);

/* A line for the configuration: the queue, served by the handler, each job min to max ms. */
void ledger_yaml(const struct ledger *l, struct buf *ret, const char *queue, int min_ms,
                 int max_ms);

/*
 * Add n jobs, up to 500 a call, due delay_ms after now. Returns how many were acknowledged: where
 * Redis is in trouble the rest counts as attempted only.
 */
int ledger_add(struct ledger *l, const struct test_redis *r, const char *queue, int n,
               int delay_ms);
/* How many lines (" start" or " end") there are. */
int ledger_lines(const struct ledger *l, const char *what);
/* Until there are n of them. */
bool ledger_until(const struct ledger *l, const char *what, int n, int deadline_ms);

/* What a daemon recorded so far; each log once, after the daemon is gone. */
void ledger_log(struct ledger *l, const char *log_path);

void ledger_sum(struct ledger *l, struct ledger_sum *ret);
/* "0 lost, 0 unexpected, …" for a figure. */
void ledger_print(const struct ledger_sum *s, struct buf *ret);
/* True, or the sum and the jobs in question are printed. */
bool ledger_is_sound(const struct ledger_sum *s);

#endif
