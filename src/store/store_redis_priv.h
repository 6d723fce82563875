/*
 * What the two files of the store share; for nobody else: the store itself, the arguments of a
 * call (pointers and lengths, numbers kept in a scratch buffer of their own), and the reading of
 * answers.
 */
#ifndef LATER_STORE_STORE_REDIS_PRIV_H
#define LATER_STORE_STORE_REDIS_PRIV_H

#include "base/clock.h"
#include "redis/link.h"
#include "store/store_redis.h"

/* What an answer must be held against. */
struct step_shape {
    bool *is_plain; /* for each result; kept */
    size_t others;  /* of these, those that are not */
    size_t results, rooms;
};

struct store_redis {
    struct link *link;
    struct store_events events;
    char root[80];
    struct step_shape steps[STORE_STEPS_MAX]; /* under way, answered in the order of a ring */
    unsigned step_first, nsteps;
    size_t asked;                    /* held of a registration */
    char (*fetches)[JOB_ID_LEN + 1]; /* ids of the payloads on their way, oldest first */
    size_t nfetches;
    struct boot *beats; /* when those on their way were sent, oldest first; registrations too */
    size_t nbeats;
};

/* ---- arguments */

struct fcall {
    const char **at;
    size_t *len;
    size_t n, cap;
    char (*numbers)[24];
    size_t nnumbers, max_numbers;
};

/* The first four words; so many numbers may follow at most. */
struct fcall fcall_begin(const struct store_redis *s, const char *function, size_t numbers);
void fcall_add(struct fcall *a, const char *p, size_t n); /* not copied */
void fcall_str(struct fcall *a, const char *text);
void fcall_int(struct fcall *a, int64_t v);
/* As link_call; the arguments are gone then. */
int fcall_send(struct fcall *a, struct store_redis *s, async_reply_f *cb);

/* ---- answers */

/* True when r is an error or not the array it should be; the fault was told then. */
bool store_redis_is_bad(struct store_redis *s, const struct reply *r, size_t elements);
enum store_status store_redis_status(const struct reply *r);
/* Redis TIME; what is none is 0, so that nobody reckons with it beyond what an int64_t holds. */
int64_t store_redis_time(const struct reply *r);
/* The array is the caller's, its texts are the reply's. */
const char **store_redis_texts(const struct reply *r, size_t *n);

#endif
