#include "ask/occurrences.h"

#include "schedule/catch_up.h"

size_t occurrences_of(const struct reply *row, int64_t after_ms, int64_t ret[], size_t n)
{
    const struct reply *tz = reply_named(row, "tz");
    struct err err = ERR_INIT;
    struct zone *zone = zone_new(reply_len(tz) > 0 ? reply_str(tz) : "UTC", &err);
    struct catch_up_rule rule = {.from_ms = reply_named_int(row, "from_ms", 0),
                                 .until_ms = reply_named_int(row, "until_ms", TIMING_NEVER)};
    size_t found = 0;

    if (zone == NULL)
        return 0;
    if (timing_parse_when(reply_str(reply_named(row, "when")), zone, &rule.timing, &err) == 0) {
        rule.timing.anchor_ms = rule.from_ms;
        while (found < n && (after_ms = catch_up_first(&rule, after_ms)) != TIMING_NEVER)
            ret[found++] = after_ms;
    }
    zone_free(zone);
    return found;
}
