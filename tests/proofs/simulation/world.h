/*
 * The virtual world of one run: one clock in microseconds, the events to come, the run's random
 * numbers, its log, and the property that broke. A process has one run at a time; everything in it
 * follows from the seed.
 */
#ifndef LATER_TESTS_SIMULATION_WORLD_H
#define LATER_TESTS_SIMULATION_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

/* A process that events happen to. When it is dead its events are dropped; while it is stopped
 * (SIGSTOP) they wait. */
struct owner {
    char name[16];
    bool is_dead;
    int64_t frozen_until;
};

struct event;
typedef void event_f(void *arg);

struct world {
    int64_t now_us;
    int64_t wall_step_us; /* how far Redis' wall clock was stepped */
    bool is_running;      /* false: mono_now is the real time (while servers start …) */
    bool is_calm;         /* no more trouble */
    const struct owner *current;
    char broken[32]; /* the first property that broke; "": none */
    char why[256];
    FILE *log; /* NULL: no log */
};
extern struct world world;

/* log: NULL or an open file. */
void world_begin(uint64_t seed, FILE *log);
void world_end(void);

/* Call fn(arg) at this time; a past time is now. owner may be NULL. drop(arg) is called instead if
 * the event does not happen; it may be NULL. */
struct event *world_at(int64_t at_us, const struct owner *owner, event_f *fn, void *arg,
                       event_f *drop);
struct event *world_in(int64_t us, const struct owner *owner, event_f *fn, void *arg,
                       event_f *drop);
/* Does not call drop. NULL is fine; the event must not have happened yet. */
void world_cancel(struct event *e);
/* Run until then, or until a property breaks or stop(arg) is true (asked after each event). True:
 * stopped. */
bool world_run(int64_t until_us, bool (*stop)(void *arg), void *arg);

/* Time since the run began. */
int64_t world_age_us(void);
/* Redis' wall clock. */
int64_t world_wall_us(void);

/* Write a line to the log, with the time and the current owner. */
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A property does not hold: its name, and what was seen. The first one ends the run. */
void world_break(const char *property, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Random numbers of the run. */
uint64_t random_next(void);
int64_t random_between(int64_t from, int64_t to); /* both included */
bool random_chance(unsigned permille);

#endif
