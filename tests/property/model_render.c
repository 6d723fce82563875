/*
 * What Redis must hold when the model is as it is, and what must hold of the model itself.
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 65536

/* A key that is a string, or one field or member of another. */
struct row {
    char *text;
    size_t n;
};

struct rows {
    struct row *row;
    size_t n;
};

static int by_text(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = memcmp(x->text, y->text, n);

    return c != 0 ? c : x->n < y->n ? -1 : x->n > y->n;
}

/* "<key> <type> [<n>:<field>=]<n>:<value>\n" */
static void put(struct rows *rows, const char *key, const char *type, const char *field,
                const char *value, size_t n)
{
    struct buf b = BUF_INIT;

    if (rows->n == ROWS_MAX)
        abort();
    buf_printf(&b, "%s %s ", key, type);
    if (field != NULL)
        buf_printf(&b, "%zu:%s=", strlen(field), field);
    buf_printf(&b, "%zu:", n);
    if (n > 0)
        buf_add(&b, value, n);
    buf_puts(&b, "\n");
    rows->row[rows->n].n = b.len;
    rows->row[rows->n++].text = buf_take(&b);
}

static void put_text(struct rows *rows, const char *key, const char *type, const char *field,
                     const char *value)
{
    put(rows, key, type, field, value, strlen(value));
}

static void put_number(struct rows *rows, const char *key, const char *type, const char *field,
                       int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    put_text(rows, key, type, field, text);
}

static const char *key_of(char out[128], const char *a, const char *b)
{
    (void)snprintf(out, 128, "%s%s", a, b);
    return out;
}

/* ---- jobs */

static void render_place(const struct model *m, const struct model_job *j, struct rows *rows)
{
    const char *queue = m->queue[j->queue].name;
    char key[128];

    if (j->place == PLACE_RUNNING)
        (void)snprintf(key, sizeof(key), "running");
    else if (j->place != PLACE_WAITING)
        (void)snprintf(key, sizeof(key), "%s:%s", model_place_name(j->place), queue);
    else if (model_is_solo(j))
        (void)snprintf(key, sizeof(key), "solo:%s", queue);
    else
        (void)snprintf(key, sizeof(key), "q:%s:%d", queue, j->priority);
    put_number(rows, key, "zset", j->id, j->score);
}

static void render_job(const struct model *m, const struct model_job *j, struct rows *rows)
{
    struct buf record = BUF_INIT;
    char tries[96], key[128];

    if (j->await_ms != MODEL_NONE)
        put_number(rows, "await", "hash", j->id, j->await_ms);
    if (j->place == PLACE_GONE)
        return;
    model_record(j, &record);
    put(rows, "jobs", "hash", j->id, record.data, record.len);
    if (record.data[0] == '+')
        put(rows, key_of(key, "big:", j->id), "string", NULL, j->payload.p, j->payload.n);
    buf_done(&record);
    render_place(m, j, rows);
    (void)snprintf(tries, sizeof(tries), "%lld %lld %lld %lld", (long long)j->starts,
                   (long long)j->attempts, (long long)j->crashes, (long long)j->tries_due);
    if (j->has_tries)
        put_text(rows, "tries", "hash", j->id, tries);
    if (j->cancel_ms != MODEL_NONE)
        put_number(rows, "cancel", "hash", j->id, j->cancel_ms);
    if (j->progress != NULL)
        put_text(rows, "progress", "hash", j->id, j->progress);
    if (j->error != NULL)
        put_text(rows, "errors", "hash", j->id, j->error);
    if (j->result != NULL)
        put_text(rows, "results", "hash", j->id, j->result);
}

/* ---- queues */

static void render_stats(const struct model_queue *queue, struct rows *rows)
{
    char key[128];

    if (queue->done > 0)
        put_number(rows, "stats", "hash", key_of(key, "done:", queue->name), queue->done);
    if (queue->dead > 0)
        put_number(rows, "stats", "hash", key_of(key, "dead:", queue->name), queue->dead);
    if (queue->cancelled > 0)
        put_number(rows, "stats", "hash", key_of(key, "cancelled:", queue->name), queue->cancelled);
}

static void render_queue(const struct model_queue *queue, struct rows *rows)
{
    char key[128], paused[256];

    if (queue->is_known)
        put_text(rows, "names", "set", NULL, queue->name);
    if (queue->has_head)
        put_number(rows, "heads", "zset", queue->name, queue->head);
    if (queue->marks[0] != '\0')
        put_text(rows, "prio", "hash", queue->name, queue->marks);
    (void)snprintf(paused, sizeof(paused), "%lld %lld %s %s", (long long)queue->until,
                   (long long)queue->since, queue->who, queue->reason);
    if (queue->is_paused)
        put_text(rows, "paused", "hash", queue->name, paused);
    if (queue->unserved != MODEL_NONE)
        put_number(rows, "unserved", "hash", queue->name, queue->unserved);
    if (queue->max_payload != MODEL_NONE)
        put_number(rows, "config", "hash", key_of(key, "max_payload:", queue->name),
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
    rows->row[rows->n].n = row.len;
    rows->row[rows->n++].text = buf_take(&row);
}

/* ---- the others */

static void render_worker(const struct model_worker *w, struct rows *rows)
{
    char epoch[24], key[128];

    if (!w->is_there)
        return;
    (void)snprintf(epoch, sizeof(epoch), "%lld", (long long)w->epoch);
    if (w->is_dead)
        put_text(rows, "workers", "hash", epoch, "dead");
    else
        put_number(rows, "workers", "hash", epoch, w->counter);
    (void)key_of(key, "worker:", epoch);
    put_number(rows, key, "hash", "link", w->link);
    put_text(rows, key, "hash", "inst", w->inst);
    put_number(rows, key, "hash", "seq", w->seq);
    put_number(rows, key, "hash", "started", w->started);
    put_number(rows, key, "hash", "beat_ms", w->beat_ms);
    if (w->host[0] != '\0')
        put_text(rows, key, "hash", "host", w->host);
    if (w->queues[0] != '\0')
        put_text(rows, key, "hash", "queues", w->queues);
    if (w->quiet >= 0)
        put_number(rows, key, "hash", "quiet", w->quiet);
}

/* The reading script takes the hash at its end off, and tells how long the key lives. */
static void render_token(const struct model *m, const struct model_token *t, struct rows *rows)
{
    char key[128], value[128];

    if (t->expire_ms < MODEL_MS(m))
        return;
    (void)snprintf(value, sizeof(value), "%s %lld @%lld", t->id, (long long)t->due,
                   (long long)t->expire_ms);
    put_text(rows, key_of(key, "token:", t->name), "string", NULL, value);
}

void model_render(struct model *m, struct buf *out)
{
    static struct row room[ROWS_MAX];
    struct rows rows = {room, 0};

    for (size_t i = 0; i < m->jobs; i++)
        render_job(m, &m->job[i], &rows);
    for (size_t i = 0; i < m->raws; i++)
        render_raw(m, &m->raw[i], &rows);
    for (int q = 0; q < MODEL_QUEUES; q++)
        render_queue(&m->queue[q], &rows);
    for (size_t i = 0; i < m->workers; i++)
        render_worker(&m->worker[i], &rows);
    for (size_t i = 0; i < m->tokens; i++)
        render_token(m, &m->token[i], &rows);
    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].is_there)
            put_number(&rows, "notes", "hash", m->note[i].name, m->note[i].seen);
    if (m->clock > 0)
        put_number(&rows, "clock", "string", NULL, m->clock);
    if (m->max_payload != MODEL_NONE)
        put_number(&rows, "config", "hash", "max_payload", m->max_payload);
    if (rows.n > 1)
        qsort(rows.row, rows.n, sizeof(rows.row[0]), by_text);
    for (size_t i = 0; i < rows.n; i++) {
        buf_add(out, rows.row[i].text, rows.row[i].n);
        free(rows.row[i].text);
    }
}

/* ---- what holds in every state */

static const char *broken_job(const struct model *m, const struct model_job *j)
{
    const struct model_queue *queue = &m->queue[j->queue];

    if (j->place == PLACE_GONE)
        return j->await_ms != MODEL_NONE ? "a job that is gone is waited for" : NULL;
    if (!queue->is_known)
        return "the queue of a job is not known";
    if (j->place == PLACE_RUNNING)
        return !j->has_tries ? "a running job was never started" : NULL;
    if (j->cancel_ms != MODEL_NONE || j->progress != NULL)
        return "a job that does not run has a flag or a progress";
    if (j->place == PLACE_DEAD && j->error == NULL)
        return "a dead job has no reason";
    if (j->place == PLACE_DONE && (j->result == NULL || j->error != NULL))
        return "a done job has no outcome, or an error beside it";
    if (j->place != PLACE_WAITING)
        return NULL;
    /* A suspect that is due is told by solo_due, not by the head. */
    if (model_is_solo(j)) {
        if (strchr(queue->marks, 's') == NULL)
            return "a suspect waits in a set that is not marked";
        return j->score > m->latest_us / 1000 && (!queue->has_head || queue->head > j->score)
                   ? "a suspect waits behind its head"
                   : NULL;
    }
    if (j->priority != 5 && strchr(queue->marks, '0' + j->priority) == NULL)
        return "a job waits in a set that is not marked";
    return !queue->has_head || queue->head > j->score ? "a job waits before its head" : NULL;
}

const char *model_broken(const struct model *m)
{
    for (size_t i = 0; i < m->jobs; i++) {
        const char *what = broken_job(m, &m->job[i]);

        if (what != NULL)
            return what;
    }
    return NULL;
}
