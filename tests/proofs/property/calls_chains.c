/*
 * Chains in random calls: the options of adds, and imports, which have them, too.
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

/* Then a job should expire sometimes: it dies at its claim. */
static int64_t expire_soon(struct maker *k)
{
    int64_t ms = 1 + any(k, 3000);

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
        o->x = expire_soon(k);
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
        option(k, n, "trace", o->trace = PICK(k, keys));
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
