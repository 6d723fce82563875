/*
 * Files of the time zone database (TZif, RFC 8536), checked fully: what is cut or damaged is
 * refused as a whole. Pure: it takes the bytes of a file. Not for times before 1900 or from 2200
 * on.
 */
#ifndef LATER_SCHEDULE_TZIF_H
#define LATER_SCHEDULE_TZIF_H

#include <stddef.h>
#include <stdint.h>

#define TZIF_MAX_BYTES 65536 /* the largest of the database has 4 KB */

/* From from_s on, in seconds since 1970, clocks are offset_s later than UTC. */
struct tzif_change {
    int64_t from_s;
    int64_t offset_s;
};

/* In the order of time; the first is at the beginning. At least one. */
struct tzif {
    struct tzif_change *of;
    size_t n;
};

/* The changes from first_s to before last_s, those of the rule in the file's footer written out.
 * -1, with nothing to free: it is no sound file, or it counts leap seconds. */
int tzif_read(const uint8_t *p, size_t n, int64_t first_s, int64_t last_s, struct tzif *ret);
void tzif_utc(int64_t first_s, struct tzif *ret);
void tzif_done(struct tzif *t);

#endif
