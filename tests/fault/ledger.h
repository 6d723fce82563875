/*
 * The ledger of a fault test: which jobs were added and acknowledged, what their handlers wrote
 * down, and what laterd logged about them. From this it computes lost and doubled jobs.
 *
 * The payload of each job is a number of its own. So an add whose answer was lost is told from an
 * add that never happened. The handler (tests/fault/ledger_handler) appends one line to DIR/ledger
 * at its start and one at its end, each by one write.
 *
 * A second start of a job is explained when laterd logged a cause: a start with a count of crashes,
 * an end with retry or released, or a result that it dropped or that Redis refused. Call ledger_log
 * before a restart of the daemon removes its log. One thread. Errors end the test program.
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
    char handler[96];   /* their program, copied into the test's folder */
    struct buf numbers; /* one byte for each number: flags of ledger.c */
    struct ledger_cause *causes;
    size_t ncauses;
    int64_t reaped; /* jobs in the event=reaped lines of the logs */
};

struct ledger_sum {
    int attempted;     /* adds that were sent */
    int acked;         /* adds that were answered */
    int starts, ends;  /* lines of the handlers */
    int lost;          /* acknowledged, but never ended; valid once all jobs have ended */
    int unexpected;    /* starts or ends of a number that was never added */
    int twins;         /* numbers that ran under two ids */
    int duplicates;    /* ends beyond the first of a job */
    int double_starts; /* two starts with one (id, attempt) or one fence */
    int again;         /* starts beyond the first of a job */
    int unexplained;   /* of `again`: starts without a logged cause */
    int crashes;       /* of `again`: starts explained by the crash of a worker */
};

/* dir: from test_folder_make. Installs the handler there. */
void ledger_open(struct ledger *l, const char *dir);
void ledger_close(struct ledger *l);

/* Append a line of the configuration: the queue, served by the handler, each job min to max ms. */
void ledger_yaml(const struct ledger *l, struct buf *ret, const char *queue, int min_ms,
                 int max_ms);

/*
 * Add n jobs, up to 500 a call, due delay_ms from now. Returns how many were acknowledged. If Redis
 * is in trouble, the others count as attempted only.
 */
int ledger_add(struct ledger *l, const struct test_redis *r, const char *queue, int n,
               int delay_ms);
/* How many lines of the ledger hold the text (" start" or " end"). */
int ledger_lines(const struct ledger *l, const char *what);
/* Wait until there are n of them; false at the deadline. */
bool ledger_until(const struct ledger *l, const char *what, int n, int deadline_ms);

/* Read what a daemon logged; once for each log, after the daemon has ended. */
void ledger_log(struct ledger *l, const char *log_path);

void ledger_sum(struct ledger *l, struct ledger_sum *ret);
/* Append the sum as text for a figure: "… 0 lost, 0 unexpected, …". */
void ledger_print(const struct ledger_sum *s, struct buf *ret);
/* True if nothing is lost, unexpected, doubled or unexplained; else prints the sum to stderr. */
bool ledger_is_sound(const struct ledger_sum *s);

#endif
