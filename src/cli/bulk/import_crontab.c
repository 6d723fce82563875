#include "cli/bulk/import_crontab.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask/schedules.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/crontab.h"
#include "cli/bulk/feed.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define PREFIX_BYTES 100 /* of a name; the number of the line comes behind */

/* What holds for the entries of the file, and how it goes. */
struct import {
    struct cli *cli;
    const char *queue;
    char prefix[PREFIX_BYTES + 1];
    char tz[65];
    bool has_tz; /* somebody has named the zone, and who imports knows it */
    unsigned long line;
    size_t taken, left_out;
};

/* What became of a line. name: "" for none. status: "added", "same", "checked", or "left out". */
static void tell(struct import *im, const char *name, const char *status, const char *why)
{
    bool is_taken = strcmp(status, "left out") != 0;

    im->taken += is_taken;
    if (im->cli->json) {
        json_t *row = json_object();

        json_put_int(row, "line", (int64_t)im->line);
        if (name[0] != '\0')
            json_put_text(row, "schedule", name, strlen(name));
        json_put_text(row, "status", status, strlen(status));
        if (is_taken)
            json_put_text(row, "tz", im->tz, strlen(im->tz));
        if (why[0] != '\0')
            json_put_text(row, "reason", why, strlen(why));
        json_print(row);
        return;
    }
    out_printf("line %lu: ", im->line);
    if (name[0] != '\0')
        out_printf("%s ", name);
    out_printf("%s", status);
    if (is_taken)
        out_printf(" (%s)", im->tz);
    out_printf("%s", why[0] != '\0' ? ": " : "");
    out_text(why, strlen(why));
    out_printf("\n");
}

static void leave_out(struct import *im, const char *name, const char *why)
{
    im->left_out++;
    tell(im, name, "left out", why);
}

/* ---- names: after the file, or --prefix, and the line */

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_.:-", c) != NULL);
}

/* Of the file's name, what a schedule's name may have. */
static void prefix_of_path(const char *path, char out[PREFIX_BYTES + 1])
{
    const char *slash = strrchr(path, '/'), *p = slash != NULL ? slash + 1 : path;
    size_t len = 0;

    for (; *p != '\0' && len < PREFIX_BYTES; p++)
        if (isalnum((unsigned char)*p) || (len > 0 && is_plain(*p)))
            out[len++] = *p;
    out[len] = '\0';
    if (len == 0)
        text_copy(out, PREFIX_BYTES + 1, strcmp(path, "-") == 0 ? "stdin" : "line");
}

static int read_prefix(struct import *im, const char *path, struct err *err)
{
    const char *given = cli_value(im->cli, "prefix");

    if (given == NULL) {
        prefix_of_path(path, im->prefix);
        return 0;
    }
    for (const char *p = given; *p != '\0'; p++)
        if (!is_plain(*p) || p - given >= PREFIX_BYTES)
            given = "";
    if (!isalnum((unsigned char)given[0]))
        return err_set(err, ERR_USAGE,
                       "--prefix: write up to %d letters, digits and _ . : -, with a letter or "
                       "digit first",
                       PREFIX_BYTES);
    text_copy(im->prefix, sizeof(im->prefix), given);
    return 0;
}

/* ---- entries */

static void put_advice(const struct crontab_line *l, char out[160])
{
    out[0] = '\0';
    if (l->user[0] != '\0')
        (void)snprintf(out, 160, "it ran as %s: that is user of the queue", l->user);
}

/* Whether this is the schedule that the entry would make. What else was set of it stays. */
static bool is_same(const struct import *im, const struct reply *r, const struct crontab_line *l)
{
    const struct reply *payload = reply_named(r, "payload");
    const char *when = reply_str(reply_named(r, "when"));

    return strncmp(when, "cron ", 5) == 0 && strcmp(when + 5, l->expression) == 0 &&
           reply_is(reply_named(r, "tz"), im->tz) && reply_is(reply_named(r, "queue"), im->queue) &&
           payload != NULL && reply_is(payload, l->command);
}

/* 1: the name is free. 0: it is taken, which was told. -1: Redis cannot be asked. */
static int look_up(struct import *im, const char *name, const struct crontab_line *l,
                   struct err *err)
{
    struct err refusal = ERR_INIT;
    struct reply *r;
    char why[256];

    r = ask_words(&im->cli->server, &refusal, "later_schedules", name, NULL);
    if (r == NULL && ask_is_refusal(&refusal, "ELATER_NOSCHEDULE"))
        return 1;
    if (r == NULL) {
        *err = refusal;
        return -1;
    }
    (void)snprintf(why, sizeof(why),
                   "the name is taken by another schedule: give --prefix PREFIX, or remove that "
                   "one (later schedule rm %s)",
                   name);
    if (is_same(im, r, l))
        tell(im, name, "same", "");
    else
        leave_out(im, name, why);
    reply_free(r);
    return 0;
}

/* 0, or -1: Redis cannot be asked. What Redis refuses is told. */
static int set(struct import *im, const char *name, const struct crontab_line *l, struct err *err)
{
    const char *const words[] = {name,   "cron",  l->expression, "tz",
                                 im->tz, "queue", im->queue,     l->command};
    struct ask_call call = {.n = 0};
    struct reply *r;
    char advice[160];

    put_advice(l, advice);
    if (cli_value(im->cli, "dry-run") != NULL) {
        bool has_user = advice[0] != '\0';
        CLEANUP_FREE char *what =
            mem_printf("%s%s%s%s", l->command, has_user ? " (" : "", advice, has_user ? ")" : "");

        tell(im, name, "checked", what);
        return 0;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ask_call_puts(&call, words[i]);
    r = ask_fcall(&im->cli->server, "later_schedule_set", &call, err);
    if (r == NULL && err->code != ERR_REFUSED)
        return -1;
    if (r == NULL)
        leave_out(im, "", err->text);
    else
        tell(im, name, reply_str(reply_at(r, 1)), advice);
    reply_free(r);
    return 0;
}

/* cron times by CRON_TZ; TZ is of the commands. */
static void take_variable(struct import *im, const struct crontab_line *l)
{
    char why[160];

    if (strcmp(l->name, "CRON_TZ") == 0) {
        text_copy(im->tz, sizeof(im->tz), l->value);
        im->has_tz = true;
    } else if (strcmp(l->name, "TZ") == 0) {
        leave_out(im, "",
                  "TZ: it is the zone of the commands, put it under env of the queue; that of the "
                  "times is CRON_TZ, or --tz");
    } else if (strcmp(l->name, "MAILTO") == 0) {
        leave_out(im, "", "MAILTO: look at dead jobs, or at later health");
    } else if (strcmp(l->name, "SHELL") == 0) {
        leave_out(im, "", "SHELL: it is the handler of the queue");
    } else {
        (void)snprintf(why, sizeof(why), "%s: put it under env of the queue", l->name);
        leave_out(im, "", why);
    }
}

static int take_entry(struct import *im, const struct crontab_line *l, struct err *err)
{
    struct err wrong = ERR_INIT;
    char name[PREFIX_BYTES + 32];
    int is_free;

    (void)snprintf(name, sizeof(name), "%s-%lu", im->prefix, im->line);
    if (l->has_input) {
        leave_out(im, "", "its command has a %: put what it reads into a file");
        return 0;
    }
    if (schedules_check("cron", l->expression, im->tz, &wrong) < 0) {
        leave_out(im, "", wrong.text);
        return 0;
    }
    if (!im->has_tz)
        (void)fprintf(stderr,
                      "later: from line %lu on the times are taken in UTC, since neither --tz nor "
                      "CRON_TZ says another zone (cron takes that of its host)\n",
                      im->line);
    im->has_tz = true;
    is_free = look_up(im, name, l, err);
    return is_free > 0 ? set(im, name, l, err) : is_free;
}

static int take_line(struct import *im, const char *text, struct err *err)
{
    struct crontab_line l;
    struct err wrong = ERR_INIT;

    im->line++;
    if (crontab_parse(text, cli_value(im->cli, "system") != NULL, &l, &wrong) < 0) {
        leave_out(im, "", wrong.text);
        return 0;
    }
    if (l.kind == CRONTAB_VARIABLE)
        take_variable(im, &l);
    return l.kind == CRONTAB_ENTRY ? take_entry(im, &l, err) : 0;
}

/* ---- the file */

/* Its lines, which the caller frees; NULL with err. */
static char **read_lines(const char *path, struct err *err)
{
    char **lines = mem_new(sizeof(*lines)), *text = NULL;
    size_t cap = 0, n = 0;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    ssize_t got;

    lines[0] = NULL;
    if (f == NULL) {
        (void)err_sys(err, errno, "cannot read %.200s", path);
        free(lines);
        return NULL;
    }
    while ((got = getline(&text, &cap, f)) >= 0) {
        while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r'))
            text[--got] = '\0';
        mem_list_add(&lines, &n, mem_strdup(text));
    }
    free(text);
    if (f != stdin)
        (void)fclose(f);
    return lines;
}

/* Entries of a system's crontab have a user before the command, those of a user's have none. */
static int check_place(const char *path, bool is_system, struct err *err)
{
    if (is_system || (strcmp(path, "/etc/crontab") != 0 && strncmp(path, "/etc/cron.d/", 12) != 0))
        return 0;
    return err_set(err, ERR_USAGE,
                   "%.200s is a system's crontab, whose entries name a user: write --system", path);
}

static bool is_program(const char *name)
{
    const char *path = getenv("PATH");

    for (size_t n; path != NULL && *path != '\0'; path += n + (path[n] == ':')) {
        CLEANUP_FREE char *file = NULL;

        n = strcspn(path, ":");
        file = mem_printf("%.*s/%s", (int)n, path, name);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* Does the word stand for a user (or else for a program), as far as this host knows? Neither where
 * it is both, or none: the file may be of another host. */
static bool means(const char *word, bool user)
{
    bool is_user = getpwnam(word) != NULL, runs = is_program(word);

    return strchr(word, '/') != NULL ? !user : is_user != runs && is_user == user;
}

static int check_kind(char *const *lines, bool is_system, struct err *err)
{
    for (size_t i = 0; lines[i] != NULL; i++) {
        struct crontab_line l;
        char word[64];

        if (crontab_parse(lines[i], is_system, &l, NULL) < 0 || l.kind != CRONTAB_ENTRY)
            continue;
        text_copy(word, sizeof(word), is_system ? l.user : l.command);
        word[strcspn(word, " \t")] = '\0';
        if (!is_system && means(word, true))
            return err_set(err, ERR_USAGE,
                           "line %zu would run '%s': if that is its user, this is a system's "
                           "crontab: write --system",
                           i + 1, word);
        if (is_system && means(word, false))
            return err_set(err, ERR_USAGE,
                           "line %zu has no user before its command, but '%s': if this is a user's "
                           "crontab, leave --system out",
                           i + 1, word);
    }
    return 0;
}

int import_crontab(struct cli *cli, struct err *err)
{
    const char *path = cli->argv[1], *queue = cli_value(cli, "queue"), *tz = cli_value(cli, "tz");
    struct import im = {.cli = cli, .queue = queue, .has_tz = tz != NULL};
    bool is_system = cli_value(cli, "system") != NULL;
    char **lines;
    int result;

    if (queue == NULL)
        return err_set(err, ERR_USAGE, "write --queue QUEUE: whose handler runs the commands");
    text_copy(im.tz, sizeof(im.tz), tz != NULL ? tz : "UTC");
    if (read_prefix(&im, path, err) < 0 || check_place(path, is_system, err) < 0 ||
        feed_check(path, err) < 0)
        return -1;
    lines = read_lines(path, err);
    if (lines == NULL)
        return -1;
    result = check_kind(lines, is_system, err);
    for (size_t i = 0; result == 0 && lines[i] != NULL; i++)
        result = take_line(&im, lines[i], err);
    mem_free_list(lines);
    if (im.taken > 0 && cli_value(cli, "dry-run") == NULL)
        queue_name_warn(cli, queue, "the jobs wait");
    return result < 0 ? -1 : im.left_out > 0;
}
