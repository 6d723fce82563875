#include "calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maker.h"
#include "model_fair.h"
#include "model_gates.h"

/* ---- adds */

void add_options(struct maker *k, struct model_options *o, bool with_token)
{
    static const char *const words[] = {"user:42", "k=v", "ä", "-", "a{b}*"};
    static const char *const keys[] = {"a", "b"};
    static const char *const traces[] = {MODEL_TRACES};
    static const char *const tokens[] = {"t1", "t2", "t:3", "{t}*"};
    int64_t now = MODEL_MS(k->m), at;

    *o = no_options(k->m);
    if (k->m->is_plain && percent(k, 85)) {
        if (k->m->is_fair && percent(k, 70)) {
            name(k, "key");
            arg(k, o->key = percent(k, 80) ? PICK(k, keys) : PICK(k, words));
        }
        if (percent(k, 30)) {
            name(k, "in");
            o->due = now + duration_arg(k, 100);
        }
        chain_options(k, o, 10);
        return;
    }
    if (percent(k, k->m->is_gated ? 5 : 30)) {
        name(k, "in");
        o->due = now + duration_arg(k, k->m->is_gated ? 3000 : 4000000);
    } else if (percent(k, k->m->is_gated ? 3 : 25)) {
        name(k, "at");
        at = time_arg(k);
        o->due = at > now ? at : now;
    }
    if (percent(k, k->m->is_gated ? 10 : 35)) {
        name(k, "priority");
        number(k, o->priority = below(k, 10));
    }
    if (percent(k, 15)) {
        name(k, "attempts");
        number(k, o->a = 1 + any(k, 999999));
    }
    if (percent(k, 10)) {
        name(k, "timeout");
        number(k, o->t = 1 + any(k, 100000));
        buf_puts(&k->args->arg[k->args->n - 1], "ms");
    }
    if (percent(k, k->m->is_gated ? 4 : 20)) {
        name(k, "expire");
        number(k, o->x = 1 + any(k, 100000));
        buf_puts(&k->args->arg[k->args->n - 1], "ms");
    }
    if (percent(k, 25)) {
        name(k, "keep");
        o->k = duration_arg(k, 1000000);
    }
    if (percent(k, k->m->is_gated || k->m->is_fair ? 60 : 15)) {
        name(k, "key");
        arg(k, o->key = percent(k, 80) ? PICK(k, keys) : PICK(k, words));
    }
    if (percent(k, 10)) {
        name(k, "trace");
        arg(k, o->trace = PICK(k, traces));
    }
    if (with_token && percent(k, 20)) {
        name(k, "token");
        arg(k, o->token = PICK(k, tokens));
    }
    gate_options(k, o, with_token);
    chain_options(k, o, k->m->is_chained ? 60 : k->m->is_crowded ? 10 : 25);
    batch_option(k, o, k->m->is_batched ? 85 : 10, NULL);
}

static void make_add(struct maker *k)
{
    struct model_options o;
    struct bytes b = payload(k);
    int q;

    begin(k, "later_add");
    q = queue_arg(k);
    add_options(k, &o, true);
    b = chain_payload(k, &o, b);
    args_bytes(k->args, b.p, b.n);
    model_add(k->m, q, &o, b, k->want);
}

static void make_add_many(struct maker *k)
{
    static struct bytes rows[256];
    size_t n =
        percent(k, k->m->is_plain ? 30 : 4) ? 130 + (size_t)below(k, 70) : 1 + (size_t)below(k, 6);
    /* Sometimes more bytes than one sync takes. */
    bool is_heavy = k->m->is_plain && percent(k, 15);
    struct model_options o;
    int q;

    begin(k, "later_add_many");
    q = queue_arg(k);
    add_options(k, &o, false);
    arg(k, "--");
    for (size_t i = 0; i < n; i++) {
        rows[i] = n < 100    ? chain_payload(k, &o, payload(k))
                  : is_heavy ? large((int)i, MODEL_BIG)
                             : (struct bytes){"x", 1};
        args_bytes(k->args, rows[i].p, rows[i].n);
    }
    model_add_many(k->m, q, &o, n, rows, k->want);
}

static void make_raw(struct maker *k)
{
    static const double odd[] = {
        -1,    0,        1,         99999999,          1e8, 1e9, 1e11, 1e14, 2e14,
        1e300, INFINITY, -INFINITY, 9007199254740993.0};
    /* Sometimes more bytes than one sync takes. */
    bool is_heavy = percent(k, 1);
    int n = is_heavy ? 4 : percent(k, 5) ? 20 : 1;
    int q = percent(k, 75) ? below(k, 2) : below(k, MODEL_QUEUES);
    int added = 0;
    char key[64], score[40];

    (void)snprintf(key, sizeof(key), MODEL_ROOT ":due:%s", k->m->queue[q].name);
    arg(k, "ZADD");
    arg(k, key);
    for (int i = 0; i < n; i++) {
        static const char *const many[] = {"r0",  "r1",  "r2",  "r3",  "r4",  "r5",  "r6",
                                           "r7",  "r8",  "r9",  "r10", "r11", "r12", "r13",
                                           "r14", "r15", "r16", "r17", "r18", "r19"};
        struct bytes b = is_heavy ? large(i, 400000)
                         : n > 1  ? (struct bytes){many[i], strlen(many[i])}
                                  : payload(k);
        double s = percent(k, 25)   ? PICK(k, odd)
                   : percent(k, 50) ? (double)(MODEL_MS(k->m) + any(k, 1000000))
                                    : (double)(MODEL_MS(k->m) - any(k, 1000000));
        struct model_raw *row[MODEL_RAWS];
        size_t before = model_raws(k->m, q, row);

        s += percent(k, 10) ? 0.25 : 0;
        (void)snprintf(score, sizeof(score), "%.17g", s);
        arg(k, score);
        args_bytes(k->args, b.p, b.n);
        model_zadd_raw(k->m, q, s, b);
        added += model_raws(k->m, q, row) > before;
    }
    out_int(k->want, added);
}

/* ---- one job */

static void make_cancel(struct maker *k)
{
    const char *id = pick_id(k);
    bool only_waiting = percent(k, 25);

    begin(k, "later_cancel");
    arg(k, id);
    if (only_waiting)
        name(k, "waiting");
    model_cancel(k->m, id, only_waiting, k->want);
}

static void make_run_now(struct maker *k)
{
    const char *id = pick_id(k);

    begin(k, "later_run_now");
    arg(k, id);
    model_run_now(k->m, id, k->want);
}

static void make_reschedule(struct maker *k)
{
    const char *id = pick_id(k);
    int64_t at;

    begin(k, "later_reschedule");
    arg(k, id);
    at = time_arg(k);
    model_reschedule(k->m, id, at, k->want);
}

/* Dead jobs are few, so search for one. */
static const char *pick_dead(struct maker *k)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(k->m, -1, JOB_DEAD, -1, row);

    return n > 0 && percent(k, 80) ? row[below(k, (int)n)]->id : pick_id(k);
}

static void make_retry(struct maker *k)
{
    const char *id = pick_dead(k);
    bool is_anew = percent(k, 40);
    int64_t at = MODEL_NONE;

    begin(k, "later_retry");
    arg(k, id);
    if (percent(k, 30))
        at = time_arg(k);
    if (is_anew)
        arg(k, "from_start");
    model_retry(k->m, id, at, is_anew, k->want);
}

static void make_show(struct maker *k)
{
    const char *id = pick_id(k);

    begin(k, "later_show");
    arg(k, id);
    model_show(k->m, id, k->want);
}

static void make_result(struct maker *k)
{
    const char *id = pick_id(k);

    begin(k, "later_result");
    arg(k, id);
    model_result(k->m, id, k->want);
}

static void make_await(struct maker *k)
{
    const char *id = pick_id(k);

    begin(k, "later_v1_await");
    arg(k, id);
    model_await(k->m, id, k->want);
}

/* ---- queues */

static void make_pause(struct maker *k)
{
    static const char *const texts[] = {"", "ann", "a b", "why not", "0 5 x"};
    const char *who = NULL, *reason = NULL;
    int64_t for_ms = MODEL_NONE;
    int q;

    begin(k, "later_pause");
    q = queue_arg(k);
    if (percent(k, 40)) {
        name(k, "by");
        arg(k, who = PICK(k, texts));
    }
    if (percent(k, 40)) {
        name(k, "reason");
        arg(k, reason = PICK(k, texts));
    }
    if (percent(k, 60)) {
        name(k, "for");
        for_ms = duration_arg(k, 1000000);
    }
    model_pause(k->m, q, who, reason, for_ms, k->want);
}

static void make_resume(struct maker *k)
{
    int64_t at = MODEL_NONE;
    int q;

    begin(k, "later_resume");
    q = queue_arg(k);
    if (percent(k, 30)) {
        name(k, "at");
        at = time_arg(k);
    }
    model_resume(k->m, q, at, k->want);
}

static void make_stats(struct maker *k)
{
    if (percent(k, 60)) {
        make_overview(k);
        return;
    }
    begin(k, "later_stats");
    model_stats(k->m, percent(k, 30) ? queue_arg(k) : -1, k->want);
}

static void make_forget(struct maker *k)
{
    begin(k, "later_v1_forget");
    model_forget_queue(k->m, queue_arg(k), k->want);
}

static void make_known(struct maker *k)
{
    begin(k, "later_v1_known");
    model_known_queue(k->m, queue_arg(k), k->want);
}

static void make_list(struct maker *k)
{
    static const char *const states[] = {"due", "due", "parked", "running", "dead", "done"};
    const char *state = PICK(k, states);
    int segment = 1, count = 1 + (int)any(k, 200), q;
    int64_t offset = 0;
    char cursor[32] = "";

    if (percent(k, 40)) {
        segment = strcmp(state, "due") == 0 ? 1 + below(k, 12) : 1;
        offset = any(k, 30);
        (void)snprintf(cursor, sizeof(cursor), "%d:%lld", segment, (long long)offset);
    }
    begin(k, "later_v1_list");
    if (strcmp(state, "running") == 0 && percent(k, 40)) {
        q = -1;
        arg(k, "*");
    } else {
        q = queue_arg(k);
    }
    arg(k, state);
    arg(k, cursor);
    number(k, count);
    model_list(k->m, q, state, segment, offset, count, k->want);
}

/* ---- sync */

static void amount(struct maker *k, struct model_end *e)
{
    static const int64_t max[] = {0, 1, 2, 10000, 10000};

    if (e->verb == VERB_DEAD)
        e->a = PICK(k, max);
    else if (e->verb == VERB_DONE || e->verb == VERB_RESULT || e->verb == VERB_RELEASE)
        e->a = percent(k, 60) ? 0 : any(k, 100000);
    else
        e->a = any(k, k->m->is_gated ? 2000 : 100000);
    e->a = percent(k, 1) ? MODEL_NONE : e->a;
}

/* Jobs that are followed end well more often, and those whose death is told die more often. */
static enum model_verb pick_verb(struct maker *k, const struct model_job *j)
{
    int v = below(k, 100);

    if (j->chain.thens > 0 && percent(k, 40))
        return percent(k, 50) ? VERB_RESULT : VERB_DONE;
    if (j->chain.on_dead >= 0 && percent(k, 30))
        return VERB_DEAD;
    return v < 32   ? VERB_DONE
           : v < 35 ? VERB_RESULT
           : v < 60 ? VERB_RETRY
           : v < 75 ? VERB_DEAD
           : v < 85 ? VERB_RELEASE
           : v < 92 ? VERB_PROGRESS
           : v < 99 ? VERB_CHECKPOINT
                    : VERB_BAD;
}

/* A result that has a key of its own as a payload. */
static const char *large_output(void)
{
    static char output[MODEL_BIG + 2];

    memset(output, 'r', sizeof(output) - 1);
    return output;
}

static void end_args(struct maker *k, const struct model_job *j, struct model_end *e)
{
    static const char *const verbs[] = {"done",     "retry",      "dead",   "release",
                                        "progress", "checkpoint", "result", "nonsense"};
    static const char *const texts[] = {"", "exit 1", "tab\there", "two  words\x7f"};
    static const char *const outputs[] = {"", "out", "a\nb\n"};

    e->id = percent(k, 1) ? "j00000000000" : j->id;
    e->start = j->starts + (percent(k, 4) ? -1 : 0);
    e->verb = pick_verb(k, j);
    e->verb_name = verbs[e->verb];
    e->queue = j->queue;
    e->is_short = false;
    e->children = 0;
    amount(k, e);
    e->code = below(k, 256);
    e->text = PICK(k, texts);
    e->output = e->verb == VERB_CHECKPOINT                ? checkpoint_text(k)
                : e->verb == VERB_RESULT && percent(k, 8) ? large_output()
                                                          : PICK(k, outputs);
    arg(k, e->id);
    number(k, e->start);
    arg(k, e->verb_name);
    arg(k, k->m->queue[e->queue].name);
    if (e->a == MODEL_NONE)
        arg(k, "1e3");
    else
        number(k, e->a);
    number(k, e->code);
    arg(k, e->text);
    arg(k, e->output);
}

/* A result that may go into a group: done, with nothing to keep. The library itself sees what else
 * a job has, except for a payload in a key of its own, so any other job may be used here. It tells
 * mostly the start number of the job. */
static bool short_end(struct maker *k, const struct model_job *j, struct model_end *e)
{
    if (j->payload.n > MODEL_BIG)
        return false;
    *e = (struct model_end){.id = percent(k, 1) ? "j00000000000" : j->id,
                            .verb_name = "done",
                            .verb = VERB_DONE,
                            .start = j->starts + (percent(k, 4) ? -1 : 0),
                            .text = "ok",
                            .output = "",
                            .queue = j->queue,
                            .is_short = true};
    return true;
}

static bool is_like(const struct model_end *a, const struct model_end *b)
{
    return a->queue == b->queue && a->start == b->start;
}

/* Group neighbours that have the same queue and start; sometimes with an empty or a divided
 * group. */
static void groups_args(struct maker *k, const struct model_end *end, size_t n)
{
    int slot = k->args->n, groups = 0;
    char text[24];

    arg(k, "");
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i; next < n && is_like(&end[next], &end[i]) && (next == i || !percent(k, 2));)
            next++;
        if (percent(k, 2)) {
            arg(k, k->m->queue[end[i].queue].name);
            number(k, 1);
            number(k, 0);
            groups++;
        }
        arg(k, k->m->queue[end[i].queue].name);
        number(k, end[i].start);
        number(k, (int64_t)(next - i));
        for (size_t g = i; g < next; g++)
            arg(k, end[g].id);
        groups++;
    }
    (void)snprintf(text, sizeof(text), "%d", groups);
    buf_puts(&k->args->arg[slot], text);
}

/* Write the long results. `brief` gets the short ones, in short_share of 100 cases. */
static size_t ends_args(struct maker *k, int64_t epoch, struct model_end *end, int short_share,
                        struct model_end *brief, size_t *briefs)
{
    int share = percent(k, 30)                       ? 0
                : percent(k, 50) || k->m->is_crowded ? 40
                                                     : 100,
        slot = k->args->n;
    char text[24];
    size_t n = 0;

    *briefs = 0;
    arg(k, "");
    for (size_t i = 0; i < k->m->jobs && n + *briefs < HELD_MAX; i++) {
        const struct model_job *j = &k->m->job[i];
        bool own = j->state == JOB_RUNNING && j->score == epoch;
        int times = percent(k, own ? share : 1) ? 1 + percent(k, 4) : 0;

        while (times-- > 0 && n + *briefs < HELD_MAX) {
            if (percent(k, short_share) && short_end(k, j, &brief[*briefs]))
                ++*briefs;
            else
                end_args(k, j, &end[n++]);
        }
    }
    (void)snprintf(text, sizeof(text), "%zu", n);
    buf_puts(&k->args->arg[slot], text);
    return n;
}

static size_t wants_args(struct maker *k, struct model_want *want)
{
    static const int64_t rooms[] = {0, 1, 2, 5, 100, 300}, most[] = {1048576, 1048576, 10, 1000};
    int first = below(k, MODEL_QUEUES), slot = k->args->n;
    char text[24];
    size_t n = 0;

    arg(k, "");
    for (int i = 0; i < MODEL_QUEUES + 1; i++) {
        /* The last queue is the first one again: no worker asks so, but nothing may go wrong. */
        if (!percent(k, i == MODEL_QUEUES ? 3 : 75))
            continue;
        want[n] = (struct model_want){(first + i) % MODEL_QUEUES, PICK(k, rooms), PICK(k, most)};
        arg(k, k->m->queue[want[n].queue].name);
        number(k, want[n].room);
        number(k, want[n].max_payload);
        n++;
    }
    (void)snprintf(text, sizeof(text), "%zu", n);
    buf_puts(&k->args->arg[slot], text);
    return n;
}

static void make_sync(struct maker *k)
{
    static const int64_t most[] = {0, 1, 2, 5, 100, 512, 1000};
    static const int64_t aheads[] = {0, 1, 3, 50, 1000};
    static struct model_end end[2 * HELD_MAX], brief[HELD_MAX];
    static struct model_want want[MODEL_QUEUES + 1];
    struct model_sync s = {.epoch = pick_epoch(k, !percent(k, 4)), .end = end, .want = want};
    bool has_children = percent(k, k->m->is_chained ? 70 : k->m->is_batched ? 30 : 50);
    int short_share = percent(k, 20) ? 0 : has_children ? below(k, 60) : 30 + below(k, 70);
    size_t briefs;

    s.link = link_of(k, s.epoch);
    s.held = percent(k, 50) ? 0 : percent(k, 90) ? below(k, 4) : below(k, 1000);
    s.max = PICK(k, most);
    begin(k, "later_v1_sync");
    number(k, s.epoch);
    number(k, s.link);
    number(k, s.held);
    number(k, s.max);
    s.ends = ends_args(k, s.epoch, end, short_share, brief, &briefs);
    s.wants = wants_args(k, want);
    groups_args(k, brief, briefs);
    has_children = has_children && s.ends > 0;
    if (has_children || percent(k, 70)) {
        s.ahead = PICK(k, aheads);
        number(k, s.ahead);
    }
    if (has_children)
        children_args(k, end, s.ends);
    memcpy(end + s.ends, brief, briefs * sizeof(brief[0]));
    s.ends += briefs;
    model_sync(k->m, &s, k->want);
}

/* A server that lost its last writes, with a worker in them. */
static void make_loss(struct maker *k)
{
    int64_t epoch = pick_epoch(k, false);
    const struct model_worker *w = model_worker(k->m, epoch);
    bool was_there;
    char key[64];

    /* What a worker holds itself was written after it registered, so it would be lost first: use an
     * epoch without a worker. */
    epoch = w != NULL && w->gate[0] != '\0' ? 7 : epoch;
    was_there = model_worker(k->m, epoch) != NULL;

    /* One command for both keys, so that it is one call. */
    arg(k, "EVAL");
    arg(k, "redis.call('HDEL', KEYS[1], ARGV[1]) return redis.call('DEL', KEYS[2])");
    arg(k, "2");
    arg(k, MODEL_ROOT ":workers");
    (void)snprintf(key, sizeof(key), MODEL_ROOT ":worker:%lld", (long long)epoch);
    arg(k, key);
    number(k, epoch);
    model_lose_worker(k->m, epoch);
    out_int(k->want, was_there);
}

/* ---- all */

/* Time goes on, mostly; sometimes it is set back a little. */
static void move_time(struct maker *k)
{
    static const int64_t most_us[] = {1,       1,         5000,       2000000,
                                      2000000, 120000000, 7200000000, 90000000000};
    static const int64_t gated_us[] = {1, 1, 5000, 100000, 700000, 2000000, 2000000, 40000000};
    static const int64_t crowded_us[] = {1, 1, 1, 5000, 100000, 300000, 700000, 2000000};
    const struct model *m = k->m;
    bool is_close = m->is_crowded || m->is_plain;
    bool is_near = m->is_fair || m->is_gated || m->is_chained || m->is_batched || m->is_scheduled;
    int64_t most = is_close && percent(k, 99)  ? PICK(k, crowded_us)
                   : is_near && percent(k, 98) ? PICK(k, gated_us)
                                               : PICK(k, most_us);
    int64_t us = (int64_t)(rnd_next(&k->rnd) % (uint64_t)most);

    /* A batch that nobody touches for a week is forgotten. */
    if (m->is_batched && percent(k, 1))
        us = INT64_C(500000000000) + (int64_t)(rnd_next(&k->rnd) % UINT64_C(200000000000));

    /* The cursor of a schedule that is gone is forgotten after 90 days. */
    if (m->is_scheduled && percent(k, 1))
        us = INT64_C(7700000000000) + (int64_t)(rnd_next(&k->rnd) % UINT64_C(200000000000));

    model_set_time(k->m, k->m->now_us + (percent(k, 2) ? -(us % 5000000) : us));
}

static const struct {
    int weight, gated, crowded; /* in a sequence of this kind */
    void (*make)(struct maker *k);
} MAKERS[] = {
    {14, 22, 20, make_add},         {5, 2, 6, make_add_many},       {6, 2, 0, make_raw},
    {6, 5, 3, make_cancel},         {4, 3, 0, make_run_now},        {5, 3, 1, make_reschedule},
    {5, 4, 1, make_retry},          {3, 3, 1, make_show},           {3, 2, 0, make_result},
    {4, 2, 0, make_await},          {2, 2, 1, make_pause},          {3, 3, 3, make_resume},
    {2, 1, 0, make_stats},          {2, 1, 1, make_forget},         {1, 0, 0, make_known},
    {5, 3, 1, make_list},           {6, 4, 1, make_register},       {4, 1, 0, make_beat},
    {4, 3, 1, make_reconcile},      {7, 5, 2, make_reap},           {2, 2, 0, make_leave},
    {1, 0, 0, make_quiet},          {1, 0, 0, make_workers},        {2, 0, 0, make_suspects},
    {3, 1, 0, make_note},           {6, 4, 2, make_tidy},           {28, 45, 60, make_sync},
    {8, 6, 3, make_keep},           {1, 1, 0, make_loss},           {1, 9, 7, make_lock},
    {1, 7, 7, make_unlock},         {1, 2, 0, make_renew},          {1, 6, 3, make_throttle},
    {1, 1, 0, make_fence_check},    {1, 6, 3, make_limit_set},      {1, 1, 0, make_limit_del},
    {1, 1, 0, make_limits},         {1, 4, 3, make_enter},          {1, 3, 3, make_exit},
    {1, 4, 1, make_queue_gates},    {1, 1, 1, make_fair},           {4, 3, 1, make_import},
    {4, 3, 1, make_batch},          {2, 2, 1, make_batch_seal},     {1, 1, 0, make_batch_show},
    {1, 1, 0, make_batch_jobs},     {1, 2, 1, make_batch_cancel},   {1, 0, 0, make_batches},
    {1, 1, 0, make_batch_audit},    {3, 3, 1, make_purge},          {4, 4, 2, make_bulk},
    {1, 1, 0, make_corrupt},        {2, 2, 1, make_schedule_set},   {1, 1, 0, make_declare},
    {1, 1, 0, make_schedule_del},   {1, 1, 0, make_schedule_pause}, {1, 1, 0, make_schedule_resume},
    {1, 1, 0, make_schedule_run},   {1, 1, 0, make_schedule_show},  {1, 1, 0, make_schedules},
    {3, 3, 1, make_fire},           {3, 3, 1, make_subscribe},      {1, 1, 0, make_topics},
    {1, 1, 0, make_declare_topics}, {5, 5, 2, make_publish},        {7, 4, 1, make_broadcast},
    {3, 2, 1, make_foreign},        {2, 2, 1, make_collect}};

/* The calls that plain sequences mostly consist of: hundreds of jobs come and go, with calls
 * that meet them. */
static void (*const PLAIN[])(struct maker *k) = {
    make_add,       make_add,  make_add_many, make_add_many, make_add_many, make_register,
    make_sync,      make_sync, make_sync,     make_sync,     make_sync,     make_sync,
    make_sync,      make_sync, make_sync,     make_sync,     make_cancel,   make_await,
    make_reconcile, make_reap, make_bulk,     make_keep,     make_keep};

/* The same for chains: jobs end and die, and the next ones meet limits and gates of their queues.
 */
static void (*const CHAINED[])(struct maker *k) = {
    make_add,   make_add,  make_add,      make_add,    make_add_many, make_import,
    make_sync,  make_sync, make_sync,     make_sync,   make_sync,     make_sync,
    make_sync,  make_sync, make_register, make_cancel, make_reap,     make_queue_gates,
    make_retry, make_bulk, make_keep,     make_keep};

/* The same for batches: their members end in all ways, and new batches take the names of old ones.
 */
static void (*const BATCHED[])(struct maker *k) = {
    make_batch,        make_batch,      make_batch,      make_batch_seal,  make_batch_seal,
    make_batch_seal,   make_batch_show, make_batch_jobs, make_batch_audit, make_batches,
    make_add,          make_add,        make_add,        make_add_many,    make_import,
    make_sync,         make_sync,       make_sync,       make_sync,        make_sync,
    make_sync,         make_sync,       make_sync,       make_sync,        make_sync,
    make_register,     make_cancel,     make_reap,       make_retry,       make_retry,
    make_batch_cancel, make_purge,      make_tidy,       make_corrupt,     make_bulk,
    make_keep,         make_keep};

/* The same for schedules, whose last jobs wait, run, fail and end when the next ones are due, and
 * for topics and foreign queues. */
static void (*const SCHEDULED[])(struct maker *k) = {make_schedule_set,
                                                     make_schedule_set,
                                                     make_schedule_set,
                                                     make_declare,
                                                     make_schedule_del,
                                                     make_schedule_pause,
                                                     make_schedule_resume,
                                                     make_schedule_run,
                                                     make_schedule_run,
                                                     make_schedule_show,
                                                     make_schedule_show,
                                                     make_schedules,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_fire,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_sync,
                                                     make_keep,
                                                     make_register,
                                                     make_cancel,
                                                     make_retry,
                                                     make_reap,
                                                     make_tidy,
                                                     make_beat,
                                                     make_limit_set,
                                                     make_queue_gates,
                                                     make_subscribe,
                                                     make_subscribe,
                                                     make_declare_topics,
                                                     make_topics,
                                                     make_publish,
                                                     make_publish,
                                                     make_publish,
                                                     make_publish,
                                                     make_broadcast,
                                                     make_broadcast,
                                                     make_broadcast,
                                                     make_foreign,
                                                     make_foreign,
                                                     make_foreign,
                                                     make_foreign,
                                                     make_collect,
                                                     make_collect,
                                                     make_collect};

static int weight_of(const struct model *m, size_t i)
{
    return m->is_crowded ? MAKERS[i].crowded : m->is_gated ? MAKERS[i].gated : MAKERS[i].weight;
}

void calls_make(struct model *m, uint64_t seed, struct args *args, struct buf *want)
{
    struct maker k = {seed, m, args, want};
    int all = 0, at;

    for (size_t i = 0; i < COUNT(MAKERS); i++)
        all += weight_of(m, i);
    move_time(&k);
    if (model_corrupted(m) != NULL) {
        make_corrupt_end(&k);
        return;
    }
    /* Jobs need a worker to claim them, and gates need definitions. */
    if ((m->is_fair || m->is_gated || m->is_plain || m->is_chained || m->is_batched ||
         m->is_scheduled) &&
        strcmp(model_status(m, pick_epoch(&k, true)), "ok") != 0 && percent(&k, 50)) {
        make_register(&k);
        return;
    }
    if (m->is_fair && fair_words(m, 0)[0] == '\0' && percent(&k, 30)) {
        make_fair(&k);
        return;
    }
    if (m->is_gated && m->gates->limits < 3 && percent(&k, 40)) {
        make_limit_set(&k);
        return;
    }
    if (m->is_plain && percent(&k, 90)) {
        PICK(&k, PLAIN)(&k);
        return;
    }
    if (m->is_chained && percent(&k, 75)) {
        PICK(&k, CHAINED)(&k);
        return;
    }
    if (m->is_scheduled && percent(&k, 85)) {
        PICK(&k, SCHEDULED)(&k);
        return;
    }
    if (m->is_batched && percent(&k, 80)) {
        PICK(&k, BATCHED)(&k);
        return;
    }
    at = below(&k, all);
    for (size_t i = 0; i < COUNT(MAKERS); i++) {
        at -= weight_of(m, i);
        if (at < 0) {
            MAKERS[i].make(&k);
            return;
        }
    }
}
