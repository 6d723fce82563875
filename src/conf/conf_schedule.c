#include "conf/conf_schedule.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "conf/conf_row.h"
#include "schedule/timing.h"

#define NAME_MAX_BYTES 128

static int row_of(const char *path)
{
    return (int)(conf_row_find(conf_schedule_rows, CONF_SCHEDULE_ROWS, path) - conf_schedule_rows);
}

static bool is_given(const struct conf_schedule *schedule, const char *path)
{
    return schedule->is_given[row_of(path)];
}

static bool is_name(const char *s)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
    size_t n = strlen(s);

    return n > 0 && n <= NAME_MAX_BYTES && strspn(s, plain) == n && strchr("_.:-", s[0]) == NULL;
}

/* The expression in its zone. */
static int check_cron(const struct conf_schedule *schedule, int *ret_row, struct err *err)
{
    struct zone *zone = zone_new(schedule->tz, err);
    const char *what = zone != NULL ? "cron" : "tz";
    int result = zone != NULL ? timing_check("cron", schedule->cron, zone, err) : -1;

    *ret_row = row_of(what);
    zone_free(zone);
    if (result == 0)
        return 0;
    err->code = ERR_CONFIG;
    return err_wrap(err, "%s", what);
}

static int check_queues(const struct conf_schedule *schedule, int *ret_row, struct err *err)
{
    const char *queue = is_given(schedule, "queue") ? schedule->queue : schedule->name;

    *ret_row = is_given(schedule, "queue") ? row_of("queue") : -1;
    if (!text_is_queue_name(queue, strlen(queue)))
        return err_set(err, ERR_CONFIG,
                       "queue: \"%s\" is no queue name: up to 64 letters, digits, _ "
                       "and -",
                       conf_show(queue).s);
    return 0;
}

/* A file is read again and again, by each daemon at another time. */
static int check_bounds(const struct conf_schedule *schedule, int *ret_row, struct err *err)
{
    const char *const texts[] = {schedule->from, schedule->until};
    static const char *const names[] = {"from", "until"};

    for (int i = 0; i < 2; i++) {
        *ret_row = row_of(names[i]);
        if (is_given(schedule, names[i]) && texts[i][0] == '+')
            return err_set(err, ERR_CONFIG,
                           "%s: \"%s\" is counted from now, and a file is read again and again: "
                           "write it as 2030-01-31T09:00:00Z",
                           names[i], conf_show(texts[i]).s);
    }
    return 0;
}

int conf_schedule_check(const struct conf_schedule *schedule, int *ret_row, struct err *err)
{
    bool has_cron = is_given(schedule, "cron"), has_every = is_given(schedule, "every");

    *ret_row = -1;
    if (!is_name(schedule->name))
        return err_set(err, ERR_CONFIG,
                       "that is no name of a schedule: up to %d letters, digits and _ "
                       ". : -, with a letter or digit first",
                       NAME_MAX_BYTES);
    if (!has_cron && !has_every)
        return err_set(err, ERR_CONFIG,
                       "neither cron nor every: write { cron: \"30 2 * * *\" } or "
                       "{ every: 90s }");
    *ret_row = row_of("every");
    if (has_cron && has_every)
        return err_set(err, ERR_CONFIG, "both cron and every: make it two schedules");
    *ret_row = row_of("tz");
    if (has_every && is_given(schedule, "tz"))
        return err_set(err, ERR_CONFIG, "tz belongs to cron: every is real time");
    *ret_row = row_of("lock");
    if (schedule->overlap >= CONF_OVERLAP_QUEUE && is_given(schedule, "lock"))
        return err_set(err, ERR_CONFIG,
                       "overlap: queue and replace have a lock of their own: take "
                       "lock out");
    if (has_cron && check_cron(schedule, ret_row, err) < 0)
        return -1;
    if (check_bounds(schedule, ret_row, err) < 0)
        return -1;
    return check_queues(schedule, ret_row, err);
}

/* ---- words for Redis */

static void put(char ***words, size_t *n, char *word)
{
    mem_list_add(words, n, word);
}

/* The option as later_schedule_set names it. */
static const char *option_of(const struct conf_row *row)
{
    return strcmp(row->path, "semaphore") == 0 ? "sem" : row->path;
}

static void put_row(char ***words, size_t *n, const struct conf_row *row, const void *value)
{
    const struct conf_strs *list = value;
    const char *name = option_of(row);

    for (size_t i = 0; row->type == CONF_TYPE_STRS && i < list->n; i++) {
        put(words, n, mem_strdup(name));
        put(words, n, mem_strdup(list->at[i]));
    }
    if (row->type == CONF_TYPE_STRS)
        return;
    put(words, n, mem_strdup(name));
    if (row->type == CONF_TYPE_STR)
        put(words, n, mem_strdup(*(char *const *)value));
    else if (row->type == CONF_TYPE_CHOICE)
        put(words, n, mem_strdup(row->words[*(const int64_t *)value]));
    else
        put(words, n,
            mem_printf("%lld%s", (long long)*(const int64_t *)value,
                       row->type == CONF_TYPE_DUR ? "ms" : ""));
}

char **conf_schedule_words(const struct conf_schedule *schedule, size_t *ret_n)
{
    static const char *const first[] = {"cron", "every", "payload"};
    char **words = NULL;

    *ret_n = 0;
    put(&words, ret_n, mem_strdup(schedule->name));
    put_row(&words, ret_n,
            &conf_schedule_rows[row_of(is_given(schedule, "cron") ? "cron" : "every")],
            is_given(schedule, "cron") ? (const void *)&schedule->cron : &schedule->every);
    for (int i = 0; i < CONF_SCHEDULE_ROWS; i++) {
        const struct conf_row *row = &conf_schedule_rows[i];
        bool is_told = false;

        for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++)
            is_told = is_told || strcmp(row->path, first[k]) == 0;
        if (schedule->is_given[i] && !is_told)
            put_row(&words, ret_n, row, (const char *)schedule + row->offset);
    }
    put(&words, ret_n, mem_strdup(schedule->payload));
    return words;
}
