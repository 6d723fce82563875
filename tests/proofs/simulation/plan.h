/*
 * What a seed decides about its run: how many workers, jobs and queues, and how often each trouble
 * comes.
 */
#ifndef LATER_TESTS_SIMULATION_PLAN_H
#define LATER_TESTS_SIMULATION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_QUEUES 3
/* Gates are named by numbers: locks 1 to PLAN_LOCKS, one semaphore, one rate. */
#define PLAN_LOCKS 2
#define PLAN_SEM 7
#define PLAN_SEM_PERMITS 2
#define PLAN_RATE 8
#define PLAN_RATE_TEXT "rate 4/1s burst 2"
#define PLAN_RATE_PER_S 4
#define PLAN_RATE_BURST 2
/* Each has a lock of its own behind those: PLAN_LOCKS + 1 and on. */
#define PLAN_SCHEDULES 4
#define PLAN_BROADCASTS 6
#define PLAN_MEMBERS 40 /* of a foreign queue */

struct plan {
    unsigned workers, places, jobs, queues;
    int64_t chaos_us; /* how long the trouble goes on */
    /* in a thousand calls: */
    unsigned refused;   /* an error reply, nothing was done */
    unsigned cut;       /* never executed, the link breaks */
    unsigned unheard;   /* executed, the reply is lost, the link breaks */
    unsigned late;      /* the link breaks, executed some seconds later */
    unsigned fatal;     /* the worker dies within two milliseconds */
    unsigned lost_wake; /* in a thousand messages */
    /* how often in the run: */
    unsigned crashes, stops, freezes, quiets, reloads; /* of workers */
    unsigned partitions;                               /* one worker does not reach Redis */
    unsigned hangs, outages, losses;                   /* of Redis */
    unsigned clock_steps;
    unsigned gates;        /* jobs in a thousand that pass locks, a semaphore or a rate */
    unsigned chains;       /* adds in a thousand that name what follows */
    unsigned batches;      /* how many */
    unsigned schedules;    /* how many */
    unsigned members;      /* how many of a foreign queue */
    unsigned broadcasts;   /* how many; and as many messages are published */
    unsigned children;     /* handlers in a thousand that add jobs */
    unsigned fair;         /* which queues are fair from the beginning, as bits; 0: none ever is */
    unsigned fair_changes; /* how often people make a queue fair, or plain again */
    unsigned operators;    /* actions of people: cancel, retry, pause … */
    unsigned quick;  /* handlers in a thousand that end at once, so that jobs are prefetched */
    bool same_host;  /* workers can tell that another has certainly died */
    bool has_poison; /* some jobs kill their worker */
    bool is_handler_wicked; /* some handlers hang, ignore TERM or meet an ill host */
};

void plan_make(struct plan *p, uint64_t seed);
const char *plan_queue(unsigned n);
void plan_say(const struct plan *p);

#endif
