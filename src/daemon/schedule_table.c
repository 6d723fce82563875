#include "daemon/schedule_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void schedule_table_init(struct schedule_table *t)
{
    *t = (struct schedule_table){0};
}

void schedule_table_done(struct schedule_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->heap[i]);
    for (size_t i = 0; i < t->nzones; i++)
        zone_free(t->zones[i]);
    free(t->heap);
    free(t->zones);
    schedule_table_init(t);
}

/* ---- the heap */

static void put_at(struct schedule_table *t, size_t place, struct schedule *s)
{
    t->heap[place] = s;
    s->place = place;
}

static void rise(struct schedule_table *t, struct schedule *s)
{
    size_t at = s->place;

    for (; at > 0 && t->heap[(at - 1) / 2]->ask_ms > s->ask_ms; at = (at - 1) / 2)
        put_at(t, at, t->heap[(at - 1) / 2]);
    put_at(t, at, s);
}

static void sink(struct schedule_table *t, struct schedule *s)
{
    size_t at = s->place;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < t->n && t->heap[child + 1]->ask_ms < t->heap[child]->ask_ms)
            child++;
        if (child >= t->n || t->heap[child]->ask_ms >= s->ask_ms)
            break;
        put_at(t, at, t->heap[child]);
        at = child;
    }
    put_at(t, at, s);
}

struct schedule *schedule_table_first(const struct schedule_table *t)
{
    return t->n > 0 ? t->heap[0] : NULL;
}

void schedule_table_ask_at(struct schedule_table *t, struct schedule *s, int64_t ask_ms)
{
    s->ask_ms = ask_ms;
    rise(t, s);
    sink(t, s);
}

/* ---- reading */

static struct zone *zone_of(struct schedule_table *t, const char *name, struct err *err)
{
    struct zone *zone;

    for (size_t i = 0; i < t->nzones; i++) {
        if (strcmp(zone_name(t->zones[i]), name) == 0)
            return t->zones[i];
    }
    zone = zone_new(name, err);
    if (zone == NULL)
        return NULL;
    t->zones = mem_grow(t->zones, t->nzones + 1, sizeof(struct zone *));
    t->zones[t->nzones++] = zone;
    return zone;
}

static int read_row(struct schedule_table *t, const struct reply *row, struct schedule *s,
                    struct err *err)
{
    struct catch_up_rule *rule = &s->rule;
    struct zone *zone;

    text_copy(s->name, sizeof(s->name), reply_str(reply_named(row, "schedule")));
    s->revision = reply_named_int(row, "revision", 0);
    if (s->name[0] == '\0' || s->revision <= 0 ||
        catch_up_parse(reply_str(reply_named(row, "catch_up")), &rule->mode) < 0)
        return err_set(err, ERR_FORMAT, "its row cannot be read");
    rule->window_ms = reply_named_int(row, "catch_up_window_ms", 0);
    rule->from_ms = reply_named_int(row, "from_ms", 0);
    rule->until_ms = reply_named_int(row, "until_ms", TIMING_NEVER);
    s->next_ms = reply_named_int(row, "next_ms", TIMING_NEVER);
    s->last_ms = reply_named_int(row, "last_ms", 0);
    s->is_planned = reply_named(row, "next_ms") != NULL;
    text_copy(s->zones, sizeof(s->zones), reply_str(reply_named(row, "zones")));
    zone = zone_of(t, reply_str(reply_named(row, "tz")), err);
    if (zone == NULL ||
        timing_parse_when(reply_str(reply_named(row, "when")), zone, &rule->timing, err) < 0)
        return -1;
    rule->timing.anchor_ms = rule->from_ms;
    return 0;
}

int schedule_table_take(struct schedule_table *t, const struct reply *row, char *ret_name,
                        struct err *err)
{
    struct schedule *s = mem_new(sizeof(*s));
    int result = read_row(t, row, s, err);

    text_copy(ret_name, SCHEDULE_NAME_MAX + 1, s->name);
    if (result < 0) {
        free(s);
        return -1;
    }
    t->heap = mem_grow(t->heap, t->n + 1, sizeof(struct schedule *));
    put_at(t, t->n++, s);
    rise(t, s); /* ask_ms is 0: whether something is to be told is seen at once */
    return 0;
}
