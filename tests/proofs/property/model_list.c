/*
 * Lists in the model: pages of the jobs of a queue.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RAW_BYTES 1048576

static void first_line(struct buf *out, const char *text)
{
    out_bytes(out, text, text == NULL ? 0 : strcspn(text, "\n"));
}

void model_tries(const struct model_job *j, char text[MODEL_TRIES])
{
    (void)snprintf(text, MODEL_TRIES, "%lld %lld %lld %lld", (long long)j->starts,
                   (long long)j->attempts, (long long)j->crashes, (long long)j->tries_due);
}

static void job_row(const struct model_job *j, const char *beside, struct buf *out)
{
    char tries[MODEL_TRIES] = "";

    if (j->has_tries)
        model_tries(j, tries);
    buf_puts(out, "[ ");
    out_text(out, j->id);
    out_number(out, j->score);
    out_number(out, j->priority);
    out_text(out, tries);
    first_line(out, beside);
    out_int(out, (int64_t)j->payload.n);
    out_bytes(out, j->payload.p, j->payload.n < 64 ? j->payload.n : 64);
    /* The gate that it waits at; "" if it was granted. */
    out_text(out, j->state == JOB_PARKED && j->spot.at > 0 ? j->spot.gate[j->spot.at - 1]->id : "");
    out_text(out, j->key != NULL ? j->key : "");
    buf_puts(out, "] ");
}

static void raw_row(const struct model_raw *r, struct buf *out)
{
    buf_puts(out, "[ ");
    out_text(out, "");
    out_score(out, r->score);
    out_text(out, "5");
    out_text(out, "");
    out_text(out, "");
    out_int(out, (int64_t)r->member.n);
    out_bytes(out, r->member.p, r->member.n < 64 ? r->member.n : 64);
    out_text(out, "");
    out_text(out, "");
    buf_puts(out, "] ");
}

/* How many raw members from `from` on one page reads: it reads twice as many each time, and stops
 * when it has so many bytes. */
static size_t read_raws(struct model_raw *const *raw, size_t from, size_t n, int64_t count)
{
    int64_t bytes = RAW_BYTES, largest = 1, step = 1, most;
    size_t at = from;

    for (; count > 0 && bytes > 0; count -= most, step *= 2) {
        most = bytes / largest > 1 ? bytes / largest : 1;
        most = step < most ? step : most;
        most = count < most ? count : most;
        for (int64_t i = 0; i < most; i++) {
            if (at >= n)
                return at;
            largest = largest > (int64_t)raw[at]->member.n ? largest : (int64_t)raw[at]->member.n;
            bytes -= (int64_t)raw[at++]->member.n;
        }
    }
    return at;
}

static void put_cursor(char next[64], int s, const char *target, size_t offset)
{
    if (target != NULL)
        (void)snprintf(next, 64, "%s:%zu", target, offset);
    else
        (void)snprintf(next, 64, "%d:%zu", s, offset);
}

/* Segments: suspects, priorities 0 to 5, raw members, priorities 6 to 9, the targets of pinned
 * jobs.
 */
static void list_due(struct model *m, int q, int segment, int64_t offset, int count,
                     struct buf *out)
{
    struct buf rows = BUF_INIT;
    struct model_pin *pin[MODEL_PINS];
    size_t pins = pins_sorted(m, q, pin);
    char next[64] = "";

    for (int s = segment; s <= 12 + (int)pins && next[0] == '\0'; s++) {
        struct model_job *row[MODEL_JOBS];
        struct model_raw *raw[MODEL_RAWS];
        int priority = s == 1 ? 10 : s <= 7 ? s - 2 : s - 3;
        size_t n = s == 8   ? model_raws(m, q, raw)
                   : s > 12 ? pins_jobs(m, q, pin[s - 13]->target, row)
                            : model_jobs(m, q, JOB_WAITING, priority, row);
        size_t all = n;

        if (s == 8 && (size_t)offset < n)
            n = read_raws(raw, (size_t)offset, n, count + 1);
        for (size_t i = (size_t)offset; i < n; i++) {
            if (count == 0) {
                put_cursor(next, s, s > 12 ? pin[s - 13]->target : NULL, i);
                break;
            }
            count--;
            if (s == 8)
                raw_row(raw[i], &rows);
            else
                job_row(row[i], row[i]->error, &rows);
        }
        if (n < all && next[0] == '\0')
            put_cursor(next, s, s > 12 ? pin[s - 13]->target : NULL, n);
        offset = 0;
    }
    buf_puts(out, "[ ");
    out_text(out, next);
    if (rows.len > 0)
        buf_add(out, rows.data, rows.len);
    buf_puts(out, "] ");
    buf_done(&rows);
}

/* The queue, the host, the start and the timeout of a running job behind its row; no worker tells
 * starts here. */
static void add_where(struct model *m, const struct model_job *j, struct buf *out)
{
    const struct model_worker *w = model_worker(m, j->score);

    out->len -= strlen("] ");
    out_text(out, m->queue[j->queue].name);
    out_text(out, w != NULL ? w->host : "");
    out_text(out, "");
    if (j->t == MODEL_NONE)
        out_text(out, "");
    else
        out_int(out, j->t);
    buf_puts(out, "] ");
}

void model_list(struct model *m, int q, const char *state, int segment, int64_t offset, int count,
                struct buf *out)
{
    struct model_job *row[MODEL_JOBS];
    bool is_running = strcmp(state, "running") == 0, is_done = strcmp(state, "done") == 0;
    bool is_parked = strcmp(state, "parked") == 0;
    char next[48] = "";
    size_t n;

    if (strcmp(state, "due") == 0) {
        list_due(m, q, segment, offset, count, out);
        return;
    }
    n = model_jobs(m, is_running ? -1 : q,
                   is_running  ? JOB_RUNNING
                   : is_done   ? JOB_DONE
                   : is_parked ? JOB_PARKED
                               : JOB_DEAD,
                   -1, row);
    if (offset + count <= (int64_t)n)
        (void)snprintf(next, sizeof(next), "1:%lld", (long long)(offset + count));
    buf_puts(out, "[ ");
    out_text(out, next);
    for (size_t i = (size_t)offset; i < n && i < (size_t)(offset + count); i++) {
        if (row[i]->queue != q && q >= 0)
            continue;
        job_row(row[i],
                is_running ? row[i]->progress
                : is_done  ? row[i]->result
                           : row[i]->error,
                out);
        if (is_running)
            add_where(m, row[i], out);
    }
    buf_puts(out, "] ");
}
