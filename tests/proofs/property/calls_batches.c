/*
 * Batches in random calls: the option of adds, the functions about them, purges, and members whose
 * record is corrupted while they run.
 */
#include "maker.h"

#include <stdio.h>
#include <string.h>

static const char *const NAMES[] = {"b1", "b1", "b1", "n:2", "n:2", "C.3", "4_d", "e"};

/* ---- names */

/* A name that is there, or any. */
static const char *any_batch(struct maker *k)
{
    for (int i = 0; i < 8; i++) {
        const struct model_batch *b = &k->m->batch[below(k, MODEL_BATCHES)];

        if (b->is_there && percent(k, 95))
            return b->name;
    }
    return PICK(k, NAMES);
}

/* Mostly an open one. */
static const char *open_batch(struct maker *k)
{
    for (int i = 0; i < 12; i++) {
        const struct model_batch *b = &k->m->batch[below(k, MODEL_BATCHES)];

        if (b->is_there && b->sealed_ms == MODEL_NONE && percent(k, 97))
            return b->name;
    }
    return any_batch(k);
}

static const char *bad_name(struct maker *k)
{
    static const char *const bad[] = {"", "-b", "a b", "\xc3\xa4", "{b}", "b\n", "b/c"};

    return PICK(k, bad);
}

const char *pick_batch(struct maker *k, struct model_options *o)
{
    const char *name;

    if (!percent(k, 1))
        return open_batch(k);
    name = bad_name(k);
    if (o->refusal == NULL)
        o->refusal = "ELATER_BATCH";
    return name;
}

void batch_option(struct maker *k, struct model_options *o, int share,
                  const struct model_job *parent)
{
    /* A unique key does not go with it. */
    if (!percent(k, o->unique != NULL ? 1 : share))
        return;
    name(k, "batch");
    if (parent != NULL && parent->chain.batch != NULL && percent(k, 95))
        o->chain.batch = parent->chain.batch;
    else
        o->chain.batch = pick_batch(k, o);
    arg(k, o->chain.batch);
    if (!percent(k, 1))
        return;
    name(k, "batch");
    arg(k, o->chain.batch);
    if (o->refusal == NULL)
        o->refusal = "ELATER_OPTION";
}

/* Add a name that may be none. Returns NULL then. */
static const char *name_arg(struct maker *k, const char *name)
{
    bool is_bad = percent(k, 2);

    arg(k, is_bad ? bad_name(k) : name);
    return is_bad ? NULL : name;
}

/* ---- opening */

static void refuse(struct model_batch_options *o, const char *code)
{
    if (o->refusal == NULL)
        o->refusal = code;
}

static void callback_args(struct maker *k, struct model_batch_options *o)
{
    static const char *const options[MODEL_CALLBACKS] = {"then", "finally", "on_dead"};

    for (int i = 0; i < MODEL_CALLBACKS; i++) {
        o->queue[i] = -1;
        if (!percent(k, 70))
            continue;
        name(k, options[i]);
        if (percent(k, 1)) {
            arg(k, "a.b");
            refuse(o, "ELATER_QUEUE");
            continue;
        }
        o->queue[i] = queue_arg(k);
        if (percent(k, 1)) {
            name(k, options[i]);
            arg(k, "mail");
            refuse(o, "ELATER_OPTION");
        }
    }
}

static void batch_options(struct maker *k, struct model_batch_options *o)
{
    callback_args(k, o);
    o->keep_ms = 86400000;
    if (percent(k, 85)) {
        name(k, "keep");
        o->keep_ms = percent(k, 90) ? duration_arg(k, 20000) : duration_arg(k, 90000000);
    }
    if (percent(k, 1)) {
        name(k, "priority");
        arg(k, "3");
        refuse(o, "ELATER_OPTION");
    }
}

/* Sometimes once more what was opened before. */
static void repeat_args(struct maker *k, const struct model_batch *b, struct model_batch_options *o)
{
    static const char *const options[MODEL_CALLBACKS] = {"then", "finally", "on_dead"};

    for (int i = MODEL_CALLBACKS - 1; i >= 0; i--) {
        o->queue[i] = b->queue[i];
        if (b->queue[i] < 0)
            continue;
        name(k, options[i]);
        arg(k, k->m->queue[b->queue[i]].name);
    }
    o->keep_ms = b->keep_ms;
    o->payload = b->payload;
    name(k, "keep");
    number(k, b->keep_ms);
    buf_puts(&k->args->arg[k->args->n - 1], "ms");
}

void make_batch(struct maker *k)
{
    struct model_batch_options o = {.payload = {"", 0}};
    const struct model_batch *b;
    const char *what = PICK(k, NAMES);

    begin(k, "later_batch");
    o.name = name_arg(k, what);
    b = batch_of(k->m, what);
    if (b != NULL && percent(k, 60)) {
        repeat_args(k, b, &o);
    } else {
        batch_options(k, &o);
        if (percent(k, 60))
            o.payload = percent(k, 90) ? payload(k) : large(below(k, 10), MODEL_BIG);
    }
    if (o.payload.n > 0 || percent(k, 50))
        args_bytes(k->args, o.payload.p, o.payload.n);
    model_batch(k->m, &o, k->want);
}

/* ---- what is done to one */

void make_batch_seal(struct maker *k)
{
    const char *what;

    begin(k, "later_batch_seal");
    what = name_arg(k, percent(k, 80) ? open_batch(k) : any_batch(k));
    model_batch_seal(k->m, what, k->want);
}

void make_batch_show(struct maker *k)
{
    const char *what;

    begin(k, "later_batch_show");
    what = name_arg(k, any_batch(k));
    model_batch_show(k->m, what, k->want);
}

void make_batch_jobs(struct maker *k)
{
    static const char *const states[] = {"live", "done", "dead", "cancelled"};
    const char *what = any_batch(k);
    const struct model_batch *b = batch_of(k->m, what);
    int state = percent(k, 50) ? -1 : below(k, 4);

    /* Redis tells many members in no order. */
    if (b != NULL && b->is_large) {
        make_batch_show(k);
        return;
    }
    begin(k, "later_batch_jobs");
    what = name_arg(k, what);
    if (state >= 0)
        arg(k, states[state]);
    if (percent(k, 50))
        arg(k, "0");
    model_batch_jobs(k->m, what, state, k->want);
}

/* Where a page of cancels begins: behind a member, or what is none. */
static const char *pick_after(struct maker *k, const struct model_batch *b)
{
    if (percent(k, 3))
        return "x";
    if (b == NULL || b->members == 0 || percent(k, 60))
        return percent(k, 10) ? "j00000000001" : "";
    return b->member[below(k, (int)b->members)].job->id;
}

void make_batch_cancel(struct maker *k)
{
    const char *what = any_batch(k), *after = pick_after(k, batch_of(k->m, what));

    begin(k, "later_batch_cancel");
    what = name_arg(k, what);
    if (after[0] != '\0' || percent(k, 50))
        arg(k, after);
    model_batch_cancel(k->m, what, after, k->want);
}

/* ---- all of them */

void make_batches(struct maker *k)
{
    size_t n = 0;

    for (size_t i = 0; i < MODEL_BATCHES; i++)
        n += k->m->batch[i].is_there;
    /* Redis tells several in no order. */
    if (n > 1) {
        make_batch_show(k);
        return;
    }
    begin(k, "later_v1_batches");
    arg(k, "0");
    model_batches(k->m, k->want);
}

void make_batch_audit(struct maker *k)
{
    const struct model_batch *b = batch_of(k->m, any_batch(k));
    bool is_of_one = b != NULL && !b->is_large && percent(k, 60);
    char key[64];

    begin(k, percent(k, 50) ? "later_v1_audit" : "later_v1_repair");
    arg(k, is_of_one ? "members" : "batches");
    arg(k, "");
    number(k, 200);
    if (is_of_one) {
        (void)snprintf(key, sizeof(key), "members:%s", b->name);
        arg(k, key);
    }
    model_batch_audit(k->m, is_of_one ? b->name : NULL, k->want);
}

/* ---- purges */

void make_purge(struct maker *k)
{
    static const char *const states[] = {"due", "due", "due", "parked", "parked", "dead", "done"};
    static const int64_t most[] = {0, 1, 2, 10, 10000};
    const char *state = PICK(k, states);
    int64_t n = PICK(k, most);
    int q;

    begin(k, "later_v1_purge");
    q = queue_arg(k);
    arg(k, state);
    number(k, n);
    model_purge(k->m, q, state, n, k->want);
}

/* ---- corrupt records */

/* A running member whose worker is there, or NULL. */
static struct model_job *pick_running(struct maker *k)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(k->m, -1, JOB_RUNNING, -1, row);

    for (int i = 0; i < 20 && n > 0; i++) {
        struct model_job *j = row[below(k, (int)n)];

        if (j->chain.batch != NULL && strcmp(model_status(k->m, j->score), "ok") == 0)
            return j;
    }
    return NULL;
}

void make_corrupt(struct maker *k)
{
    static const char *const texts[] = {"x", "", "-mail", "-sms 5 x=nan\ny", "-Q-7_x odd\nz"};
    struct model_job *j = pick_running(k);
    const char *text = PICK(k, texts);

    if (j == NULL) {
        make_batches(k);
        return;
    }
    arg(k, "HSET");
    arg(k, MODEL_ROOT ":jobs");
    arg(k, j->id);
    arg(k, text);
    model_corrupt(j, text);
    out_int(k->want, 0);
}

/* Its worker tells its end. */
static void step_end(struct maker *k, const struct model_job *j)
{
    static const char *const verbs[] = {"done", "retry", "dead", "release", "result"};
    static const enum model_verb verb[] = {VERB_DONE, VERB_RETRY, VERB_DEAD, VERB_RELEASE,
                                           VERB_RESULT};
    const struct model_worker *w = model_worker(k->m, j->score);
    int i = below(k, (int)COUNT(verbs));
    struct model_end e = {.id = j->id,
                          .verb_name = verbs[i],
                          .verb = verb[i],
                          .start = j->starts,
                          .a = percent(k, 50) ? 0 : 5000,
                          .text = "T",
                          .output = "O",
                          .queue = j->queue};
    struct model_sync s = {.epoch = w->epoch, .link = w->link, .ends = 1, .end = &e};

    begin(k, "later_v1_sync");
    number(k, s.epoch);
    number(k, s.link);
    number(k, 0);
    number(k, 0);
    number(k, 1);
    arg(k, e.id);
    number(k, e.start);
    arg(k, e.verb_name);
    arg(k, k->m->queue[e.queue].name);
    number(k, e.a);
    number(k, e.code);
    arg(k, e.text);
    arg(k, e.output);
    number(k, 0);
    number(k, 0);
    model_sync(k->m, &s, k->want);
}

/* The same in the short form. */
static void short_end(struct maker *k, const struct model_job *j)
{
    const struct model_worker *w = model_worker(k->m, j->score);
    struct model_end e = {.id = j->id,
                          .verb_name = "done",
                          .verb = VERB_DONE,
                          .start = j->starts,
                          .text = "ok",
                          .output = "",
                          .queue = j->queue,
                          .is_short = true};
    struct model_sync s = {.epoch = w->epoch, .link = w->link, .ends = 1, .end = &e};

    begin(k, "later_v1_sync");
    number(k, s.epoch);
    number(k, s.link);
    for (int i = 0; i < 4; i++)
        number(k, 0);
    number(k, 1);
    arg(k, k->m->queue[e.queue].name);
    number(k, e.start);
    number(k, 1);
    arg(k, e.id);
    model_sync(k->m, &s, k->want);
}

/* Its worker is given up. */
static void reap_it(struct maker *k, const struct model_job *j)
{
    const struct model_worker *w = model_worker(k->m, j->score);
    int64_t epoch = pick_epoch(k, true);

    begin(k, "later_v1_reap");
    number(k, epoch);
    number(k, w->epoch);
    number(k, w->counter);
    number(k, 3);
    number(k, 10000);
    model_reap(k->m, epoch, w->epoch, w->counter, 3, 10000, k->want);
}

void make_corrupt_end(struct maker *k)
{
    const struct model_job *j = model_corrupted(k->m);
    const struct model_worker *w = model_worker(k->m, j->score);

    if (w->is_dead || percent(k, 30))
        reap_it(k, j);
    else if (j->payload.n <= MODEL_BIG && percent(k, 40))
        short_end(k, j);
    else
        step_end(k, j);
}
