/*
 * Purges in the model: jobs of a queue are removed, those in one state at a time.
 */
#include "model_fair.h"
#include "model_gates.h"

#include <string.h>

#define BYTES 1048576
#define LARGE_BYTES 262144 /* what a payload in a key of its own counts */
#define RECORDS 25         /* that are read at once */
#define WAITING_MOST 100
#define PARKED_MOST 40
#define KEPT_MOST 200

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

size_t model_within_bytes(struct model_job **row, size_t n, int64_t most, int64_t *left)
{
    int64_t bytes = *left;
    size_t i = 0;

    n = (size_t)least((int64_t)n, most);
    while (i < n && bytes > 0)
        for (size_t to = i + RECORDS; i < n && i < to; i++) {
            struct buf record = BUF_INIT;

            model_record(row[i], &record);
            bytes -= row[i]->payload.n > MODEL_BIG ? LARGE_BYTES : (int64_t)record.len;
            buf_done(&record);
        }
    *left = bytes;
    return i;
}

static size_t within(struct model_job **row, size_t n, int64_t most)
{
    int64_t bytes = BYTES;

    return model_within_bytes(row, n, most, &bytes);
}

/* How many of the first raw members does a call remove? It reads twice as many each time, but no
 * more than would fit if each were as large as the largest so far. */
static size_t raws_within(struct model_raw **row, size_t n, int64_t most)
{
    int64_t bytes = BYTES, step = 1, largest = 1;
    size_t i = 0;

    n = (size_t)least((int64_t)n, most);
    while (i < n && bytes > 0) {
        int64_t some = least(step, bytes / largest > 1 ? bytes / largest : 1);

        for (; some > 0 && i < n; some--, i++) {
            int64_t size = (int64_t)row[i]->member.n;

            largest = size > largest ? size : largest;
            bytes -= size;
        }
        step *= 2;
    }
    return i;
}

static void count_cancelled(struct model *m, int q, int64_t n)
{
    m->queue[q].is_known |= m->queue[q].cancelled == 0 && n > 0;
    m->queue[q].cancelled += n;
    if (n > 0)
        series_count(m, q, COUNT_CANCELLED, n);
}

/* These jobs will never run. */
static int64_t drop(struct model *m, int q, struct model_job **row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fair_leave(m, row[i]);
    for (size_t i = 0; i < n; i++)
        model_finish(m, row[i], model_outcome("cancelled", 0, MODEL_MS(m), 0, "purged", ""), 0);
    count_cancelled(m, q, (int64_t)n);
    return (int64_t)n;
}

static int64_t purge_raws(struct model *m, int q, int64_t most)
{
    struct model_raw *row[MODEL_RAWS];
    size_t n = raws_within(row, model_raws(m, q, row), least(most, WAITING_MOST));

    for (size_t i = 0; i < n; i++)
        row[i]->is_there = false;
    count_cancelled(m, q, (int64_t)n);
    return (int64_t)n;
}

/* Of all targets, as many as a call may. */
static int64_t purge_pinned(struct model *m, int q, int64_t most)
{
    struct model_pin *pin[MODEL_PINS];
    struct model_job *row[MODEL_JOBS];
    int64_t bytes = BYTES, removed = 0;

    for (size_t i = 0, n = pins_sorted(m, q, pin); i < n && removed < most && bytes > 0; i++) {
        size_t jobs = pins_jobs(m, q, pin[i]->target, row);

        removed += drop(m, q, row, model_within_bytes(row, jobs, most - removed, &bytes));
    }
    return removed;
}

/* The first set that is not empty: suspects, then by priority, raw members behind those of 5. */
static int64_t purge_due(struct model *m, int q, int64_t most)
{
    static const int order[] = {10, 0, 1, 2, 3, 4, 5, -1, 6, 7, 8, 9};
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        size_t n =
            order[i] < 0 ? model_raws(m, q, raw) : model_jobs(m, q, JOB_WAITING, order[i], row);

        if (n > 0 && order[i] < 0)
            return purge_raws(m, q, most);
        if (n > 0)
            return drop(m, q, row, within(row, n, least(most, WAITING_MOST)));
    }
    return purge_pinned(m, q, least(most, WAITING_MOST));
}

static int64_t purge_parked(struct model *m, int q, int64_t most)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = within(row, model_jobs(m, q, JOB_PARKED, -1, row), least(most, PARKED_MOST));

    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        waiters_unpark(m, row[i], false);
    (void)drop(m, q, row, n);
    waiters_hand_on(m);
    return (int64_t)n;
}

/* They ended before. */
static int64_t purge_kept(struct model *m, int q, enum model_state state, int64_t most)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = within(row, model_jobs(m, q, state, -1, row), least(most, KEPT_MOST));

    for (size_t i = 0; i < n; i++)
        model_forget(row[i]);
    return (int64_t)n;
}

void model_purge_one(struct model *m, struct model_job *j)
{
    if (j->state == JOB_DEAD || j->state == JOB_DONE) {
        model_forget(j);
        return;
    }
    if (j->state == JOB_PARKED)
        waiters_unpark(m, j, false);
    (void)drop(m, j->queue, &j, 1);
}

int64_t model_purge_after(struct model *m, int q, enum model_state state, int64_t removed)
{
    bool is_due = state == JOB_WAITING;
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    struct model_pin *pin[MODEL_PINS];
    size_t pins = is_due ? pins_sorted(m, q, pin) : 0;
    int64_t left;
    char *mark;

    for (size_t i = 0; i < pins; i++)
        pins_drop_empty(m, q, pin[i]->target);
    if (pins > 0 && !pins_any(m, q) && (mark = strchr(m->queue[q].marks, 'p')) != NULL)
        memmove(mark, mark + 1, strlen(mark));
    left = (int64_t)(model_jobs(m, q, state, -1, row) + (is_due ? model_raws(m, q, raw) : 0));
    if (is_due && removed > 0 && left == 0 && waiters_granted(m, q, row) == 0)
        m->queue[q].has_head = false;
    return left;
}

void model_purge(struct model *m, int q, const char *state, int64_t most, struct buf *out)
{
    bool is_due = strcmp(state, "due") == 0, is_parked = strcmp(state, "parked") == 0;
    enum model_state of = is_due                       ? JOB_WAITING
                          : is_parked                  ? JOB_PARKED
                          : strcmp(state, "dead") == 0 ? JOB_DEAD
                                                       : JOB_DONE;
    int64_t removed = 0;

    if (most > 0)
        removed = is_due      ? purge_due(m, q, most)
                  : is_parked ? purge_parked(m, q, most)
                              : purge_kept(m, q, of, most);
    buf_puts(out, "[ ");
    out_int(out, removed);
    out_int(out, model_purge_after(m, q, of, removed));
    buf_puts(out, "] ");
}
