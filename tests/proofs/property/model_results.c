/*
 * The first half of a sync in the model: the results.
 */
#include "model_gates.h"

#include <stdio.h>
#include <string.h>

/* The library stops at 1 MiB. */
bool model_is_spent(const struct model *m)
{
    return m->moved >= 1048576;
}

int64_t model_record_bytes(const struct model_job *j)
{
    struct buf record = BUF_INIT;
    int64_t n;

    model_record(j, &record);
    n = (int64_t)record.len;
    buf_done(&record);
    return n;
}

/* After these the job runs on. */
static bool runs_on(const struct model_end *e)
{
    return e->verb == VERB_PROGRESS || e->verb == VERB_CHECKPOINT;
}

static bool is_done(const struct model_end *e)
{
    return e->verb == VERB_DONE || e->verb == VERB_RESULT;
}

static void apply(struct model *m, const struct model_end *e, struct model_job *j, bool cancelled)
{
    struct bytes result = {e->output, strlen(e->output)};
    int64_t now = MODEL_MS(m);

    if (e->verb == VERB_PROGRESS) {
        model_set(&j->progress, model_line(e->text));
    } else if (e->verb == VERB_CHECKPOINT) {
        (void)resume_checkpoint(j, e->output);
    } else if (j->corrupt != NULL && is_done(e) && !model_is_followed(j)) {
        m->queue[e->queue].done++;
        series_count(m, e->queue, COUNT_DONE, 1);
        j->corrupt = NULL;
        model_finish(m, j, model_outcome("done", e->code, now, j->starts, e->text, e->output), 0);
    } else if (j->corrupt != NULL) {
        model_bury_corrupt(m, j, e->queue);
    } else if (cancelled && !is_done(e)) {
        model_end_cancelled(m, j,
                            model_outcome("cancelled", e->code, now, j->starts,
                                          "cancelled while running", e->output));
    } else if (is_done(e)) {
        m->queue[j->queue].done++;
        series_count(m, j->queue, COUNT_DONE, 1);
        if (j->chain.thens > 0 && (e->a > 0 || e->verb == VERB_RESULT || j->payload.n <= MODEL_BIG))
            m->moved += (int64_t)(e->verb == VERB_RESULT ? result.n : j->payload.n);
        model_follow(m, j, e->verb == VERB_RESULT ? &result : NULL);
        schedule_mark_end(m, j, true);
        model_finish(m, j, model_outcome("done", e->code, now, j->starts, e->text, e->output),
                     e->a);
        model_keep_caused(j);
    } else if (e->verb == VERB_RETRY && model_end_replaced(m, j, e->code, e->output)) {
        ;
    } else if (e->verb == VERB_RETRY) {
        model_set(&j->error, model_outcome("failed", e->code, now, j->starts, e->text, e->output));
        model_fail(m, j, j->score, e->code, e->text);
        model_set(&j->progress, NULL);
        j->has_tries = true;
        j->tries_due = now + e->a;
        model_enqueue(m, j, j->tries_due);
    } else if (e->verb == VERB_DEAD) {
        model_fail(m, j, j->score, e->code, e->text);
        model_bury(m, j, model_outcome("dead", e->code, now, j->starts, e->text, e->output), e->a);
    } else {
        model_release(m, j, e->a);
    }
}

/*
 * Gates that results free are handed on after all results. The jobs of long results let go of them
 * before short ones are looked at; of these, one that is handled by itself does at once.
 */
struct freed {
    struct model_job *other[1024], *brief[1024];
    size_t others, briefs;
};

/* A short result of a job that another one follows, or that is cancelled or waited for, is handled
 * by itself. */
static bool is_single(const struct model_job *j)
{
    return model_is_followed(j) || j->cancel_ms != MODEL_NONE || j->await_ms != MODEL_NONE;
}

/* Returns whether its children are refused; this is then the answer. */
static bool is_refused(struct model *m, const struct model_end *e, struct model_job *j,
                       struct buf *out)
{
    const char *refusal;
    char text[96];
    size_t n = is_done(e) && j->corrupt == NULL ? model_add_children(m, j, e, &refusal) : 0;

    if (n == 0)
        return false;
    (void)snprintf(text, sizeof(text), "refused child %zu: %s", n, refusal);
    out_text(out, text);
    return true;
}

static void settle_one(struct model *m, const struct model_sync *s, const struct model_end *e,
                       struct freed *f, struct buf *out)
{
    struct model_job *j = model_find(m, e->id);
    bool ends_alone = j != NULL && is_single(j);
    char text[96];

    if (j == NULL || j->state != JOB_RUNNING || j->score != s->epoch || j->starts != e->start) {
        out_text(out, "settled");
        return;
    }
    if (model_is_spent(m) && (!e->is_short || ends_alone)) {
        out_text(out, "later");
        return;
    }
    if (e->verb == VERB_BAD) {
        (void)snprintf(text, sizeof(text), "error ELATER_ARGS unknown verb '%s'", e->verb_name);
        out_text(out, text);
        return;
    }
    if (e->a == MODEL_NONE) {
        out_text(out, "error ELATER_ARGS no amount");
        return;
    }
    /* The record of a plain short end is not read. */
    if (e->verb != VERB_PROGRESS && (!e->is_short || ends_alone))
        m->moved += (int64_t)strlen(e->output) + (runs_on(e) ? 0 : model_record_bytes(j));
    if (e->verb == VERB_CHECKPOINT && strlen(e->output) > MODEL_CHECKPOINT_MAX) {
        (void)snprintf(text, sizeof(text),
                       "error ELATER_SIZE the checkpoint has %zu bytes, a job may keep %d",
                       strlen(e->output), MODEL_CHECKPOINT_MAX);
        out_text(out, text);
        return;
    }
    if (is_refused(m, e, j, out))
        return;
    if (e->is_short && !ends_alone)
        f->brief[f->briefs++] = j;
    else if (!e->is_short && !runs_on(e))
        f->other[f->others++] = j;
    /* Plain ends of members are told to their batches together. */
    m->ends_later = e->is_short && !ends_alone;
    apply(m, e, j, j->cancel_ms != MODEL_NONE);
    m->ends_later = false;
    if (e->is_short && ends_alone)
        gates_let_go(m, j, true);
    out_text(out, "ok");
}

void model_settle(struct model *m, const struct model_sync *s, struct buf *out)
{
    struct freed f = {0};
    size_t n = 0; /* of the long results */

    m->moved = 0;
    for (size_t i = 0; i < s->ends && !s->end[i].is_short; i++, n++)
        settle_one(m, s, &s->end[i], &f, out);
    for (size_t i = 0; i < f.others; i++)
        gates_let_go(m, f.other[i], false);
    for (size_t i = n; i < s->ends; i++)
        settle_one(m, s, &s->end[i], &f, out);
    for (size_t i = 0; i < f.briefs; i++)
        gates_let_go(m, f.brief[i], true);
    batches_end_later(m);
    waiters_hand_on_first(m);
}
