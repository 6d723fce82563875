/*
 * Chains in the model: what the end of a job causes (src/lua/core/chains.lua); and the import,
 * which has options of its own for it.
 */
#include "model_gates.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records, later_show */

/* The queues of `then` with commas between them. */
static void put_thens(const struct model_chain *chain, struct buf *out)
{
    for (int i = 0; i < chain->thens; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", model_queue_name(chain->then[i]));
}

/* Percent-encoding: a header has no spaces in its values. */
static void put_encoded(const char *text, struct buf *out)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < 128 && (isalnum(*c) || strchr("._~-", *c) != NULL))
            buf_printf(out, "%c", *c);
        else
            buf_printf(out, "%%%02X", *c);
}

void model_record_chain(const struct model_job *j, struct buf *out)
{
    const struct model_chain *chain = &j->chain;

    if (chain->thens > 0)
        buf_puts(out, " n=");
    put_thens(chain, out);
    if (chain->on_dead >= 0)
        buf_printf(out, " d=%s", model_queue_name(chain->on_dead));
    if (chain->parent[0] != '\0')
        buf_printf(out, " p=%s", chain->parent);
    if (chain->reason[0] != '\0')
        buf_puts(out, " m=");
    put_encoded(chain->reason, out);
    if (chain->batch != NULL)
        buf_printf(out, " b=%s", chain->batch);
    if (chain->callback[0] != '\0')
        buf_printf(out, " B=%s", chain->callback);
    if (chain->schedule != NULL)
        buf_printf(out, " S=%s O=%lld", chain->schedule, (long long)chain->occurrence_ms);
    if (chain->day != 0)
        buf_printf(out, " Y=%lld", (long long)chain->day);
    if (chain->topic != NULL)
        buf_printf(out, " P=%s", chain->topic);
    if (j->pin[0] != '\0')
        buf_printf(out, " W=%s", j->pin);
}

void model_show_chain(const struct model *m, const struct model_job *j, struct buf *out)
{
    const struct model_chain *chain = &j->chain;
    struct buf thens = BUF_INIT;
    char callback[sizeof(chain->callback)];

    (void)snprintf(callback, sizeof(callback), "%.*s", (int)strcspn(chain->callback, ","),
                   chain->callback);
    put_thens(chain, &thens);
    out_named_text(out, "then", buf_str(&thens));
    out_named_text(out, "on_dead", chain->on_dead >= 0 ? m->queue[chain->on_dead].name : "");
    out_named_text(out, "parent", chain->parent);
    out_named_text(out, "batch", chain->batch != NULL ? chain->batch : "");
    out_named_text(out, "caused", j->caused != NULL ? j->caused : "");
    if (chain->schedule != NULL) {
        out_named_text(out, "schedule", chain->schedule);
        out_text(out, "occurrence_ms");
        out_number(out, chain->occurrence_ms);
    }
    out_named_text(out, "topic", chain->topic != NULL ? chain->topic : "");
    out_named_text(out, "pinned", j->pin);
    out_named_text(out, "reason", chain->reason);
    out_named_text(out, "callback_of", callback);
    buf_done(&thens);
}

/* ---- what follows */

static struct chain_counts counts;

const struct chain_counts *chain_counts(void)
{
    return &counts;
}

void model_enqueue_caused(struct model *m, struct model_job *j)
{
    model_enqueue(m, j, MODEL_MS(m));
    m->caused[j->queue]++;
}

static struct buf caused; /* what the end of the present job has caused so far */

static void note_caused(const char *id)
{
    buf_printf(&caused, "%s%s", caused.len > 0 ? "," : "", id);
}

/* As many of the last ids as fit into the header of the job. */
static void keep_what_fits(struct model_job *j, const char *ids)
{
    struct buf record = BUF_INIT;
    size_t header;

    model_set(&j->caused, NULL);
    model_record(j, &record);
    header = strcspn(buf_str(&record), "\n") + strlen(" c=\n");
    while (header + strlen(ids) > MODEL_HEADER && strchr(ids, ',') != NULL)
        ids = strchr(ids, ',') + 1;
    if (header + strlen(ids) <= MODEL_HEADER)
        model_set(&j->caused, mem_strdup(ids));
    buf_done(&record);
}

void model_keep_caused(struct model_job *j)
{
    struct buf all = BUF_INIT;

    if (j->state != JOB_GONE && j->corrupt == NULL && caused.len > 0) {
        buf_printf(&all, "%s%s%s", j->caused != NULL ? j->caused : "", j->caused != NULL ? "," : "",
                   buf_str(&caused));
        keep_what_fits(j, buf_str(&all));
    }
    buf_clear(&caused);
    buf_done(&all);
}

/* Due now, with the key, priority and trace of the job that causes it; no option else. */
static void add_caused(struct model *m, const struct model_job *by, int q,
                       const struct model_chain *chain, struct bytes payload)
{
    /* Its id is made of the time in ms, not in us. */
    struct model_job *j = model_new_job(m, model_tick_at(m, 1000 * MODEL_MS(m)), q, payload);

    j->priority = by->priority;
    j->key = by->key;
    j->trace = by->trace;
    j->chain = *chain;
    memcpy(j->chain.parent, by->id, sizeof(by->id));
    model_enqueue_caused(m, j);
    batch_join(m, j);
    note_caused(j->id);
}

void model_follow(struct model *m, const struct model_job *j, const struct bytes *result)
{
    struct model_chain chain = MODEL_NO_CHAIN;

    if (j->chain.thens == 0 || batch_is_cancelled(m, j))
        return;
    chain.thens = j->chain.thens - 1;
    memcpy(chain.then, j->chain.then + 1, (size_t)chain.thens * sizeof(chain.then[0]));
    chain.on_dead = j->chain.on_dead;
    chain.batch = batch_inside(m, j);
    counts.followed++;
    counts.large += result == NULL && j->payload.n > MODEL_BIG;
    add_caused(m, j, j->chain.then[0], &chain, result != NULL ? *result : j->payload);
}

void model_reason(struct model_chain *chain, const char *text)
{
    char *line = model_line(text);

    (void)snprintf(chain->reason, sizeof(chain->reason), "%s", line);
    free(line);
}

void model_tell_death(struct model *m, const struct model_job *j, const char *why)
{
    struct model_chain chain = MODEL_NO_CHAIN;

    if (j->chain.on_dead < 0)
        return;
    model_reason(&chain, why);
    m->moved += (int64_t)j->payload.n;
    counts.told++;
    counts.large += j->payload.n > MODEL_BIG;
    counts.at_once += j->chain.parent[0] != '\0' && j->added_ms == MODEL_MS(m);
    add_caused(m, j, j->chain.on_dead, &chain, j->payload);
}

/* ---- children */

/* The same for the i-th child, if those before it are added. */
static const char *refused_child(struct model *m, const struct model_job *parent,
                                 const struct model_end *e, size_t i)
{
    const struct model_child *c = &e->child[i];
    const char *refusal = model_refusal(m, c->queue, &c->o, c->payload.n);
    bool is_repeated = c->o.token != NULL && model_has_token(m, c->o.token);

    if (refusal == NULL && c->o.token != NULL)
        refusal = model_token_refusal(m, c->o.token, c->queue, c->payload);
    for (size_t k = 0; refusal == NULL && c->o.token != NULL && k < i; k++) {
        const struct model_child *other = &e->child[k];
        bool is_same = other->o.token != NULL && strcmp(other->o.token, c->o.token) == 0;

        is_repeated |= is_same;
        if (is_same && model_is_other(c->queue, c->payload, other->queue, other->payload))
            refusal = "ELATER_TOKEN";
    }
    if (refusal == NULL && !is_repeated) {
        struct model_options o = c->o;

        o.inside = batch_inside(m, parent);
        refusal = batch_refusal(m, &o);
    }
    return refusal;
}

static void add_child(struct model *m, const struct model_job *parent, const struct model_child *c)
{
    struct model_options o = c->o;
    struct model_added added;

    memcpy(o.chain.parent, parent->id, sizeof(parent->id));
    o.inside = batch_inside(m, parent);
    if (model_add_at(m, 1000 * MODEL_MS(m), c->queue, &o, c->payload, &added) != NULL)
        abort();
    counts.children++;
    if (strcmp(added.word, "added") == 0)
        note_caused(added.id);
    counts.dropped += strcmp(added.word, "dropped") == 0;
    counts.rewrote += strcmp(added.word, "replaced") == 0 || strcmp(added.word, "moved") == 0;
    counts.large_children += c->payload.n > MODEL_BIG;
}

/* Like calls of their own: they know nothing of what the sync has room for, and each lets in
 * waiters itself. */
static void add_children(struct model *m, struct model_job *j, const struct model_end *e)
{
    struct model_gates *s = m->gates;
    int64_t room[MODEL_QUEUES], syncer = s->syncer;
    int called = s->called;

    memcpy(room, s->room, sizeof(room));
    memset(s->room, 0, sizeof(room));
    s->syncer = 0;
    j->state = JOB_GONE;
    unique_end(m, j);
    for (size_t i = 0; i < e->children; i++) {
        s->called = 0;
        add_child(m, j, &e->child[i]);
    }
    j->state = JOB_RUNNING;
    s->syncer = syncer;
    s->called = called;
    memcpy(s->room, room, sizeof(room));
}

/* Would this child be dropped, since its unique key is taken? */
static bool is_dropped(struct model *m, const struct model_child *c)
{
    const struct model_unique *u = c->o.unique != NULL ? unique_of(m, c->queue, c->o.unique) : NULL;
    const struct model_job *j = u != NULL ? model_find(m, u->id) : NULL;

    if (u == NULL)
        return false;
    return j != NULL && j->state <= JOB_RUNNING
               ? c->o.mode == NULL || strcmp(c->o.mode, "drop") == 0
               : u->end != MODEL_NONE;
}

/* Would this child be a job that waits? */
static bool reads_head(struct model *m, const struct model_child *c)
{
    bool is_repeated = c->o.token != NULL && model_has_token(m, c->o.token);

    return !is_repeated && !is_dropped(m, c);
}

size_t model_add_children(struct model *m, struct model_job *j, const struct model_end *e,
                          const char **refusal)
{
    for (size_t i = 0; i < e->children; i++) {
        m->moved += 2048 + (int64_t)e->child[i].payload.n;
        *refusal = refused_child(m, j, e, i);
        counts.refused += *refusal != NULL;
        if (*refusal != NULL)
            return i + 1;
        /* Also where a later one is refused. */
        m->queue[e->child[i].queue].is_head_read |= reads_head(m, &e->child[i]);
    }
    add_children(m, j, e);
    return 0;
}

/* ---- import */

/* Some jobs have to be alone in their call. Returns the code of a refusal, or NULL. */
static const char *refused_import(struct model *m, int q, size_t n, const struct model_import *row)
{
    const char *refusal = NULL;

    for (size_t i = 0; refusal == NULL && i < n; i++) {
        refusal = model_refusal(m, q, &row[i].o, row[i].payload.n);
        refusal = refusal == NULL ? batch_refusal(m, &row[i].o) : refusal;
    }
    for (size_t i = 0; refusal == NULL && n > 1 && i < n; i++)
        if (row[i].o.token != NULL || row[i].o.unique != NULL || row[i].dead != NULL)
            refusal = "ELATER_OPTION";
    return refusal;
}

/* A job that is dead already: it takes no unique key, and nobody is told of it. */
static void import_dead(struct model *m, int q, const struct model_import *row)
{
    struct model_job *j = model_insert(m, model_tick(m, 1, 0), q, &row->o, row->payload);
    int64_t died_ms = row->died_ms < MODEL_MS(m) ? row->died_ms : MODEL_MS(m);

    j->state = JOB_DEAD;
    j->score = died_ms;
    j->has_tries = true;
    j->starts = row->starts;
    j->attempts = row->attempts;
    j->crashes = row->crashes;
    j->tries_due = row->o.due;
    model_set(&j->error, model_outcome("dead", 65, died_ms, row->starts, row->dead, "out"));
    m->queue[q].is_known = true;
    model_reserve(m, &row->o.chain);
    batch_join(m, j);
    batch_end(m, j, MEMBER_DEAD);
}

static void import_many(struct model *m, int q, size_t n, const struct model_import *row)
{
    int64_t number = model_tick(m, (int64_t)n, 0);

    for (size_t i = 0; i < n; i++) {
        struct model_job *j = model_insert(m, number + (int64_t)i, q, &row[i].o, row[i].payload);

        model_reserve(m, &row[i].o.chain);
        model_enqueue(m, j, row[i].o.due);
        batch_join(m, j);
    }
}

void model_import(struct model *m, int q, size_t n, const struct model_import *row, struct buf *out)
{
    const char *refusal = refused_import(m, q, n, row);
    struct model_added added = {.word = "added"};

    if (refusal == NULL && n > 1)
        import_many(m, q, n, row);
    else if (refusal == NULL && row[0].dead != NULL)
        import_dead(m, q, &row[0]);
    else if (refusal == NULL)
        refusal = model_add_one(m, q, &row[0].o, row[0].payload, &added);
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    buf_puts(out, "[ ");
    out_int(out, (int64_t)n);
    out_text(out, added.word);
    buf_puts(out, "] ");
}
