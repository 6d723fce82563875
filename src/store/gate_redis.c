#include "store/gate_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/error_reply.h"

#define DONE_OWNER "once@" /* and the host */

struct gate_redis {
    struct link *link;
    struct gate_events events;
    const char *gate;
    const char *done; /* of gate_tell_done, while its answer is awaited */
    int64_t per_ms;
    char root[80];
};

static bool is_bad(struct gate_redis *g, const struct reply *r, size_t elements)
{
    return error_reply_is_bad(r, elements, g->events.failed, g->events.arg);
}

static void on_entered(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;
    const struct reply *first = reply_at(r, 0);
    struct gate_enter_reply out = {STORE_OK, false, 0};

    if (is_bad(g, r, 1))
        return;
    if (reply_is(first, "dead"))
        out.status = STORE_GIVEN_UP;
    else if (reply_kind(first) != REPLY_INT)
        out.status = STORE_UNKNOWN;
    out.is_granted = reply_kind(first) == REPLY_INT && reply_int(first) == 1;
    out.fence = reply_int(reply_at(r, 1));
    g->events.entered(g->events.arg, &out);
}

int gate_enter(struct gate_redis *g, int64_t epoch, bool is_waiting)
{
    char number[24];
    const char *argv[] = {"FCALL", "later_v1_enter", "1", g->root, number, g->gate, "wait"};

    (void)snprintf(number, sizeof(number), "%lld", (long long)epoch);
    return link_call(g->link, is_waiting ? 7 : 6, argv, NULL, on_entered, g);
}

static void on_limit(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;

    if (!is_bad(g, r, 1))
        g->events.limit(g->events.arg, reply_str(reply_at(reply_at(r, 0), 1)));
}

int gate_ask_limit(struct gate_redis *g)
{
    const char *argv[] = {"FCALL", "later_v1_gates", "1", g->root, g->gate};

    return link_call(g->link, 5, argv, NULL, on_limit, g);
}

static void on_beats(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;
    const struct reply *workers = reply_at(r, 1);
    size_t n = reply_count(workers);
    CLEANUP_FREE int64_t *beats_ms = mem_new((n + 1) * sizeof(*beats_ms));

    if (is_bad(g, r, 2))
        return;
    for (size_t i = 0; i < n; i++)
        beats_ms[i] = reply_int(reply_at(reply_at(workers, i), 5));
    g->events.beats(g->events.arg,
                    &(struct gate_beats_reply){reply_int(reply_at(r, 0)), beats_ms, n});
}

int gate_ask_beats(struct gate_redis *g)
{
    const char *argv[] = {"FCALL", "later_v1_health", "1", g->root, "0"};

    return link_call(g->link, 5, argv, NULL, on_beats, g);
}

static void on_done_asked(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;

    if (!is_bad(g, r, 1))
        g->events.done_asked(g->events.arg, reply_int(reply_at(reply_at(r, 0), 2)) > 0);
}

int gate_ask_done(struct gate_redis *g, const char *done)
{
    CLEANUP_FREE char *gate = mem_printf("lock:%s", done);
    const char *argv[] = {"FCALL", "later_v1_gates", "1", g->root, gate};

    return link_call(g->link, 5, argv, NULL, on_done_asked, g);
}

/* Hold the lock of gate_tell_done as this owner: with later_lock, or with later_renew where that
 * owner holds it. */
static int hold_done(struct gate_redis *g, const char *function, const char *owner,
                     async_reply_f *done)
{
    CLEANUP_FREE char *ttl = mem_printf("%lldms", (long long)g->per_ms);
    const char *argv[] = {"FCALL", function, "1", g->root, g->done, owner, "ttl", ttl};

    return link_call(g->link, 8, argv, NULL, done, g);
}

static void on_done_prolonged(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;

    if (!is_bad(g, r, 1))
        g->events.done_told(g->events.arg);
}

/* If another host told it before (--again), prolong that: D counts from the last end. If the link
 * is down then, that is reported, and it is told anew. */
static void on_done_told(void *arg, const struct reply *r)
{
    struct gate_redis *g = arg;
    const char *holder = reply_str(reply_at(r, 4));

    if (is_bad(g, r, 1))
        return;
    if (reply_int(reply_at(r, 0)) == 1)
        g->events.done_told(g->events.arg);
    else if (strncmp(holder, "=" DONE_OWNER, strlen("=" DONE_OWNER)) == 0)
        (void)hold_done(g, "later_renew", holder + 1, on_done_prolonged);
    else
        g->events.failed(g->events.arg, ERROR_CLASS_CALL,
                         "something else holds the lock that tells it");
}

int gate_tell_done(struct gate_redis *g, const char *done, const char *host, int64_t per_ms)
{
    CLEANUP_FREE char *owner = mem_printf(DONE_OWNER "%.100s", host);

    g->done = done;
    g->per_ms = per_ms;
    return hold_done(g, "later_lock", owner, on_done_told);
}

struct gate_redis *gate_redis_new(struct link *link, const char *ns, const char *gate,
                                  const struct gate_events *events)
{
    struct gate_redis *g = mem_new(sizeof(*g));

    g->link = link;
    g->events = *events;
    g->gate = gate;
    (void)snprintf(g->root, sizeof(g->root), "later:{%s}", ns);
    return g;
}

void gate_redis_free(struct gate_redis *g)
{
    free(g);
}
