/*
 * Time zones, from the database of the system (TZDIR, else /usr/share/zoneinfo), which tzif.c
 * reads. Not by the C library, whose zone is a state of the whole process and which takes a damaged
 * file for UTC; not by GLib, which a damaged file kills.
 */
#ifndef LATER_SCHEDULE_ZONE_H
#define LATER_SCHEDULE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct zone;

/* A time in which clocks are offset_s later than UTC. Seconds since 1970; until_s is behind it. */
struct stretch {
    int64_t from_s, until_s;
    int64_t offset_s;
};

#define ZONE_FIRST_S INT64_C(-2208988800) /* 1900: stretches do not go back further */
#define ZONE_LAST_S INT64_C(7258118400)   /* 2200: nor further than this */

/* "Europe/Berlin", "UTC". NULL with code FORMAT: the database has no such zone, or its file
 * is damaged. */
struct zone *zone_new(const char *name, struct err *err);
void zone_free(struct zone *z); /* NULL is fine */

/* The name that it was made with. */
const char *zone_name(const struct zone *z);

/* The stretch that an instant is in, from ZONE_FIRST_S to before ZONE_LAST_S. */
struct stretch zone_stretch(struct zone *z, int64_t utc_s);

/* By how many seconds clocks are moved on the day, there, of this instant: 3600 when they go
 * forward by an hour, -3600 when they go back, else 0. */
int64_t zone_moved_s(struct zone *z, int64_t utc_s);

/* The day, there, of an instant: year * 1000 + day of the year, from 1 on. */
int64_t zone_day(struct zone *z, int64_t utc_s);
/* The first second of the day behind the one of this instant. It is exact but on days on which the
 * clock is moved over midnight. */
int64_t zone_next_day_s(struct zone *z, int64_t utc_s);

/* The version of the database, "2025b", for comparing; "" if it does not tell. */
void zone_database_version(char ret[16]);

#endif
