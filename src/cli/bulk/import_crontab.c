#include "cli/bulk/import_crontab.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/bulk/crontab.h"
#include "cli/bulk/feed.h"
#include "cli/schedules.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define NAME_BYTES 48 /* of the word of the command that a name begins with */

/* What holds for the entries of the file, and how it goes. */
struct import {
    struct cli *cli;
    const char *queue;
    char tz[65];
    unsigned long line;
    size_t left_out;
};

/* What became of a line. status: "added", "changed", "same", "checked", or "left out". */
static void tell(struct import *im, const char *name, const char *status, const char *why)
{
    if (im->cli->json) {
        json_t *row = json_object();

        json_put_int(row, "line", (int64_t)im->line);
        if (name[0] != '\0')
            json_put_text(row, "schedule", name, strlen(name));
        json_put_text(row, "status", status, strlen(status));
        if (why[0] != '\0')
            json_put_text(row, "reason", why, strlen(why));
        json_print(row);
        return;
    }
    out_printf("line %lu: ", im->line);
    if (name[0] != '\0')
        out_printf("%s ", name);
    out_printf("%s%s", status, why[0] != '\0' ? ": " : "");
    out_text(why, strlen(why));
    out_printf("\n");
}

static void leave_out(struct import *im, const char *why)
{
    im->left_out++;
    tell(im, "", "left out", why);
}

/* "backup-7": the name of the program, and the line. */
static void name_of(const struct import *im, const char *command, char out[80])
{
    size_t n = strcspn(command, " \t"), from = n, len = 0;

    while (from > 0 && command[from - 1] != '/')
        from--;
    for (; from < n && len < NAME_BYTES; from++)
        if (isalnum((unsigned char)command[from]) || (len > 0 && strchr("_.-", command[from])))
            out[len++] = command[from];
    (void)snprintf(out + len, 80 - len, "%s%lu", len > 0 ? "-" : "line-", im->line);
}

static const char *user_advice(const struct crontab_line *l, char out[160])
{
    out[0] = '\0';
    if (l->user[0] != '\0')
        (void)snprintf(out, 160, "it ran as %s: that is user of the queue", l->user);
    return out;
}

/* 0, or -1: Redis cannot be asked. What Redis refuses is told. */
static int set(struct import *im, const char *name, const struct crontab_line *l, struct err *err)
{
    const char *const words[] = {name,   "cron",  l->expression, "tz",
                                 im->tz, "queue", im->queue,     l->command};
    struct cli_call call = {.n = 0};
    struct reply *r;
    char advice[160];

    if (cli_value(im->cli, "dry-run") != NULL) {
        tell(im, name, "checked", l->command);
        return 0;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        cli_call_puts(&call, words[i]);
    r = cli_fcall(im->cli, "later_schedule_set", &call, err);
    if (r == NULL && err->code != ERR_REFUSED)
        return -1;
    if (r == NULL)
        leave_out(im, err->text);
    else
        tell(im, name, reply_str(reply_at(r, 1)), user_advice(l, advice));
    reply_free(r);
    return 0;
}

static void take_variable(struct import *im, const struct crontab_line *l)
{
    char why[160];

    if (strcmp(l->name, "CRON_TZ") == 0 || strcmp(l->name, "TZ") == 0) {
        text_copy(im->tz, sizeof(im->tz), l->value);
        return;
    }
    if (strcmp(l->name, "MAILTO") == 0)
        leave_out(im, "MAILTO: look at dead jobs, or at later health");
    else if (strcmp(l->name, "SHELL") == 0)
        leave_out(im, "SHELL: it is the handler of the queue");
    else {
        (void)snprintf(why, sizeof(why), "%s: put it under env of the queue", l->name);
        leave_out(im, why);
    }
}

static int take_entry(struct import *im, const struct crontab_line *l, struct err *err)
{
    struct err wrong = ERR_INIT;
    char name[80];

    name_of(im, l->command, name);
    if (l->has_input) {
        leave_out(im, "its command has a %: put what it reads into a file");
        return 0;
    }
    if (schedules_check("cron", l->expression, im->tz, &wrong) < 0) {
        leave_out(im, wrong.text);
        return 0;
    }
    return set(im, name, l, err);
}

static int take_line(struct import *im, const char *text, struct err *err)
{
    struct crontab_line l;
    struct err wrong = ERR_INIT;

    if (crontab_parse(text, cli_value(im->cli, "system") != NULL, &l, &wrong) < 0) {
        leave_out(im, wrong.text);
        return 0;
    }
    if (l.kind == CRONTAB_VARIABLE)
        take_variable(im, &l);
    return l.kind == CRONTAB_ENTRY ? take_entry(im, &l, err) : 0;
}

int import_crontab(struct cli *cli, struct err *err)
{
    const char *path = cli->argv[1], *queue = cli_value(cli, "queue"), *tz = cli_value(cli, "tz");
    struct import im = {.cli = cli, .queue = queue};
    CLEANUP_FREE char *text = NULL;
    size_t cap = 0;
    int result = 0;
    FILE *f;

    if (queue == NULL)
        return err_set(err, ERR_USAGE, "write --queue QUEUE: whose handler runs the commands");
    text_copy(im.tz, sizeof(im.tz), tz != NULL ? tz : "UTC");
    if (feed_check(path, err) < 0)
        return -1;
    f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (f == NULL)
        return err_sys(err, errno, "cannot read %.200s", path);
    while (result == 0 && getline(&text, &cap, f) >= 0) {
        text[strcspn(text, "\n")] = '\0';
        im.line++;
        result = take_line(&im, text, err);
    }
    if (f != stdin)
        (void)fclose(f);
    return result < 0 ? -1 : im.left_out > 0;
}
