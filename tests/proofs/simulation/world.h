/*
 * The virtual world of one run: one clock in microseconds, the events to come, the run's random
 * numbers, its log, and whether a property broke. One run at a time in a process; everything that
 * happens in it follows from its seed.
 */
#ifndef LATER_TESTS_SIMULATION_WORLD_H
#define LATER_TESTS_SIMULATION_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

/* Whoever events happen to: a process. Once it is dead its events are dropped, and while it is
 * stopped (SIGSTOP) they wait. */
struct owner {
    char name[16];
    bool is_dead;
    int64_t frozen_until;
};

struct event;
typedef void event_f(void *arg);

struct world {
    int64_t now_us;
    int64_t wall_step_us; /* how far the wall clock of Redis was stepped */
    bool is_running;      /* false: mono_now tells the real time (starting servers …) */
    bool is_calm;         /* no more faults */
    const struct owner *current;
    char broken[32]; /* the first property that broke, "" while none did */
    char why[256];
    FILE *log; /* NULL: none is kept */
};
extern struct world world;

/* log: NULL or an open file. */
void world_begin(uint64_t seed, FILE *log);
void world_end(void);

/* At this instant (the past: now) call fn(arg); owner may be NULL. drop(arg) is called instead when
 * it does not happen; may be NULL. */
struct event *world_at(int64_t at_us, const struct owner *owner, event_f *fn, void *arg,
                       event_f *drop);
struct event *world_in(int64_t us, const struct owner *owner, event_f *fn, void *arg,
                       event_f *drop);
/* The arg is not dropped. NULL is fine; must not have happened yet. */
void world_cancel(struct event *e);
/* Until then, or a property breaks, or stop(arg) says so (asked after each event). True: stopped.
 */
bool world_run(int64_t until_us, bool (*stop)(void *arg), void *arg);

/* Since the run began. */
int64_t world_age_us(void);
/* The wall clock of Redis. */
int64_t world_wall_us(void);

/* One line of the log, with the time and who. */
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A property does not hold: its name, and what was seen. The first one counts, the run ends. */
void world_break(const char *property, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Random numbers of the run. */
uint64_t random_next(void);
int64_t random_between(int64_t from, int64_t to); /* both included */
bool random_chance(unsigned permille);

#endif
