#include "schedule/catch_up.h"

#include <string.h>

#define COUNTED_MAX 100000 /* missed occurrences that are counted one by one */

int catch_up_parse(const char *text, enum catch_up *ret)
{
    static const char *const words[] = {"none", "last", "all"};

    for (int i = CATCH_UP_NONE; i <= CATCH_UP_ALL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = (enum catch_up)i;
            return 0;
        }
    }
    return -1;
}

int64_t catch_up_first(const struct catch_up_rule *rule, int64_t after_ms)
{
    int64_t at =
        timing_next(&rule->timing, after_ms < rule->from_ms ? rule->from_ms - 1 : after_ms);

    return at <= rule->until_ms ? at : TIMING_NEVER;
}

/* Pass over what is before from_ms and count it. -> the first occurrence from there on */
static int64_t skip(const struct catch_up_rule *rule, int64_t at, int64_t from_ms, int64_t *missed)
{
    int64_t every_ms = rule->timing.every_ms;

    if (every_ms > 0 && at < from_ms) {
        *missed += (from_ms - 1 - at) / every_ms + 1;
        return catch_up_first(rule, from_ms - 1);
    }
    for (int64_t n = 0; at < from_ms; n++) {
        if (n == COUNTED_MAX)
            return catch_up_first(rule, from_ms - 1);
        at = catch_up_first(rule, at);
        ++*missed;
    }
    return at;
}

/* The number of occurrences from at to now_ms, at most COUNTED_MAX. */
static int64_t count_due(const struct catch_up_rule *rule, int64_t at, int64_t now_ms)
{
    int64_t n = 0;

    for (; at <= now_ms && n < COUNTED_MAX; n++)
        at = catch_up_first(rule, at);
    return n;
}

void catch_up_decide(const struct catch_up_rule *rule, int64_t next_ms, int64_t now_ms,
                     struct catch_up_plan *ret)
{
    int64_t window_ms = rule->mode == CATCH_UP_NONE ? CATCH_UP_LATE_MS : rule->window_ms;
    int64_t most = rule->mode == CATCH_UP_ALL ? CATCH_UP_MAX : 1, due;

    *ret = (struct catch_up_plan){.n = 0};
    next_ms = skip(rule, next_ms, now_ms - window_ms, &ret->missed);
    for (due = count_due(rule, next_ms, now_ms); due > most && next_ms <= now_ms; due--) {
        next_ms = catch_up_first(rule, next_ms);
        ret->missed++;
    }
    while (next_ms <= now_ms && ret->n < CATCH_UP_TIMES) {
        ret->at[ret->n++] = next_ms;
        next_ms = catch_up_first(rule, next_ms);
    }
    ret->next = next_ms;
}
