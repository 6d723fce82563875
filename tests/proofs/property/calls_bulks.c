/*
 * Bulks in random calls.
 */
#include "maker.h"

#include <stdio.h>

static const char *const states[] = {
    [JOB_WAITING] = "due", [JOB_PARKED] = "parked", [JOB_DEAD] = "dead", [JOB_DONE] = "done"};

static void options(struct maker *k, struct model_bulk *b)
{
    static const char *const reasons[] = {"*", "T*", "*e*", "nosuch"};
    static const char *const keys[] = {"a", "b", "user:42"};

    if (percent(k, 15)) {
        name(k, "reason");
        arg(k, b->reason = PICK(k, reasons));
    }
    if (percent(k, 15)) {
        name(k, "key");
        arg(k, b->key = PICK(k, keys));
    }
    if (b->verb == BULK_RETRY && percent(k, 40)) {
        name(k, "to");
        b->to = queue_arg(k);
    }
    if (b->verb == BULK_RETRY && percent(k, 20)) {
        name(k, "spread");
        b->spread = duration_arg(k, 100000);
    }
    if (b->verb == BULK_RESCHEDULE || (b->verb == BULK_RETRY && percent(k, 20))) {
        name(k, "at");
        b->at = time_arg(k);
        b->at = b->at < MODEL_MS(k->m) ? MODEL_MS(k->m) : b->at;
    }
}

void make_bulk(struct maker *k)
{
    static const struct {
        enum bulk_verb verb;
        enum model_state state;
        const char *name;
    } kinds[] = {{BULK_RETRY, JOB_DEAD, "retry"},
                 {BULK_RETRY, JOB_DEAD, "Retry"},
                 {BULK_RETRY, JOB_DEAD, "retry"},
                 {BULK_CANCEL, JOB_WAITING, "cancel"},
                 {BULK_CANCEL, JOB_PARKED, "cancel"},
                 {BULK_PURGE, JOB_WAITING, "purge"},
                 {BULK_PURGE, JOB_PARKED, "purge"},
                 {BULK_PURGE, JOB_DEAD, "purge"},
                 {BULK_PURGE, JOB_DONE, "PURGE"},
                 {BULK_RESCHEDULE, JOB_WAITING, "reschedule"},
                 {BULK_RESCHEDULE, JOB_PARKED, "reschedule"}};
    struct model_bulk b = {.to = -1, .at = MODEL_NONE, .spread = MODEL_NONE};
    int kind = below(k, (int)COUNT(kinds));

    b.verb = kinds[kind].verb;
    b.state = kinds[kind].state;
    begin(k, "later_bulk");
    arg(k, kinds[kind].name);
    b.queue = queue_arg(k);
    arg(k, states[b.state]);
    options(k, &b);
    model_bulk(k->m, &b, k->want);
}
