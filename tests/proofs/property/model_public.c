/*
 * The public functions of the model: what producers and operators call.
 */
#include "model.h"

#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MS INT64_C(86400000)

static void reply_moved(struct buf *out, const char *id, const char *word, int64_t due)
{
    buf_puts(out, "[ ");
    out_text(out, id);
    out_text(out, word);
    out_int(out, due);
    buf_puts(out, "] ");
}

/* ---- add */

int64_t model_max_payload(const struct model *m, int q)
{
    int64_t max = m->queue[q].max_payload;

    if (max == MODEL_NONE)
        max = m->max_payload;
    return max == MODEL_NONE ? 1048576 : max;
}

/* Payloads up to 1 KiB pass without a check. */
static bool is_too_large(const struct model *m, int q, size_t n)
{
    return n > 1024 && (int64_t)n > model_max_payload(m, q);
}

static void dress(struct model_job *j, const struct model_options *o)
{
    j->priority = o->priority;
    j->a = o->a;
    j->t = o->t;
    j->x = o->x;
    j->k = o->k;
    j->key = o->key;
    j->trace = o->trace;
    j->unique = o->unique;
    j->unique_until = o->unique_for;
    j->chain = o->chain;
    model_set(&j->caused, NULL);
    for (int k = 0; k < MODEL_KINDS; k++) {
        char name[MODEL_NAME * 2] = "";

        if (o->gate[k] != NULL)
            (void)fill_key(name, o->gate[k], o->key);
        (void)snprintf(j->own[k], sizeof(j->own[k]), "%.47s", name);
    }
}

struct model_job *model_insert(struct model *m, int64_t number, int q,
                               const struct model_options *o, struct bytes payload)
{
    struct model_job *j = model_new_job(m, number, q, payload);

    dress(j, o);
    return j;
}

void model_reserve(struct model *m, const struct model_chain *chain)
{
    for (int i = 0; i < chain->thens; i++)
        m->queue[chain->then[i]].is_known = true;
    if (chain->on_dead >= 0)
        m->queue[chain->on_dead].is_known = true;
}

/* The first use of a token that has not expired, or NULL. */
struct model_token *model_token(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->tokens; i++)
        if (strcmp(m->token[i].name, name) == 0 && m->token[i].expire_ms >= MODEL_MS(m))
            return &m->token[i];
    return NULL;
}

void model_put_token(struct model *m, const struct model_options *o, const char *id, int64_t due,
                     int q, struct bytes payload)
{
    struct model_token *t = &m->token[m->tokens++];

    if (m->tokens > MODEL_TOKENS)
        abort();
    (void)snprintf(t->name, sizeof(t->name), "%s", o->token);
    (void)snprintf(t->id, sizeof(t->id), "%s", id);
    t->topic = o->chain.topic;
    t->due = due;
    t->expire_ms = MODEL_MS(m) + TOKEN_MS;
    t->queue = q;
    t->payload = payload;
}

/* Check the gates of an add: NULL, or the code of the refusal. */
static const char *refused_gates(struct model *m, int q, const struct model_options *o)
{
    for (int k = 0; k < MODEL_KINDS; k++) {
        const char *common = m->queue[q].gates[k];
        char filled[MODEL_NAME * 2];

        if (o->gate[k] != NULL) {
            if (!fill_key(filled, o->gate[k], o->key))
                return "ELATER_KEY";
            if (k != KIND_LOCK && limit_of(m, (enum gate_kind)k, filled) == NULL)
                return "ELATER_LIMIT";
        }
        if (!o->is_dead && common[0] != '\0' && !fill_key(filled, common, o->key))
            return "ELATER_KEY";
    }
    if (o->unique != NULL && o->chain.batch != NULL)
        return "ELATER_OPTION";
    if (o->unique == NULL && (o->mode != NULL || o->unique_for != MODEL_NONE))
        return "ELATER_OPTION";
    return NULL;
}

static void key_text(struct model *m, int q, const struct model_options *o, char *text)
{
    static const char *const kinds[MODEL_KINDS] = {"lock", "sem", "rate"};

    for (int k = 0; k < MODEL_KINDS; k++) {
        const char *own = o->gate[k], *common = m->queue[q].gates[k];

        if (own != NULL && strstr(own, "{key}") != NULL) {
            (void)snprintf(text, MODEL_REFUSAL, "%s '%s' has {key} in it: give the job a key",
                           kinds[k], own);
            return;
        }
        if (strstr(common, "{key}") != NULL) {
            (void)snprintf(text, MODEL_REFUSAL,
                           "%s '%s' of queue %s has {key} in it: give the job a key", kinds[k],
                           common, m->queue[q].name);
            return;
        }
    }
}

static void missing_limit_text(struct model *m, const struct model_options *o, char *text)
{
    static const char *const words[MODEL_KINDS] = {"", "semaphore", "rate"};

    for (int k = KIND_SEM; k < MODEL_KINDS; k++) {
        char filled[MODEL_NAME * 2];
        int other = k == KIND_SEM ? KIND_RATE : KIND_SEM;

        if (o->gate[k] == NULL || !fill_key(filled, o->gate[k], o->key) ||
            limit_of(m, (enum gate_kind)k, filled) != NULL)
            continue;
        if (limit_of(m, (enum gate_kind)other, filled) != NULL)
            (void)snprintf(text, MODEL_REFUSAL, "'%s' is a %s and no %s", filled, words[other],
                           words[k]);
        else
            (void)snprintf(text, MODEL_REFUSAL, "there is no %s '%s': later_limit_set defines it",
                           words[k], filled);
        return;
    }
}

void model_refusal_text(struct model *m, int q, const struct model_options *o, const char *code,
                        size_t bytes, char text[MODEL_REFUSAL])
{
    text[0] = '\0';
    if (strcmp(code, "ELATER_SIZE") == 0)
        (void)snprintf(text, MODEL_REFUSAL,
                       "the payload has %zu bytes, queue %s takes %lld (max_payload)", bytes,
                       m->queue[q].name, (long long)model_max_payload(m, q));
    else if (strcmp(code, "ELATER_KEY") == 0)
        key_text(m, q, o, text);
    else
        missing_limit_text(m, o, text);
}

const char *model_refusal(struct model *m, int q, const struct model_options *o, size_t bytes)
{
    if (o->refusal != NULL)
        return o->refusal;
    return !o->is_dead && is_too_large(m, q, bytes) ? "ELATER_SIZE" : refused_gates(m, q, o);
}

/* A waiting or parked job gets the options and payload of an add, and keeps its id. */
static void rewrite(struct model *m, struct model_job *j, const struct model_options *o,
                    struct bytes payload, int64_t due)
{
    if (j->state == JOB_PARKED)
        waiters_unpark(m, j, false);
    dress(j, o);
    j->payload = payload;
    if (j->has_tries) {
        j->tries_due = due;
        j->starts += j->starts > 0;
    }
    resume_drop(j);
    model_enqueue(m, j, due);
    waiters_hand_on(m);
}

/* An add with a unique key. True: it makes no new job. */
static bool add_unique(struct model *m, int q, const struct model_options *o, struct bytes payload,
                       const char **id, const char **word, int64_t *due, bool *is_successor)
{
    const struct model_unique *u = unique_of(m, q, o->unique);
    struct model_job *j = u != NULL ? model_find(m, u->id) : NULL;
    bool is_live = j != NULL && j->state <= JOB_RUNNING, is_move;

    bool is_drop = !is_live || o->mode == NULL || strcmp(o->mode, "drop") == 0;

    if (u == NULL || (!is_live && u->end == MODEL_NONE))
        return false;
    if (!is_drop && j->state == JOB_RUNNING) {
        unique_succeed(m, j);
        *is_successor = true;
        return false;
    }
    *id = u->id;
    *word = "dropped";
    *due = !is_live                  ? o->due
           : j->state == JOB_WAITING ? j->score
           : j->state == JOB_PARKED  ? j->spot.due
                                     : j->tries_due;
    if (is_drop)
        return true;
    is_move = strcmp(o->mode, "move") == 0;
    *word = is_move ? "moved" : "replaced";
    *due = is_move ? o->due : *due;
    rewrite(m, j, o, payload, *due);
    return true;
}

bool model_is_other(int q, struct bytes payload, int other_q, struct bytes other)
{
    return q != other_q || payload.n != other.n || memcmp(payload.p, other.p, payload.n) != 0;
}

bool model_has_token(struct model *m, const char *token)
{
    return model_token(m, token) != NULL;
}

const char *model_token_refusal(struct model *m, const char *token, int q, struct bytes payload)
{
    const struct model_token *was = model_token(m, token);

    return was != NULL && model_is_other(was->queue, was->payload, q, payload) ? "ELATER_TOKEN"
                                                                               : NULL;
}

/* An add with a token that was used before: what that add has done. Returns the code of a refusal,
 * or NULL. */
static const char *repeat(const struct model_token *was, int q, struct bytes payload,
                          struct model_added *added)
{
    if (model_is_other(was->queue, was->payload, q, payload))
        return "ELATER_TOKEN";
    *added = (struct model_added){"", "repeated", was->due};
    memcpy(added->id, was->id, sizeof(added->id));
    return NULL;
}

const char *model_add_at(struct model *m, int64_t at_us, int q, const struct model_options *o,
                         struct bytes payload, struct model_added *added)
{
    struct model_token *was = o->token != NULL ? model_token(m, o->token) : NULL;
    const char *id, *refusal = model_refusal(m, q, o, payload.n);
    struct model_job *j;
    bool is_successor = false;

    if (refusal != NULL)
        return refusal;
    if (was != NULL)
        return repeat(was, q, payload, added);
    refusal = batch_refusal(m, o);
    if (refusal != NULL)
        return refusal;
    *added = (struct model_added){"", "added", o->due};
    model_reserve(m, &o->chain);
    if (o->unique == NULL ||
        !add_unique(m, q, o, payload, &id, &added->word, &added->due, &is_successor)) {
        j = model_insert(m, model_tick_at(m, at_us), q, o, payload);
        j->is_successor = is_successor;
        unique_take(m, j);
        model_enqueue(m, j, o->due);
        batch_join(m, j);
        id = j->id;
    }
    (void)snprintf(added->id, sizeof(added->id), "%s", id);
    if (o->token != NULL)
        model_put_token(m, o, added->id, added->due, q, payload);
    return NULL;
}

const char *model_add_one(struct model *m, int q, const struct model_options *o,
                          struct bytes payload, struct model_added *added)
{
    return model_add_at(m, m->now_us, q, o, payload, added);
}

void model_add(struct model *m, int q, const struct model_options *o, struct bytes payload,
               struct buf *out)
{
    struct model_added added;
    const char *refusal = model_add_one(m, q, o, payload, &added);

    if (refusal != NULL)
        out_refusal(out, refusal);
    else
        reply_moved(out, added.id, added.word, added.due);
}

void model_add_many(struct model *m, int q, const struct model_options *o, size_t n,
                    const struct bytes *payloads, struct buf *out)
{
    const char *refusal = o->refusal == NULL && o->unique != NULL ? "ELATER_OPTION" : o->refusal;
    int64_t number;

    for (size_t i = 0; refusal == NULL && i < n; i++)
        if (is_too_large(m, q, payloads[i].n))
            refusal = "ELATER_SIZE";
    refusal = refusal == NULL ? refused_gates(m, q, o) : refusal;
    refusal = refusal == NULL ? batch_refusal(m, o) : refusal;
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    model_reserve(m, &o->chain);
    number = model_tick(m, (int64_t)n, 0);
    buf_puts(out, "[ ");
    for (size_t i = 0; i < n; i++) {
        struct model_job *j = model_insert(m, number + (int64_t)i, q, o, payloads[i]);

        model_enqueue(m, j, o->due);
        batch_join(m, j);
        reply_moved(out, j->id, "added", o->due);
    }
    buf_puts(out, "] ");
}

/* ---- one job */

const char *model_cancel_live(struct model *m, struct model_job *j, const char *why)
{
    int64_t now = MODEL_MS(m);

    if (j->state == JOB_RUNNING) {
        if (j->cancel_ms == MODEL_NONE)
            j->cancel_turn = ++m->turns;
        j->cancel_ms = now;
        model_wake(m, "!cancel");
        return "cancelling";
    }
    if (j->state == JOB_PARKED)
        waiters_unpark(m, j, false);
    model_end_cancelled(m, j, model_outcome("cancelled", 0, now, j->starts, why, ""));
    return "cancelled";
}

void model_cancel(struct model *m, const char *id, bool only_waiting, struct buf *out)
{
    struct model_job *j = model_find(m, id);

    if ((j == NULL || j->state > JOB_RUNNING) && model_free_key(m, id)) {
        out_text(out, "freed");
    } else if (j == NULL) {
        out_refusal(out, "ELATER_NOJOB");
    } else if (j->state > JOB_RUNNING || (j->state == JOB_RUNNING && only_waiting)) {
        out_refusal(out, "ELATER_STATE");
    } else {
        out_text(out, model_cancel_live(m, j, "cancelled while waiting"));
        waiters_hand_on(m);
    }
}

static void move(struct model *m, const char *id, int64_t due, struct buf *out)
{
    struct model_job *j = model_find(m, id);

    if (j == NULL || (j->state != JOB_WAITING && j->state != JOB_PARKED)) {
        out_refusal(out, j == NULL ? "ELATER_NOJOB" : "ELATER_STATE");
        return;
    }
    if (j->state == JOB_PARKED) {
        waiters_unpark(m, j, false);
        model_enqueue(m, j, due);
        waiters_hand_on(m);
        reply_moved(out, j->id, "moved", due);
        return;
    }
    model_enqueue(m, j, due);
    reply_moved(out, j->id, "moved", due);
}

void model_run_now(struct model *m, const char *id, struct buf *out)
{
    move(m, id, MODEL_MS(m), out);
}

void model_reschedule(struct model *m, const char *id, int64_t at, struct buf *out)
{
    move(m, id, at < MODEL_MS(m) ? MODEL_MS(m) : at, out);
}

void model_retry_at(struct model *m, struct model_job *j, int64_t due)
{
    unique_take(m, j);
    j->attempts = j->crashes = 0;
    j->has_tries = true;
    j->tries_due = due;
    model_enqueue(m, j, due);
    batch_revive(m, j);
}

void model_retry(struct model *m, const char *id, int64_t at, bool is_anew, struct buf *out)
{
    int64_t due = at < MODEL_MS(m) ? MODEL_MS(m) : at; /* MODEL_NONE is before everything */
    struct model_job *j = model_find(m, id);
    const struct model_unique *u;

    if (j == NULL || j->state != JOB_DEAD) {
        out_refusal(out, j == NULL ? "ELATER_NOJOB" : "ELATER_STATE");
        return;
    }
    u = j->unique != NULL ? unique_of(m, j->queue, j->unique) : NULL;
    if (u != NULL && strcmp(u->id, j->id) != 0) {
        out_refusal(out, "ELATER_UNIQUE");
        return;
    }
    if (is_anew)
        resume_drop(j);
    model_retry_at(m, j, due);
    reply_moved(out, j->id, "retried", due);
}

/* ---- show, result */

/* Unlike out_named_text: an empty outcome is shown. */
static void put_text(struct buf *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    out_text(out, name);
    out_text(out, text);
}

static void show_state(const struct model_job *j, struct buf *out)
{
    if (j->state == JOB_WAITING) {
        out_named_number(out, "due_ms", j->score);
    } else if (j->state == JOB_PARKED) {
        out_named_number(out, "due_ms", j->spot.due);
        put_text(out, "gate", j->spot.at > 0 ? j->spot.gate[j->spot.at - 1]->id : NULL);
    } else if (j->state == JOB_RUNNING) {
        out_named_number(out, "due_ms", j->tries_due);
        out_named_number(out, "worker", j->score);
        put_text(out, "progress", j->progress);
        out_named_number(out, "cancelling", j->cancel_ms);
    } else {
        out_named_number(out, j->state == JOB_DEAD ? "died_ms" : "until_ms", j->score);
    }
}

void model_show(struct model *m, const char *id, struct buf *out)
{
    static const char *const kinds[] = {"lock", "sem", "rate"};
    const struct model_job *j = model_find(m, id);

    if (j == NULL) {
        out_refusal(out, "ELATER_NOJOB");
        return;
    }
    buf_puts(out, "[ ");
    put_text(out, "id", j->id);
    put_text(out, "queue", m->queue[j->queue].name);
    put_text(out, "state", model_state_name(j->state));
    out_named_number(out, "priority", j->priority);
    out_named_number(out, "added_ms", j->added_ms);
    show_state(j, out);
    out_named_number(out, "attempt", j->attempts);
    out_named_number(out, "attempts_max", j->a);
    out_named_number(out, "starts", j->starts);
    out_named_number(out, "crashes", j->crashes);
    put_text(out, "key", j->key);
    out_named_number(out, "timeout_ms", j->t);
    out_named_number(out, "expire_ms", j->x);
    out_named_number(out, "keep_ms", j->k);
    put_text(out, "trace", j->trace);
    for (int k = 0; k < MODEL_KINDS; k++)
        put_text(out, kinds[k], j->own[k][0] != '\0' ? j->own[k] : NULL);
    put_text(out, "unique", j->unique);
    out_named_number(out, "unique_until_ms", j->unique_until);
    model_show_chain(m, j, out);
    put_text(out, "outcome", j->state == JOB_DONE ? j->result : j->error);
    resume_show(j, out);
    put_text(out, "failures", j->failures);
    out_named_number(out, "payload_bytes", (int64_t)j->payload.n);
    out_text(out, "payload");
    out_bytes(out, j->payload.p, j->payload.n);
    buf_puts(out, "] ");
}

static void empty_result(struct buf *out, const char *state)
{
    buf_puts(out, "[ ");
    out_text(out, state);
    for (int i = 0; i < 5; i++)
        out_text(out, "");
    buf_puts(out, "] ");
}

/* "<state> <code> <when> <start> <text>\n<output>" as six values; `state` replaces the first. */
static void reply_outcome(struct buf *out, const char *outcome, const char *state)
{
    buf_puts(out, "[ ");
    for (int i = 0; i < 5; i++) {
        const char *end = strchr(outcome, i < 4 ? ' ' : '\n');

        if (i == 0 && state != NULL)
            out_text(out, state);
        else
            out_bytes(out, outcome, (size_t)(end - outcome));
        outcome = end + 1;
    }
    out_text(out, outcome);
    buf_puts(out, "] ");
}

void model_result(struct model *m, const char *id, struct buf *out)
{
    const struct model_job *j = model_find(m, id);
    const char *outcome;

    if (j == NULL) {
        out_refusal(out, "ELATER_NOJOB");
        return;
    }
    outcome = j->state == JOB_DONE ? j->result : j->error;
    if (outcome == NULL || j->state == JOB_RUNNING)
        empty_result(out, model_state_name(j->state));
    else
        reply_outcome(out, outcome,
                      j->state == JOB_WAITING || j->state == JOB_PARKED ? "failed" : NULL);
}

void model_await(struct model *m, const char *id, struct buf *out)
{
    struct model_job *j = model_find(m, id);

    if (j == NULL) {
        out_refusal(out, "ELATER_NOJOB");
    } else if (j->state <= JOB_RUNNING) {
        j->await_ms = MODEL_MS(m) + 3600000;
        empty_result(out, model_state_name(j->state));
    } else {
        reply_outcome(out, j->state == JOB_DONE ? j->result : j->error, NULL);
    }
}

/* ---- pause, resume */

void model_pause(struct model *m, int q, const char *who, const char *reason, int64_t for_ms,
                 struct buf *out)
{
    struct model_queue *queue = &m->queue[q];

    if (for_ms == 0) {
        out_refusal(out, "ELATER_TIME");
        return;
    }
    queue->is_paused = queue->is_known = true;
    queue->until = for_ms == MODEL_NONE ? 0 : MODEL_MS(m) + for_ms;
    queue->since = MODEL_MS(m);
    (void)snprintf(queue->who, sizeof(queue->who), "%s", who == NULL || *who == '\0' ? "-" : who);
    for (char *c = queue->who; *c != '\0'; c++)
        *c = *c == ' ' ? '_' : *c;
    (void)snprintf(queue->reason, sizeof(queue->reason), "%s", reason == NULL ? "" : reason);
    out_text(out, "paused");
}

void model_resume(struct model *m, int q, int64_t at, struct buf *out)
{
    struct model_queue *queue = &m->queue[q];

    if (!queue->is_paused) {
        out_text(out, "not paused");
        return;
    }
    queue->is_paused = at != MODEL_NONE;
    if (at != MODEL_NONE)
        queue->until = at < MODEL_MS(m) ? MODEL_MS(m) : at;
    model_wake(m, queue->name);
    out_text(out, at != MODEL_NONE ? "resuming" : "resumed");
}

/* ---- stats */

/* When the first job that any worker may run is due; MODEL_NONE: there is none. */
static int64_t first_due(struct model *m, int q)
{
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    int64_t first = MODEL_NONE;
    size_t n = model_jobs(m, q, JOB_WAITING, -1, row), nraws = model_raws(m, q, raw);

    for (size_t i = 0; i < n; i++)
        if (row[i]->pin[0] == '\0' && (first == MODEL_NONE || row[i]->score < first))
            first = row[i]->score;
    for (size_t i = 0; i < nraws; i++) {
        int64_t due = model_due(raw[i]->score);

        if (first == MODEL_NONE || due < first)
            first = due;
    }
    return first;
}

void model_stats_of(struct model *m, int q, struct buf *out)
{
    const struct model_queue *queue = &m->queue[q];
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    char paused[256];

    out_text(out, queue->name);
    out_int(out, (int64_t)model_jobs(m, q, JOB_WAITING, -1, row) +
                     (int64_t)model_jobs(m, q, JOB_PARKED, -1, row));
    out_int(out, (int64_t)model_raws(m, q, raw));
    if (first_due(m, q) != MODEL_NONE)
        out_number(out, first_due(m, q));
    else
        out_text(out, "");
    (void)snprintf(paused, sizeof(paused), "%lld %lld %s %s", (long long)queue->until,
                   (long long)queue->since, queue->who, queue->reason);
    out_text(out, queue->is_paused ? paused : "");
    out_int(out, (int64_t)model_jobs(m, q, JOB_DEAD, -1, row));
    out_int(out, (int64_t)model_jobs(m, q, JOB_DONE, -1, row));
    out_number(out, queue->done);
    out_number(out, queue->dead);
    out_number(out, queue->cancelled);
}

/* How many of its jobs run, and how many are parked. */
static void states_of(struct model *m, int q, struct buf *out)
{
    struct model_job *row[MODEL_JOBS];

    out_int(out, (int64_t)model_jobs(m, q, JOB_RUNNING, -1, row));
    out_int(out, (int64_t)model_jobs(m, q, JOB_PARKED, -1, row));
}

static int64_t count_permits(const struct model *m, bool only_running)
{
    int64_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        n += only_running ? m->job[i].state == JOB_RUNNING : m->job[i].state != JOB_GONE;
    return n;
}

void model_stats(struct model *m, int q, struct buf *out)
{
    static const int sorted[MODEL_QUEUES] = {3, 2, 0, 1}; /* 0 Q-7_x mail sms */
    int64_t workers = 0;

    for (size_t i = 0; i < m->workers; i++)
        workers += m->worker[i].is_there;
    buf_puts(out, "[ ");
    out_int(out, MODEL_MS(m));
    out_int(out, workers);
    out_int(out, count_permits(m, true));
    out_int(out, count_permits(m, false));
    out_int(out, 0);
    buf_puts(out, "[ ");
    for (int i = 0; i < MODEL_QUEUES; i++)
        if (q == sorted[i] || (q < 0 && m->queue[sorted[i]].is_known))
            model_stats_of(m, sorted[i], out);
    buf_puts(out, "] [ ");
    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].is_there) {
            out_text(out, m->note[i].name);
            out_number(out, m->note[i].seen);
        }
    buf_puts(out, "] [ ");
    for (int i = 0; i < MODEL_QUEUES; i++)
        if (q == sorted[i] || (q < 0 && m->queue[sorted[i]].is_known))
            states_of(m, sorted[i], out);
    buf_puts(out, "] ] ");
}
