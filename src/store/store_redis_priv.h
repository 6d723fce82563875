/*
 * Shared by store_redis.c and store_sync.c only: the store itself, the arguments of a call
 * (pointers and lengths; the texts of numbers have a buffer of their own), and the reading of
 * answers.
 */
#ifndef LATER_STORE_STORE_REDIS_PRIV_H
#define LATER_STORE_STORE_REDIS_PRIV_H

#include "base/clock.h"
#include "redis/link.h"
#include "store/store.h"

/* The shape of a sync that was sent, to check its answer. */
struct sync_shape {
    bool *is_plain; /* for each result; reused by the next sync */
    size_t others;  /* results that are not plain */
    size_t results, rooms;
};

struct store_redis {
    struct link *link;
    struct store_events events;
    char root[80];
    struct sync_shape syncs[STORE_SYNCS_MAX]; /* a ring of the syncs under way, oldest first */
    unsigned sync_first, nsyncs;
    size_t asked;                    /* held jobs of the last registration */
    char (*fetches)[JOB_ID_LEN + 1]; /* ids of the payloads on their way, oldest first */
    size_t nfetches;
    struct boot *beats; /* when beats and registrations under way were sent, oldest first */
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

/* Begin with the first four words; at most `numbers` numbers may follow. */
struct fcall fcall_begin(const struct store_redis *s, const char *function, size_t numbers);
void fcall_add(struct fcall *a, const char *p, size_t n); /* not copied */
void fcall_str(struct fcall *a, const char *text);
void fcall_int(struct fcall *a, int64_t v);
/* As link_call; frees the arguments. */
int fcall_send(struct fcall *a, struct store_redis *s, async_reply_f *cb);

/* ---- answers */

/* True when r is an error or not the expected array; the error has been reported then. */
bool store_redis_is_bad(struct store_redis *s, const struct reply *r, size_t elements);
enum store_status store_redis_status(const struct reply *r);
/* Redis TIME in microseconds. 0 if it is negative or from 2^53 on, so that no sum overflows. */
int64_t store_redis_time(const struct reply *r);
/* The caller frees the array; its texts belong to the reply. */
const char **store_redis_texts(const struct reply *r, size_t *n);

#endif
