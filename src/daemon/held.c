#include "daemon/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* By the end of the id, where ids of one time differ. */
static struct held **place_of(struct held_list *l, const char *id)
{
    size_t n = strlen(id);

    return &l->table[text_hash(id + (n > 6 ? n - 6 : 0)) % HELD_TABLE];
}

static struct held *chain_of(const struct held_list *l, const char *id)
{
    return *place_of((struct held_list *)l, id);
}

struct held *held_add(struct held_list *l, const struct job *job)
{
    struct held *h = mem_new(sizeof(*h));
    struct held **place = place_of(l, job->id);

    h->job = *job;
    h->state = HELD_RUNNING;
    h->next = l->first;
    if (l->first != NULL)
        l->first->before = h;
    l->first = h;
    h->chain = *place;
    *place = h;
    l->n++;
    l->running++;
    return h;
}

static bool is_running(const struct held *h)
{
    return h->state == HELD_READYING || h->state == HELD_RUNNING;
}

void held_mark_solo(struct held_list *l, struct held *h)
{
    h->is_solo = true;
    l->solos++;
}

void held_queue_up(struct held_list *l, struct held *h)
{
    h->is_in_line = true;
    h->ahead = l->line_end;
    h->behind = NULL;
    if (l->line_end != NULL)
        l->line_end->behind = h;
    else
        l->line = h;
    l->line_end = h;
    l->waiting++;
}

void held_leave_line(struct held_list *l, struct held *h)
{
    if (!h->is_in_line)
        return;
    if (h->ahead != NULL)
        h->ahead->behind = h->behind;
    else
        l->line = h->behind;
    if (h->behind != NULL)
        h->behind->ahead = h->ahead;
    else
        l->line_end = h->ahead;
    h->is_in_line = false;
    l->waiting--;
}

/* It is about to be neither READYING nor RUNNING. */
static void count_end(struct held_list *l, struct held *h)
{
    held_leave_line(l, h);
    l->running--;
    l->solos -= h->is_solo;
}

void held_remove(struct held_list *l, struct held *h)
{
    struct held **at = place_of(l, h->job.id);

    while (*at != h)
        at = &(*at)->chain;
    *at = h->chain;
    if (h == l->first)
        l->first = h->next;
    else
        h->before->next = h->next;
    if (h->next != NULL)
        h->next->before = h->before;
    l->n--;
    if (is_running(h))
        count_end(l, h);
    if (h->state == HELD_ENDED)
        l->ended--;
    job_done(&h->job);
    free(h->tail);
    free(h);
}

void held_clear(struct held_list *l)
{
    while (l->first != NULL)
        held_remove(l, l->first);
}

struct held *held_find(const struct held_list *l, const char *id)
{
    for (struct held *h = chain_of(l, id); h != NULL; h = h->chain) {
        if (!h->is_lost && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

struct held *held_find_lost(const struct held_list *l, const char *id)
{
    for (struct held *h = chain_of(l, id); h != NULL; h = h->chain) {
        if (h->is_lost && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

struct held *held_in_pool(const struct held_list *l, const char *id)
{
    for (struct held *h = chain_of(l, id); h != NULL; h = h->chain) {
        if (h->state == HELD_RUNNING && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

void held_end(struct held_list *l, struct held *h, const struct verdict *v, const char *tail,
              size_t tail_len)
{
    count_end(l, h);
    h->state = HELD_ENDED;
    h->verdict = *v;
    h->has_progress = false;
    h->tail = tail_len > 0 ? mem_dup(tail, tail_len) : NULL;
    h->tail_len = tail_len;
    l->ended++;
    /* Only the verdict is needed from here on, the payload may be large. */
    job_done(&h->job);
}

/* It ended well and leaves nothing, and there is nothing more to be said of it. */
static bool is_plain(const struct held *h)
{
    const struct verdict *v = &h->verdict;

    return h->is_small && v->verb == STORE_DONE && v->amount == 0 && v->code == 0 &&
           h->tail_len == 0 &&
           (strcmp(v->text, "ok") == 0 || strcmp(v->text, "exit status 0") == 0);
}

static struct store_result result_of(const struct held *h)
{
    return (struct store_result){
        h->job.id,         h->job.queue,    h->job.start,    h->verdict.verb,
        h->verdict.amount, h->verdict.code, h->verdict.text, h->tail != NULL ? h->tail : "",
        h->tail_len,       is_plain(h)};
}

static bool is_sendable(const struct held *h, struct mono now)
{
    return h->state == HELD_ENDED && !h->is_lost && !mono_before(now, h->not_before);
}

size_t held_collect(struct held_list *l, struct mono now, struct store_result *out, size_t max)
{
    size_t n = 0;

    for (struct held *h = l->first; h != NULL && n < max; h = h->next) {
        if (is_sendable(h, now)) {
            h->state = HELD_SENT;
            l->ended--;
            out[n++] = result_of(h);
        }
    }
    for (struct held *h = l->first; h != NULL && n < max; h = h->next) {
        if (h->has_progress && !h->is_lost) {
            h->has_progress = false;
            out[n++] = (struct store_result){
                h->job.id, h->job.queue, h->job.start, STORE_PROGRESS, 0, 0, h->progress, "",
                0,         false};
        }
    }
    return n;
}

bool held_has_results(const struct held_list *l, struct mono now)
{
    if (l->ended == 0)
        return false;
    for (const struct held *h = l->first; h != NULL; h = h->next) {
        if (is_sendable(h, now))
            return true;
    }
    return false;
}

void held_refused(struct held_list *l, struct held *h)
{
    h->state = HELD_ENDED;
    l->ended++;
}

void held_unsend(struct held_list *l)
{
    for (struct held *h = l->first; h != NULL; h = h->next) {
        if (h->state == HELD_SENT)
            held_refused(l, h);
    }
}

bool held_is_named(const struct held *h)
{
    return !h->is_lost && !h->is_forgotten;
}

size_t held_names(const struct held_list *l, struct store_held **ret)
{
    size_t n = 0;

    *ret = mem_new((l->n + 1) * sizeof(**ret));
    for (const struct held *h = l->first; h != NULL; h = h->next) {
        if (held_is_named(h))
            (*ret)[n++] = (struct store_held){h->job.id, h->job.start};
    }
    return n;
}
