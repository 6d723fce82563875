/*
 * Bulks in the model: one call changes few jobs, or leaves all, or what is left of its bytes, to
 * workers, which random sequences do not have go on.
 */
#include "model_gates.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rows.h"

#define BYTES 1048576
#define LARGE_BYTES 262144 /* what a payload in a key of its own counts */
#define PAGE 25
#define AT_ONCE 200
#define ACTIVE_MOST 16
#define KEEP_MS 86400000
#define PACE_MS 20
#define ERROR_BYTES 200
#define SETS (12 + MODEL_PINS)

/* A set of jobs, by the name that a cursor has for it. */
struct set {
    char name[MODEL_TARGET + 4];
    struct model_job *job[MODEL_JOBS];
    size_t n;
    bool is_raw;
};

/* What one call knows. */
struct walk {
    struct model_bulk *b;
    int64_t bytes;
    bool has_taken, needs_outcomes;
};

static struct set sets[SETS];

/* ---- sets */

static size_t due_sets(struct model *m, int q)
{
    static const int order[] = {10, 0, 1, 2, 3, 4, 5, -1, 6, 7, 8, 9};
    struct model_pin *pin[MODEL_PINS];
    size_t n = 0;

    for (; n < sizeof(order) / sizeof(order[0]); n++) {
        struct set *s = &sets[n];

        (void)snprintf(s->name, sizeof(s->name), "%zu", n + 1);
        s->is_raw = order[n] < 0;
        s->n = s->is_raw ? 0 : model_jobs(m, q, JOB_WAITING, order[n], s->job);
    }
    for (size_t i = 0, pins = pins_sorted(m, q, pin); i < pins; i++) {
        struct set *s = &sets[n++];

        (void)snprintf(s->name, sizeof(s->name), "%s", pin[i]->target);
        s->is_raw = false;
        s->n = pins_jobs(m, q, pin[i]->target, s->job);
    }
    return n;
}

static size_t read_sets(struct model *m, const struct model_bulk *b)
{
    if (b->state == JOB_WAITING)
        return due_sets(m, b->queue);
    (void)snprintf(sets[0].name, sizeof(sets[0].name), "1");
    sets[0].is_raw = false;
    sets[0].n = model_jobs(m, b->queue, b->state, -1, sets[0].job);
    return 1;
}

/* ---- which jobs */

static int64_t last_score(const struct model_bulk *b)
{
    return b->state == JOB_DEAD ? b->created : b->state == JOB_PARKED ? b->number : INT64_MAX;
}

static const char *outcome_of(const struct model_bulk *b, const struct model_job *j)
{
    const char *text = b->state == JOB_DONE ? j->result : j->error;

    return text != NULL ? text : "";
}

/* As far as its set tells. */
static bool is_in_set(const struct model_bulk *b, const struct model_job *j)
{
    char newest[16];

    model_id(b->number, newest);
    return strcmp(j->id, newest) <= 0 && j->score <= last_score(b) &&
           !(b->verb == BULK_RESCHEDULE && b->state == JOB_WAITING && j->score == b->at);
}

static bool is_later(const struct model_bulk *b, const struct model_job *j)
{
    long long when = 0;

    return (b->state == JOB_DONE || b->verb == BULK_RESCHEDULE) &&
           sscanf(outcome_of(b, j), "%*s %*d %lld", &when) == 1 && when > b->created;
}

static bool has_reason(const struct model_bulk *b, const struct model_job *j)
{
    char *text = mem_strdup(outcome_of(b, j)), *at = text;
    bool has;

    text[strcspn(text, "\n")] = '\0';
    for (int i = 0; i < 4 && at != NULL; i++)
        at = strchr(at, ' ') != NULL ? strchr(at, ' ') + 1 : NULL;
    has = at != NULL && fnmatch(b->reason, at, 0) == 0;
    free(text);
    return has;
}

static bool is_wanted(const struct model_bulk *b, const struct model_job *j)
{
    if (b->key != NULL && (j->key == NULL || strcmp(j->key, b->key) != 0))
        return false;
    return b->reason == NULL || has_reason(b, j);
}

static void read_page(struct walk *w, struct model_job **row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf record = BUF_INIT;

        if (!is_in_set(w->b, row[i]))
            continue;
        model_record(row[i], &record);
        w->bytes -= row[i]->payload.n > MODEL_BIG ? LARGE_BYTES : (int64_t)record.len;
        if (w->needs_outcomes)
            w->bytes -= (int64_t)strlen(outcome_of(w->b, row[i]));
        buf_done(&record);
    }
}

/* ---- one job */

static void quote(const char *text, char out[80])
{
    size_t n = strlen(text) < 64 ? strlen(text) : 64;

    for (size_t i = 0; i < n; i++)
        out[i] = (char)(text[i] < 32 || text[i] > 126 ? '?' : text[i]);
    out[n] = '\0';
}

/* -> why it cannot be retried; the caller frees it. NULL: it is. */
static char *retry(struct model *m, const struct model_bulk *b, struct model_job *j)
{
    int to = b->to >= 0 ? b->to : j->queue;
    const struct model_unique *u = j->unique != NULL ? unique_of(m, to, j->unique) : NULL;
    int64_t due = b->at != MODEL_NONE ? b->at : b->created;
    char key[80];

    if (to != j->queue && (int64_t)j->payload.n > model_max_payload(m, to))
        return mem_printf(
            "ELATER_SIZE the payload has %zu bytes, queue %s takes %lld (max_payload)",
            j->payload.n, m->queue[to].name, (long long)model_max_payload(m, to));
    if (u != NULL && strcmp(u->id, j->id) != 0) {
        quote(j->unique, key);
        return mem_printf("ELATER_UNIQUE job %s has the unique key '%s' of queue %s now", u->id,
                          key, m->queue[to].name);
    }
    if (b->spread != MODEL_NONE)
        due += (int64_t)((double)b->spread *
                         ((double)b->changed / (double)(b->total > 0 ? b->total : 1)));
    j->queue = to;
    model_retry_at(m, j, due > MODEL_MS(m) ? due : MODEL_MS(m));
    return NULL;
}

static char *change(struct model *m, const struct model_bulk *b, struct model_job *j)
{
    switch (b->verb) {
    case BULK_RETRY:
        return retry(m, b, j);
    case BULK_CANCEL:
        (void)model_cancel_live(m, j, "cancelled while waiting");
        break;
    case BULK_RESCHEDULE:
        if (j->state == JOB_PARKED)
            waiters_unpark(m, j, false);
        model_enqueue(m, j, b->at);
        break;
    case BULK_PURGE:
        model_purge_one(m, j);
        break;
    }
    return NULL;
}

static void take(struct model *m, struct walk *w, struct model_job *j)
{
    char *why = change(m, w->b, j);

    w->has_taken = true;
    if (why == NULL) {
        w->b->changed++;
        return;
    }
    w->b->failed++;
    (void)snprintf(w->b->error, sizeof(w->b->error), "%.*s", ERROR_BYTES, why);
    free(why);
}

/* ---- the way */

enum end { WHOLE, OVER, STOPPED };

static enum end take_page(struct model *m, struct walk *w, struct model_job **row, size_t n)
{
    bool in_set[PAGE], later[PAGE], wanted[PAGE];
    int64_t score[PAGE];

    /* All is read before the first one is changed. */
    for (size_t i = 0; i < n; i++) {
        in_set[i] = is_in_set(w->b, row[i]);
        later[i] = is_later(w->b, row[i]);
        wanted[i] = is_wanted(w->b, row[i]);
        score[i] = row[i]->score;
    }
    read_page(w, row, n);
    for (size_t i = 0; i < n; i++) {
        bool is_meant = in_set[i] && !later[i];

        if (score[i] > last_score(w->b))
            return OVER;
        if (is_meant && wanted[i] && m->moved >= BYTES && w->has_taken)
            return STOPPED;
        w->b->score = score[i];
        (void)snprintf(w->b->member, sizeof(w->b->member), "%s", row[i]->id);
        w->b->seen += is_meant;
        if (is_meant && wanted[i])
            take(m, w, row[i]);
    }
    return WHOLE;
}

/* Returns whether the set was met to its end. */
static bool walk_set(struct model *m, struct walk *w, const struct set *s)
{
    for (size_t from = 0; w->bytes > 0; from += PAGE) {
        size_t n = s->n - from < PAGE ? s->n - from : PAGE;
        enum end end = take_page(m, w, (struct model_job **)s->job + from, n);

        if (end != WHOLE)
            return end == OVER;
        if (n < PAGE)
            return true;
    }
    return false;
}

static bool walk(struct model *m, struct walk *w, size_t nsets)
{
    for (size_t i = 0; i < nsets; i++) {
        memcpy(w->b->set, sets[i].name, sizeof(w->b->set));
        if (!sets[i].is_raw && !walk_set(m, w, &sets[i]))
            return false;
        w->b->member[0] = '\0';
    }
    return true;
}

static int64_t total_of(const struct model_bulk *b, size_t nsets)
{
    int64_t total = 0;

    for (size_t i = 0; i < nsets; i++)
        for (size_t k = 0; k < sets[i].n; k++)
            total += sets[i].job[k]->score <= last_score(b);
    return total;
}

static void run_at_once(struct model *m, struct model_bulk *b, size_t nsets)
{
    struct walk w = {.b = b,
                     .bytes = BYTES,
                     .needs_outcomes =
                         b->reason != NULL || b->state == JOB_DONE || b->verb == BULK_RESCHEDULE};
    bool is_over;

    m->moved = 0;
    is_over = walk(m, &w, nsets);
    if (b->state == JOB_PARKED || b->verb == BULK_CANCEL)
        waiters_hand_on(m);
    if (b->verb == BULK_PURGE && w.has_taken)
        (void)model_purge_after(m, b->queue, b->state, b->changed + b->failed);
    b->again = MODEL_MS(m) + PACE_MS;
    b->is_active = !is_over;
}

/* ---- the calls */

size_t bulks_active(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->bulks; i++)
        n += m->bulk[i].is_there && m->bulk[i].is_active;
    return n;
}

void bulks_tidy(struct model *m)
{
    for (size_t i = 0; i < m->bulks; i++)
        if (m->bulk[i].is_there && !m->bulk[i].is_active &&
            m->bulk[i].created <= MODEL_MS(m) - KEEP_MS)
            m->bulk[i].is_there = false;
}

void model_bulk(struct model *m, const struct model_bulk *given, struct buf *out)
{
    struct model_bulk *b = &m->bulk[m->bulks];
    size_t nsets;

    if (bulks_active(m) >= ACTIVE_MOST) {
        out_refusal(out, "ELATER_FULL");
        return;
    }
    *b = *given;
    m->bulks++;
    b->is_there = b->is_active = true;
    b->created = MODEL_MS(m);
    b->again = b->created + 1;
    b->number = model_tick(m, 1, 0);
    (void)snprintf(b->set, sizeof(b->set), "1");
    nsets = read_sets(m, b);
    b->total = total_of(b, nsets);
    if (b->total < AT_ONCE)
        run_at_once(m, b, nsets);
    if (b->is_active)
        model_wake(m, "!bulk");
    model_id(b->number, b->id);
    b->id[0] = 'b';
    buf_puts(out, "[ ");
    out_text(out, b->id);
    out_text(out, b->is_active ? "active" : "done");
    out_int(out, b->total);
    buf_puts(out, "] ");
}

/* ---- what Redis has */

static void render(const struct model *m, const struct model_bulk *b, struct rows *rows)
{
    static const char *const verbs[] = {"retry", "cancel", "reschedule", "purge"};
    bool is_due = b->state == JOB_WAITING;
    char key[32];

    (void)snprintf(key, sizeof(key), "bulk:%s", b->id);
    rows_number(rows, "bulks", "zset", b->id, b->created);
    rows_text(rows, key, "hash", "verb", verbs[b->verb]);
    rows_text(rows, key, "hash", "queue", m->queue[b->queue].name);
    rows_text(rows, key, "hash", "state", is_due ? "due" : model_state_name(b->state));
    rows_text(rows, key, "hash", "status", b->is_active ? "active" : "done");
    if (b->reason != NULL)
        rows_text(rows, key, "hash", "reason", b->reason);
    if (b->key != NULL)
        rows_text(rows, key, "hash", "key", b->key);
    if (b->to >= 0)
        rows_text(rows, key, "hash", "to", m->queue[b->to].name);
    if (b->at != MODEL_NONE)
        rows_number(rows, key, "hash", "at_ms", b->at);
    if (b->spread != MODEL_NONE)
        rows_number(rows, key, "hash", "spread_ms", b->spread);
    rows_number(rows, key, "hash", "created_ms", b->created);
    if (!b->is_active)
        rows_number(rows, key, "hash", "ended_ms", b->created);
    rows_number(rows, key, "hash", "total", b->total);
    rows_number(rows, key, "hash", "seen", b->seen);
    rows_number(rows, key, "hash", "changed", b->changed);
    rows_number(rows, key, "hash", "failed", b->failed);
    if (b->error[0] != '\0')
        rows_text(rows, key, "hash", "error", b->error);
    rows_text(rows, key, "hash", "set", b->set);
    if (b->member[0] != '\0') {
        rows_number(rows, key, "hash", "score", b->score);
        rows_text(rows, key, "hash", "member", b->member);
    }
    rows_number(rows, key, "hash", "again_ms", b->again);
}

void bulks_render(const struct model *m, struct rows *rows)
{
    for (size_t i = 0; i < m->bulks; i++)
        if (m->bulk[i].is_there)
            render(m, &m->bulk[i], rows);
}
