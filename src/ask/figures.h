/*
 * What later_v1_metrics tells of each queue: for `later stats --prometheus`, and for the limits of
 * `later health`. One call of about a millisecond for each 64 queues.
 */
#ifndef LATER_ASK_FIGURES_H
#define LATER_ASK_FIGURES_H

#include "ask/ask.h"

enum figure {
    FIGURE_SCHEDULED, /* jobs, by state */
    FIGURE_DUE,
    FIGURE_PARKED,
    FIGURE_RAW, /* of the scheduled and due ones */
    FIGURE_DEAD,
    FIGURE_KEPT,
    FIGURE_OLDEST_DUE, /* ms since the first due job was due; 0: none is */
    FIGURE_PAUSED,     /* 1 while the queue is paused */
    FIGURE_DONE,       /* since the namespace began */
    FIGURE_DIED,
    FIGURE_CANCELLED,
    FIGURE_OLDEST_PARKED, /* ms since the first parked job was parked; 0: none is */
    FIGURE_ADOPTED,       /* members of a foreign queue that became its jobs */
    FIGURE_TENANTS,       /* that have due jobs, if the queue is fair */
    FIGURES
};

struct queue_figures {
    char name[65];
    int64_t value[FIGURES]; /* none is negative */
    bool is_fair;
};

struct figures {
    struct queue_figures *queues; /* sorted by name, each once */
    size_t n;
    int64_t now_ms, running, records; /* running, records: jobs of all queues */
    int64_t retried;                  /* attempts of all queues */
    int64_t unheard;                  /* messages of topics that no queue has subscribed to */
};

/* Ask for all queues. 0, or -1 with err. Call figures_done in any case. */
int figures_read(struct figures *f, struct ask_server *s, struct err *err);
void figures_done(struct figures *f);

#endif
