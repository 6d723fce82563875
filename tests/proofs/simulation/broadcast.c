#include "broadcast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static const struct plan *plan;

void broadcast_begin(const struct plan *p)
{
    char words[96];

    plan = p;
    for (unsigned i = 0; p->broadcasts > 0 && i < p->queues; i++) {
        (void)snprintf(words, sizeof(words),
                       "FCALL later_subscribe 1 " SERVER_ROOT " " BROADCAST_TOPIC " %s",
                       plan_queue(i));
        server_define(words);
    }
}

/* ---- what a call adds */

/* One of the jobs of the call. A token counts for each receiver: a call that is repeated names the
 * jobs of the first. -> NULL: it is there already */
static struct entry *meet(int argc, const char *const *a, const char *id, const char *queue)
{
    struct entry *e = ledger_find(id);

    if (e != NULL)
        return NULL;
    e = ledger_add(id, queue);
    e->not_before_ms = world_wall_us() / 1000;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(a[i], "in") == 0)
            e->not_before_ms += atoll(a[i + 1]);
        if (strcmp(a[i], "attempts") == 0)
            e->attempts_max = atoll(a[i + 1]);
        e->may_expire = e->may_expire || strcmp(a[i], "expire") == 0;
    }
    return e;
}

void broadcast_published(int argc, const char *const *a, const struct reply *r)
{
    if (reply_count(r) != plan->queues + 1 || reply_int(reply_at(r, 0)) != plan->queues)
        world_break("topic-copies", "%zu copies for %u queues", reply_count(r) - 1, plan->queues);
    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        const char *id = reply_str(reply_at(row, 1));
        bool is_new = meet(argc, a, id, reply_str(reply_at(row, 0))) != NULL;

        if (is_new != reply_is(reply_at(row, 2), "added"))
            world_break("topic-copies", "%s is %s, Redis says %s", id, is_new ? "new" : "known",
                        reply_str(reply_at(row, 2)));
    }
}

/* By an operator. */
static bool is_told_quiet(const char *words)
{
    struct reply *r = server_ask(words);
    bool is_quiet = reply_is(r, "1");

    reply_free(r);
    return is_quiet;
}

/* Each worker that must get the broadcast has a job of it. */
static void check_targets(const char *queue, bool is_per_host, const struct reply *r)
{
    for (size_t i = 0; i < workers_count(); i++) {
        const struct worker *w = worker_at(i);
        const char *host = w->d.me.host;
        int64_t epoch = ledger_epoch(w);
        bool is_there = epoch == 0 || w->is_quiet || w->is_reloaded || w->is_stopping;
        char text[24], words[96];

        if (is_there)
            continue;
        (void)snprintf(words, sizeof(words), "HGET " SERVER_ROOT ":worker:%lld quiet",
                       (long long)epoch);
        is_there = is_told_quiet(words);
        (void)snprintf(text, sizeof(text), "%lld", (long long)epoch);
        for (size_t k = 1; k < reply_count(r); k++)
            is_there = is_there || reply_is(reply_at(reply_at(r, k), 0), is_per_host ? host : text);
        if (!is_there)
            world_break("broadcast-all", "a broadcast to %s leaves out %s", queue, w->owner.name);
    }
}

void broadcast_added(int argc, const char *const *a, const struct reply *r)
{
    bool is_per_host = argc > 2 && strcmp(a[1], "per") == 0 && strcmp(a[2], "host") == 0;

    check_targets(a[0], is_per_host, r);
    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        struct entry *e = meet(argc, a, reply_str(reply_at(row, 1)), a[0]);

        if (e != NULL)
            (void)snprintf(e->target, sizeof(e->target), "%c%s", is_per_host ? 'h' : 'w',
                           reply_str(reply_at(row, 0)));
    }
}

/* ---- its target */

void broadcast_check_claim(const struct entry *e, int64_t epoch)
{
    const struct worker *w = ledger_process(epoch);

    if (e->target[0] == 'w' && atoll(e->target + 1) != epoch)
        world_break("broadcast-target", "%s is of worker %s, and %lld claims it", e->id,
                    e->target + 1, (long long)epoch);
    if (e->target[0] == 'h' && (w == NULL || strcmp(w->d.me.host, e->target + 1) != 0))
        world_break("broadcast-target", "%s is of host %s, and %lld claims it", e->id,
                    e->target + 1, (long long)epoch);
}

bool broadcast_is_waiting(const struct entry *e)
{
    char words[256];
    struct reply *r;
    bool is_there;

    if (e->target[0] == '\0')
        return false;
    (void)snprintf(words, sizeof(words), "ZSCORE " SERVER_ROOT ":pin:%s:%s %s", e->queue, e->target,
                   e->id);
    r = server_ask(words);
    is_there = reply_kind(r) != REPLY_NIL;
    reply_free(r);
    return is_there;
}

void broadcast_check_cancelled(const struct entry *e)
{
    const struct worker *w = ledger_process(atoll(e->target + 1));

    if (e->target[0] == 'w' && w != NULL && !w->is_reloaded)
        world_break("broadcast-gone", "%s is cancelled, but its worker %s is there", e->id,
                    e->target + 1);
    if (e->target[0] == 'h' && world_wall_us() / 1000 <= e->not_before_ms)
        world_break("broadcast-gone", "%s of host %s is cancelled and was not due", e->id,
                    e->target + 1);
}
