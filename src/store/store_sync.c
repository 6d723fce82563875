/*
 * Encodes a sync for later_v1_sync and decodes its answer. The comment on top of
 * src/lua/calls/sync.lua explains the fields.
 */
#include "store/store_redis.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/reply.h"
#include "store/store_redis_priv.h"

#define RESULT_FIELDS 8
#define ROOM_FIELDS 3

/* ---- the answer */

static const char *verb_name(enum store_verb verb)
{
    static const char *const names[] = {"done",     "retry",  "dead",      "release",
                                        "progress", "result", "checkpoint"};

    return names[verb];
}

#define REFUSED "refused "

static enum store_answer answer_of(const struct reply *r)
{
    if (reply_is(r, "ok"))
        return STORE_APPLIED;
    if (strncmp(reply_str(r), REFUSED, strlen(REFUSED)) == 0)
        return STORE_REFUSED;
    if (reply_is(r, "later"))
        return STORE_LEFT;
    return reply_is(r, "settled") ? STORE_NOT_HELD : STORE_UNWRITTEN;
}

/* What it says, without its first word. */
static const char *text_of(const struct reply *r)
{
    return reply_str(r) + (answer_of(r) == STORE_REFUSED ? strlen(REFUSED) : 0);
}

/* A group of claims: queue, fence, start, attempt, crashes, gated, then id, due and record of each.
 */
#define GROUP_COMMON 6
#define CLAIM_FIELDS 3

static size_t group_size(const struct reply *group)
{
    size_t n = reply_count(group);

    return n > GROUP_COMMON ? (n - GROUP_COMMON) / CLAIM_FIELDS : 0;
}

static void read_group(const struct reply *group, struct store_claim *out)
{
    size_t n = group_size(group);
    int64_t gated = reply_int(reply_at(group, 5));

    for (size_t i = 0; i < n; i++) {
        size_t at = GROUP_COMMON + CLAIM_FIELDS * i;
        const struct reply *record = reply_at(group, at + 2);

        out[i] = (struct store_claim){
            .id = reply_str(reply_at(group, at)),
            .queue = reply_str(reply_at(group, 0)),
            .start = reply_int(reply_at(group, 2)),
            .attempt = reply_int(reply_at(group, 3)),
            .crashes = reply_int(reply_at(group, 4)),
            .fence = reply_int(reply_at(group, 1)) + 2 * (int64_t)i,
            .due = {reply_int(reply_at(group, at + 1))},
            .record = reply_str(record),
            .record_len = reply_len(record),
            .is_gated = gated > 0,
            .is_guarded = gated > 1,
            .is_small = reply_len(record) > 0 && reply_str(record)[0] == '-',
        };
    }
}

/* The claims of all groups; the caller frees them. */
static struct store_claim *read_groups(const struct reply *groups, size_t *n)
{
    size_t most = 1;
    struct store_claim *claims;

    for (size_t i = 0; i < reply_count(groups); i++)
        most += group_size(reply_at(groups, i));
    claims = mem_new(most * sizeof(*claims));
    for (size_t i = 0; i < reply_count(groups); i++) {
        read_group(reply_at(groups, i), &claims[*n]);
        *n += group_size(reply_at(groups, i));
    }
    return claims;
}

/* A plain result has an answer only if it is not ok; every other result has one. False: the numbers
 * do not match. */
static bool read_answers(const struct sync_shape *s, const struct reply *r,
                         enum store_answer *answers, const char **texts)
{
    const struct reply *told = reply_at(r, 2), *refused = reply_at(r, 9);
    size_t at = 0, number = 0, next = 0;

    for (size_t i = 0; i < s->results; i++) {
        const struct reply *answer = NULL;

        if (!s->is_plain[i]) {
            answer = reply_at(told, at++);
        } else if (reply_int(reply_at(refused, next)) == (int64_t)++number) {
            answer = reply_at(refused, next + 1);
            next += 2;
        }
        answers[i] = answer != NULL ? answer_of(answer) : STORE_APPLIED;
        texts[i] = answer != NULL ? text_of(answer) : "";
    }
    return at == reply_count(told) && next == reply_count(refused);
}

static void on_sync_ok(struct store_redis *s, const struct sync_shape *sent, const struct reply *r,
                       struct store_sync_reply *out)
{
    const struct reply *told = reply_at(r, 5);
    CLEANUP_FREE enum store_answer *answers = mem_new((sent->results + 1) * sizeof(*answers));
    CLEANUP_FREE const char **texts = mem_new((sent->results + 1) * sizeof(*texts));
    CLEANUP_FREE int64_t *heads = NULL;
    CLEANUP_FREE const char **cancels = NULL;
    CLEANUP_FREE const char **errors = NULL;
    CLEANUP_FREE const char **checkpoints = NULL;
    CLEANUP_FREE struct store_claim *claims = NULL;
    size_t n;

    if (!read_answers(sent, r, answers, texts)) {
        s->events.failed(s->events.arg, ERROR_CLASS_CALL, "the sync's answers do not add up");
        return;
    }
    if (reply_count(told) != sent->rooms) {
        s->events.failed(s->events.arg, ERROR_CLASS_CALL, "the sync's heads do not add up");
        return;
    }
    heads = mem_new((sent->rooms + 1) * sizeof(*heads));
    for (size_t i = 0; i < sent->rooms; i++)
        heads[i] = reply_int(reply_at(told, i));
    claims = read_groups(reply_at(r, 3), &out->nclaims);
    cancels = store_redis_texts(reply_at(r, 4), &out->ncancels);
    errors = store_redis_texts(reply_at(r, 6), &n);
    out->nerrors = n / 2;
    checkpoints = store_redis_texts(reply_at(r, 10), &n);
    out->ncheckpoints = n / 2;
    out->checkpoints = checkpoints;
    out->answers = answers;
    out->answer_texts = texts;
    out->claims = claims;
    out->cancels = cancels;
    out->heads = heads;
    out->errors = errors;
    out->solo_due = reply_int(reply_at(r, 7)) != 0;
    out->timer_ms = reply_int(reply_at(r, 8));
    s->events.sync(s->events.arg, out);
}

static void on_sync(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    const struct sync_shape *sent = &s->syncs[s->sync_first];
    struct store_sync_reply out = {0};

    s->sync_first = (s->sync_first + 1) % STORE_SYNCS_MAX;
    s->nsyncs--;
    if (store_redis_is_bad(s, r, 2))
        return;
    out.now_us = store_redis_time(reply_at(r, 0));
    out.status = store_redis_status(reply_at(r, 1));
    if (out.status != STORE_OK) {
        s->events.sync(s->events.arg, &out);
        return;
    }
    if (store_redis_is_bad(s, r, 10))
        return;
    on_sync_ok(s, sent, r, &out);
}

/* ---- the request */

static void fcall_result(struct fcall *a, const struct store_result *r)
{
    fcall_str(a, r->id);
    fcall_int(a, r->start);
    fcall_str(a, verb_name(r->verb));
    fcall_str(a, r->queue);
    fcall_int(a, r->amount);
    fcall_int(a, r->code);
    fcall_str(a, r->text);
    fcall_add(a, r->output, r->output_len);
}

/* The end of the group that starts with result i: plain results of one queue and start number.
 * Other results may be between them, but no other plain one. */
static size_t end_of_group(const struct store_sync *sync, size_t i)
{
    size_t end = i;

    for (size_t k = i; k < sync->nresults; k++) {
        if (!sync->results[k].is_plain)
            continue;
        if (sync->results[k].start != sync->results[i].start ||
            strcmp(sync->results[k].queue, sync->results[i].queue) != 0)
            break;
        end = k;
    }
    return end + 1;
}

static void fcall_groups(struct fcall *a, const struct store_sync *sync)
{
    int64_t groups = 0;

    for (size_t i = 0; i < sync->nresults; i++) {
        if (sync->results[i].is_plain) {
            i = end_of_group(sync, i) - 1;
            groups++;
        }
    }
    fcall_int(a, groups);
    for (size_t i = 0; i < sync->nresults; i++) {
        size_t end;
        int64_t n = 0;

        if (!sync->results[i].is_plain)
            continue;
        end = end_of_group(sync, i);
        for (size_t k = i; k < end; k++)
            n += sync->results[k].is_plain;
        fcall_str(a, sync->results[i].queue);
        fcall_int(a, sync->results[i].start);
        fcall_int(a, n);
        for (; i < end; i++) {
            if (sync->results[i].is_plain)
                fcall_str(a, sync->results[i].id);
        }
        i--;
    }
}

/* How many words of the call the children of all results are. */
static size_t words_of_children(const struct store_sync *sync)
{
    size_t n = 0;

    for (size_t i = 0; i < sync->nresults; i++) {
        const struct children *c = sync->results[i].children;

        n += c != NULL ? 2 + c->n + c->nwords : 0;
    }
    return n;
}

static void fcall_children_of(struct fcall *a, const struct children *c)
{
    const char *at = c->bytes.data;
    const size_t *len = c->lens;

    fcall_int(a, (int64_t)c->n);
    for (size_t i = 0; i < c->n; i++) {
        fcall_int(a, (int64_t)c->counts[i]);
        for (size_t k = 0; k < c->counts[i]; k++, len++) {
            fcall_add(a, at, *len);
            at += *len;
        }
    }
}

/* The children of each result that has some, with its number among the results that are not plain.
 * Nothing where there are none. */
static void fcall_children(struct fcall *a, const struct store_sync *sync)
{
    int64_t number = 0, n = 0;

    for (size_t i = 0; i < sync->nresults; i++)
        n += sync->results[i].children != NULL;
    if (n == 0)
        return;
    fcall_int(a, n);
    for (size_t i = 0; i < sync->nresults; i++) {
        number += !sync->results[i].is_plain;
        if (sync->results[i].children == NULL)
            continue;
        fcall_int(a, number);
        fcall_children_of(a, sync->results[i].children);
    }
}

/* Keep what on_sync needs to read the answer. */
static struct sync_shape *remember(struct store_redis *s, const struct store_sync *sync)
{
    struct sync_shape *sent = &s->syncs[(s->sync_first + s->nsyncs) % STORE_SYNCS_MAX];

    assert(s->nsyncs < STORE_SYNCS_MAX);
    sent->is_plain = mem_grow(sent->is_plain, sync->nresults + 1, sizeof(*sent->is_plain));
    sent->results = sync->nresults;
    sent->rooms = sync->nrooms;
    sent->others = 0;
    for (size_t i = 0; i < sync->nresults; i++) {
        sent->is_plain[i] = sync->results[i].is_plain;
        sent->others += !sent->is_plain[i];
    }
    return sent;
}

/* The queues that the sync names, with their room. */
static void fcall_rooms(struct fcall *a, const struct store_sync *sync)
{
    fcall_int(a, (int64_t)sync->nrooms);
    for (size_t i = 0; i < sync->nrooms; i++) {
        fcall_str(a, sync->rooms[i].queue);
        fcall_int(a, sync->rooms[i].room);
        fcall_int(a, sync->rooms[i].max_payload);
    }
}

int store_sync(struct store_redis *s, const struct store_sync *sync)
{
    const struct sync_shape *sent = remember(s, sync);
    struct fcall a = fcall_begin(s, "later_v1_sync",
                                 10 + RESULT_FIELDS * sync->nresults + ROOM_FIELDS * sync->nrooms +
                                     words_of_children(sync));

    fcall_int(&a, sync->epoch);
    fcall_int(&a, sync->link);
    fcall_int(&a, sync->unended);
    fcall_int(&a, sync->max);
    fcall_int(&a, (int64_t)sent->others);
    for (size_t i = 0; i < sync->nresults; i++) {
        if (!sync->results[i].is_plain)
            fcall_result(&a, &sync->results[i]);
    }
    fcall_rooms(&a, sync);
    fcall_groups(&a, sync);
    fcall_int(&a, sync->ahead_ms);
    fcall_children(&a, sync);
    if (fcall_send(&a, s, on_sync) < 0)
        return -1;
    s->nsyncs++;
    return 0;
}
