/*
 * Foreign queues in random calls: what their producers write, and what workers collect.
 */
#include "maker.h"

#include <math.h>
#include <stdio.h>

static const char *const MEMBERS[] = {"m0", "m1", "m2", "m3", "m4", "a b"};

/* A score in the unit of the set, mostly near now. */
static double score(struct maker *k, int set)
{
    static const double odd[] = {-1,   0,    1,    1767225600, 1767225600000, 1e11,
                                 1e14, 2e14, 1e18, INFINITY,   -INFINITY};
    double ms = (double)(MODEL_MS(k->m) + (percent(k, 60) ? -any(k, 20000) : any(k, 100000)));

    if (percent(k, 10))
        return PICK(k, odd);
    return model_foreign_is_ms(set) ? ms + (percent(k, 10) ? 0.25 : 0) : ms / 1000;
}

void make_foreign(struct maker *k)
{
    static const char *const sets[] = {"z", "y"};
    int set = below(k, MODEL_FOREIGNS), what = below(k, 10);
    const char *member = PICK(k, MEMBERS);
    char text[40];

    if (what < 6) {
        double s = score(k, set);

        (void)snprintf(text, sizeof(text), "%.17g", s);
        arg(k, "ZADD");
        arg(k, sets[set]);
        arg(k, text);
        arg(k, member);
        out_int(k->want, model_foreign_add(k->m, set, s, member));
    } else if (what < 7) {
        arg(k, "ZREM");
        arg(k, sets[set]);
        arg(k, member);
        out_int(k->want, model_foreign_remove(k->m, set, member));
    } else {
        struct bytes body = percent(k, 80) ? (struct bytes){"x", 1} : large(1, 2000);

        arg(k, "HSET");
        arg(k, "h");
        arg(k, member);
        args_bytes(k->args, body.p, body.n);
        out_int(k->want, model_foreign_body(k->m, member, body));
    }
}

void make_collect(struct maker *k)
{
    int64_t epoch = pick_epoch(k, !percent(k, 3));
    struct model_collect item[MODEL_FOREIGNS];
    int n = below(k, MODEL_FOREIGNS + 1), first = below(k, MODEL_FOREIGNS);

    begin(k, "later_v1_collect");
    number(k, epoch);
    number(k, n);
    for (int i = 0; i < n; i++) {
        int set = (first + i) % MODEL_FOREIGNS;
        bool is_known = percent(k, 40);

        item[i] = (struct model_collect){.set = set, .queue = queue_arg(k)};
        arg(k, set == 0 ? "z" : "y");
        arg(k, set == 0 ? "h" : "");
        arg(k, set == 0 ? "ms" : "s");
        item[i].next_ms = is_known ? MODEL_MS(k->m) + any(k, 50000) - 100 : MODEL_NONE;
        if (is_known)
            number(k, item[i].next_ms);
        else
            arg(k, "-");
        item[i].passed = percent(k, 90) ? 0 : below(k, 3);
        number(k, item[i].passed);
    }
    model_collect(k->m, epoch, (size_t)n, item, k->want);
}
