/*
 * What callers do with the gates of the model: locks and semaphores with leases, rates, limits.
 * Also the workers that are programs under a lock.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- leases */

static struct model_holder *lease_of(const struct model *m, struct model_gate *g, const char *who)
{
    for (size_t i = 0; i < g->permits; i++)
        if (strcmp(g->permit[i].who, who) == 0 && g->permit[i].until > MODEL_MS(m))
            return &g->permit[i];
    return NULL;
}

static bool has_lease(const struct model *m, struct model_gate *g, const char *who)
{
    if (g->kind == KIND_LOCK)
        return !lock_is_over(m, g) && strcmp(g->holder, who) == 0;
    return lease_of(m, g, who) != NULL;
}

/* A lease never becomes shorter. */
static int64_t prolong(const struct model *m, struct model_gate *g, const char *who, int64_t *until,
                       bool deeper)
{
    if (g->kind == KIND_SEM) {
        struct model_holder *h = lease_of(m, g, who);

        if (*until == NO_END && h->until != NO_END)
            h->since = MODEL_MS(m);
        *until = h->until > *until ? h->until : *until;
        h->until = *until;
        return 0;
    }
    *until = g->until > *until ? g->until : *until;
    g->until = *until == NO_END ? 0 : *until;
    g->depth += deeper;
    return g->fence;
}

static void reply(struct buf *out, bool is_granted, int64_t fence, int64_t until, int64_t before,
                  const char *holder)
{
    buf_puts(out, "[ ");
    out_int(out, is_granted);
    out_int(out, fence);
    out_int(out, until);
    out_int(out, before);
    out_text(out, holder);
    buf_puts(out, "] ");
}

static int64_t join(struct model *m, struct model_gate *g, const char *who, int64_t until)
{
    struct model_outsider *o = outsider_of(m, g, who);

    for (size_t i = 0; o == NULL; i++) {
        if (i == OUTSIDERS_MAX)
            abort();
        if (m->gates->outsider[i].is_there)
            continue;
        o = &m->gates->outsider[i];
        o->is_there = true;
        o->gate = g;
        o->ticket = model_tick(m, 1, 0);
        (void)snprintf(o->who, sizeof(o->who), "%s", who);
    }
    o->until = until;
    waiters_disarm(m, "wait", outsider_name(o));
    if (until > 0)
        waiters_arm(m, "wait", outsider_name(o), until + 1);
    waiters_arm_gate(m, g);
    return waiters_before(m, g, o->ticket);
}

static bool has_waiters(struct model *m, const struct model_gate *g)
{
    struct model_outsider *o;
    struct model_job *j;

    return waiters_first(m, g, &j, &o);
}

/* ttl: NO_END for a worker; wait: MODEL_NONE: do not wait. */
static bool enter(struct model *m, struct model_gate *g, const char *who, int64_t ttl, int64_t wait,
                  struct buf *out)
{
    int64_t until = ttl == NO_END ? NO_END : MODEL_MS(m) + ttl, before = 0, fence, opens;
    const char *mine = g->kind == KIND_LOCK ? who : "";
    bool has_handed_on = !has_lease(m, g, who) && has_waiters(m, g);

    if (has_handed_on) {
        gate_touch(m, g);
        waiters_hand_on(m);
    }
    if (has_lease(m, g, who)) {
        fence = prolong(m, g, who, &until, true);
        reply(out, true, fence, until == NO_END ? 0 : until, 0, mine);
        return true;
    }
    if (!has_waiters(m, g) && gate_permits(m, g, &opens) > 0) {
        fence = g->kind == KIND_LOCK ? model_tick(m, 1, 0) : 0;
        gate_take(m, g, who, fence, until, false);
        reply(out, true, fence, until == NO_END ? 0 : until, 0, mine);
        return true;
    }
    if (wait != MODEL_NONE) {
        before = join(m, g, who, ttl == NO_END ? 0 : MODEL_MS(m) + wait);
        gate_touch(m, g);
        if (has_handed_on)
            waiters_hand_on_last(m);
        else
            waiters_hand_on(m);
        if (has_lease(m, g, who)) {
            return enter(m, g, who, ttl, MODEL_NONE, out);
        }
    }
    reply(out, false, 0, 0, before, g->kind == KIND_LOCK && !lock_is_over(m, g) ? g->holder : "");
    return false;
}

void model_lock(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                int64_t ttl, int64_t wait, struct buf *out)
{
    struct model_gate *g = gate_named(m, kind, name);
    char who[32];

    if (kind == KIND_SEM && limit_of(m, kind, name) == NULL) {
        out_refusal(out, "ELATER_LIMIT");
        return;
    }
    (void)snprintf(who, sizeof(who), "=%s", owner);
    (void)enter(m, g, who, ttl == MODEL_NONE ? 30000 : ttl, wait, out);
}

void model_unlock(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                  const char *token, struct buf *out)
{
    struct model_gate *g = gate_named(m, kind, name);
    bool is_again;
    char who[32];

    (void)snprintf(who, sizeof(who), "=%s", owner);
    outsider_leave(m, g, who);
    if (!has_lease(m, g, who)) {
        m->gates->touched = 0;
        out_text(out, "not-held");
        return;
    }
    is_again = token != NULL && g->has_token && strcmp(g->token, token) == 0;
    if (kind == KIND_LOCK && (g->depth > 1 || is_again)) {
        if (!is_again) {
            g->depth--;
            g->has_token = true;
            (void)snprintf(g->token, sizeof(g->token), "%s", token != NULL ? token : "");
        }
        m->gates->touched = 0;
        out_text(out, "kept");
        return;
    }
    (void)gate_drop(m, g, who);
    waiters_hand_on(m);
    out_text(out, "released");
}

void model_renew(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                 int64_t ttl, struct buf *out)
{
    struct model_gate *g = gate_named(m, kind, name);
    int64_t until = MODEL_MS(m) + (ttl == MODEL_NONE ? 30000 : ttl);
    char who[32];

    (void)snprintf(who, sizeof(who), "=%s", owner);
    if (!has_lease(m, g, who) || (g->kind == KIND_LOCK && g->depth == 0)) {
        out_refusal(out, "ELATER_LOST");
        return;
    }
    buf_puts(out, "[ ");
    out_int(out, prolong(m, g, who, &until, false));
    out_int(out, until);
    buf_puts(out, "] ");
}

void model_fence_check(struct model *m, const char *name, int64_t fence, struct buf *out)
{
    const struct model_gate *g = gate_named(m, KIND_LOCK, name);

    out_int(out, !lock_is_over(m, g) && g->depth > 0 && g->fence == fence);
}

/* ---- rates */

/* ms until n starts can pass; -1: never. */
static int64_t retry_after(struct model *m, struct model_gate *g, const struct model_limit *l,
                           int64_t n)
{
    int64_t opens = rate_opens(m, g, l, n + (int64_t)g->permits);

    opens = opens != MODEL_NONE ? opens : rate_opens(m, g, l, n);
    if (opens == MODEL_NONE)
        return -1;
    return opens - MODEL_MS(m) < 1 ? 1 : opens - MODEL_MS(m);
}

void model_throttle(struct model *m, const char *name, int64_t n, struct buf *out)
{
    struct model_gate *g = gate_named(m, KIND_RATE, name);
    const struct model_limit *l = limit_of(m, KIND_RATE, name);
    int64_t reset_us, opens, left, retry = -1;
    bool is_limited;

    if (l == NULL) {
        out_refusal(out, "ELATER_LIMIT");
        return;
    }
    is_limited = has_waiters(m, g) || gate_permits(m, g, &opens) < n;
    if (is_limited)
        retry = retry_after(m, g, l, n);
    else
        rate_take(m, g, l, n);
    left = rate_seen(m, g, l, &reset_us) - (int64_t)g->permits;
    buf_puts(out, "[ ");
    out_int(out, is_limited);
    out_int(out, l->algorithm == RATE_GCRA ? l->burst : l->n);
    out_int(out, left > 0 ? left : 0);
    out_int(out, retry);
    out_int(out, (reset_us + 999) / 1000);
    buf_puts(out, "] ");
}

/* ---- limits */

static void list_template(struct model *m, const char *name, bool is_in)
{
    struct model_gates *s = m->gates;
    size_t n = 0;

    if (strstr(name, "{key}") == NULL)
        return;
    for (size_t i = 0; i < s->templates; i++)
        if (strcmp(s->template[i], name) != 0)
            memmove(s->template[n++], s -> template[i], MODEL_NAME);
    if (is_in)
        (void)snprintf(s->template[n++], MODEL_NAME, "%s", name);
    s->templates = n;
}

/* The limit of a name changed: its earlier starts were counted by another rule. */
static void changed(struct model *m, const char *name)
{
    bool is_template = strstr(name, "{key}") != NULL;

    for (size_t i = 0; i < m->gates->n; i++) {
        struct model_gate *g = &m->gates->gate[i];

        if (!is_template && strcmp(g->name, name) != 0)
            continue;
        g->starts = 0;
        for (size_t k = 0; g->kind == KIND_RATE && k < g->permits; k++)
            g->permit[k].is_earlier = true;
    }
}

void model_limit_set(struct model *m, const struct model_limit *l, bool if_missing, struct buf *out)
{
    struct model_gates *s = m->gates;
    size_t i = 0;

    while (i < s->limits && strcmp(s->limit[i].name, l->name) != 0)
        i++;
    if (i < s->limits && if_missing) {
        out_text(out, "kept");
        return;
    }
    if (i == LIMITS_MAX)
        abort();
    s->limits += i == s->limits;
    s->limit[i] = *l;
    list_template(m, l->name, true);
    changed(m, l->name);
    waiters_limit_changed(m, l->is_sem, l->name);
    out_text(out, "set");
}

void model_limit_del(struct model *m, const char *name, struct buf *out)
{
    struct model_gates *s = m->gates;
    bool is_sem;
    size_t i = 0;

    while (i < s->limits && strcmp(s->limit[i].name, name) != 0)
        i++;
    out_int(out, i < s->limits);
    if (i == s->limits)
        return;
    is_sem = s->limit[i].is_sem;
    list_template(m, name, false);
    memmove(&s->limit[i], &s->limit[i + 1], (s->limits - i - 1) * sizeof(s->limit[0]));
    s->limits--;
    changed(m, name);
    waiters_limit_changed(m, is_sem, name);
}

static void put_limit(const struct model_limit *l, struct buf *out)
{
    struct buf text = BUF_INIT;

    limit_text(l, &text);
    out_text(out, l->name);
    out_text(out, buf_str(&text));
    buf_done(&text);
}

void model_limits(struct model *m, struct buf *out)
{
    buf_puts(out, "[ ");
    for (size_t i = 0; i < m->gates->limits; i++)
        put_limit(&m->gates->limit[i], out);
    buf_puts(out, "] ");
}

/* ---- workers that are programs under a lock */

void model_enter(struct model *m, int64_t epoch, enum gate_kind kind, const char *name, bool waits,
                 struct buf *out)
{
    struct model_gate *g = gate_named(m, kind, name);
    struct model_worker *w = model_worker(m, epoch);
    char who[32];

    if (w == NULL || w->is_dead) {
        buf_puts(out, "[ ");
        out_text(out, model_status(m, epoch));
        buf_puts(out, "] ");
        return;
    }
    if (w->gate[0] != '\0' && strcmp(w->gate, g->id) != 0) {
        out_refusal(out, "ELATER_ARGS");
        return;
    }
    (void)snprintf(who, sizeof(who), "@%lld", (long long)epoch);
    /* A holder keeps its permit. */
    if (kind == KIND_SEM && !has_lease(m, g, who) && limit_of(m, kind, name) == NULL) {
        out_refusal(out, "ELATER_LIMIT");
        return;
    }
    if (enter(m, g, who, NO_END, waits ? 0 : MODEL_NONE, out) || waits)
        (void)snprintf(w->gate, sizeof(w->gate), "%s", g->id);
}

void model_exit(struct model *m, int64_t epoch, struct buf *out)
{
    struct model_worker *w = model_worker(m, epoch);
    bool held = worker_leave_gate(m, w);

    if (w != NULL)
        w->gate[0] = '\0';
    waiters_hand_on(m);
    out_text(out, held ? "released" : "not-held");
}
