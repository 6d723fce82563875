#include "schedule/catch_up.h"

#include <stdbool.h>
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

/* Are there more than `most` occurrences later than after_ms, up to now_ms? */
static bool has_more(const struct catch_up_rule *rule, int64_t after_ms, int64_t now_ms,
                     int64_t most)
{
    int64_t at = catch_up_first(rule, after_ms);

    for (; at <= now_ms && most > 0; most--)
        at = catch_up_first(rule, at);
    return at <= now_ms;
}

/* From when on the newest `most` occurrences are; at: the first one of all. Bisection: there may be
 * too many to count. */
static int64_t newest_from(const struct catch_up_rule *rule, int64_t at, int64_t now_ms,
                           int64_t most)
{
    int64_t early = at - 1, late = now_ms;

    if (at > now_ms || !has_more(rule, early, now_ms, most))
        return at;
    while (late - early > 1) {
        int64_t middle = early + (late - early) / 2;

        if (has_more(rule, middle, now_ms, most))
            early = middle;
        else
            late = middle;
    }
    return late + 1;
}

void catch_up_decide(const struct catch_up_rule *rule, int64_t next_ms, int64_t now_ms,
                     struct catch_up_plan *ret)
{
    int64_t window_ms = rule->mode == CATCH_UP_NONE ? CATCH_UP_LATE_MS : rule->window_ms;
    int64_t most = rule->mode == CATCH_UP_ALL ? CATCH_UP_MAX : 1;

    *ret = (struct catch_up_plan){.n = 0};
    next_ms = skip(rule, next_ms, now_ms - window_ms, &ret->missed);
    next_ms = skip(rule, next_ms, newest_from(rule, next_ms, now_ms, most), &ret->missed);
    while (next_ms <= now_ms && ret->n < CATCH_UP_TIMES) {
        ret->at[ret->n++] = next_ms;
        next_ms = catch_up_first(rule, next_ms);
    }
    ret->next = next_ms;
}
