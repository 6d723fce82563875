/*
 * The schedules of a namespace as this daemon knows them, ordered by what is next (a binary heap).
 * No effects: schedules.c reads them from Redis and tells what is due.
 */
#ifndef LATER_DAEMON_SCHEDULE_TABLE_H
#define LATER_DAEMON_SCHEDULE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"
#include "schedule/catch_up.h"

#define SCHEDULE_NAME_MAX 128
#define SCHEDULE_ZONES_MAX 16

struct schedule {
    char name[SCHEDULE_NAME_MAX + 1];
    int64_t revision;
    struct catch_up_rule rule;
    int64_t next_ms;                /* as Redis has it; TIMING_NEVER: none */
    int64_t last_ms;                /* the last one that Redis let pass; 0: none */
    bool is_planned;                /* Redis has a next one for this revision, or knows of none */
    char zones[SCHEDULE_ZONES_MAX]; /* version of the time zones by which it was planned; "" */
    int64_t ask_ms;                 /* when to tell Redis something about it; orders the heap */
    size_t place;                   /* in the heap */
};

struct schedule_table {
    struct schedule **heap; /* owned, each on its own */
    size_t n;
    struct zone **zones; /* those in use */
    size_t nzones;
};

void schedule_table_init(struct schedule_table *t);
void schedule_table_done(struct schedule_table *t);

/*
 * Take a row of later_v1_schedules. One that comes twice is here twice: Redis takes what the first
 * says, and the other one is told. 0, or -1 with code FORMAT: it cannot be
 * read; ret_name (SCHEDULE_NAME_MAX + 1 bytes) has its name, "" for none.
 */
int schedule_table_take(struct schedule_table *t, const struct reply *row, char *ret_name,
                        struct err *err);

/* The one to ask about first; NULL: there are none. */
struct schedule *schedule_table_first(const struct schedule_table *t);
/* Set ask_ms, and put it where it belongs. */
void schedule_table_ask_at(struct schedule_table *t, struct schedule *s, int64_t ask_ms);

#endif
