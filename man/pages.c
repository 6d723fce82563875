/* The lists of the manual pages. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/args/args.h"
#include "cli/verbs/verbs.h"
#include "conf/conf.h"
#include "conf/conf_row.h"
#include "conf/conf_value.h"
#include "daemon/options.h"
#include "parts.h"
#include "roff.h"

/* An entry of a list of options. */
static void put_option(struct buf *out, char letter, const char *name, const char *arg,
                       const char *prose)
{
    buf_puts(out, ".It ");
    if (letter != '\0')
        buf_printf(out, "Fl %c , ", letter);
    buf_puts(out, "Fl \\-");
    roff_text(out, name, strlen(name));
    if (arg != NULL) {
        buf_puts(out, " Ar ");
        roff_arg(out, arg);
    }
    buf_puts(out, "\n");
    roff_paragraph(out, prose, strlen(prose));
}

static void put_options(struct buf *out, const struct cli_option *o)
{
    buf_puts(out, ".Bl -tag -width Ds\n");
    for (; o->name != NULL; o++)
        put_option(out, args_letter(o->name), o->name, o->arg, o->prose);
    buf_puts(out, ".El\n");
}

void page_globals(struct buf *out)
{
    put_options(out, args_globals);
}

void page_daemon_options(struct buf *out)
{
    buf_puts(out, ".Bl -tag -width Ds\n");
    for (const struct daemon_option *o = daemon_options; o->name != NULL; o++)
        put_option(out, o->letter, o->name, o->arg, o->prose);
    buf_puts(out, ".El\n");
}

/* The file below sysconfdir is looked for first; it may be the same one. */
void page_config_files(struct buf *out)
{
    static const char first[] = SYSCONFDIR "/laterd/laterd.yaml";
    static const char last[] = "/etc/laterd/laterd.yaml";

    if (strcmp(first, last) != 0) {
        buf_puts(out, ".Pa ");
        roff_text(out, first, strlen(first));
        buf_puts(out, " ,\nelse\n");
    }
    buf_puts(out, ".Pa ");
    roff_text(out, last, strlen(last));
    buf_puts(out, " ,\n");
}

void page_verbs(struct buf *out)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        const struct cli_verb *verb = cli_verbs[i];

        buf_puts(out, ".Ss ");
        roff_text(out, verb->name, strlen(verb->name));
        buf_puts(out, "\n.Nm\n.Cm ");
        roff_text(out, verb->name, strlen(verb->name));
        buf_puts(out, verb->options != NULL ? " Op Ar options\n" : "\n");
        if (verb->synopsis[0] != '\0') {
            buf_puts(out, ".Ar ");
            roff_arg(out, verb->synopsis);
            buf_puts(out, "\n");
        }
        buf_puts(out, ".Pp\n");
        roff_prose(out, verb->prose);
        if (verb->options != NULL)
            put_options(out, verb->options);
    }
}

/* ---- laterd.yaml(5) */

/* What a value is called; the page explains each. */
static const char *const types[] = {
    [CONF_TYPE_STR] = "text",      [CONF_TYPE_DUR] = "duration",
    [CONF_TYPE_SIZE] = "size",     [CONF_TYPE_DUR_OR_NONE] = "duration or none",
    [CONF_TYPE_INT] = "number",    [CONF_TYPE_PCT] = "percentage",
    [CONF_TYPE_FACTOR] = "factor", [CONF_TYPE_RATE] = "rate",
    [CONF_TYPE_STRS] = "list",     [CONF_TYPE_PAIRS] = "mapping",
    [CONF_TYPE_INTS] = "numbers",
};

static const char *type_of(const struct conf_row *row, struct buf *words)
{
    size_t n = sizeof(types) / sizeof(types[0]);

    for (size_t i = 0; row->words != NULL && row->words[i] != NULL; i++)
        buf_printf(words, "%s%s", i > 0 ? " | " : "", row->words[i]);
    if (words->len > 0)
        return buf_str(words);
    return (size_t)row->type < n && types[row->type] != NULL ? types[row->type] : "value";
}

static void put_range(struct buf *out, const struct conf_row *row)
{
    bool is_list = row->type == CONF_TYPE_STRS || row->type == CONF_TYPE_PAIRS;
    struct conf_row number = *row;

    if (row->type == CONF_TYPE_STR || row->type == CONF_TYPE_CHOICE)
        return;
    if (is_list) {
        buf_printf(out, "at most %lld entries; ", (long long)row->max);
        return;
    }
    /* Of these the bounds are those of a number in them. */
    if (row->type == CONF_TYPE_INTS || row->type == CONF_TYPE_RATE)
        number.type = CONF_TYPE_INT;
    conf_value_print(&number, &row->min, out);
    buf_puts(out, " to ");
    conf_value_print(&number, &row->max, out);
    buf_puts(out, "; ");
}

static void put_facts(struct buf *out, const struct conf_row *row, bool tells_reload)
{
    CLEANUP_BUF struct buf facts = BUF_INIT;

    if (row->def[0] != '\0')
        buf_printf(&facts, "default %s; ", row->def);
    put_range(&facts, row);
    if (tells_reload)
        buf_puts(&facts, row->is_reloaded ? "a reload applies it; " : "needs a restart; ");
    if (facts.len < 2)
        return;
    buf_puts(out, ".br\n(");
    roff_text(out, buf_str(&facts), facts.len - 2);
    buf_puts(out, ")\n");
}

static void put_settings(struct buf *out, const struct conf_row *rows, size_t n, bool tells_reload)
{
    buf_puts(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < n; i++) {
        CLEANUP_BUF struct buf words = BUF_INIT;

        buf_puts(out, ".It Ic ");
        roff_text(out, rows[i].path, strlen(rows[i].path));
        buf_puts(out, " : Ar ");
        roff_arg(out, type_of(&rows[i], &words));
        buf_puts(out, "\n");
        roff_paragraph(out, rows[i].prose, strlen(rows[i].prose));
        put_facts(out, &rows[i], tells_reload);
    }
    buf_puts(out, ".El\n");
}

void page_settings(struct buf *out)
{
    put_settings(out, conf_top_rows, CONF_TOP_ROWS, true);
}

void page_queue_settings(struct buf *out)
{
    put_settings(out, conf_queue_rows, CONF_DEFAULTS_ROWS, false);
}

void page_own_settings(struct buf *out)
{
    put_settings(out, conf_queue_rows + CONF_DEFAULTS_ROWS, CONF_QUEUE_ROWS - CONF_DEFAULTS_ROWS,
                 false);
}

void page_limit_settings(struct buf *out)
{
    put_settings(out, conf_limit_rows, CONF_LIMIT_ROWS, false);
}

void page_schedule_settings(struct buf *out)
{
    put_settings(out, conf_schedule_rows, CONF_SCHEDULE_ROWS, false);
}
