/*
 * Where each value stands in the replies of the library that more than one file reads.
 */
#ifndef LATER_ASK_REPLIES_H
#define LATER_ASK_REPLIES_H

/* later_stats. Its queues stand in one list, QUEUE_VALUES for each. */
enum {
    STATS_NOW,
    STATS_WORKERS,
    STATS_RUNNING,
    STATS_JOBS,
    STATS_MORE,
    STATS_QUEUES,
    STATS_NOTES,
    STATS_STATES
};
enum {
    QUEUE_NAME,
    QUEUE_WAITING,
    QUEUE_RAW,
    QUEUE_DUE,
    QUEUE_PAUSED,
    QUEUE_DEAD,
    QUEUE_KEPT,
    QUEUE_DONE,
    QUEUE_DIED,
    QUEUE_CANCELLED,
    QUEUE_VALUES
};

/* A page of later_v1_queues: rows and states as in later_stats. */
enum { QUEUES_NOW, QUEUES_NEXT, QUEUES_ROWS, QUEUES_STATES };

/* A worker, as later_v1_workers and later_v1_health begin it. */
enum { WORKER_EPOCH, WORKER_COUNTER, WORKER_HELD, WORKER_HOST, WORKER_PID, WORKER_REST };

/* later_v1_workers: the first element is the time, each other one a worker. */
enum {
    WORKER_VERSION = WORKER_REST,
    WORKER_STARTED,
    WORKER_SERVES,
    WORKER_QUIET,
    WORKER_MODES,
    WORKER_DEFECTS,
    WORKER_PLACES,
    WORKER_RELOAD
};

/* later_v1_health. */
enum {
    HEALTH_NOW,
    HEALTH_WORKERS,
    HEALTH_LATE,
    HEALTH_NOTES,
    HEALTH_NAMES,
    HEALTH_NAMES_MAX,
    HEALTH_BROKEN,
    HEALTH_UNSEALED, /* batches: [name, when a job joined last, ms] */
    HEALTH_BATCHES   /* [open ones, ended ones] */
};
/* Its workers, */
enum {
    HEALTH_BEAT = WORKER_REST,
    HEALTH_PLACES,
    HEALTH_UNSENT,
    HEALTH_REFUSED,
    HEALTH_SKEW,
    HEALTH_QUIET
};
/* and its late and broken queues. Only a broken one has WHY. */
enum { LATE_QUEUE, LATE_DUE, LATE_WORKER, LATE_WHY };

/* A row of later_v1_list. KEY and GATE are empty where there is none. */
enum row_field {
    ROW_ID, /* empty for a raw member */
    ROW_SCORE,
    ROW_PRIORITY,
    ROW_TRIES,
    ROW_LAST, /* first line of the outcome; of a running job its progress */
    ROW_BYTES,
    ROW_PREVIEW,
    ROW_GATE,
    ROW_KEY,
    ROW_QUEUE, /* this and the next ones: only of running jobs */
    ROW_HOST,
    ROW_SINCE,  /* in ms; empty: it runs for less than some five seconds, or that is not known */
    ROW_TIMEOUT /* in ms; empty: it has none, or that is not known */
};

/* later_v1_suspects: the first element is the time, each other one a suspect. */
enum { SUSPECT_ID, SUSPECT_QUEUE, SUSPECT_DUE, SUSPECT_CRASHES, SUSPECT_DUE_ONES };

/* What later_v1_health is asked with: a due job that could run has started by then. Workers report
 * their room every 10 s. */
#define HEALTH_LATE_MS "12000"
#define HEALTH_SILENT_MS 12000 /* a worker beats every 5 s */

#endif
