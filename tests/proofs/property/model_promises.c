/*
 * What Redis must hold about gates, and what must be true of them in every state.
 */
#include "model_gates.h"

#include "model_fair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 160
#define LIVES INT64_C(1000000000000000) /* gate.LIVES */

static void expires(struct rows *rows, const char *key, int64_t at)
{
    char full[KEY_MAX + 32];

    (void)snprintf(full, sizeof(full), MODEL_ROOT ":%s", key);
    rows_number(rows, "!expires", "key", full, at);
}

/* ---- one gate */

static void render_lock(const struct model_gate *g, struct rows *rows)
{
    if (!g->is_held)
        return;
    rows_text(rows, g->id, "hash", "holder", g->holder);
    rows_number(rows, g->id, "hash", "fence", g->fence);
    rows_number(rows, g->id, "hash", "depth", g->depth);
    rows_number(rows, g->id, "hash", "until", g->until);
    rows_number(rows, g->id, "hash", "since", g->since);
    if (g->has_token)
        rows_text(rows, g->id, "hash", "token", g->token);
    if (g->until > 0)
        expires(rows, g->id, g->until);
}

static void render_sem(const struct model_gate *g, struct rows *rows)
{
    for (size_t i = 0; i < g->permits; i++) {
        if (g->permit[i].until == NO_END)
            rows_number(rows, g->id, "zset", g->permit[i].who, LIVES + g->permit[i].since);
        else
            rows_number(rows, g->id, "zset", g->permit[i].who, g->permit[i].until);
    }
    if (g->permits > 0 && sem_ends(g) != NO_END)
        expires(rows, g->id, sem_ends(g));
}

static void render_rate(const struct model_gate *g, struct rows *rows)
{
    char key[KEY_MAX], text[64];

    (void)snprintf(key, sizeof(key), "rate:gcra:%s", g->name);
    if (g->has_tat) {
        (void)snprintf(text, sizeof(text), "%lld %.17g", (long long)g->tat_base, g->tat_behind);
        rows_text(rows, key, "string", NULL, text);
        expires(rows, key, g->tat_end);
    }
    (void)snprintf(key, sizeof(key), "rate:sliding:%s", g->name);
    for (size_t i = 0; i < g->logged; i++) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)g->log[i][1]);
        rows_number(rows, key, "zset", text, g->log[i][0]);
    }
    if (g->logged > 0)
        expires(rows, key, g->log_end);
    (void)snprintf(key, sizeof(key), "rate:granted:%s", g->name);
    for (size_t i = 0; i < g->permits; i++)
        rows_text(rows, key, "set", NULL, g->permit[i].who);
    (void)snprintf(key, sizeof(key), "rate:fixed:%s", g->name);
    (void)snprintf(text, sizeof(text), "%lld %lld", (long long)g->window, (long long)g->count);
    if (g->has_window) {
        rows_text(rows, key, "string", NULL, text);
        expires(rows, key, g->window_end);
    }
}

/* ---- waiters */

static bool waits_at(const struct model_job *j, const struct model_gate *g)
{
    return j->state == JOB_PARKED && j->spot.at > 0 && j->spot.gate[j->spot.at - 1] == g;
}

/* The first job of a queue that is parked at a gate. */
static const struct model_job *first_of(const struct model *m, int q, const struct model_gate *g)
{
    const struct model_job *first = NULL;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].queue == q && waits_at(&m->job[i], g) &&
            (first == NULL || m->job[i].spot.ticket < first->spot.ticket))
            first = &m->job[i];
    return first;
}

static void render_waiters(const struct model *m, const struct model_gate *g, struct rows *rows)
{
    char key[KEY_MAX];

    for (int q = 0; q < MODEL_QUEUES; q++) {
        const struct model_job *first = first_of(m, q, g);

        (void)snprintf(key, sizeof(key), "wait:%s", g->id);
        if (first != NULL && !g->is_aside[q])
            rows_number(rows, key, "zset", m->queue[q].name, first->spot.ticket);
        (void)snprintf(key, sizeof(key), "aside:%s", m->queue[q].name);
        if (g->is_aside[q])
            rows_text(rows, key, "set", NULL, g->id);
    }
}

static void render_parked(const struct model *m, const struct model_job *j, struct rows *rows)
{
    const struct model_spot *s = &j->spot;
    struct buf text = BUF_INIT;
    char key[KEY_MAX];

    if (j->holds != NULL)
        rows_text(rows, "holds", "hash", j->id, j->holds);
    if (j->state != JOB_PARKED)
        return;
    buf_printf(&text, "%lld %lld %lld %d", (long long)s->ticket, (long long)s->passed_over,
               (long long)s->due, s->at);
    for (int i = 0; i < s->n; i++)
        buf_printf(&text, "\n%s", s->gate[i]->id);
    rows_text(rows, "parked", "hash", j->id, buf_str(&text));
    buf_done(&text);
    if (s->at > 0) {
        (void)snprintf(key, sizeof(key), "line:%s:%s", m->queue[j->queue].name,
                       s->gate[s->at - 1]->id);
        rows_number(rows, key, "zset", j->id, s->ticket);
    } else {
        (void)snprintf(key, sizeof(key), "granted:%s", m->queue[j->queue].name);
        rows_number(rows, key, "zset", j->id, s->granted_ms);
    }
}

static void render_outsider(const struct model_outsider *o, struct rows *rows)
{
    char name[KEY_MAX], text[64];

    (void)snprintf(name, sizeof(name), "%s\n%s", o->who, o->gate->id);
    (void)snprintf(text, sizeof(text), "%lld %lld", (long long)o->ticket, (long long)o->until);
    rows_text(rows, "parked", "hash", name, text);
    (void)snprintf(name, sizeof(name), "wait:%s", o->gate->id);
    rows_number(rows, name, "zset", o->who, o->ticket);
}

/* ---- definitions */

void limit_text(const struct model_limit *l, struct buf *out)
{
    static const char *const names[] = {"gcra", "sliding", "fixed"};

    if (l->is_sem)
        buf_printf(out, "semaphore %lld %s", (long long)l->n, l->kills ? "kill" : "keep");
    else
        buf_printf(out, "rate %s %lld %lld %lld", names[l->algorithm], (long long)l->n,
                   (long long)l->per_ms, (long long)l->burst);
}

static void render_limits(const struct model_gates *s, struct rows *rows)
{
    struct buf text = BUF_INIT;

    for (size_t i = 0; i < s->limits; i++) {
        buf_clear(&text);
        limit_text(&s->limit[i], &text);
        rows_text(rows, "limits", "hash", s->limit[i].name, buf_str(&text));
        rows_index(rows, s->limit[i].is_sem ? "sem" : "rate", s->limit[i].name);
    }
    buf_clear(&text);
    for (size_t i = 0; i < s->templates; i++)
        buf_printf(&text, "%s%s", i > 0 ? "\n" : "", s->template[i]);
    if (s->templates > 0)
        rows_text(rows, "limits", "hash", "{}", buf_str(&text));
    buf_done(&text);
}

static void render_queues(const struct model *m, struct rows *rows)
{
    static const char *const kinds[] = {"lock", "sem", "rate"};

    for (int q = 0; q < MODEL_QUEUES; q++) {
        struct buf text = BUF_INIT;

        buf_puts(&text, fair_words(m, q));
        for (int k = 0; k < MODEL_KINDS; k++)
            if (m->queue[q].gates[k][0] != '\0')
                buf_printf(&text, "%s%s=%s", text.len > 0 ? " " : "", kinds[k],
                           m->queue[q].gates[k]);
        if (text.len > 0)
            rows_text(rows, "queues", "hash", m->queue[q].name, buf_str(&text));
        buf_done(&text);
    }
}

static void render_unique(const struct model *m, const struct model_unique *u, struct rows *rows)
{
    char key[KEY_MAX];

    if (!u->is_there)
        return;
    (void)snprintf(key, sizeof(key), "uniq:%s:%s", m->queue[u->queue].name, u->key);
    rows_text(rows, key, "string", NULL, u->id);
    if (u->end != MODEL_NONE)
        expires(rows, key, u->end);
}

void gates_render(struct model *m, struct rows *rows)
{
    const struct model_gates *s = m->gates;

    for (size_t i = 0; i < s->n; i++) {
        if (s->gate[i].kind == KIND_LOCK)
            render_lock(&s->gate[i], rows);
        else if (s->gate[i].kind == KIND_SEM)
            render_sem(&s->gate[i], rows);
        else
            render_rate(&s->gate[i], rows);
        render_waiters(m, &s->gate[i], rows);
    }
    for (size_t i = 0; i < m->jobs; i++)
        render_parked(m, &m->job[i], rows);
    for (size_t i = 0; i < OUTSIDERS_MAX; i++)
        if (s->outsider[i].is_there)
            render_outsider(&s->outsider[i], rows);
    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (s->timer[i].is_there)
            rows_number(rows, "timers", "zset", s->timer[i].what, s->timer[i].at);
    for (size_t i = 0; i < UNIQUES_MAX; i++)
        render_unique(m, &s->unique[i], rows);
    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];
        char key[64];

        (void)snprintf(key, sizeof(key), "worker:%lld", (long long)w->epoch);
        if (w->is_there && w->gate[0] != '\0')
            rows_text(rows, key, "hash", "gate", w->gate);
    }
    render_limits(s, rows);
    render_queues(m, rows);
}

/* ---- promises */

/* A legal holder: a job that runs, was granted or reserves; a worker; or a caller with a lease. */
static const char *broken_holder(struct model *m, const struct model_gate *g, const char *who,
                                 int64_t until)
{
    const struct model_worker *w;
    const struct model_job *j;

    if (who[0] == '=')
        return until == 0 || until == NO_END ? "I7: a caller holds without a lease" : NULL;
    if (who[0] == '@') {
        w = model_worker(m, strtoll(who + 1, NULL, 10));
        return w == NULL || strcmp(w->gate, g->id) != 0 ? "I7: a worker holds that is not there"
                                                        : NULL;
    }
    j = model_find(m, who);
    if (j == NULL || j->state == JOB_DEAD || j->state == JOB_DONE)
        return "NoHolderForTerminal: a job holds that has ended";
    if (j->state == JOB_WAITING)
        return "I7: a job holds that waits for its time";
    if (j->state == JOB_PARKED && j->spot.at > 0 && j->spot.passed_over < MODEL_PASSED_OVER_MAX)
        return "no hold and wait: a job holds and waits";
    return j->holds == NULL || strstr(j->holds, g->id) == NULL
               ? "a job holds what R:holds does not say"
               : NULL;
}

static const char *broken_lock(struct model *m, struct model_gate *g)
{
    if (lock_is_over(m, g))
        return NULL;
    if (strcmp(g->holder, g->last_holder) != 0 || g->fence != g->last_fence) {
        if (g->fence <= g->last_fence)
            return "LockToken: a fence that does not rise";
        g->last_fence = g->fence;
        memcpy(g->last_holder, g->holder, sizeof(g->holder));
    }
    return broken_holder(m, g, g->holder, g->until);
}

static const char *broken_sem(struct model *m, struct model_gate *g)
{
    const struct model_limit *l = limit_of(m, KIND_SEM, g->name);
    size_t n = 0;

    for (size_t i = 0; i < g->permits; i++) {
        const char *what = NULL;

        if (g->permit[i].until <= MODEL_MS(m))
            continue;
        n++;
        what = broken_holder(m, g, g->permit[i].who, g->permit[i].until);
        if (what != NULL)
            return what;
    }
    if (n > g->last_permits && (l == NULL || (int64_t)n > l->n))
        return "I7: more holders of a semaphore than its limit";
    g->last_permits = n;
    return NULL;
}

/* If a gate with waiters has a free permit, its timer must be due. Timers are in ms, and never
 * early. */
static const char *broken_waiters(struct model *m, struct model_gate *g)
{
    static struct model_gate copy;
    char what[MODEL_GATE_ID + 8];
    struct model_outsider *o;
    struct model_job *j;
    int64_t opens;

    if (!waiters_first(m, g, &j, &o) ||
        (g->kind != KIND_LOCK && limit_of(m, g->kind, g->name) == NULL))
        return NULL;
    /* On a copy: gate_permits forgets what is over, but no call did. */
    copy = *g;
    copy.name = copy.id + (g->name - g->id);
    if (gate_permits(m, &copy, &opens) <= 0)
        return NULL;
    (void)snprintf(what, sizeof(what), "gate:%s", g->id);
    for (size_t i = 0; i < TIMERS_MAX; i++) {
        const struct model_timer *t = &m->gates->timer[i];

        /* A clock that was set back puts the timer off; the next tidy checks the gate. */
        if (t->is_there && strcmp(t->what, what) == 0 &&
            (t->at <= MODEL_MS(m) + 1 || m->gates->was_set_back))
            return NULL;
    }
    return "a lost hand-over: a gate has a permit, and its waiters are offered none";
}

static const char *broken_gate(struct model *m, struct model_gate *g)
{
    const char *what = g->kind == KIND_LOCK  ? broken_lock(m, g)
                       : g->kind == KIND_SEM ? broken_sem(m, g)
                                             : NULL;

    return what != NULL ? what : broken_waiters(m, g);
}

static const char *broken_job(struct model *m, const struct model_job *j)
{
    const struct model_unique *u;

    if ((j->state == JOB_GONE || j->state == JOB_DEAD || j->state == JOB_DONE ||
         j->state == JOB_WAITING) &&
        j->holds != NULL)
        return "NoHolderForTerminal: R:holds names a job that has ended or waits";
    if (j->state == JOB_PARKED && j->spot.at == 0 && !model_is_solo(j) &&
        !m->queue[j->queue].has_head)
        return "a granted job whose queue has no head";
    if (j->state == JOB_PARKED && j->spot.at > 0 && j->holds != NULL &&
        j->spot.gate[j->spot.at - 1]->is_aside[j->queue])
        return "a job reserves whose queue stands aside";
    if (j->state == JOB_PARKED && j->spot.passed_over > MODEL_PASSED_OVER_MAX + 1 + j->spot.n)
        return "overtaking is not bounded";
    if (j->state == JOB_RUNNING && (model_is_followed(j) || j->chain.batch != NULL) !=
                                       (j->holds != NULL && (strncmp(j->holds, "then", 4) == 0 ||
                                                             strncmp(j->holds, "batch ", 6) == 0)))
        return "R:holds does not say whether a running job is followed";
    if (j->unique == NULL || j->state == JOB_GONE)
        return NULL;
    u = unique_of(m, j->queue, j->unique);
    if ((j->state == JOB_DEAD || j->state == JOB_DONE) && u != NULL && strcmp(u->id, j->id) == 0 &&
        u->end == MODEL_NONE)
        return "NoHolderForTerminal: a job has ended and has its unique key";
    return NULL;
}

const char *gates_broken(struct model *m)
{
    const char *what = m->gates->broken;

    for (size_t i = 0; what == NULL && i < m->gates->n; i++)
        what = broken_gate(m, &m->gates->gate[i]);
    for (size_t i = 0; what == NULL && i < m->jobs; i++)
        what = broken_job(m, &m->job[i]);
    /* A key that nobody can free any more. */
    for (size_t i = 0; what == NULL && i < UNIQUES_MAX; i++) {
        const struct model_unique *u = &m->gates->unique[i];

        if (u->is_there && u->end == MODEL_NONE && model_find(m, u->id) == NULL)
            what = "NoHolderForTerminal: a unique key of a job that is gone";
    }
    return what;
}
