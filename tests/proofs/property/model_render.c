/*
 * What Redis must hold for this state of the model, and what must be true of the model itself.
 */
#include "model.h"

#include "model_fair.h"
#include "model_gates.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *key_of(char out[128], const char *a, const char *b)
{
    (void)snprintf(out, 128, "%s%s", a, b);
    return out;
}

/* ---- jobs */

static void render_state(const struct model *m, const struct model_job *j, struct rows *rows)
{
    const char *queue = m->queue[j->queue].name;
    char key[128];

    if (j->state == JOB_RUNNING)
        (void)snprintf(key, sizeof(key), "running");
    else if (j->state != JOB_WAITING)
        (void)snprintf(key, sizeof(key), "%s:%s", model_state_name(j->state), queue);
    else if (j->pin[0] != '\0')
        (void)snprintf(key, sizeof(key), "pin:%s:%s", queue, j->pin);
    else if (model_is_solo(j))
        (void)snprintf(key, sizeof(key), "solo:%s", queue);
    else
        (void)snprintf(key, sizeof(key), "q:%s:%d", queue, j->priority);
    rows_number(rows, key, "zset", j->id, j->score);
}

static void render_job(const struct model *m, const struct model_job *j, struct rows *rows)
{
    struct buf record = BUF_INIT;
    char tries[MODEL_TRIES], key[128];

    if (j->await_ms != MODEL_NONE)
        rows_number(rows, "await", "hash", j->id, j->await_ms);
    if (j->state == JOB_GONE)
        return;
    model_record(j, &record);
    rows_put(rows, "jobs", "hash", j->id, record.data, record.len);
    if (j->payload.n > MODEL_BIG)
        rows_put(rows, key_of(key, "big:", j->id), "string", NULL, j->payload.p, j->payload.n);
    buf_done(&record);
    render_state(m, j, rows);
    model_tries(j, tries);
    if (j->has_tries)
        rows_text(rows, "tries", "hash", j->id, tries);
    if (j->cancel_ms != MODEL_NONE)
        rows_number(rows, "cancel", "hash", j->id, j->cancel_ms);
    if (j->progress != NULL)
        rows_text(rows, "progress", "hash", j->id, j->progress);
    if (j->error != NULL)
        rows_text(rows, "errors", "hash", j->id, j->error);
    if (j->failures != NULL)
        rows_text(rows, "failures", "hash", j->id, j->failures);
    if (j->result != NULL)
        rows_text(rows, "results", "hash", j->id, j->result);
    resume_render(j, rows);
}

/* ---- queues */

static void render_stats(const struct model_queue *queue, struct rows *rows)
{
    char key[128];

    if (queue->done > 0)
        rows_number(rows, "stats", "hash", key_of(key, "done:", queue->name), queue->done);
    if (queue->dead > 0)
        rows_number(rows, "stats", "hash", key_of(key, "dead:", queue->name), queue->dead);
    if (queue->adopted > 0)
        rows_number(rows, "stats", "hash", key_of(key, "adopted:", queue->name), queue->adopted);
    if (queue->cancelled > 0)
        rows_number(rows, "stats", "hash", key_of(key, "cancelled:", queue->name),
                    queue->cancelled);
}

static void render_queue(const struct model_queue *queue, struct rows *rows)
{
    char key[128], paused[256];

    if (queue->is_known) {
        rows_text(rows, "names", "set", NULL, queue->name);
        rows_index(rows, "queue", queue->name);
    }
    if (queue->has_head)
        rows_number(rows, "heads", "zset", queue->name, queue->head);
    if (queue->marks[0] != '\0')
        rows_text(rows, "prio", "hash", queue->name, queue->marks);
    (void)snprintf(paused, sizeof(paused), "%lld %lld %s %s", (long long)queue->until,
                   (long long)queue->since, queue->who, queue->reason);
    if (queue->is_paused)
        rows_text(rows, "paused", "hash", queue->name, paused);
    if (queue->unserved != MODEL_NONE)
        rows_number(rows, "unserved", "hash", queue->name, queue->unserved);
    if (queue->max_payload != MODEL_NONE)
        rows_number(rows, "config", "hash", key_of(key, "max_payload:", queue->name),
                    queue->max_payload);
    render_stats(queue, rows);
}

static void render_raw(const struct model *m, const struct model_raw *r, struct rows *rows)
{
    struct buf row = BUF_INIT;
    char key[128], score[40];

    if (!r->is_there)
        return;
    (void)snprintf(score, sizeof(score), "%.17g", r->score);
    buf_printf(&row, "%s zset %zu:", key_of(key, "due:", m->queue[r->queue].name), r->member.n);
    if (r->member.n > 0)
        buf_add(&row, r->member.p, r->member.n);
    buf_printf(&row, "=%zu:%s\n", strlen(score), score);
    rows_add(rows, &row);
}

/* ---- workers and tokens */

static void render_worker(const struct model *m, const struct model_worker *w, struct rows *rows)
{
    char epoch[24], key[128], field[128];

    if (!w->is_there)
        return;
    (void)snprintf(epoch, sizeof(epoch), "%lld", (long long)w->epoch);
    if (w->is_dead)
        rows_text(rows, "workers", "hash", epoch, "dead");
    else
        rows_number(rows, "workers", "hash", epoch, w->counter);
    (void)key_of(key, "worker:", epoch);
    rows_number(rows, key, "hash", "link", w->link);
    rows_text(rows, key, "hash", "inst", w->inst);
    rows_number(rows, key, "hash", "seq", w->seq);
    rows_number(rows, key, "hash", "started", w->started);
    rows_number(rows, key, "hash", "beat_ms", w->beat_ms);
    if (w->host[0] != '\0')
        rows_text(rows, key, "hash", "host", w->host);
    if (w->queues[0] != '\0')
        rows_text(rows, key, "hash", "queues", w->queues);
    if (w->places[0] != '\0')
        rows_text(rows, key, "hash", "places", w->places);
    if (w->limits[0] != '\0')
        rows_text(rows, key, "hash", "limits", w->limits);
    if (w->room[0] != '\0')
        rows_text(rows, key, "hash", "room", w->room);
    if (w->quiet >= 0)
        rows_number(rows, key, "hash", "quiet", w->quiet);
    for (int q = 0; q < MODEL_QUEUES; q++)
        if (w->declared[q][0] != '\0')
            rows_text(rows, key, "hash", key_of(field, "gates:", m->queue[q].name), w->declared[q]);
}

/* The reading script cuts off the hash at the end of the value, and adds when the key expires. */
static void render_token(const struct model *m, const struct model_token *t, struct rows *rows)
{
    char key[128], value[128];

    if (t->expire_ms < MODEL_MS(m))
        return;
    (void)snprintf(value, sizeof(value), "%s %lld @%lld", t->id, (long long)t->due,
                   (long long)t->expire_ms);
    rows_text(rows, key_of(key, "token:", t->name), "string", NULL, value);
}

void model_render(struct model *m, struct buf *out)
{
    struct rows rows = ROWS_INIT;

    for (size_t i = 0; i < m->jobs; i++)
        render_job(m, &m->job[i], &rows);
    for (size_t i = 0; i < m->raws; i++)
        render_raw(m, &m->raw[i], &rows);
    for (int q = 0; q < MODEL_QUEUES; q++)
        render_queue(&m->queue[q], &rows);
    for (size_t i = 0; i < m->workers; i++)
        render_worker(m, &m->worker[i], &rows);
    for (size_t i = 0; i < m->tokens; i++)
        render_token(m, &m->token[i], &rows);
    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].is_there)
            rows_number(&rows, "notes", "hash", m->note[i].name, m->note[i].seen);
    if (m->clock > 0)
        rows_number(&rows, "clock", "string", NULL, m->clock);
    if (m->max_payload != MODEL_NONE)
        rows_number(&rows, "config", "hash", "max_payload", m->max_payload);
    gates_render(m, &rows);
    batches_render(m, &rows);
    bulks_render(m, &rows);
    schedules_render(m, &rows);
    topics_render(m, &rows);
    foreign_render(m, &rows);
    pins_render(m, &rows);
    series_render(m, &rows);
    fair_render(m, &rows);
    rows_take(&rows, out);
}

/* ---- promises */

/* Only the first suspect of a queue counts for the head; the next one counts when that was
 * claimed. */
static bool has_suspect_before(const struct model *m, const struct model_job *j)
{
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].state == JOB_WAITING && m->job[i].queue == j->queue &&
            model_is_solo(&m->job[i]) && m->job[i].score < j->score)
            return true;
    return false;
}

static const char *broken_job(struct model *m, const struct model_job *j)
{
    const struct model_queue *queue = &m->queue[j->queue];

    if (j->state == JOB_GONE)
        return j->await_ms != MODEL_NONE ? "a job that is gone is waited for" : NULL;
    if (!queue->is_known)
        return "the queue of a job is not known";
    if (j->state == JOB_RUNNING)
        return !j->has_tries ? "a running job was never started" : NULL;
    if (j->cancel_ms != MODEL_NONE || j->progress != NULL)
        return "a job that does not run has a flag or a progress";
    if (j->state == JOB_DEAD && j->error == NULL)
        return "a dead job has no reason";
    if (j->state == JOB_DONE && (j->result == NULL || j->error != NULL))
        return "a done job has no outcome, or an error beside it";
    if (j->state == JOB_DONE && resume_bytes(j) > 0)
        return "a done job has something for its next attempt";
    if (j->state == JOB_WAITING && j->pin[0] != '\0')
        return pins_broken_job(m, j);
    if (j->state != JOB_WAITING)
        return j->state == JOB_PARKED && j->spot.at == 0 && strchr(queue->marks, 'g') == NULL
                   ? "a job was granted in a queue that is not marked"
                   : NULL;
    /* A due suspect is told by solo_due, not by the head. */
    if (model_is_solo(j)) {
        if (strchr(queue->marks, 's') == NULL)
            return "a suspect waits in a set that is not marked";
        return j->score > m->latest_us / 1000 && !has_suspect_before(m, j) &&
                       (!queue->has_head || queue->head > j->score)
                   ? "a suspect waits behind its head"
                   : NULL;
    }
    if (j->priority != 5 && strchr(queue->marks, '0' + j->priority) == NULL)
        return "a job waits in a set that is not marked";
    return !queue->has_head || queue->head > j->score ? "a job waits before its head" : NULL;
}

const char *model_broken(struct model *m)
{
    const char *what;

    for (size_t i = 0; i < m->jobs; i++) {
        what = broken_job(m, &m->job[i]);
        if (what != NULL)
            return what;
    }
    what = gates_broken(m);
    what = what != NULL ? what : fair_broken(m);
    return what != NULL ? what : batches_broken(m);
}
