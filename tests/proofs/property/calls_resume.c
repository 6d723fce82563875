/*
 * Random calls about what a job keeps for its next attempt: steps that are kept, or asked for.
 */
#include "maker.h"

#include <stdio.h>
#include <string.h>

const char *checkpoint_text(struct maker *k)
{
    static const char *const texts[] = {"", "", "line=1", "line=4000", " a b\n", "\xff\xfe"};
    static char most[MODEL_CHECKPOINT_MAX + 1], more[MODEL_CHECKPOINT_MAX + 2];

    if (percent(k, 85))
        return PICK(k, texts);
    memset(most, 'c', sizeof(most) - 1);
    memset(more, 'c', sizeof(more) - 1);
    return percent(k, 80) ? most : more;
}

static struct bytes step_output(struct maker *k)
{
    static const struct bytes outputs[] = {{"", 0}, {"tx-1", 4}, {"a\nb 3\n", 6}, {"\0\xff\0", 3}};

    if (percent(k, 80))
        return PICK(k, outputs);
    return large(below(k, 10), percent(k, 80) ? MODEL_OUTPUT_MAX : MODEL_OUTPUT_MAX + 1);
}

/* Mostly a running job, and mostly by the worker that runs it. */
void make_keep(struct maker *k)
{
    static const char *const names[MODEL_STEPS] = {"a", "b", "charge", "1.2_3:4-5"};
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(k->m, -1, JOB_RUNNING, -1, row);
    const struct model_job *j = n > 0 && percent(k, 95) ? row[below(k, (int)n)] : NULL;
    int64_t epoch = j == NULL || percent(k, 5) ? pick_epoch(k, false) : j->score;
    int64_t start = (j != NULL ? j->starts : 1) + (percent(k, 4) ? -1 : 0);
    const char *id = j != NULL ? j->id : "j00000000000", *step = PICK(k, names);
    struct bytes output = step_output(k);
    bool is_asked = percent(k, 30);

    begin(k, "later_v1_keep");
    number(k, epoch);
    arg(k, id);
    number(k, start);
    arg(k, step);
    if (!is_asked)
        args_bytes(k->args, output.p, output.n);
    model_keep(k->m, epoch, id, start, step, is_asked ? NULL : &output, k->want);
}
