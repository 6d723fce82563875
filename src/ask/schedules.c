#include "ask/schedules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "schedule/timing.h"

#define PAGES_MAX 10000 /* a cursor that runs in a circle would make us ask for ever */

struct row {
    const struct reply *reply;
    int64_t now_ms;
};

struct all {
    struct reply **pages;
    struct row *rows;
    size_t npages, nrows;
};

static const char *name_of(const struct row *row)
{
    return reply_str(reply_named(row->reply, "schedule"));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(name_of(a), name_of(b));
}

static void keep(struct all *all, struct reply *page)
{
    all->pages = mem_grow(all->pages, all->npages + 1, sizeof(void *));
    all->pages[all->npages++] = page;
    all->rows = mem_grow(all->rows, all->nrows + reply_count(page), sizeof(*all->rows));
    for (size_t i = 3; i < reply_count(page); i++)
        all->rows[all->nrows++] =
            (struct row){reply_at(page, i), reply_int(reply_at(page, 0)) / 1000};
}

static int read_all(struct ask_server *s, struct all *all, struct err *err)
{
    char cursor[24] = "0";

    do {
        struct reply *page = ask_words(s, err, "later_v1_schedules", cursor, NULL);

        if (page == NULL)
            return -1;
        keep(all, page);
        text_copy(cursor, sizeof(cursor), reply_str(reply_at(page, 2)));
        if (cursor[0] == '\0' || all->npages == PAGES_MAX)
            return err_set(err, ERR_DATA, "the list of schedules does not end");
    } while (strcmp(cursor, "0") != 0);
    return 0;
}

int schedules_each(struct ask_server *s, schedules_f *take, void *arg, struct err *err)
{
    struct all all = {.npages = 0};
    int rc = read_all(s, &all, err);
    bool goes_on = true;

    if (rc == 0 && all.nrows > 0)
        qsort(all.rows, all.nrows, sizeof(*all.rows), by_name);
    for (size_t i = 0; rc == 0 && i < all.nrows && goes_on; i++)
        if (i == 0 || by_name(&all.rows[i - 1], &all.rows[i]) != 0)
            goes_on = take(arg, all.rows[i].reply, all.rows[i].now_ms);
    for (size_t i = 0; i < all.npages; i++)
        reply_free(all.pages[i]);
    free(all.pages);
    free(all.rows);
    return rc;
}

int schedules_check(const char *kind, const char *text, const char *tz, struct err *err)
{
    struct zone *zone = zone_new(tz, err);
    int result = zone != NULL ? timing_check(kind, text, zone, err) : -1;

    zone_free(zone);
    return result;
}
