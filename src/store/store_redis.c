#include "store/store_redis.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/error_reply.h"
#include "redis/lib.h"
#include "store/store_redis_priv.h"

/* ---- arguments */

static void fcall_done(struct fcall *a)
{
    free((void *)a->at);
    free(a->len);
    free(a->numbers);
}

void fcall_add(struct fcall *a, const char *p, size_t n)
{
    if (a->n == a->cap) {
        a->cap = a->cap == 0 ? 32 : a->cap * 2;
        a->at = mem_grow((void *)a->at, a->cap, sizeof(*a->at));
        a->len = mem_grow(a->len, a->cap, sizeof(*a->len));
    }
    a->at[a->n] = p;
    a->len[a->n++] = n;
}

void fcall_str(struct fcall *a, const char *s)
{
    fcall_add(a, s, strlen(s));
}

/* The buffer has space for max_numbers from the start, so it never moves. */
void fcall_int(struct fcall *a, int64_t v)
{
    char *out;

    assert(a->nnumbers < a->max_numbers);
    out = a->numbers[a->nnumbers++];
    fcall_add(a, out, (size_t)snprintf(out, sizeof(a->numbers[0]), "%lld", (long long)v));
}

struct fcall fcall_begin(const struct store_redis *s, const char *function, size_t numbers)
{
    struct fcall a = {.max_numbers = numbers};

    a.numbers = mem_new(numbers * sizeof(a.numbers[0]));
    fcall_str(&a, "FCALL");
    fcall_str(&a, function);
    fcall_str(&a, "1");
    fcall_str(&a, s->root);
    return a;
}

int fcall_send(struct fcall *a, struct store_redis *s, async_reply_f *cb)
{
    int rc = link_call(s->link, (int)a->n, a->at, a->len, cb, s);

    fcall_done(a);
    return rc;
}

static void fcall_fields(struct fcall *a, const struct store_fields *f)
{
    fcall_int(a, (int64_t)f->n);
    for (size_t i = 0; i < 2 * f->n; i++)
        fcall_str(a, f->at[i]);
}

static void fcall_held(struct fcall *a, const struct store_held *held, size_t n)
{
    fcall_int(a, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        fcall_str(a, held[i].id);
        fcall_int(a, held[i].start);
    }
}

/* ---- answers */

bool store_redis_is_bad(struct store_redis *s, const struct reply *r, size_t elements)
{
    return error_reply_is_bad(r, elements, s->events.failed, s->events.arg);
}

enum store_status store_redis_status(const struct reply *r)
{
    if (reply_is(r, "ok"))
        return STORE_OK;
    if (reply_is(r, "dead"))
        return STORE_GIVEN_UP;
    return reply_is(r, "link") ? STORE_OLD_LINK : STORE_UNKNOWN;
}

int64_t store_redis_time(const struct reply *r)
{
    int64_t us = reply_int(r);

    return us >= 0 && us < (INT64_C(1) << 53) ? us : 0;
}

const char **store_redis_texts(const struct reply *r, size_t *n)
{
    const char **at;

    *n = reply_count(r);
    at = mem_new((*n + 1) * sizeof(*at));
    for (size_t i = 0; i < *n; i++)
        at[i] = reply_str(reply_at(r, i));
    return at;
}

/* ---- when a beat was sent */

static int send_beat(struct fcall *a, struct store_redis *s, async_reply_f *cb)
{
    struct boot now = boot_now();

    if (fcall_send(a, s, cb) < 0)
        return -1;
    s->beats = mem_grow(s->beats, s->nbeats + 1, sizeof(*s->beats));
    s->beats[s->nbeats++] = now;
    return 0;
}

/* Answers come in the order of the calls, also answers to calls that were given up. */
static struct boot take_beat(struct store_redis *s)
{
    struct boot sent = s->beats[0];

    s->nbeats--;
    memmove(&s->beats[0], &s->beats[1], s->nbeats * sizeof(s->beats[0]));
    return sent;
}

/* ---- register */

static void on_registered(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct store_register_reply out = {0};
    const struct reply *peers = reply_at(r, 5);
    CLEANUP_FREE enum store_adopt *adopted = NULL;
    CLEANUP_FREE struct store_peer *list = NULL;

    out.sent = take_beat(s);
    if (store_redis_is_bad(s, r, 6))
        return;
    adopted = mem_new((s->asked + 1) * sizeof(*adopted));
    for (size_t i = 0; i < s->asked; i++) {
        const struct reply *word = reply_at(reply_at(r, 4), i);

        adopted[i] = reply_is(word, "adopted") ? STORE_ADOPTED
                     : reply_is(word, "gone")  ? STORE_GONE
                                               : STORE_TAKEN;
    }
    out.npeers = reply_count(peers) / 7;
    list = mem_new((out.npeers + 1) * sizeof(*list));
    for (size_t i = 0; i < out.npeers; i++) {
        list[i] = (struct store_peer){
            reply_int(reply_at(peers, 7 * i)),     reply_str(reply_at(peers, 7 * i + 1)),
            reply_str(reply_at(peers, 7 * i + 2)), reply_str(reply_at(peers, 7 * i + 3)),
            reply_str(reply_at(peers, 7 * i + 4)), reply_str(reply_at(peers, 7 * i + 5)),
            reply_str(reply_at(peers, 7 * i + 6))};
    }
    out.now_us = store_redis_time(reply_at(r, 0));
    out.epoch = reply_int(reply_at(r, 1));
    out.link = reply_int(reply_at(r, 2));
    out.rewound = reply_int(reply_at(r, 3)) != 0;
    out.adopted = adopted;
    out.peers = list;
    s->events.registered(s->events.arg, &out);
}

int store_register(struct store_redis *s, const struct store_register *req, const char *instance,
                   const struct store_fields *fields, const struct store_fields *config)
{
    struct fcall a = fcall_begin(s, "later_v1_register", 6 + req->nheld);

    fcall_int(&a, req->seen);
    fcall_str(&a, instance);
    fcall_int(&a, req->seq);
    fcall_int(&a, req->old_epoch);
    fcall_fields(&a, fields);
    fcall_fields(&a, config);
    fcall_held(&a, req->held, req->nheld);
    s->asked = req->nheld;
    return send_beat(&a, s, on_registered);
}

/* ---- beat */

static void on_beat(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct store_beat_reply out = {0};
    const struct reply *peers = reply_at(r, 5);
    CLEANUP_FREE struct store_peer *list = NULL;

    out.sent = take_beat(s);
    if (store_redis_is_bad(s, r, 6))
        return;
    out.npeers = reply_count(peers) / 2;
    list = mem_new((out.npeers + 1) * sizeof(*list));
    for (size_t i = 0; i < out.npeers; i++) {
        list[i].epoch = reply_int(reply_at(peers, 2 * i));
        list[i].counter = reply_str(reply_at(peers, 2 * i + 1));
    }
    out.now_us = store_redis_time(reply_at(r, 0));
    out.status = store_redis_status(reply_at(r, 1));
    out.link = reply_int(reply_at(r, 2));
    out.held = reply_int(reply_at(r, 3));
    out.quiet = reply_int(reply_at(r, 4)) != 0;
    out.schedules = reply_str(reply_at(r, 6));
    out.peers = list;
    s->events.beat(s->events.arg, &out);
    if (lib_is_older(reply_int(reply_at(r, 7))))
        s->events.failed(s->events.arg, ERROR_CLASS_LIBRARY,
                         "an older version of laterd has replaced the function library");
}

int store_beat(struct store_redis *s, int64_t epoch, const char *queues)
{
    struct fcall a = fcall_begin(s, "later_v1_beat", 1);

    fcall_int(&a, epoch);
    if (queues != NULL)
        fcall_str(&a, queues);
    return send_beat(&a, s, on_beat);
}

/* ---- reconcile */

static void on_reconciled(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct store_reconcile_reply out = {0};
    CLEANUP_FREE const char **lost = NULL;

    if (store_redis_is_bad(s, r, 6))
        return;
    lost = store_redis_texts(reply_at(r, 4), &out.nlost);
    out.status = store_redis_status(reply_at(r, 1));
    out.link = reply_int(reply_at(r, 2));
    out.released = reply_int(reply_at(r, 3));
    out.rewound = reply_int(reply_at(r, 5)) != 0;
    out.lost = lost;
    s->events.reconciled(s->events.arg, &out);
}

int store_reconcile(struct store_redis *s, int64_t epoch, int64_t link, int64_t seen,
                    const struct store_held *held, size_t nheld)
{
    struct fcall a = fcall_begin(s, "later_v1_reconcile", 4 + nheld);

    fcall_int(&a, epoch);
    fcall_int(&a, link);
    fcall_held(&a, held, nheld);
    fcall_int(&a, seen);
    return fcall_send(&a, s, on_reconciled);
}

/* ---- look */

static void on_looked(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    CLEANUP_FREE const char **texts = NULL;
    struct store_look_reply out = {0};
    size_t n;

    if (store_redis_is_bad(s, r, 2))
        return;
    texts = store_redis_texts(r, &n);
    out.now_us = store_redis_time(reply_at(r, 0));
    out.timer_ms = reply_int(reply_at(r, 1));
    out.queues = texts + 2;
    out.n = n - 2;
    s->events.looked(s->events.arg, &out);
}

int store_look(struct store_redis *s, int64_t soon_ms, const char *const *queues, size_t n)
{
    struct fcall a = fcall_begin(s, "later_v2_look", 1);

    fcall_int(&a, soon_ms);
    for (size_t i = 0; i < n; i++)
        fcall_str(&a, queues[i]);
    return fcall_send(&a, s, on_looked);
}

/* ---- the payload of a big job; its answer carries no id, but answers come in order */

static void on_fetched(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    char id[JOB_ID_LEN + 1];

    memcpy(id, s->fetches[0], sizeof(id));
    s->nfetches--;
    memmove(s->fetches[0], s->fetches[1], s->nfetches * sizeof(s->fetches[0]));
    if (reply_kind(r) == REPLY_STR)
        s->events.fetched(s->events.arg, id, reply_str(r), reply_len(r));
    else if (reply_kind(r) == REPLY_NIL || error_reply_class(reply_str(r)) == ERROR_CLASS_TYPE)
        s->events.fetched(s->events.arg, id, NULL, 0);
    else
        (void)store_redis_is_bad(s, r, 1);
}

int store_fetch(struct store_redis *s, const char *id)
{
    char key[128];
    const char *argv[] = {"GET", key};

    (void)snprintf(key, sizeof(key), "%s:big:%s", s->root, id);
    if (link_call(s->link, 2, argv, NULL, on_fetched, s) < 0)
        return -1;
    s->fetches = mem_grow(s->fetches, s->nfetches + 2, sizeof(*s->fetches));
    text_copy(s->fetches[s->nfetches++], sizeof(*s->fetches), id);
    return 0;
}

void store_redis_reset(struct store_redis *s)
{
    s->nfetches = s->nbeats = 0;
    s->sync_first = s->nsyncs = 0;
}

/* ---- the rest */

static void on_reaped(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    const struct reply *word = reply_at(r, 0);
    enum store_reap status = STORE_REAP_REFUSED;

    if (store_redis_is_bad(s, r, 2))
        return;
    if (reply_is(word, "more"))
        status = STORE_REAP_MORE;
    else if (reply_is(word, "clear"))
        status = STORE_REAP_DONE;
    else if (reply_is(word, "alive"))
        status = STORE_REAP_ALIVE;
    s->events.reaped(s->events.arg, status, reply_int(reply_at(r, 1)));
}

int store_reap(struct store_redis *s, int64_t epoch, int64_t victim, const char *counter,
               int64_t crashes, int64_t dead_max)
{
    struct fcall a = fcall_begin(s, "later_v1_reap", 4);

    fcall_int(&a, epoch);
    fcall_int(&a, victim);
    fcall_str(&a, counter);
    fcall_int(&a, crashes);
    fcall_int(&a, dead_max);
    return fcall_send(&a, s, on_reaped);
}

static void on_tidied(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    CLEANUP_FREE const char **unserved = NULL;
    size_t n;

    if (store_redis_is_bad(s, r, 2))
        return;
    unserved = store_redis_texts(reply_at(r, 0), &n);
    s->events.tidied(s->events.arg, unserved, n, reply_int(reply_at(r, 2)));
}

int store_tidy(struct store_redis *s, int64_t epoch, const struct store_fields *queues,
               const struct store_fields *state)
{
    struct fcall a = fcall_begin(s, "later_v1_tidy", 3);

    fcall_int(&a, epoch);
    fcall_fields(&a, queues);
    fcall_fields(&a, state);
    return fcall_send(&a, s, on_tidied);
}

static void on_declared(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct store_declare_reply out = {0};
    CLEANUP_FREE const char **pairs = mem_new((2 * reply_count(r) + 1) * sizeof(*pairs));

    if (reply_kind(r) == REPLY_ERROR)
        out.error = reply_str(r);
    else if (reply_kind(r) != REPLY_ARRAY)
        out.error = "the library answered in a shape that is not known";
    for (size_t i = 0; out.error == NULL && i < reply_count(r); i++) {
        pairs[2 * i] = reply_str(reply_at(reply_at(r, i), 0));
        pairs[2 * i + 1] = reply_str(reply_at(reply_at(r, i), 1));
        out.n++;
    }
    out.differing = pairs;
    s->events.declared(s->events.arg, &out);
}

int store_declare(struct store_redis *s, int64_t epoch, const struct store_fields *limits,
                  const struct store_fields *queues)
{
    struct fcall a = fcall_begin(s, "later_v1_declare", 3);

    fcall_int(&a, epoch);
    fcall_fields(&a, limits);
    fcall_fields(&a, queues);
    return fcall_send(&a, s, on_declared);
}

static void on_left(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;

    s->events.left(s->events.arg, reply_is(r, "left"));
}

int store_leave(struct store_redis *s, int64_t epoch)
{
    struct fcall a = fcall_begin(s, "later_v1_leave", 1);

    fcall_int(&a, epoch);
    return fcall_send(&a, s, on_left);
}

static void on_noted(void *arg, const struct reply *r)
{
    (void)arg;
    (void)r;
}

int store_note(struct store_redis *s, const char *kind, const char *name)
{
    struct fcall a = fcall_begin(s, "later_v1_note", 1);

    fcall_str(&a, kind);
    fcall_str(&a, name);
    return fcall_send(&a, s, on_noted);
}

struct store_redis *store_redis_new(struct link *link, const char *ns,
                                    const struct store_events *events)
{
    struct store_redis *s = mem_new(sizeof(*s));

    s->link = link;
    s->events = *events;
    (void)snprintf(s->root, sizeof(s->root), "later:{%s}", ns);
    return s;
}

void store_redis_free(struct store_redis *s)
{
    if (s == NULL)
        return;
    free(s->fetches);
    free(s->beats);
    for (size_t i = 0; i < STORE_SYNCS_MAX; i++)
        free(s->syncs[i].is_plain);
    free(s);
}
