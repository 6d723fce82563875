#include "conf/conf.h"

#include <stdbool.h>
#include <string.h>

#include "conf/conf_value.h"

#define COLUMNS 100

static const void *field(const void *base, const struct conf_row *row)
{
    return (const char *)base + row->offset;
}

static void indent(struct buf *out, int depth)
{
    buf_printf(out, "%*s", depth * 2, "");
}

/* Print prose as comment lines, broken at blanks. */
static void print_prose(const char *prose, int depth, struct buf *out)
{
    size_t width = COLUMNS - 2 - (size_t)depth * 2;

    while (*prose != '\0') {
        size_t n = strlen(prose);

        if (n > width)
            for (n = width; n > 1 && prose[n] != ' '; n--)
                ;
        indent(out, depth);
        buf_puts(out, "# ");
        buf_add(out, prose, n);
        buf_puts(out, "\n");
        prose += n;
        prose += strspn(prose, " ");
    }
}

/* A row of the group "backoff." is printed one level deeper, the first of them below `backoff:`. */
static int open_group(const struct conf_row *row, const struct conf_row *before, int depth,
                      struct buf *out)
{
    const char *dot = strchr(row->path, '.');
    size_t n;

    if (dot == NULL)
        return depth;
    n = (size_t)(dot - row->path) + 1;
    if (before == NULL || strncmp(before->path, row->path, n) != 0) {
        indent(out, depth);
        buf_printf(out, "%.*s:\n", (int)n - 1, row->path);
    }
    return depth + 1;
}

static const char *key(const struct conf_row *row)
{
    const char *dot = strchr(row->path, '.');

    return dot != NULL ? dot + 1 : row->path;
}

static void print_row(const struct conf_row *row, const void *base, int depth, struct buf *out)
{
    const struct conf_strs *strs = field(base, row);

    indent(out, depth);
    /* An empty handler is printed as a comment, which can show what a value looks like. */
    if (strcmp(row->path, "handler") == 0 && strs->n == 0) {
        buf_puts(out, "# handler: [/path/to/program, argument]\n");
        return;
    }
    buf_printf(out, "%s: ", key(row));
    conf_value_print(row, field(base, row), out);
    buf_puts(out, "\n");
}

static void print_defaults(const struct conf_queue *defaults, struct buf *out)
{
    buf_puts(out, "\n# What holds for every queue that does not say otherwise below.\ndefaults:\n");
    for (size_t i = 0; i < CONF_DEFAULTS_ROWS; i++) {
        const struct conf_row *row = &conf_queue_rows[i];
        int depth = open_group(row, i > 0 ? row - 1 : NULL, 1, out);

        print_prose(row->prose, depth, out);
        print_row(row, defaults, depth, out);
    }
}

/* Whether the value is the built-in default. */
static bool is_builtin(const struct conf_row *row, const void *value)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    conf_value_print(row, value, &text);
    return strcmp(buf_str(&text), row->def) == 0;
}

/* Explain the keys of a mapping whose example was printed just before. */
static void print_rows_prose(const struct conf_row *rows, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP_BUF struct buf line = BUF_INIT;

        buf_printf(&line, "%s: %s", rows[i].path, rows[i].prose);
        print_prose(buf_str(&line), 0, out);
    }
}

/* Print only rows of the limit's own kind that are not the default. */
static void print_limit(const struct conf_limit *limit, struct buf *out)
{
    const char *kind = limit->is_rate ? "rate" : "semaphore";

    buf_puts(out, "  ");
    conf_value_print_text(limit->name, out);
    buf_puts(out, ":\n");
    for (size_t i = 0; i < CONF_LIMIT_ROWS; i++) {
        const struct conf_row *row = &conf_limit_rows[i];
        bool is_own = strcmp(row->path, "semaphore") == 0 || strcmp(row->path, "on_lost") == 0;

        if (is_own == limit->is_rate)
            continue;
        /* The row that says its kind is printed even if it is the default. */
        if (strcmp(row->path, kind) != 0 && is_builtin(row, field(limit, row)))
            continue;
        buf_printf(out, "    %s: ", row->path);
        conf_value_print(row, field(limit, row), out);
        buf_puts(out, "\n");
    }
}

static void print_limits(const struct conf *conf, struct buf *out)
{
    buf_puts(
        out,
        "\n"
        "# Gates by name, one definition for the fleet: what Redis lacks is filled in, what\n"
        "# differs there stays as it is and is reported. {key} in a name makes it a template,\n"
        "# with permits of its own for each key. For example:\n"
        "#   smtp: { semaphore: 20 }\n"
        "#   gateway: { rate: 100/1m, burst: 20, algorithm: gcra }\n"
        "#   \"export:{key}\": { semaphore: 1 }\n");
    print_rows_prose(conf_limit_rows, CONF_LIMIT_ROWS, out);
    buf_puts(out, "limits:\n");
    for (size_t i = 0; i < conf->nlimits; i++)
        print_limit(&conf->limits[i], out);
}

static void print_schedule(const struct conf_schedule *schedule, struct buf *out)
{
    buf_puts(out, "  ");
    conf_value_print_text(schedule->name, out);
    buf_puts(out, ":\n");
    for (size_t i = 0; i < CONF_SCHEDULE_ROWS; i++) {
        const struct conf_row *row = &conf_schedule_rows[i];

        if (!schedule->is_given[i])
            continue;
        buf_printf(out, "    %s: ", row->path);
        conf_value_print(row, field(schedule, row), out);
        buf_puts(out, "\n");
    }
}

/* A file without the section says nothing of schedules: it is not printed then. */
static void print_schedules(const struct conf *conf, struct buf *out)
{
    buf_puts(out,
             "\n"
             "# Schedules by name: what adds a job again and again. The file that was read last\n"
             "# holds for the fleet: what is taken out of it stops. A file without this section\n"
             "# says nothing of schedules. For example:\n"
             "#   schedules:\n"
             "#     nightly: { cron: \"30 2 * * *\", tz: Europe/Berlin, queue: backup }\n"
             "#     pulse: { every: 90s, overlap: skip }\n");
    print_rows_prose(conf_schedule_rows, CONF_SCHEDULE_ROWS, out);
    buf_puts(out, !conf->has_schedules   ? "# schedules:\n"
                  : conf->nschedules > 0 ? "schedules:\n"
                                         : "schedules: {}\n");
    for (size_t i = 0; i < conf->nschedules; i++)
        print_schedule(&conf->schedules[i], out);
}

static bool is_default(const struct conf_row *row, const struct conf_queue *q,
                       const struct conf_queue *defaults)
{
    return conf_value_is_equal(row, field(q, row), field(defaults, row));
}

static void print_queue(const struct conf_queue *q, const struct conf_queue *defaults,
                        struct buf *out)
{
    const struct conf_row *before = NULL;

    buf_printf(out, "  %s:", q->name);
    for (size_t i = 0; i < CONF_QUEUE_ROWS; i++) {
        const struct conf_row *row = &conf_queue_rows[i];
        int depth;

        if (is_default(row, q, defaults))
            continue;
        if (before == NULL)
            buf_puts(out, "\n");
        depth = open_group(row, before, 2, out);
        indent(out, depth);
        buf_printf(out, "%s: ", key(row));
        conf_value_print(row, field(q, row), out);
        buf_puts(out, "\n");
        before = row;
    }
    if (before == NULL)
        buf_puts(out, " {}\n");
}

static void print_queues(const struct conf *conf, struct buf *out)
{
    buf_puts(out,
             "\n"
             "# Queues by name, each with what differs from the defaults. A queue whose handler\n"
             "# is in handlers_dir need not be named here. For example:\n"
             "#   mail:\n"
             "#     handler: [/usr/lib/laterd/send-mail, --batch]\n"
             "#     concurrency: 4\n"
             "#     backoff: { first: 1m, max: 6h }\n"
             "#     lock: \"user:{key}\"\n"
             "#     semaphore: smtp\n"
             "#     rate: gateway\n"
             "# Not under defaults, for they are a queue's own:\n");
    print_rows_prose(conf_queue_rows + CONF_DEFAULTS_ROWS, CONF_QUEUE_ROWS - CONF_DEFAULTS_ROWS,
                     out);
    buf_puts(out, "queues:\n");
    for (size_t i = 0; i < conf->nqueues; i++)
        print_queue(&conf->queues[i], &conf->defaults, out);
}

void conf_print(const struct conf *conf, struct buf *out)
{
    buf_puts(out,
             "# The settings of laterd. What is left out has its default. Each may be given in\n"
             "# the environment instead, which then holds: LATERD_REDIS, LATERD_DEFAULTS_TIMEOUT,\n"
             "# and for a queue named here LATERD_QUEUES_MAIL_BACKOFF_FIRST.\n"
             "# Durations need a unit (ms s m h d); sizes may have one (KiB MiB GiB).\n");
    for (size_t i = 0; i < CONF_TOP_ROWS; i++) {
        const struct conf_row *row = &conf_top_rows[i];

        int depth;

        buf_puts(out, "\n");
        depth = open_group(row, i > 0 ? row - 1 : NULL, 0, out);
        print_prose(row->prose, depth, out);
        print_row(row, conf, depth, out);
    }
    print_defaults(&conf->defaults, out);
    print_limits(conf, out);
    print_queues(conf, out);
    print_schedules(conf, out);
}
