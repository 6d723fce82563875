#include "cli/show/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/show/fields.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/pause.h"
#include "json/schedule.h"

#define FIELD_WHEN 1

/* "every 5000ms", as a file says it, as "every 5s"; anything else as it is. */
static const char *when_of(const struct reply *row, char out[48])
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    const char *when = reply_str(reply_named(row, "when")), *d = when + strlen("every ");
    int64_t ms;

    if (strncmp(when, "every ", strlen("every ")) != 0 || text_parse_duration(d, &ms) < 0 ||
        strcmp(d + strspn(d, "0123456789"), "ms") != 0)
        return when;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (ms > 0 && ms % units[i].ms == 0) {
            (void)snprintf(out, 48, "every %" PRId64 "%s", ms / units[i].ms, units[i].unit);
            return out;
        }
    return when;
}

static void show_pause(const struct reply *r, int64_t now_ms)
{
    struct pause pause;

    if (!pause_read(r, &pause))
        return;
    out_label("paused by");
    out_text(pause.by, strlen(pause.by));
    if (pause.reason[0] != '\0')
        out_printf(" ");
    out_text(pause.reason, strlen(pause.reason));
    out_printf("\n");
    out_label("since");
    fields_put_instant(pause.since_ms, now_ms);
    out_printf("\n");
    if (pause.until_ms > 0) {
        out_label("paused until");
        fields_put_instant(pause.until_ms, now_ms);
        out_printf("\n");
    }
}

void schedule_show(const struct cli *cli, const struct reply *r, int64_t now_ms)
{
    const struct reply *payload = reply_named(r, "payload"), *pause = reply_named(r, "paused");
    const char *text;
    char when[48];

    if (cli->json) {
        json_t *line = schedule_to_json(r);

        json_put_bytes(line, "payload", reply_str(payload), reply_len(payload));
        json_print(line);
        return;
    }
    fields_show(schedule_fields, FIELD_WHEN, r, now_ms);
    out_label(schedule_fields[FIELD_WHEN].label);
    text = when_of(r, when);
    out_text(text, strlen(text));
    out_printf("\n");
    fields_show(schedule_fields + FIELD_WHEN + 1, schedule_nfields - FIELD_WHEN - 1, r, now_ms);
    show_pause(pause, now_ms);
    if (reply_len(payload) > 0) {
        out_label("payload");
        out_text(reply_str(payload), reply_len(payload));
        out_printf("\n");
    }
}

/* ---- rows */

void schedule_table_columns(struct table *table)
{
    static const struct table_column columns[] = {
        {"SCHEDULE", false, TABLE_SOFT}, {"WHEN", false, TABLE_SOFT},  {"ZONE", false, TABLE_SPARE},
        {"QUEUE", false, TABLE_SOFT},    {"NEXT", false, false},       {"JOBS", true, TABLE_SPARE},
        {"SKIPPED", true, TABLE_SPARE},  {"MISSED", true, TABLE_SPARE}};

    table_init(table, columns, sizeof(columns) / sizeof(columns[0]));
}

static void put_text(struct table *table, const struct reply *row, const char *name)
{
    const struct reply *r = reply_named(row, name);

    table_add(table, reply_str(r), reply_len(r));
}

void schedule_put_row(const struct cli *cli, struct table *table, const struct reply *row,
                      int64_t now_ms)
{
    const struct reply *next = reply_named(row, "next_ms"), *pause = reply_named(row, "paused");
    const char *text;
    char when[48];

    if (cli->json) {
        json_print(schedule_to_json(row));
        return;
    }
    put_text(table, row, "schedule");
    text = when_of(row, when);
    table_add(table, text, strlen(text));
    put_text(table, row, "tz");
    put_text(table, row, "queue");
    table_printf(table, "%s",
                 pause != NULL  ? "paused"
                 : next != NULL ? out_when(reply_int(next), now_ms, when)
                                : "-");
    put_text(table, row, "runs");
    put_text(table, row, "skipped");
    put_text(table, row, "missed");
}

/* ---- occurrences */

/* "2026-03-29T03:00:00+02:00" */
static void write_local(struct zone *zone, int64_t ms, const char *between, char out[48])
{
    int64_t offset_s = zone_stretch(zone, ms / 1000).offset_s;
    time_t local = (time_t)(ms / 1000 + offset_s);
    int minutes = (int)(offset_s < 0 ? -offset_s : offset_s) / 60;
    char day[16], clock[16];
    struct tm tm;

    (void)gmtime_r(&local, &tm);
    (void)strftime(day, sizeof(day), "%Y-%m-%d", &tm);
    (void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    (void)snprintf(out, 48, "%s%s%s%s%c%02d:%02d", day, between, clock,
                   between[0] == ' ' ? " " : "", offset_s < 0 ? '-' : '+', minutes / 60,
                   minutes % 60);
}

static void put_change(struct zone *zone, int64_t ms)
{
    int64_t moved_s = zone_moved_s(zone, ms / 1000);
    char span[48];

    if (moved_s != 0)
        out_printf("  (the clock goes %s by %s that day)", moved_s > 0 ? "forward" : "back",
                   text_span((moved_s > 0 ? moved_s : -moved_s) * 1000, span));
}

void schedule_put_occurrence(const struct cli *cli, struct zone *zone, int64_t ms, int64_t now_ms)
{
    char local[48], when[48], utc[32];
    time_t at = (time_t)(ms / 1000);
    struct tm tm;

    if (cli->json) {
        json_t *line = json_object();

        write_local(zone, ms, "T", local);
        json_put_int(line, "ms", ms);
        json_put_text(line, "at", local, strlen(local));
        json_print(line);
        return;
    }
    write_local(zone, ms, " ", local);
    (void)gmtime_r(&at, &tm);
    (void)strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
    out_printf("%s  %s", local, utc);
    if (now_ms != 0)
        out_printf("  %s", out_when(ms, now_ms, when));
    put_change(zone, ms);
    out_printf("\n");
}
