/*
 * What an overview asks, in random calls.
 */
#include "maker.h"

static void make_queue_page(struct maker *k)
{
    static const char *const after[] = {"", "", "0", "R", "mail", "zz"};
    const char *name = PICK(k, after);
    int count = 1 + (int)any(k, 100);

    begin(k, "later_v1_queues");
    arg(k, name);
    number(k, count);
    model_queue_page(k->m, name, count, k->want);
}

static void make_reasons(struct maker *k)
{
    int64_t from = -1, step = 1 + any(k, 100000);
    int q, count = 1 + (int)any(k, 500);

    begin(k, "later_v1_reasons");
    q = queue_arg(k);
    arg(k, "");
    number(k, count);
    if (any(k, 2) > 0) {
        from = MODEL_MS(k->m) - any(k, 1000000);
        number(k, from);
        number(k, step);
    }
    model_reasons(k->m, q, count, from, step, k->want);
}

/* Of large raw members not every span is told apart. */
static void make_ahead(struct maker *k)
{
    int64_t from = MODEL_MS(k->m) + any(k, 1000000) - 100, step = 1 + any(k, 100000);
    int q, steps = 1 + below(k, 60);

    begin(k, "later_v1_ahead");
    q = queue_arg(k);
    steps = model_has_large_raw(k->m, q) ? 1 : steps;
    number(k, from);
    number(k, step);
    number(k, steps);
    model_ahead(k->m, q, from, step, steps, k->want);
}

void make_overview(struct maker *k)
{
    static void (*const makers[])(struct maker *) = {make_queue_page, make_reasons, make_ahead};

    PICK(k, makers)(k);
}
