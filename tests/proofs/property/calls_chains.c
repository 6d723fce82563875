/*
 * Chains in random calls: the options of adds, and imports, which have them, too; and children.
 */
#include "maker.h"

#include <stdio.h>
#include <string.h>

/* ---- options */

/* The name of a queue, mostly of one that exists. Returns its number. */
static int pick_queue(struct maker *k, struct model_options *o, const char **text)
{
    static const char *const bad[] = {"-b", "", "a b", "a.b", "\xc3\xa4"};
    int q = percent(k, 75) ? below(k, 2) : below(k, MODEL_QUEUES);

    *text = k->m->queue[q].name;
    if (!percent(k, 1))
        return q;
    *text = PICK(k, bad);
    if (o->refusal == NULL)
        o->refusal = "ELATER_QUEUE";
    return q;
}

/* One more queue that follows. Returns its name. */
static const char *add_then(struct maker *k, struct model_options *o)
{
    const char *text;
    int q;

    if (o->chain.thens == MODEL_THENS && o->refusal == NULL)
        o->refusal = "ELATER_OPTION";
    q = pick_queue(k, o, &text);
    if (o->chain.thens < MODEL_THENS)
        o->chain.then[o->chain.thens++] = q;
    return text;
}

static int pick_thens(struct maker *k)
{
    static const int thens[] = {1, 1, 1, 2, 2, 3, 8};

    return percent(k, 2) ? MODEL_THENS + 1 : PICK(k, thens);
}

static void on_dead_option(struct maker *k, struct model_options *o)
{
    const char *text;

    name(k, "on_dead");
    o->chain.on_dead = pick_queue(k, o, &text);
    arg(k, text);
    if (!percent(k, 1))
        return;
    name(k, "on_dead");
    arg(k, text);
    if (o->refusal == NULL)
        o->refusal = "ELATER_OPTION";
}

/* Add a duration of 1 ms up to `most`. Returns it. */
static int64_t soon(struct maker *k, int64_t most)
{
    int64_t ms = 1 + any(k, most);

    number(k, ms);
    buf_puts(&k->args->arg[k->args->n - 1], "ms");
    return ms;
}

void chain_options(struct maker *k, struct model_options *o, int share)
{
    for (int n = percent(k, share) ? pick_thens(k) : 0; n > 0; n--) {
        name(k, "then");
        arg(k, add_then(k, o));
    }
    if (percent(k, o->chain.thens > 0 ? 50 : share / 2))
        on_dead_option(k, o);
    if (o->chain.on_dead >= 0 && o->x == MODEL_NONE && percent(k, 40)) {
        name(k, "expire");
        o->x = soon(k, 3000); /* then it dies at its claim */
    }
}

struct bytes chain_payload(struct maker *k, const struct model_options *o, struct bytes other)
{
    if ((o->chain.thens == 0 && o->chain.on_dead < 0) || !percent(k, k->m->is_chained ? 40 : 20))
        return other;
    return large(below(k, 10), percent(k, 50) ? MODEL_BIG + 1 : 20000);
}

/* ---- import */

/* Add the name of an option with its value, and count it. */
static void option(struct maker *k, int *n, const char *what, const char *value)
{
    arg(k, what);
    arg(k, value);
    ++*n;
}

static void option_number(struct maker *k, int *n, const char *what, int64_t value,
                          const char *unit)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld%s", (long long)value, unit);
    option(k, n, what, text);
}

/* In the order in which a record has them. */
static void import_plain(struct maker *k, struct model_options *o, int *n)
{
    static const char *const keys[] = {"a", "b", "user:42"};
    static const char *const traces[] = {MODEL_TRACES};

    if (percent(k, 60))
        option_number(k, n, "due",
                      o->due = MODEL_MS(k->m) + (percent(k, 50) ? any(k, 5000) : -any(k, 5000)),
                      "");
    if (percent(k, 30))
        option_number(k, n, "priority", o->priority = below(k, 10), "");
    if (percent(k, 15))
        option_number(k, n, "attempts", o->a = 1 + any(k, 99), "");
    if (percent(k, 30))
        option_number(k, n, "expire", o->x = 1 + any(k, 100000), "ms");
    if (percent(k, 25))
        option_number(k, n, "keep", o->k = any(k, 100000), "ms");
    if (percent(k, 50))
        option(k, n, "key", o->key = PICK(k, keys));
    if (percent(k, 15))
        option(k, n, "trace", o->trace = PICK(k, traces));
    if (percent(k, k->m->is_batched ? 70 : 10))
        option(k, n, "batch", o->chain.batch = pick_batch(k, o));
}

static void import_alone(struct maker *k, struct model_import *row, int *n)
{
    static const char *const whys[] = {"", "no", "a \x7f b"};
    char text[80];

    if (percent(k, 20)) {
        option(k, n, "unique", row->o.unique = percent(k, 50) ? "u1" : "u2");
        if (percent(k, 60))
            option(k, n, "unique_mode", row->o.mode = percent(k, 50) ? "replace" : "move");
        if (percent(k, 30))
            option_number(k, n, "unique_until",
                          row->o.unique_for = MODEL_MS(k->m) - 5000 + any(k, 20000), "");
        return;
    }
    if (!percent(k, 25))
        return;
    row->dead = PICK(k, whys);
    row->o.is_dead = true;
    row->died_ms = MODEL_MS(k->m) + (percent(k, 80) ? -any(k, 100000) : any(k, 100000));
    row->starts = below(k, 4);
    row->attempts = below(k, 4);
    row->crashes = below(k, 3);
    (void)snprintf(text, sizeof(text), "dead 65 %lld %lld %s\nout", (long long)row->died_ms,
                   (long long)row->starts, row->dead);
    option(k, n, "dead", text);
    (void)snprintf(text, sizeof(text), "%lld %lld %lld", (long long)row->starts,
                   (long long)row->attempts, (long long)row->crashes);
    option(k, n, "tries", text);
}

static void import_thens(struct maker *k, struct model_options *o, int *n)
{
    struct buf thens = BUF_INIT;

    for (int i = pick_thens(k); i > 0; i--)
        buf_printf(&thens, "%s%s", add_then(k, o), i > 1 ? "," : "");
    option(k, n, "then", buf_str(&thens));
    buf_done(&thens);
}

/* What a job has that was caused by another one. */
static void import_cause(struct maker *k, struct model_options *o, int *n)
{
    static const char *const parents[] = {"j00000000001", "jzzzzzzzzzzz", "j0", "x00000000001"};
    static const char *const reasons[] = {"", "50%~off", "exit 1", "tab\there", "\xc3\xa4=\x7f"};
    static const char *const callbacks[] = {"b1,4,3,1,0", "old.2,0,0,0,0", "b1,4,3,1", "b1,4,3,1,x",
                                            "-b,1,1,0,0"};
    int i = percent(k, 97) ? below(k, 2) : 2 + below(k, 2);

    if (percent(k, 60)) {
        option(k, n, "parent", parents[i]);
        (void)snprintf(o->chain.parent, sizeof(o->chain.parent), "%s", parents[i]);
        if (i >= 2 && o->refusal == NULL)
            o->refusal = "ELATER_OPTION";
    }
    if (percent(k, 40)) {
        struct buf reason = BUF_INIT;

        for (int all = percent(k, 5) ? 100 : 1; all > 0; all--)
            buf_puts(&reason, PICK(k, reasons));
        option(k, n, "reason", buf_str(&reason));
        model_reason(&o->chain, buf_str(&reason));
        buf_done(&reason);
    }
    if (percent(k, 10)) {
        i = percent(k, 90) ? below(k, 2) : 2 + below(k, 3);
        option(k, n, "callback", callbacks[i]);
        (void)snprintf(o->chain.callback, sizeof(o->chain.callback), "%s", callbacks[i]);
        if (i >= 2 && o->refusal == NULL)
            o->refusal = i == 4 ? "ELATER_BATCH" : "ELATER_OPTION";
    }
}

/* One job of an import: how many options it has, they, its payload. */
static void import_one(struct maker *k, struct model_import *row, bool is_alone)
{
    int slot = k->args->n, n = 0;
    struct model_options *o = &row->o;
    const char *text;

    *row = (struct model_import){.o = no_options(k->m)};
    arg(k, "");
    import_plain(k, o, &n);
    if (percent(k, k->m->is_gated ? 15 : 2))
        option(k, &n, "lock", o->gate[0] = "l1");
    if (percent(k, is_alone ? 70 : 3))
        import_alone(k, row, &n);
    if (percent(k, 60))
        import_thens(k, o, &n);
    if (percent(k, 50)) {
        o->chain.on_dead = pick_queue(k, o, &text);
        option(k, &n, "on_dead", text);
    }
    import_cause(k, o, &n);
    buf_printf(&k->args->arg[slot], "%d", n);
    row->payload = chain_payload(k, o, payload(k));
    args_bytes(k->args, row->payload.p, row->payload.n);
}

void make_import(struct maker *k)
{
    static struct model_import row[5];
    size_t n = percent(k, 60) ? 1 : 2 + (size_t)below(k, 4);
    int q;

    begin(k, "later_v1_import");
    q = queue_arg(k);
    for (size_t i = 0; i < n; i++)
        import_one(k, &row[i], n == 1);
    model_import(k->m, q, n, row, k->want);
}

/* ---- children */

#define CHILDREN_MAX 64 /* of a sync */

/* An option that is refused, behind all others. */
static void bad_option(struct maker *k, struct model_options *o)
{
    if (percent(k, 50)) {
        name(k, "priority");
        arg(k, "77");
        o->refusal = o->refusal != NULL ? o->refusal : "ELATER_OPTION";
    } else if (o->gate[1] == NULL) {
        name(k, "sem");
        arg(k, o->gate[1] = "none");
    }
}

/* Few options, so that few are refused: mostly a unique key, so that they meet. unique: that key;
 * NULL: any. */
static void few_options(struct maker *k, struct model_options *o, const char *unique)
{
    static const char *const keys[] = {"u1", "u1", "u2", "u:3"};
    static const char *const modes[] = {"drop", "replace", "replace", "move"};

    *o = no_options(k->m);
    name(k, "key");
    arg(k, o->key = percent(k, 80) ? "a" : "b");
    if (percent(k, 20)) {
        name(k, "priority");
        number(k, o->priority = below(k, 10));
    }
    if (unique != NULL || percent(k, k->m->is_batched ? 10 : 50)) {
        name(k, "unique");
        arg(k, o->unique = unique != NULL ? unique : PICK(k, keys));
        name(k, "unique_mode");
        arg(k, o->mode = PICK(k, modes));
    }
    if (o->unique != NULL && percent(k, 20)) {
        name(k, "unique_for");
        o->unique_for = MODEL_MS(k->m) + soon(k, 20000);
    }
    if (percent(k, k->m->is_gated ? 30 : 5)) {
        name(k, "lock");
        arg(k, o->gate[0] = "l1");
    }
    chain_options(k, o, 20);
}

/* The queue and options of a child of this job. like: it has the unique key of that one; NULL:
 * any. */
static void child_options(struct maker *k, struct model_child *c, const struct model_job *parent,
                          const struct model_job *like)
{
    bool has_bad_name = percent(k, 1);

    c->queue = like != NULL ? like->queue : 0;
    if (has_bad_name || like != NULL)
        arg(k, has_bad_name ? "-b" : k->m->queue[c->queue].name);
    else
        c->queue = queue_arg(k);
    if (like != NULL || percent(k, 65))
        few_options(k, &c->o, like != NULL ? like->unique : NULL);
    else
        add_options(k, &c->o, true);
    if (c->o.chain.batch == NULL)
        batch_option(k, &c->o, k->m->is_batched ? 70 : 15, parent);
    if (percent(k, 2))
        bad_option(k, &c->o);
    if (has_bad_name)
        c->o.refusal = "ELATER_QUEUE";
}

/* One child: how many words it has, they. */
static void child_args(struct maker *k, struct model_child *c, const struct model_job *parent,
                       const struct model_job *like)
{
    int slot = k->args->n;

    arg(k, "");
    child_options(k, c, parent, like);
    c->payload =
        percent(k, 10) ? large(below(k, 10), MODEL_BIG + 1) : chain_payload(k, &c->o, payload(k));
    args_bytes(k->args, c->payload.p, c->payload.n);
    buf_printf(&k->args->arg[slot], "%d", k->args->n - slot - 1);
}

/* A job with a unique key that this sync ends, or NULL. */
static const struct model_job *pick_unique(struct maker *k, const struct model_end *end, size_t n)
{
    for (int i = 0; i < 8 && percent(k, 90); i++) {
        const struct model_job *j = model_find(k->m, end[below(k, (int)n)].id);

        if (j != NULL && j->unique != NULL)
            return j;
    }
    return NULL;
}

/* The children of result number `at` of these n. Returns how many. */
static size_t children_of(struct maker *k, struct model_end *end, size_t n, size_t at,
                          struct model_child *child)
{
    size_t all = percent(k, 2) ? 0 : 1 + (size_t)below(k, 3);
    const struct model_job *parent = model_find(k->m, end[at].id);

    number(k, (int64_t)at + 1);
    number(k, (int64_t)all);
    for (size_t c = 0; c < all; c++)
        child_args(k, &child[c], parent,
                   percent(k, k->m->is_batched ? 10 : 50) ? pick_unique(k, end, n) : NULL);
    end[at].children = all;
    end[at].child = child;
    return all;
}

void children_args(struct maker *k, struct model_end *end, size_t n)
{
    static struct model_child child[CHILDREN_MAX + 3];
    size_t used = 0, first = (size_t)below(k, (int)n);
    int slot = k->args->n, all = 0;

    arg(k, "");
    for (size_t i = 0; i < n && used < CHILDREN_MAX; i++) {
        size_t at = (first + i) % n;
        bool is_done = end[at].verb == VERB_DONE || end[at].verb == VERB_RESULT;

        if (i > 0 && !percent(k, is_done ? 50 : 10))
            continue;
        used += children_of(k, end, n, at, &child[used]);
        all++;
    }
    buf_printf(&k->args->arg[slot], "%d", all);
}
