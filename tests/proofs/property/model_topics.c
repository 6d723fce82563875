/*
 * Topics in the model (src/lua/topic/topics.lua, src/lua/public/publish.lua).
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static struct topic_counts counts;

const struct topic_counts *topic_counts(void)
{
    return &counts;
}

/* Queues in the order of their names, as Redis sorts them. */
static int by_name(const void *a, const void *b)
{
    return strcoll(model_queue_name(*(const int *)a), model_queue_name(*(const int *)b));
}

static void sort_queues(int order[MODEL_QUEUES])
{
    for (int q = 0; q < MODEL_QUEUES; q++)
        order[q] = q;
    qsort(order, MODEL_QUEUES, sizeof(*order), by_name);
}

static bool is_used(const struct model_topic *t)
{
    for (int q = 0; q < MODEL_QUEUES; q++)
        if (t->has[q])
            return true;
    return false;
}

static struct model_topic *topic_of(struct model *m, const char *name)
{
    struct model_topic *room = NULL;

    for (int i = 0; i < MODEL_TOPICS; i++) {
        struct model_topic *t = &m->topic[i];

        if (t->name != NULL && strcmp(t->name, name) == 0)
            return t;
        room = room == NULL && t->name == NULL ? t : room;
    }
    if (room == NULL)
        abort();
    room->name = name;
    return room;
}

/* ---- subscriptions */

static const char *subscribe(struct model *m, const char *name, int q)
{
    struct model_topic *t = topic_of(m, name);

    if (t->has[q])
        return "repeated";
    t->has[q] = m->queue[q].is_known = true;
    return "subscribed";
}

static const char *unsubscribe(struct model *m, const char *name, int q)
{
    struct model_topic *t = topic_of(m, name);
    const char *word = t->has[q] ? "unsubscribed" : "repeated";

    t->has[q] = false;
    return word;
}

/* What is gone once a call is over has no count any more. */
static void forget_counts(struct model *m)
{
    for (int i = 0; i < MODEL_TOPICS; i++)
        if (!is_used(&m->topic[i]))
            m->topic[i].published = 0;
}

static void release(struct model *m, const char *name, int q)
{
    struct model_file *f = &m->file[q];

    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->name[i], name) != 0)
            continue;
        f->n--;
        memmove(&f->name[i], &f->name[i + 1], (f->n - i) * sizeof(f->name[0]));
        return;
    }
}

void model_subscribe(struct model *m, const char *name, int q, bool is_end, struct buf *out)
{
    if (name == NULL) {
        out_refusal(out, "ELATER_TOPIC");
        return;
    }
    release(m, name, q);
    buf_puts(out, "[ ");
    out_text(out, name);
    out_text(out, model_queue_name(q));
    out_text(out, is_end ? unsubscribe(m, name, q) : subscribe(m, name, q));
    buf_puts(out, "] ");
    forget_counts(m);
}

static bool is_named(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The file has these names now, but for those that only a call has said. */
static void take_file(struct model *m, const struct model_declared *d, int64_t read_ms)
{
    struct model_file was = m->file[d->queue], *f = &m->file[d->queue];

    *f = (struct model_file){.is_there = true, .read_ms = read_ms};
    for (size_t k = 0; k < d->n; k++) {
        bool is_new = strcmp(subscribe(m, d->name[k], d->queue), "subscribed") == 0;

        if ((is_new || is_named(was.name, was.n, d->name[k])) &&
            !is_named(f->name, f->n, d->name[k]))
            f->name[f->n++] = d->name[k];
    }
    m->queue[d->queue].is_known = true;
}

void topics_forget_file(struct model *m, int q)
{
    for (size_t i = 0; i < m->file[q].n; i++)
        (void)unsubscribe(m, m->file[q].name[i], q);
    m->file[q] = (struct model_file){.is_there = false};
    forget_counts(m);
}

static const char *declare(struct model *m, const struct model_declared *d, int64_t read_ms)
{
    const struct model_file *f = &m->file[d->queue];

    if (f->is_there && f->read_ms > read_ms && f->read_ms <= MODEL_MS(m))
        return "older";
    if (d->is_bad)
        return "ELATER_TOPIC";
    if (f->is_there && f->read_ms == read_ms)
        return "declared";
    for (size_t i = 0; i < f->n; i++)
        if (!is_named(d->name, d->n, f->name[i]))
            (void)unsubscribe(m, f->name[i], d->queue);
    take_file(m, d, read_ms);
    return "declared";
}

void model_declare_topics(struct model *m, int64_t epoch, int64_t read_ms, size_t n,
                          const struct model_declared *all, struct buf *out)
{
    if (strcmp(model_status(m, epoch), "ok") != 0) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    if (read_ms > MODEL_MS(m))
        read_ms = MODEL_MS(m);
    buf_puts(out, "[ ");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, "[ ");
        out_text(out, model_queue_name(all[i].queue));
        out_text(out, declare(m, &all[i], read_ms));
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
    forget_counts(m);
}

static bool is_of_file(const struct model *m, const char *name, int q)
{
    for (size_t i = 0; i < m->file[q].n; i++)
        if (strcmp(m->file[q].name[i], name) == 0)
            return true;
    return false;
}

void model_topics(struct model *m, struct buf *out)
{
    int order[MODEL_QUEUES];

    sort_queues(order);
    buf_puts(out, "[ s1:0 ");
    for (int i = 0; i < MODEL_TOPICS; i++)
        for (int k = 0; k < MODEL_QUEUES; k++) {
            if (!m->topic[i].has[order[k]])
                continue;
            buf_puts(out, "[ ");
            out_text(out, m->topic[i].name);
            out_text(out, model_queue_name(order[k]));
            out_text(out, is_of_file(m, m->topic[i].name, order[k]) ? "file" : "call");
            out_int(out, m->topic[i].published);
            buf_puts(out, "] ");
        }
    buf_puts(out, "] ");
}

size_t model_count_topics(const struct model *m)
{
    size_t n = 0;

    for (int i = 0; i < MODEL_TOPICS; i++)
        n += is_used(&m->topic[i]);
    return n;
}

void model_topic_audit(struct model *m, struct buf *out)
{
    buf_puts(out, "[ s0: ");
    out_int(out, (int64_t)model_count_topics(m));
    buf_puts(out, "] ");
}

/* ---- publish */

static bool fits(const char *subscription, const char *topic)
{
    size_t n = strlen(subscription);

    if (strcmp(subscription, "*") == 0 || strcmp(subscription, topic) == 0)
        return true;
    return n > 2 && strcmp(subscription + n - 2, ".*") == 0 &&
           strncmp(subscription, topic, n - 1) == 0;
}

static bool gets_copy(const struct model *m, const char *topic, int q)
{
    for (int i = 0; i < MODEL_TOPICS; i++)
        if (m->topic[i].name != NULL && m->topic[i].has[q] && fits(m->topic[i].name, topic))
            return true;
    return false;
}

static void bury(struct model *m, int q, const struct model_options *o, struct bytes payload,
                 const char *code, struct model_added *added)
{
    struct model_job *j = model_insert(m, model_tick(m, 1, 0), q, o, payload);
    char why[MODEL_REFUSAL];

    model_refusal_text(m, q, o, code, payload.n, why);
    model_bury(m, j, model_outcome("dead", 0, MODEL_MS(m), 0, why, ""), 10000);
    if (o->token != NULL)
        model_put_token(m, o, j->id, o->due, q, payload);
    counts.buried++;
    added->word = "buried";
    memcpy(added->id, j->id, sizeof(added->id));
}

/* The options of the copy of this queue. token has room for its own. */
static struct model_options copy_for(const struct model_options *o, const char *topic, int q,
                                     char token[MODEL_TOKEN])
{
    struct model_options copy = *o;

    copy.chain.topic = topic;
    (void)snprintf(token, MODEL_TOKEN, "%s %s", o->token != NULL ? o->token : "",
                   model_queue_name(q));
    copy.token = o->token != NULL ? token : NULL;
    return copy;
}

/* Why all copies are refused, or NULL. */
static const char *refusal_of(struct model *m, const char *topic, const struct model_options *o,
                              struct bytes payload)
{
    for (int q = 0; q < MODEL_QUEUES; q++) {
        char token[MODEL_TOKEN];
        struct model_options copy = copy_for(o, topic, q, token);
        const struct model_token *was =
            gets_copy(m, topic, q) && copy.token != NULL ? model_token(m, token) : NULL;

        if (was != NULL && (model_is_other(was->queue, was->payload, q, payload) ||
                            strcmp(was->topic, topic) != 0))
            return "ELATER_TOKEN";
    }
    return NULL;
}

/* -> is it a new copy? */
static bool deliver(struct model *m, const char *topic, int q, const struct model_options *o,
                    struct bytes payload, struct buf *out)
{
    char token[MODEL_TOKEN];
    struct model_options copy = copy_for(o, topic, q, token);
    struct model_added added;
    const struct model_token *was = copy.token != NULL ? model_token(m, token) : NULL;
    const char *code = NULL;

    if (was != NULL) {
        added.word = "repeated";
        memcpy(added.id, was->id, sizeof(added.id));
    } else {
        code = model_add_one(m, q, &copy, payload, &added);
    }
    if (code != NULL)
        bury(m, q, &copy, payload, code, &added);
    counts.copies++;
    counts.repeated += strcmp(added.word, "repeated") == 0;
    buf_puts(out, "[ ");
    out_text(out, model_queue_name(q));
    out_text(out, added.id);
    out_text(out, added.word);
    buf_puts(out, "] ");
    return strcmp(added.word, "repeated") != 0;
}

static void count_published(struct model *m, const char *topic)
{
    bool is_heard = false;

    for (int i = 0; i < MODEL_TOPICS; i++) {
        struct model_topic *t = &m->topic[i];

        if (t->name == NULL || !is_used(t) || !fits(t->name, topic))
            continue;
        t->published++;
        is_heard = true;
    }
    m->unheard += !is_heard;
}

void model_publish_topic(struct model *m, const char *topic, const struct model_options *o,
                         struct bytes payload, struct buf *out)
{
    const char *refusal = topic == NULL ? "ELATER_TOPIC" : o->refusal;
    int order[MODEL_QUEUES];
    int64_t n = 0;
    bool is_new;

    refusal = refusal == NULL ? refusal_of(m, topic, o, payload) : refusal;
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    sort_queues(order);
    for (int q = 0; q < MODEL_QUEUES; q++)
        n += gets_copy(m, topic, q);
    buf_puts(out, "[ ");
    out_int(out, n);
    is_new = n == 0;
    for (int k = 0; k < MODEL_QUEUES; k++)
        if (gets_copy(m, topic, order[k]))
            is_new |= deliver(m, topic, order[k], o, payload, out);
    buf_puts(out, "] ");
    if (is_new)
        count_published(m, topic);
}

/* ---- keys */

void topics_render(const struct model *m, struct rows *rows)
{
    int order[MODEL_QUEUES];
    char key[128];

    sort_queues(order);
    for (int i = 0; i < MODEL_TOPICS; i++) {
        struct buf text = BUF_INIT;

        for (int k = 0; k < MODEL_QUEUES; k++)
            if (m->topic[i].has[order[k]])
                buf_printf(&text, "%s%s", text.len > 0 ? " " : "", model_queue_name(order[k]));
        if (text.len > 0) {
            rows_text(rows, "topics", "hash", m->topic[i].name, buf_str(&text));
            rows_index(rows, "topic", m->topic[i].name);
        }
        buf_done(&text);
        if (m->topic[i].published > 0) {
            (void)snprintf(key, sizeof(key), "published:%s", m->topic[i].name);
            rows_number(rows, "stats", "hash", key, m->topic[i].published);
        }
    }
    if (m->unheard > 0)
        rows_number(rows, "stats", "hash", "unheard", m->unheard);
    for (int q = 0; q < MODEL_QUEUES; q++) {
        struct buf text = BUF_INIT;

        buf_printf(&text, "%lld ", (long long)m->file[q].read_ms);
        for (size_t i = 0; i < m->file[q].n; i++)
            buf_printf(&text, "%s%s", i > 0 ? " " : "", m->file[q].name[i]);
        if (m->file[q].is_there)
            rows_text(rows, "topic:file", "hash", model_queue_name(q), buf_str(&text));
        buf_done(&text);
    }
}
