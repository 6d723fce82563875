/*
 * Points in time, one type for each clock, so that mixing two clocks does not compile.
 *
 * struct mono: CLOCK_MONOTONIC in microseconds, for every local deadline. Sums saturate; MONO_NEVER
 * is later than everything. struct wall: Unix milliseconds from Redis TIME; a wall time is only
 * carried and shown, never compared with the local clock. struct boot: CLOCK_BOOTTIME in
 * microseconds. It also counts while this machine sleeps, as the clocks of all other machines do;
 * it tells how long ago Redis last heard of us.
 */
#ifndef LATER_BASE_CLOCK_H
#define LATER_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct mono {
    int64_t us;
};

struct wall {
    int64_t ms;
};

struct boot {
    int64_t us; /* 0: never */
};

#define MONO_NEVER ((struct mono){INT64_MAX})

/* Apart from libev, only this function reads the monotonic clock. */
struct mono mono_now(void);

/* All processes of this machine can compare these times. */
struct boot boot_now(void);

/* This host's wall clock minus told_us (Unix microseconds, just received), in ms. For display only:
 * nothing is decided by this host's wall clock. Only this function and the log read it. */
int64_t wall_skew_ms(int64_t told_us);

static inline struct mono mono_add_us(struct mono t, int64_t us)
{
    int64_t sum;

    if (t.us == INT64_MAX)
        return t;
    if (__builtin_add_overflow(t.us, us, &sum))
        return us > 0 ? MONO_NEVER : (struct mono){INT64_MIN};
    return (struct mono){sum};
}

static inline struct mono mono_add_ms(struct mono t, int64_t ms)
{
    int64_t us;

    if (__builtin_mul_overflow(ms, (int64_t)1000, &us))
        return ms > 0 ? MONO_NEVER : (struct mono){INT64_MIN};
    return mono_add_us(t, us);
}

static inline bool mono_before(struct mono a, struct mono b)
{
    return a.us < b.us;
}

static inline struct mono mono_min(struct mono a, struct mono b)
{
    return mono_before(a, b) ? a : b;
}

/* Microseconds from `from` until `to`; negative when `to` is earlier; INT64_MAX for MONO_NEVER. */
static inline int64_t mono_until_us(struct mono from, struct mono to)
{
    int64_t diff;

    if (to.us == INT64_MAX)
        return INT64_MAX;
    if (__builtin_sub_overflow(to.us, from.us, &diff))
        return to.us > from.us ? INT64_MAX : INT64_MIN;
    return diff;
}

/* The next of waits that double: first_ms, then twice the last one, at most max_ms. was_ms: the
 * last one; 0: none yet. */
static inline int64_t wait_next_ms(int64_t was_ms, int64_t first_ms, int64_t max_ms)
{
    int64_t ms = was_ms == 0 ? first_ms : was_ms * 2;

    return ms < max_ms ? ms : max_ms;
}

#endif
