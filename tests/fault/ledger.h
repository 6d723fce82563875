/*
 * The ledger of a fault test: which jobs were added and acknowledged, what their handlers wrote
 * down, and what laterd logged about them. From this it computes lost and doubled jobs.
 *
 * The payload of each job is a number of its own. So an add whose answer was lost is told from an
 * add that never happened. The handler (tests/fault/ledger_handler) appends one line to DIR/ledger
 * at its start and one at its end, each by one write. So does the shell script of ledger_script.
 *
 * A second start of a job is explained when laterd logged a cause: a start with a count of crashes,
 * an end with retry or released, or a result that it dropped or that Redis refused. Call ledger_log
 * before a restart of the daemon removes its log. A test that takes data away from Redis instead
 * excuses the jobs that were lost with it, and permits a number of second runs.
 *
 * One thread. Errors end the test program.
 */
#ifndef LATER_TESTS_FAULT_LEDGER_H
#define LATER_TESTS_FAULT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "../support/redis.h"

#define LEDGER_WITH_CAUSE (-1) /* instead of a number of second runs: each needs a logged cause */

#define LEDGER_FAIR "fair: true, weights: { t1: 3 }" /* of a queue in the configuration */

struct client;
struct ledger_cause;

/* What is known of a number's job. */
struct ledger_job {
    char id[16]; /* "" unless the answer to its add told it */
    bool is_acked;
    bool is_excused; /* Redis lost it, or the test took it away from Redis */
    bool has_ended;  /* at the last ledger_sum */
};

struct ledger {
    char dir[64];
    char path[96];           /* what the handlers write */
    char handler[96];        /* their program, copied into the test's folder */
    struct ledger_job *jobs; /* of the numbers 0 to njobs - 1, whose adds were sent */
    int njobs;
    int tenants; /* the queue is fair, and jobs have so many keys by turns; 0: neither */
    struct ledger_cause *causes;
    size_t ncauses;
    int64_t reaped; /* jobs in the event=reaped lines of the logs */
};

struct ledger_sum {
    int attempted;     /* adds that were sent */
    int acked;         /* adds that were answered */
    int starts, ends;  /* lines of the handlers */
    int lost;          /* acknowledged, not excused, never ended; valid once all have ended */
    int unexpected;    /* starts or ends of a number that was never added */
    int twins;         /* numbers that ran under two ids, or two under one id */
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

/* Write dir/handlers/NAME, which runs these lines of sh between its two lines of the ledger; $n is
 * the number. */
void ledger_script(const struct ledger *l, const char *name, const char *lines);

/*
 * Add n jobs, up to 500 a call, due delay_ms from now. Returns how many were acknowledged. If Redis
 * is in trouble, the others count as attempted only.
 */
int ledger_add(struct ledger *l, const struct test_redis *r, const char *queue, int n,
               int delay_ms);
/* Add one job with this number, a token and pad bytes behind the number. False if the answer was
 * lost: then try again with the same number until it succeeds. c may be NULL: Redis is away. */
bool ledger_try_add(struct ledger *l, struct client *c, const char *queue, int number, int pad);
/* The key of the job with this number, if there are tenants; the caller's to free. */
char *ledger_tenant(const struct ledger *l, int number);
/* Write down an add that the test makes itself, of a number up to njobs. id: NULL unless it was
 * acknowledged, "" if the id is not known. */
void ledger_note(struct ledger *l, int number, const char *id);
/* Excuse the acknowledged jobs from number `from` on that are neither in R:jobs nor have ended:
 * only Redis can have lost them. Returns how many. */
int ledger_lost_by_redis(struct ledger *l, struct test_redis *r, int from);
/* Excuse all jobs from number `from` on: the test took them away from Redis. */
void ledger_excuse(struct ledger *l, int from);

/* How many lines of the ledger hold the text (" start" or " end"; NULL: all). */
int ledger_lines(const struct ledger *l, const char *what);
/* Wait until there are n of them; false at the deadline. */
bool ledger_until(const struct ledger *l, const char *what, int n, int deadline_ms);
/* How often this number has ended. */
int ledger_ends_of(const struct ledger *l, int number);
/* The lowest and the highest fence of the starts in lines from + 1 to `to` of the ledger;
 * INT64_MAX and 0 without any. */
void ledger_fences(const struct ledger *l, int from, int to, int64_t *lowest, int64_t *highest);

/* Read what a daemon logged; once for each log, after the daemon has ended. */
void ledger_log(struct ledger *l, const char *log_path);

void ledger_sum(struct ledger *l, struct ledger_sum *ret);
/* Append the sum as text for a figure: "… 0 lost, 0 unexpected, …". */
void ledger_print(const struct ledger_sum *s, struct buf *ret);
/*
 * Compute the sum. True if nothing is lost or unexpected, and
 * - LEDGER_WITH_CAUSE: there are no twins, no attempt started twice, and each second start has a
 *   logged cause;
 * - else: of each kind (twins, duplicates, double_starts) there are at most `again`.
 * Else prints the sum, and what is wrong, to stderr.
 */
bool ledger_is_sound(struct ledger *l, int again, struct ledger_sum *ret);

#endif
