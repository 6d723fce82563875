#include "sched/held_jobs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* By the end of the id: ids that were made at about the same time differ only there. */
static struct held_job **bucket_of(struct held_jobs *l, const char *id)
{
    size_t n = strlen(id);

    return &l->table[text_hash(id + (n > 6 ? n - 6 : 0)) % HELD_TABLE];
}

static struct held_job *first_in_bucket(const struct held_jobs *l, const char *id)
{
    return *bucket_of((struct held_jobs *)l, id);
}

#define CHECKPOINTS_MAX 64 /* of a sync: a quarter of a megabyte */

/* From -> to, the table of held_jobs.h. */
#define TO(state) (1U << HELD_##state)
static const unsigned moves[HELD_STATES] = {
    [HELD_CLAIMED] = TO(AWAITS_PLACE) | TO(ENDED),
    [HELD_AWAITS_PLACE] = TO(FETCHING) | TO(AHEAD) | TO(AWAITS_BEAT) | TO(RUNNING) | TO(ENDED),
    [HELD_FETCHING] = TO(AHEAD) | TO(AWAITS_BEAT) | TO(RUNNING) | TO(ENDED),
    [HELD_AHEAD] = TO(AHEAD) | TO(AWAITS_BEAT) | TO(RUNNING) | TO(ENDED),
    [HELD_AWAITS_BEAT] = TO(RUNNING) | TO(ENDED),
    [HELD_RUNNING] = TO(LOST) | TO(ENDED),
    [HELD_LOST] = 0,
    [HELD_ENDED] = TO(SENT),
    [HELD_SENT] = TO(ENDED),
};

bool held_is_unended(const struct held_job *h)
{
    return h->state < HELD_ENDED;
}

bool held_is_unstarted(const struct held_job *h)
{
    return h->state < HELD_RUNNING;
}

bool held_is_in_pool(const struct held_job *h)
{
    return h->state == HELD_RUNNING || h->state == HELD_LOST;
}

static void queue_for_place(struct held_jobs *l, struct held_job *h)
{
    h->awaiting_before = l->awaiting_last;
    h->awaiting_after = NULL;
    if (l->awaiting_last != NULL)
        l->awaiting_last->awaiting_after = h;
    else
        l->awaiting = h;
    l->awaiting_last = h;
    l->nawaiting++;
}

static void stop_awaiting(struct held_jobs *l, struct held_job *h)
{
    if (h->awaiting_before != NULL)
        h->awaiting_before->awaiting_after = h->awaiting_after;
    else
        l->awaiting = h->awaiting_after;
    if (h->awaiting_after != NULL)
        h->awaiting_after->awaiting_before = h->awaiting_before;
    else
        l->awaiting_last = h->awaiting_before;
    l->nawaiting--;
}

/* The counts of the list for a job in its state. */
static void enter_state(struct held_jobs *l, struct held_job *h)
{
    if (h->state == HELD_AWAITS_PLACE)
        queue_for_place(l, h);
    if (h->state == HELD_ENDED)
        l->ended++;
    if (held_is_unended(h)) {
        l->unended++;
        l->solos += h->is_solo;
    }
}

static void leave_state(struct held_jobs *l, struct held_job *h)
{
    if (h->state == HELD_AWAITS_PLACE)
        stop_awaiting(l, h);
    if (h->state == HELD_ENDED)
        l->ended--;
    if (held_is_unended(h)) {
        l->unended--;
        l->solos -= h->is_solo;
    }
}

void held_move(struct held_jobs *l, struct held_job *h, enum held_state to)
{
    assert((moves[h->state] & 1U << to) != 0);
    leave_state(l, h);
    h->state = to;
    enter_state(l, h);
}

struct held_job *held_add(struct held_jobs *l, const struct job *job)
{
    struct held_job *h = mem_new(sizeof(*h));
    struct held_job **bucket = bucket_of(l, job->id);

    h->job = *job;
    h->state = HELD_CLAIMED;
    h->next = l->first;
    if (l->first != NULL)
        l->first->before = h;
    else
        l->last = h;
    l->first = h;
    h->in_bucket = *bucket;
    *bucket = h;
    l->n++;
    enter_state(l, h);
    return h;
}

void held_set_solo(struct held_jobs *l, struct held_job *h)
{
    h->is_solo = true;
    l->solos++;
}

void held_remove(struct held_jobs *l, struct held_job *h)
{
    struct held_job **at = bucket_of(l, h->job.id);

    while (*at != h)
        at = &(*at)->in_bucket;
    *at = h->in_bucket;
    if (h == l->first)
        l->first = h->next;
    else
        h->before->next = h->next;
    if (h->next != NULL)
        h->next->before = h->before;
    else
        l->last = h->before;
    l->n--;
    l->left -= h->is_left;
    l->checkpoints -= h->has_checkpoint;
    leave_state(l, h);
    job_done(&h->job);
    free(h->output);
    free(h->checkpoint);
    children_free(h->children);
    free(h);
}

void held_clear(struct held_jobs *l)
{
    while (l->first != NULL)
        held_remove(l, l->first);
}

struct held_job *held_find(const struct held_jobs *l, const char *id)
{
    for (struct held_job *h = first_in_bucket(l, id); h != NULL; h = h->in_bucket) {
        if (h->state != HELD_LOST && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

struct held_job *held_find_lost(const struct held_jobs *l, const char *id)
{
    for (struct held_job *h = first_in_bucket(l, id); h != NULL; h = h->in_bucket) {
        if (h->state == HELD_LOST && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

struct held_job *held_in_pool(const struct held_jobs *l, const char *id)
{
    for (struct held_job *h = first_in_bucket(l, id); h != NULL; h = h->in_bucket) {
        if (held_is_in_pool(h) && strcmp(h->job.id, id) == 0)
            return h;
    }
    return NULL;
}

/* ---- checkpoints */

static void set_checkpoint(struct held_jobs *l, struct held_job *h, bool has_one)
{
    l->checkpoints += has_one;
    l->checkpoints -= h->has_checkpoint;
    h->has_checkpoint = has_one;
}

void held_note_checkpoint(struct held_jobs *l, struct held_job *h, const char *text)
{
    free(h->checkpoint);
    h->checkpoint = mem_strdup(text);
    set_checkpoint(l, h, true);
}

void held_resend_checkpoint(struct held_jobs *l, struct held_job *h)
{
    set_checkpoint(l, h, h->checkpoint != NULL && h->state != HELD_LOST);
}

struct mono held_checkpoint_at(const struct held_jobs *l)
{
    struct mono at = MONO_NEVER;

    for (const struct held_job *h = l->checkpoints > 0 ? l->first : NULL; h != NULL; h = h->next)
        if (h->has_checkpoint && h->state == HELD_RUNNING)
            at = mono_min(at, h->checkpoint_at);
    return at;
}

/* Of jobs in this state; at most half of the results, and few enough bytes for one call. */
static size_t collect_checkpoints(struct held_jobs *l, struct mono now, enum held_state state,
                                  struct store_result *out, size_t n, size_t max)
{
    for (struct held_job *h = l->checkpoints > 0 ? l->first : NULL;
         h != NULL && n < max / 2 && n < CHECKPOINTS_MAX; h = h->next) {
        if (!h->has_checkpoint || h->state != state ||
            (state == HELD_RUNNING && mono_before(now, h->checkpoint_at)))
            continue;
        set_checkpoint(l, h, false);
        h->checkpoint_at = mono_add_ms(now, HELD_CHECKPOINT_MS);
        out[n++] = (struct store_result){.id = h->job.id,
                                         .queue = h->job.queue,
                                         .start = h->job.start,
                                         .verb = STORE_CHECKPOINT,
                                         .text = "",
                                         .output = h->checkpoint,
                                         .output_len = strlen(h->checkpoint)};
    }
    return n;
}

/* ---- ends */

void held_end(struct held_jobs *l, struct held_job *h, const struct verdict *v,
              const struct verdict_data *data)
{
    held_move(l, h, HELD_ENDED);
    h->verdict = *v;
    h->has_progress = false;
    if (v->verb == STORE_DONE)
        set_checkpoint(l, h, false); /* no attempt follows */
    h->output = data->output_len > 0 ? mem_dup(data->output, data->output_len) : NULL;
    h->output_len = data->output_len;
    if (v->verb == STORE_DONE && data->children != NULL)
        h->children = children_copy(data->children);
    /* The payload may be large, and only the verdict is needed from here on. */
    job_done(&h->job);
}

void held_children_refused(struct held_jobs *l, struct held_job *h, const struct verdict *v)
{
    held_move(l, h, HELD_ENDED);
    h->verdict = *v;
    children_free(h->children);
    h->children = NULL;
    held_resend_checkpoint(l, h); /* an attempt follows after all */
}

static void set_left(struct held_jobs *l, struct held_job *h, bool is_left)
{
    l->left += is_left;
    l->left -= h->is_left;
    h->is_left = is_left;
}

void held_leave(struct held_jobs *l, struct held_job *h)
{
    held_move(l, h, HELD_ENDED);
    set_left(l, h, true);
}

void held_put_off(struct held_jobs *l, struct held_job *h, struct mono until)
{
    held_move(l, h, HELD_ENDED);
    set_left(l, h, false);
    h->not_before = until;
}

/* Did it end well, with nothing to keep, nothing more to tell, and nothing that follows? A sync
 * looks at plain results behind all others: one that was left must not come behind them again. */
static bool is_plain(const struct held_job *h)
{
    const struct verdict *v = &h->verdict;

    return !h->is_left && h->is_small && v->verb == STORE_DONE && v->amount == 0 && v->code == 0 &&
           h->output_len == 0 && h->children == NULL && !h->job.has_next &&
           (strcmp(v->reason, "ok") == 0 || strcmp(v->reason, "exit status 0") == 0);
}

static struct store_result result_of(const struct held_job *h)
{
    const struct verdict *v = &h->verdict;

    return (struct store_result){.id = h->job.id,
                                 .queue = h->job.queue,
                                 .start = h->job.start,
                                 .verb = v->has_result ? STORE_RESULT : v->verb,
                                 .amount = v->amount,
                                 .code = v->code,
                                 .text = v->reason,
                                 .output = h->output != NULL ? h->output : "",
                                 .output_len = h->output_len,
                                 .is_plain = is_plain(h),
                                 .children = h->children};
}

static bool is_sendable(const struct held_job *h, struct mono now)
{
    return h->state == HELD_ENDED && !mono_before(now, h->not_before);
}

/* May one sync carry the output and the children of this job beside those of the jobs before it? A
 * single job's always fit: a call must stay short, and no job may wait for ever. */
static bool fits(const struct held_job *h, size_t *jobs, size_t *bytes)
{
    const struct children *c = h->children;
    size_t more = h->output_len + (c != NULL ? c->payloads : 0), n = c != NULL ? c->n : 0;

    if (more == 0 && n == 0)
        return true;
    if (*jobs + *bytes > 0 && (*jobs + n > CHILDREN_MAX || *bytes + more > CHILDREN_BYTES))
        return false;
    *jobs += n;
    *bytes += more;
    return true;
}

/* Its checkpoint goes first. */
static bool may_send(const struct held_job *h, struct mono now)
{
    return is_sendable(h, now) && !h->has_checkpoint;
}

static struct store_result send_result(struct held_jobs *l, struct held_job *h)
{
    held_move(l, h, HELD_SENT);
    return result_of(h);
}

size_t held_collect(struct held_jobs *l, struct mono now, struct store_result *out, size_t max)
{
    size_t n = collect_checkpoints(l, now, HELD_ENDED, out, 0, max), jobs = 0, bytes = 0;

    n = collect_checkpoints(l, now, HELD_RUNNING, out, n, max);
    /* Those that were left go first, the oldest first: newer ones that come with each sync must not
     * go before them for ever. So what does not fit is left, too. */
    for (struct held_job *h = l->left > 0 ? l->last : NULL; h != NULL && n < max; h = h->before) {
        if (h->is_left && may_send(h, now) && fits(h, &jobs, &bytes))
            out[n++] = send_result(l, h);
    }
    for (struct held_job *h = l->first; h != NULL && n < max; h = h->next) {
        if (h->is_left || !may_send(h, now))
            continue;
        if (fits(h, &jobs, &bytes))
            out[n++] = send_result(l, h);
        else
            set_left(l, h, true);
    }
    for (struct held_job *h = l->first; h != NULL && n < max; h = h->next) {
        if (h->has_progress && h->state != HELD_LOST) {
            h->has_progress = false;
            out[n++] = (struct store_result){.id = h->job.id,
                                             .queue = h->job.queue,
                                             .start = h->job.start,
                                             .verb = STORE_PROGRESS,
                                             .text = h->progress,
                                             .output = ""};
        }
    }
    return n;
}

bool held_has_results(const struct held_jobs *l, struct mono now)
{
    if (l->ended == 0)
        return false;
    for (const struct held_job *h = l->first; h != NULL; h = h->next) {
        if (is_sendable(h, now))
            return true;
    }
    return false;
}

void held_unsend(struct held_jobs *l)
{
    for (struct held_job *h = l->first; h != NULL; h = h->next) {
        if (h->state == HELD_SENT)
            held_move(l, h, HELD_ENDED);
        /* Whether its last one has been written is unknown. To write it again is harmless. */
        if (h->state != HELD_ENDED || h->verdict.verb != STORE_DONE)
            held_resend_checkpoint(l, h);
    }
}

bool held_is_named(const struct held_job *h)
{
    return h->state != HELD_LOST && !h->has_no_record;
}

size_t held_names(const struct held_jobs *l, struct store_held **ret)
{
    size_t n = 0;

    *ret = mem_new((l->n + 1) * sizeof(**ret));
    for (const struct held_job *h = l->first; h != NULL; h = h->next) {
        if (held_is_named(h))
            (*ret)[n++] = (struct store_held){h->job.id, h->job.start};
    }
    return n;
}
