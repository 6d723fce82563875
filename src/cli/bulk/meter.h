/*
 * The progress of a long command, for a person who waits: one line of plain characters on stderr,
 * redrawn a few times a second. One thread.
 */
#ifndef LATER_CLI_BULK_METER_H
#define LATER_CLI_BULK_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct meter {
    bool is_shown;
    uint64_t size;     /* the whole, in bytes or in jobs; 0: not known */
    struct mono drawn; /* last */
    struct mono since; /* the rate counts from here */
    uint64_t since_jobs;
    double rate;   /* jobs a second */
    int has_drawn; /* columns */
};

/* is_wanted: show it if stderr is a terminal. size: see struct meter. */
void meter_init(struct meter *m, bool is_wanted, uint64_t size);
/* jobs: done so far. bytes: passed so far, in the unit of size. Draws if it is time to. */
void meter_show(struct meter *m, uint64_t jobs, uint64_t bytes);
/* Wipe the line, before something else is written. */
void meter_wipe(struct meter *m);

#endif
