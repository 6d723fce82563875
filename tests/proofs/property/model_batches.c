/*
 * Batches in the model: who belongs to them, what the end of a member causes, and the functions
 * about them (src/lua/batch/, batch*.lua of src/lua/public/).
 *
 * What Redis counts is counted here, too: a batch has no counters, and its members keep their
 * states when their jobs are gone.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATEST INT64_C(100000000000000)
#define LOST_MS INT64_C(604800000)
#define LISTED 128 /* Redis keeps the order of a sorted set that never had more members */
#define TIDIED 16
#define CORRUPT "its record is corrupt (what is left of it is its payload)"
#define CANCEL_PAGE 100

static const char *const CALLBACKS[MODEL_CALLBACKS] = {"then", "finally", "on_dead"};
static const char *const STATES[] = {"live", "done", "dead", "cancelled"};

static struct batch_counts counts;

const struct batch_counts *batch_counts(void)
{
    return &counts;
}

struct model_batch *batch_of(struct model *m, const char *name)
{
    for (size_t i = 0; name != NULL && i < MODEL_BATCHES; i++)
        if (m->batch[i].is_there && strcmp(m->batch[i].name, name) == 0)
            return &m->batch[i];
    return NULL;
}

/* A job may name a batch that was forgotten, and another one of that name. */
static struct model_member *member_of(struct model_batch *b, const struct model_job *j)
{
    for (size_t i = 0; b != NULL && i < b->members; i++)
        if (b->member[i].job == j)
            return &b->member[i];
    return NULL;
}

struct model_member *batch_member(struct model *m, const struct model_job *j)
{
    return member_of(batch_of(m, j->chain.batch), j);
}

const char *batch_inside(struct model *m, const struct model_job *j)
{
    if (batch_member(m, j) != NULL)
        return j->chain.batch;
    counts.passed += j->chain.batch != NULL;
    return NULL;
}

bool batch_is_cancelled(struct model *m, const struct model_job *j)
{
    return batch_member(m, j) != NULL && batch_of(m, j->chain.batch)->cancelled_ms != MODEL_NONE;
}

static int64_t count_in(const struct model_batch *b, enum member_state state)
{
    int64_t n = 0;

    for (size_t i = 0; i < b->members; i++)
        n += b->member[i].state == state;
    return n;
}

/* When a job joined last, or the batch was opened. */
static int64_t touched_ms(const struct model_batch *b)
{
    int64_t last = b->created_ms;

    for (size_t i = 0; i < b->members; i++)
        if (b->member[i].job->added_ms > last)
            last = b->member[i].job->added_ms;
    return last;
}

static const char *state_of(const struct model_batch *b)
{
    return b->ended_ms != MODEL_NONE       ? "ended"
           : b->cancelled_ms != MODEL_NONE ? "cancelled"
           : b->sealed_ms != MODEL_NONE    ? "sealed"
                                           : "open";
}

/* The library writes the definition, and where the batch is listed. */
static void put(struct model_batch *b)
{
    b->open_ms = b->sealed_ms != MODEL_NONE ? LATEST : b->created_ms;
}

/* ---- joining */

const char *batch_refusal(struct model *m, const struct model_options *o)
{
    const struct model_batch *b = batch_of(m, o->chain.batch);

    if (o->chain.batch == NULL)
        return NULL;
    if (b == NULL)
        return "ELATER_NOBATCH";
    if (b->cancelled_ms != MODEL_NONE)
        return "ELATER_BATCH";
    if (b->sealed_ms != MODEL_NONE && (o->inside == NULL || strcmp(o->inside, b->name) != 0))
        return "ELATER_BATCH";
    return NULL;
}

void batch_join(struct model *m, const struct model_job *j)
{
    struct model_batch *b = batch_of(m, j->chain.batch);

    if (b == NULL)
        return;
    if (b->members == MODEL_JOBS)
        abort();
    b->member[b->members++] = (struct model_member){j, MEMBER_LIVE};
    b->is_large |= b->members > LISTED;
    counts.joined++;
    counts.inside += b->sealed_ms != MODEL_NONE;
}

/* ---- ends */

static void fire(struct model *m, struct model_batch *b, enum callback what)
{
    struct model_job *j;
    size_t n = strlen(b->fired);

    if (b->queue[what] < 0 || strstr(b->fired, CALLBACKS[what]) != NULL)
        return;
    m->moved += (int64_t)b->payload.n;
    /* Its id is made of the time in ms, not in us. */
    j = model_new_job(m, model_tick_at(m, 1000 * MODEL_MS(m)), b->queue[what], b->payload);
    (void)snprintf(j->chain.callback, sizeof(j->chain.callback), "%s,%zu,%lld,%lld,%lld", b->name,
                   b->members, (long long)count_in(b, MEMBER_DONE),
                   (long long)count_in(b, MEMBER_DEAD), (long long)count_in(b, MEMBER_CANCELLED));
    model_enqueue_caused(m, j);
    (void)snprintf(b->fired + n, sizeof(b->fired) - n, "%s%s", n > 0 ? "," : "", CALLBACKS[what]);
    counts.callbacks[what]++;
}

/* The batch that is to be forgotten first, if its time is over; NULL: none. */
static struct model_batch *first_over(struct model *m)
{
    struct model_batch *first = NULL;

    for (size_t i = 0; i < MODEL_BATCHES; i++) {
        struct model_batch *b = &m->batch[i];
        int64_t until = b->ended_ms + b->keep_ms, before;

        if (!b->is_there || b->ended_ms == MODEL_NONE || until > MODEL_MS(m))
            continue;
        before = first != NULL ? first->ended_ms + first->keep_ms : LATEST;
        if (first == NULL || until < before ||
            (until == before && strcmp(b->name, first->name) < 0))
            first = b;
    }
    return first;
}

static void trim(struct model *m, int n)
{
    for (struct model_batch *b; n-- > 0 && (b = first_over(m)) != NULL;) {
        b->is_there = false;
        counts.forgotten++;
    }
}

/* A sealed batch without a live member has ended. Returns whether that is so. */
static bool end(struct model *m, struct model_batch *b)
{
    char channel[96];

    if (b->sealed_ms == MODEL_NONE || count_in(b, MEMBER_LIVE) > 0)
        return false;
    fire(m, b, CALLBACK_FINALLY);
    if (count_in(b, MEMBER_DEAD) + count_in(b, MEMBER_CANCELLED) == 0)
        fire(m, b, CALLBACK_THEN);
    if (b->ended_ms != MODEL_NONE)
        return true;
    (void)snprintf(channel, sizeof(channel), MODEL_ROOT ":ended:batch:%s", b->name);
    model_publish(m, channel, "ended", 5);
    /* It is listed among those that have ended only after that. */
    trim(m, 2);
    b->ended_ms = MODEL_MS(m);
    counts.ended++;
    return true;
}

static struct {
    const struct model_job *job[MODEL_JOBS];
    size_t n;
} later;

void batches_end_later(struct model *m)
{
    for (size_t i = 0; i < later.n; i++) {
        struct model_batch *b = batch_of(m, later.job[i]->chain.batch);
        bool has_changed = false;

        for (size_t k = i; b != NULL && k < later.n; k++) {
            struct model_member *of = batch_member(m, later.job[k]);

            if (batch_of(m, later.job[k]->chain.batch) != b)
                continue;
            if (of == NULL || of->state == MEMBER_DONE)
                continue;
            of->state = MEMBER_DONE;
            has_changed = true;
        }
        if (has_changed && end(m, b))
            put(b);
    }
    later.n = 0;
}

void batch_end(struct model *m, const struct model_job *j, enum member_state state)
{
    struct model_batch *b = batch_of(m, j->chain.batch);
    struct model_member *of = member_of(b, j);
    bool died;

    if (m->ends_later) {
        later.job[later.n++] = j;
        return;
    }
    if (of == NULL || of->state == state)
        return;
    of->state = state;
    m->moved += (int64_t)b->payload.n;
    died = state == MEMBER_DEAD && b->dead == NULL;
    if (died) {
        b->dead = j;
        fire(m, b, CALLBACK_ON_DEAD);
    }
    if (end(m, b) || died)
        put(b);
}

void batch_revive(struct model *m, const struct model_job *j)
{
    struct model_batch *b = batch_of(m, j->chain.batch);
    struct model_member *of = member_of(b, j);

    if (of == NULL)
        return;
    of->state = MEMBER_LIVE;
    counts.revived++;
    if (b->ended_ms == MODEL_NONE)
        return;
    b->ended_ms = MODEL_NONE;
    put(b);
}

void batches_tidy(struct model *m)
{
    int64_t before = MODEL_MS(m) - LOST_MS;

    trim(m, TIDIED);
    for (size_t i = 0; i < MODEL_BATCHES; i++) {
        struct model_batch *b = &m->batch[i];

        if (!b->is_there || b->ended_ms != MODEL_NONE || b->open_ms > before)
            continue;
        b->open_ms = touched_ms(b);
        b->is_there = b->open_ms >= before;
        counts.forgotten += !b->is_there;
    }
}

/* ---- corrupt records */

void model_corrupt(struct model_job *j, const char *text)
{
    j->corrupt = text;
}

struct model_job *model_corrupted(struct model *m)
{
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].corrupt != NULL)
            return &m->job[i];
    return NULL;
}

/* The queue that a corrupt record names; -1: none. */
static int named_queue(const char *record)
{
    for (int q = 0; q < MODEL_QUEUES && record[0] == '-'; q++) {
        size_t n = strlen(model_queue_name(q));

        if (strncmp(record + 1, model_queue_name(q), n) == 0 &&
            (record[1 + n] == ' ' || record[1 + n] == '\n'))
            return q;
    }
    return -1;
}

void model_bury_corrupt(struct model *m, struct model_job *j, int by)
{
    const char *record = j->corrupt;
    int q = named_queue(record);

    counts.corrupt += batch_member(m, j) != NULL;
    batch_end(m, j, MEMBER_DEAD);
    j->corrupt = NULL;
    j->chain = MODEL_NO_CHAIN;
    model_set(&j->caused, NULL);
    j->queue = q >= 0 ? q : by;
    if (j->queue < 0) {
        char *outcome = model_outcome("dead", 0, MODEL_MS(m), 0, CORRUPT, "");

        model_announce(m, j, outcome);
        free(outcome);
        j->queue = 0;
        model_forget(j);
        return;
    }
    j->priority = 5;
    j->a = j->t = j->x = j->k = MODEL_NONE;
    j->key = j->trace = NULL;
    memset(j->own, 0, sizeof(j->own));
    /* A payload in a key of its own is still there. */
    if (j->payload.n <= MODEL_BIG)
        j->payload = (struct bytes){record, strlen(record)};
    model_bury(m, j, model_outcome("dead", 0, MODEL_MS(m), 0, CORRUPT, ""), 10000);
}

/* ---- functions */

static void reply_two(struct buf *out, const char *name, const char *word)
{
    buf_puts(out, "[ ");
    out_text(out, name);
    out_text(out, word);
    buf_puts(out, "] ");
}

/* A new batch takes the place of one that was forgotten. */
static struct model_batch *new_batch(struct model *m)
{
    for (size_t i = 0; i < MODEL_BATCHES; i++)
        if (!m->batch[i].is_there)
            return &m->batch[i];
    abort();
}

static bool is_same(const struct model_batch *b, const struct model_batch_options *o)
{
    return memcmp(b->queue, o->queue, sizeof(b->queue)) == 0 && b->keep_ms == o->keep_ms &&
           b->payload.n == o->payload.n &&
           (b->payload.n == 0 || memcmp(b->payload.p, o->payload.p, b->payload.n) == 0);
}

void model_batch(struct model *m, const struct model_batch_options *o, struct buf *out)
{
    struct model_batch *b = batch_of(m, o->name);
    const char *refusal = o->name == NULL            ? "ELATER_BATCH"
                          : o->refusal != NULL       ? o->refusal
                          : o->payload.n > MODEL_BIG ? "ELATER_SIZE"
                                                     : NULL;

    if (refusal == NULL && b != NULL && (b->sealed_ms != MODEL_NONE || !is_same(b, o)))
        refusal = "ELATER_BATCH";
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    reply_two(out, o->name, b != NULL ? "repeated" : "opened");
    if (b != NULL)
        return;
    b = new_batch(m);
    b->is_there = true;
    b->name = o->name;
    memcpy(b->queue, o->queue, sizeof(b->queue));
    for (int i = 0; i < MODEL_CALLBACKS; i++)
        if (b->queue[i] >= 0)
            m->queue[b->queue[i]].is_known = true;
    b->keep_ms = o->keep_ms;
    b->payload = o->payload;
    b->created_ms = MODEL_MS(m);
    b->sealed_ms = b->cancelled_ms = b->ended_ms = MODEL_NONE;
    b->fired[0] = '\0';
    b->dead = NULL;
    b->is_large = false;
    b->members = 0;
    put(b);
    counts.opened++;
}

/* Returns the batch, or NULL: it is refused. */
static struct model_batch *need(struct model *m, const char *name, struct buf *out)
{
    struct model_batch *b = batch_of(m, name);

    if (b == NULL)
        out_refusal(out, name == NULL ? "ELATER_BATCH" : "ELATER_NOBATCH");
    return b;
}

static void seal(struct model *m, struct model_batch *b)
{
    if (b->sealed_ms == MODEL_NONE)
        b->sealed_ms = MODEL_MS(m);
    (void)end(m, b);
    put(b);
}

void model_batch_seal(struct model *m, const char *name, struct buf *out)
{
    struct model_batch *b = need(m, name, out);
    bool was_open;

    if (b == NULL)
        return;
    was_open = b->sealed_ms == MODEL_NONE;
    seal(m, b);
    reply_two(out, name, was_open ? "sealed" : "repeated");
}

static void put_counts(const struct model_batch *b, struct buf *out)
{
    out_named_number(out, "total", (int64_t)b->members);
    for (int i = 0; i <= MEMBER_CANCELLED; i++)
        out_named_number(out, STATES[i], count_in(b, (enum member_state)i));
}

void model_batch_show(struct model *m, const char *name, struct buf *out)
{
    const struct model_batch *b = need(m, name, out);

    if (b == NULL)
        return;
    buf_puts(out, "[ ");
    out_named_text(out, "batch", b->name);
    out_named_text(out, "state", state_of(b));
    out_named_number(out, "created_ms", b->created_ms);
    out_named_number(out, "sealed_ms", b->sealed_ms);
    out_named_number(out, "ended_ms", b->ended_ms);
    out_named_number(out, "keep_ms", b->keep_ms);
    for (int i = 0; i < MODEL_CALLBACKS; i++)
        out_named_text(out, CALLBACKS[i], b->queue[i] >= 0 ? m->queue[b->queue[i]].name : NULL);
    out_named_text(out, "fired", b->fired);
    out_named_number(out, "until_ms",
                     b->ended_ms == MODEL_NONE ? MODEL_NONE : b->ended_ms + b->keep_ms);
    put_counts(b, out);
    out_named_text(out, "first_dead", b->dead != NULL ? b->dead->id : NULL);
    out_named_number(out, "touched_ms", touched_ms(b));
    out_named_number(out, "payload_bytes", (int64_t)b->payload.n);
    if (b->payload.n > 0) {
        out_text(out, "payload");
        out_bytes(out, b->payload.p, b->payload.n);
    }
    buf_puts(out, "] ");
}

static int by_state(const void *a, const void *b)
{
    const struct model_member *x = a, *y = b;

    return x->state != y->state ? (int)x->state - (int)y->state : strcmp(x->job->id, y->job->id);
}

/* The members as Redis sorts them. The caller frees them. */
static struct model_member *sorted(const struct model_batch *b)
{
    struct model_member *all = calloc(b->members + 1, sizeof(*all));

    if (all == NULL)
        abort();
    memcpy(all, b->member, b->members * sizeof(*all));
    if (b->members > 1)
        qsort(all, b->members, sizeof(*all), by_state);
    return all;
}

void model_batch_jobs(struct model *m, const char *name, int state, struct buf *out)
{
    const struct model_batch *b = need(m, name, out);
    struct model_member *all;

    if (b == NULL)
        return;
    all = sorted(b);
    buf_puts(out, "[ s1:0 ");
    for (size_t i = 0; i < b->members; i++)
        if (state < 0 || (int)all[i].state == state)
            reply_two(out, all[i].job->id, STATES[all[i].state]);
    buf_puts(out, "] ");
    free(all);
}

/* Cancel a page of the first n of these members, the last one first. */
static void cancel_page(struct model *m, const struct model_member *all, size_t n, struct buf *out)
{
    int64_t cancelled = 0, cancelling = 0;
    size_t from = n > CANCEL_PAGE ? n - CANCEL_PAGE : 0;

    for (size_t i = n; i-- > from;) {
        struct model_job *j = &m->job[all[i].job - m->job];

        if (j->corrupt != NULL)
            continue;
        if (strcmp(model_cancel_live(m, j, "cancelled while waiting"), "cancelled") == 0)
            cancelled++;
        else
            cancelling++;
    }
    counts.cancelled += (uint64_t)cancelled;
    buf_puts(out, "[ ");
    out_int(out, cancelled);
    out_int(out, cancelling);
    out_text(out, from > 0 ? all[from].job->id : "");
    buf_puts(out, "] ");
}

void model_batch_cancel(struct model *m, const char *name, const char *before_id, struct buf *out)
{
    struct model_batch *b = need(m, name, out);
    struct model_member *all;
    size_t n = 0;

    if (b == NULL)
        return;
    if (before_id[0] != '\0' && before_id[0] != 'j') {
        out_refusal(out, "ELATER_ARGS");
        return;
    }
    all = sorted(b);
    while (n < b->members && all[n].state == MEMBER_LIVE &&
           (before_id[0] == '\0' || strcmp(all[n].job->id, before_id) < 0))
        n++;
    if (b->cancelled_ms == MODEL_NONE) {
        b->cancelled_ms = MODEL_MS(m);
        seal(m, b);
    }
    cancel_page(m, all, n, out);
    waiters_hand_on(m);
    free(all);
}

static int by_name(const void *a, const void *b)
{
    const struct model_batch *x = *(const struct model_batch *const *)a;
    const struct model_batch *y = *(const struct model_batch *const *)b;

    return strcmp(x->name, y->name);
}

void model_batches(struct model *m, struct buf *out)
{
    const struct model_batch *row[MODEL_BATCHES];
    size_t n = 0;

    for (size_t i = 0; i < MODEL_BATCHES; i++)
        if (m->batch[i].is_there)
            row[n++] = &m->batch[i];
    if (n > 1)
        qsort((void *)row, n, sizeof(row[0]), by_name);
    buf_puts(out, "[ s1:0 ");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, "[ ");
        out_text(out, row[i]->name);
        out_text(out, state_of(row[i]));
        out_int(out, row[i]->created_ms);
        out_int(out, (int64_t)row[i]->members);
        for (int k = 0; k <= MEMBER_CANCELLED; k++)
            out_int(out, count_in(row[i], (enum member_state)k));
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
}

void model_batch_audit(struct model *m, const char *name, struct buf *out)
{
    int64_t n = 0;

    for (size_t i = 0; i < MODEL_BATCHES; i++)
        n += m->batch[i].is_there;
    buf_puts(out, "[ s0: ");
    out_int(out, name == NULL ? n : (int64_t)batch_of(m, name)->members);
    buf_puts(out, "] ");
}

/* ---- output */

static void put_field(struct buf *out, const char *name, int64_t n)
{
    if (n != MODEL_NONE)
        buf_printf(out, "%s%s=%lld", out->len > 0 ? " " : "", name, (long long)n);
}

static void render(const struct model *m, const struct model_batch *b, struct rows *rows)
{
    struct buf text = BUF_INIT;
    char key[64];

    put_field(&text, "created_ms", b->created_ms);
    put_field(&text, "keep_ms", b->keep_ms);
    for (int i = 0; i < MODEL_CALLBACKS; i++)
        if (b->queue[i] >= 0)
            buf_printf(&text, " %s=%s", CALLBACKS[i], m->queue[b->queue[i]].name);
    put_field(&text, "sealed_ms", b->sealed_ms);
    put_field(&text, "cancelled_ms", b->cancelled_ms);
    put_field(&text, "ended_ms", b->ended_ms);
    if (b->fired[0] != '\0')
        buf_printf(&text, " fired=%s", b->fired);
    if (b->dead != NULL)
        buf_printf(&text, " dead=%s", b->dead->id);
    buf_puts(&text, "\n");
    if (b->payload.n > 0)
        buf_add(&text, b->payload.p, b->payload.n);
    rows_put(rows, "batches", "hash", b->name, text.data, text.len);
    rows_index(rows, "batch", b->name);
    buf_done(&text);
    if (b->ended_ms != MODEL_NONE)
        rows_number(rows, "batch:ended", "zset", b->name, b->ended_ms + b->keep_ms);
    else
        rows_number(rows, "batch:open", "zset", b->name, b->open_ms);
    (void)snprintf(key, sizeof(key), "members:%s", b->name);
    for (size_t i = 0; i < b->members; i++)
        rows_number(rows, key, "zset", b->member[i].job->id, b->member[i].state);
}

void batches_render(struct model *m, struct rows *rows)
{
    for (size_t i = 0; i < MODEL_BATCHES; i++)
        if (m->batch[i].is_there)
            render(m, &m->batch[i], rows);
}

static bool has_fired(const struct model_batch *b, enum callback what)
{
    return b->queue[what] < 0 || strstr(b->fired, CALLBACKS[what]) != NULL;
}

static const char *broken(const struct model_batch *b)
{
    bool has_ended = b->ended_ms != MODEL_NONE;
    int64_t live = count_in(b, MEMBER_LIVE), done = count_in(b, MEMBER_DONE);

    for (size_t i = 0; i < b->members; i++) {
        const struct model_job *j = b->member[i].job;
        bool is_live = j->state != JOB_GONE && j->state <= JOB_RUNNING;

        /* One that was corrupt does not know its batch any more, and may be tried again. */
        if (is_live != (b->member[i].state == MEMBER_LIVE) && (!is_live || j->chain.batch != NULL))
            return "a member counts as live whose job has ended, or the reverse";
    }
    if (has_ended != (b->sealed_ms != MODEL_NONE && live == 0))
        return "a batch has ended that is not sealed or has live members, or the reverse";
    if (has_ended && !has_fired(b, CALLBACK_FINALLY))
        return "a batch has ended without finally";
    if (has_ended && done == (int64_t)b->members && !has_fired(b, CALLBACK_THEN))
        return "all members of a batch are done, and then did not come";
    if (b->dead != NULL && !has_fired(b, CALLBACK_ON_DEAD))
        return "a member died, and on_dead did not come";
    return NULL;
}

const char *batches_broken(struct model *m)
{
    const char *what = NULL;

    for (size_t i = 0; what == NULL && i < MODEL_BATCHES; i++)
        what = m->batch[i].is_there ? broken(&m->batch[i]) : NULL;
    return what;
}
