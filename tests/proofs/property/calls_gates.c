/*
 * Random calls about gates and unique jobs.
 */
#include "maker.h"

#include <stdio.h>
#include <string.h>

#include "model_fair.h"
#include "model_gates.h"

static const char *const LOCKS[] = {"l1", "l1", "l1", "l1", "l2", "user:{key}"};
static const char *const SEMS[] = {"s1", "s1", "s1", "s1", "s2", "t:{key}"};
static const char *const RATES[] = {"r1", "r1", "r1", "r1", "r2", "q:{key}"};
static const char *const OWNERS[] = {"ann", "bob", "cid"};

static const char *template_of_kind(struct maker *k, int kind)
{
    return kind == KIND_LOCK ? PICK(k, LOCKS) : kind == KIND_SEM ? PICK(k, SEMS) : PICK(k, RATES);
}

/* A name without {key}. */
static const char *name_of_kind(struct maker *k, int kind)
{
    static const char *const locks[] = {"l1", "l1", "l2", "user:a"};
    static const char *const sems[] = {"s1", "s1", "s2", "t:a"};
    static const char *const rates[] = {"r1", "r1", "r2", "q:a"};

    return kind == KIND_LOCK ? PICK(k, locks) : kind == KIND_SEM ? PICK(k, sems) : PICK(k, rates);
}

void gate_options(struct maker *k, struct model_options *o, bool with_unique)
{
    static const char *const names[] = {"lock", "sem", "rate"};
    static const char *const modes[] = {"drop", "replace", "move"};
    static const char *const keys[] = {"u1", "u1", "u2", "u:3"};
    int share = k->m->is_gated ? 25 : k->m->is_chained ? 10 : 2;

    for (int i = 0; i < MODEL_KINDS; i++)
        if (percent(k, k->m->is_gated && i != KIND_RATE ? (k->m->is_crowded ? 60 : 45) : share)) {
            name(k, names[i]);
            arg(k, o->gate[i] = template_of_kind(k, i));
        }
    if (percent(k, !with_unique ? 1 : k->m->is_crowded ? 5 : k->m->is_chained ? 45 : share)) {
        name(k, "unique");
        arg(k, o->unique = k->m->is_chained && percent(k, 70) ? "u1" : PICK(k, keys));
    }
    if (percent(k, o->unique != NULL ? 70 : 1)) {
        name(k, "unique_mode");
        arg(k, o->mode = PICK(k, modes));
    }
    if (percent(k, o->unique != NULL ? 30 : 1)) {
        name(k, "unique_for");
        o->unique_for = 1 + any(k, 20000);
        number(k, o->unique_for);
        buf_puts(&k->args->arg[k->args->n - 1], "ms");
        o->unique_for += MODEL_MS(k->m);
    }
}

/* ---- locks and semaphores */

static int64_t ms_arg(struct maker *k, const char *option, int64_t least, int64_t most)
{
    int64_t n = least + any(k, most);

    name(k, option);
    number(k, n);
    buf_puts(&k->args->arg[k->args->n - 1], "ms");
    return n;
}

void make_lock(struct maker *k)
{
    enum gate_kind kind = percent(k, 50) ? KIND_LOCK : KIND_SEM;
    const char *what = name_of_kind(k, (int)kind), *owner = PICK(k, OWNERS);
    int64_t ttl = MODEL_NONE, wait = MODEL_NONE;

    begin(k, kind == KIND_LOCK ? "later_lock" : "later_sem_acquire");
    arg(k, what);
    arg(k, owner);
    if (percent(k, 70))
        ttl = ms_arg(k, "ttl", 1, 20000);
    if (percent(k, 60))
        wait = ms_arg(k, "wait", 0, 20000);
    model_lock(k->m, kind, what, owner, ttl, wait, k->want);
}

/* Mostly a gate with an owner that holds it or waits for it. */
static const struct model_gate *pick_held(struct maker *k, const char **owner)
{
    for (int i = 0; i < 20 && k->m->gates->n > 0; i++) {
        const struct model_gate *g = &k->m->gates->gate[below(k, (int)k->m->gates->n)];

        for (size_t n = 0; g->kind != KIND_RATE && n < COUNT(OWNERS); n++) {
            char who[32];

            (void)snprintf(who, sizeof(who), "=%s", OWNERS[n]);
            if ((g->is_held && strcmp(g->holder, who) == 0) || outsider_of(k->m, g, who) != NULL ||
                (g->kind == KIND_SEM && g->permits > 0 && strcmp(g->permit[0].who, who) == 0)) {
                *owner = OWNERS[n];
                return g;
            }
        }
    }
    return NULL;
}

static enum gate_kind pick_lease(struct maker *k, const char **what, const char **owner)
{
    const struct model_gate *g = percent(k, 80) ? pick_held(k, owner) : NULL;
    enum gate_kind kind = percent(k, 50) ? KIND_LOCK : KIND_SEM;

    if (g != NULL) {
        *what = g->name;
        return g->kind;
    }
    *what = name_of_kind(k, (int)kind);
    *owner = PICK(k, OWNERS);
    return kind;
}

void make_unlock(struct maker *k)
{
    static const char *const tokens[] = {"T1", "T2", ""};
    const char *what, *owner, *token = NULL;
    enum gate_kind kind = pick_lease(k, &what, &owner);

    begin(k, kind == KIND_LOCK ? "later_unlock" : "later_sem_release");
    arg(k, what);
    arg(k, owner);
    if (percent(k, 30)) {
        name(k, "token");
        arg(k, token = PICK(k, tokens));
    }
    model_unlock(k->m, kind, what, owner, token, k->want);
}

void make_renew(struct maker *k)
{
    const char *what, *owner;
    enum gate_kind kind = pick_lease(k, &what, &owner);
    int64_t ttl = MODEL_NONE;

    begin(k, "later_renew");
    arg(k, what);
    arg(k, owner);
    if (percent(k, 70))
        ttl = ms_arg(k, "ttl", 1, 20000);
    if (kind == KIND_SEM || percent(k, 30)) {
        name(k, "kind");
        arg(k, kind == KIND_SEM ? "sem" : "lock");
    }
    model_renew(k->m, kind, what, owner, ttl, k->want);
}

void make_fence_check(struct maker *k)
{
    const char *what = name_of_kind(k, KIND_LOCK);
    const struct model_gate *g = gate_named(k->m, KIND_LOCK, what);
    int64_t fence = g->fence + (percent(k, 20) ? 1 : 0);

    begin(k, "later_fence_check");
    arg(k, what);
    number(k, fence);
    model_fence_check(k->m, what, fence, k->want);
}

/* ---- rates, limits */

void make_throttle(struct maker *k)
{
    const char *what = name_of_kind(k, KIND_RATE);
    int64_t n = 1;

    begin(k, "later_throttle");
    arg(k, what);
    if (percent(k, 40)) {
        name(k, "quota");
        number(k, n = 1 + below(k, 4));
    }
    model_throttle(k->m, what, n, k->want);
}

static void rate_args(struct maker *k, struct model_limit *l)
{
    static const char *const algorithms[] = {"gcra", "sliding", "fixed", "funnel"};
    static const int64_t pers[] = {1, 300, 1000, 1000, 3000, 60000};
    char text[40];
    int a = below(k, 4);

    l->n = percent(k, 5) ? 0 : 1 + below(k, 4);
    l->per_ms = PICK(k, pers);
    l->burst = 1;
    l->algorithm = a == 3 ? RATE_GCRA : (enum algorithm)a;
    (void)snprintf(text, sizeof(text), "%lld/%lldms", (long long)l->n, (long long)l->per_ms);
    name(k, "rate");
    arg(k, text);
    if (a != 0 || percent(k, 30)) {
        name(k, "algorithm");
        arg(k, algorithms[a]);
    }
    if (l->algorithm == RATE_GCRA && percent(k, 60)) {
        name(k, "burst");
        number(k, l->burst = 1 + below(k, 4));
    }
}

void make_limit_set(struct maker *k)
{
    struct model_limit l = {.is_sem = percent(k, 50)};
    bool if_missing = false;

    begin(k, "later_limit_set");
    (void)snprintf(l.name, sizeof(l.name), "%s",
                   template_of_kind(k, l.is_sem ? KIND_SEM : KIND_RATE));
    /* Sometimes a limit of one kind under a name of the other. */
    if (percent(k, 4))
        (void)snprintf(l.name, sizeof(l.name), "%s",
                       template_of_kind(k, l.is_sem ? KIND_RATE : KIND_SEM));
    if (percent(k, 10))
        (void)snprintf(l.name, sizeof(l.name), "%s", l.is_sem ? "t:a" : "q:a");
    arg(k, l.name);
    if (l.is_sem) {
        name(k, "semaphore");
        number(k, l.n = percent(k, 8) ? 0 : 1 + below(k, 2));
        if (percent(k, 50)) {
            l.kills = percent(k, 50);
            name(k, "on_lost");
            arg(k, l.kills ? "kill" : "keep");
        }
    } else {
        rate_args(k, &l);
    }
    if (percent(k, 15)) {
        name(k, "missing");
        if_missing = true;
    }
    model_limit_set(k->m, &l, if_missing, k->want);
}

void make_limit_del(struct maker *k)
{
    const char *what = template_of_kind(k, percent(k, 50) ? KIND_SEM : KIND_RATE);

    begin(k, "later_limit_del");
    arg(k, what);
    model_limit_del(k->m, what, k->want);
}

void make_limits(struct maker *k)
{
    begin(k, "later_limits");
    model_limits(k->m, k->want);
}

/* What a daemon does with its settings of queues. */
void make_queue_gates(struct maker *k)
{
    static const char *const kinds[] = {"lock", "sem", "rate"};
    struct buf text = BUF_INIT;
    struct model_queue *queue;
    int q = below(k, 2);
    bool was = fair_words(k->m, q)[0] != '\0', is = was;

    queue = &k->m->queue[q];
    buf_puts(&text, fair_words(k->m, q));
    for (int i = 0; i < MODEL_KINDS; i++) {
        was |= queue->gates[i][0] != '\0';
        (void)snprintf(queue->gates[i], sizeof(queue->gates[i]), "%s",
                       !percent(k, 25)                      ? ""
                       : k->m->is_chained && percent(k, 60) ? "user:{key}"
                                                            : template_of_kind(k, i));
        is |= queue->gates[i][0] != '\0';
        if (queue->gates[i][0] != '\0')
            buf_printf(&text, "%s%s=%s", text.len > 0 ? " " : "", kinds[i], queue->gates[i]);
    }
    arg(k, is ? "HSET" : "HDEL");
    arg(k, MODEL_ROOT ":queues");
    arg(k, queue->name);
    if (is)
        arg(k, buf_str(&text));
    out_int(k->want, is ? !was : was);
    buf_done(&text);
}

/* A worker makes a queue fair, or plain, and tells the gates that it has. */
void make_fair(struct maker *k)
{
    static const char *const texts[] = {"fair=1", "fair=1 w=3:a", "fair=1 w=1000:b w=2:user:42"};
    static const char *const kinds[] = {"lock", "sem", "rate"};
    int64_t epoch = pick_epoch(k, !percent(k, 5));
    int q = below(k, 2);
    bool is_end = fair_words(k->m, q)[0] != '\0' && percent(k, 60);
    const char *words = is_end ? "" : PICK(k, texts);
    struct buf text = BUF_INIT;

    buf_puts(&text, words);
    for (int i = 0; i < MODEL_KINDS; i++)
        if (k->m->queue[q].gates[i][0] != '\0')
            buf_printf(&text, "%s%s=%s", text.len > 0 ? " " : "", kinds[i],
                       k->m->queue[q].gates[i]);
    begin(k, "later_v1_declare");
    number(k, epoch);
    number(k, 0);
    number(k, 1);
    arg(k, k->m->queue[q].name);
    arg(k, buf_str(&text));
    model_declare_fair(k->m, epoch, q, words, k->want);
    buf_done(&text);
}

/* ---- programs that hold a gate */

void make_enter(struct maker *k)
{
    enum gate_kind kind = percent(k, 60) ? KIND_LOCK : KIND_SEM;
    int64_t epoch = pick_epoch(k, !percent(k, 10));
    const struct model_worker *w = model_worker(k->m, epoch);
    const char *what = name_of_kind(k, (int)kind);
    bool waits = percent(k, 70);
    char id[MODEL_GATE_ID + 8];

    /* Mostly it asks for the gate that it has. */
    if (w != NULL && w->gate[0] != '\0' && percent(k, 80)) {
        kind = w->gate[0] == 'l' ? KIND_LOCK : KIND_SEM;
        what = strchr(w->gate, ':') + 1;
    }
    (void)snprintf(id, sizeof(id), "%s:%s", kind == KIND_LOCK ? "lock" : "sem", what);
    begin(k, "later_v1_enter");
    number(k, epoch);
    arg(k, id);
    if (waits)
        arg(k, "wait");
    model_enter(k->m, epoch, kind, what, waits, k->want);
}

void make_exit(struct maker *k)
{
    int64_t epoch = pick_epoch(k, !percent(k, 10));

    for (size_t i = 0; i < k->m->workers && percent(k, 80); i++)
        if (k->m->worker[i].is_there && k->m->worker[i].gate[0] != '\0')
            epoch = k->m->worker[i].epoch;
    begin(k, "later_v1_exit");
    number(k, epoch);
    model_exit(k->m, epoch, k->want);
}
