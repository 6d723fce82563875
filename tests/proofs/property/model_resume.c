/*
 * What a job keeps for its next attempt, in the model: its checkpoint, and the outputs of its
 * steps.
 */
#include "model.h"

#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct resume_counts counts;

const struct resume_counts *resume_counts(void)
{
    return &counts;
}

static bool has_any(const struct model_job *j)
{
    return j->steps > 0 || j->checkpoint != NULL;
}

/* The value of R:resume of a job that has kept something. */
static void put_row(const struct model_job *j, struct buf *out)
{
    size_t bytes = 0;

    for (size_t i = 0; i < j->steps; i++)
        bytes += strlen(j->step[i].name) + j->step[i].output.n;
    buf_printf(out, "%zu %zu", j->steps, bytes);
    if (j->checkpoint != NULL)
        buf_printf(out, " %s", j->checkpoint);
}

int64_t resume_bytes(const struct model_job *j)
{
    struct buf row = BUF_INIT;
    int64_t n;

    if (!has_any(j))
        return 0;
    put_row(j, &row);
    n = (int64_t)row.len;
    buf_done(&row);
    return n;
}

void resume_drop(struct model_job *j)
{
    counts.dropped += has_any(j);
    model_set(&j->checkpoint, NULL);
    j->steps = 0;
}

const char *resume_checkpoint(struct model_job *j, const char *text)
{
    if (strlen(text) > MODEL_CHECKPOINT_MAX)
        return "ELATER_SIZE";
    model_set(&j->checkpoint, text[0] == '\0' ? NULL : mem_strdup(text));
    counts.checkpoints++;
    return NULL;
}

void resume_claimed(const struct model_job *j, struct buf *told)
{
    counts.resumed += has_any(j);
    if (j->checkpoint == NULL)
        return;
    out_text(told, j->id);
    out_text(told, j->checkpoint);
}

/* ---- steps */

static const struct bytes *output_of(const struct model_job *j, const char *name)
{
    for (size_t i = 0; i < j->steps; i++)
        if (strcmp(j->step[i].name, name) == 0)
            return &j->step[i].output;
    return NULL;
}

static void reply_kept(struct buf *out, const struct bytes *output)
{
    buf_puts(out, "[ ");
    out_text(out, "kept");
    out_bytes(out, output->p, output->n);
    buf_puts(out, "] ");
}

void model_keep(struct model *m, int64_t epoch, const char *id, int64_t start, const char *name,
                const struct bytes *output, struct buf *out)
{
    struct model_job *j = model_find(m, id);
    const struct bytes *known = j != NULL ? output_of(j, name) : NULL;

    if (j == NULL || j->state != JOB_RUNNING || j->score != epoch || j->starts != start) {
        buf_puts(out, "[ ");
        out_text(out, "settled");
        buf_puts(out, "] ");
    } else if (known != NULL) {
        counts.known++;
        reply_kept(out, known);
    } else if (output == NULL) {
        buf_puts(out, "[ ");
        out_text(out, "run");
        buf_puts(out, "] ");
    } else if (output->n > MODEL_OUTPUT_MAX) {
        out_refusal(out, "ELATER_SIZE");
    } else {
        if (j->steps == MODEL_STEPS)
            abort();
        j->step[j->steps++] = (struct model_kept){name, *output};
        counts.kept++;
        reply_kept(out, output);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct model_kept *)a)->name, ((const struct model_kept *)b)->name);
}

void resume_show(const struct model_job *j, struct buf *out)
{
    struct model_kept step[MODEL_STEPS];
    struct buf all = BUF_INIT;

    if (!has_any(j))
        return;
    out_named_text(out, "checkpoint", j->checkpoint);
    memcpy(step, j->step, sizeof(step));
    if (j->steps > 1)
        qsort(step, j->steps, sizeof(step[0]), by_name);
    for (size_t i = 0; i < j->steps; i++) {
        buf_printf(&all, "%s %zu\n", step[i].name, step[i].output.n);
        if (step[i].output.n > 0)
            buf_add(&all, step[i].output.p, step[i].output.n);
    }
    out_text(out, "steps");
    out_bytes(out, all.data, all.len);
    buf_done(&all);
}

void resume_render(const struct model_job *j, struct rows *rows)
{
    struct buf row = BUF_INIT;
    char key[32];

    if (!has_any(j))
        return;
    put_row(j, &row);
    rows_put(rows, "resume", "hash", j->id, row.data, row.len);
    buf_done(&row);
    (void)snprintf(key, sizeof(key), "steps:%s", j->id);
    for (size_t i = 0; i < j->steps; i++)
        rows_put(rows, key, "hash", j->step[i].name, j->step[i].output.p, j->step[i].output.n);
}
