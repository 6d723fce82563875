#include "cli/schedules.h"

#include <string.h>

#include "base/text.h"
#include "cli/show/out.h"
#include "schedule/timing.h"

int schedules_each(struct cli *cli, schedules_f *take, void *arg, struct err *err)
{
    char cursor[24] = "0";

    do {
        struct cli_call call = {.n = 0};
        struct reply *page;

        cli_call_puts(&call, cursor);
        page = cli_fcall(cli, "later_v1_schedules", &call, err);
        if (page == NULL)
            return -1;
        for (size_t i = 3; i < reply_count(page); i++)
            take(arg, reply_at(page, i), reply_int(reply_at(page, 0)) / 1000);
        text_copy(cursor, sizeof(cursor), reply_str(reply_at(page, 2)));
        reply_free(page);
    } while (strcmp(cursor, "0") != 0 && !out_has_failed());
    return 0;
}

int schedules_check(const char *kind, const char *text, const char *tz, struct err *err)
{
    struct zone *zone = zone_new(tz, err);
    int result = zone != NULL ? timing_check(kind, text, zone, err) : -1;

    zone_free(zone);
    return result;
}
