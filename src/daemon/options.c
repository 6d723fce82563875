#include "daemon/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

enum { CONFIG, CHECK, PRINT, VERSION, HELP, OPTIONS };

const struct daemon_option daemon_options[] = {
    [CONFIG] = {"config", 'c', "FILE", "take the settings from this file"},
    [CHECK] = {"check-config", '\0', NULL,
               "check file, environment, handlers; say what is wrong; exit 0 or 78"},
    [PRINT] = {"print-config", '\0', NULL, "print what is in force, as a configuration file"},
    [VERSION] = {"version", 'V', NULL, "version of the program and of its function library"},
    [HELP] = {"help", 'h', NULL, "this"},
    [OPTIONS] = {NULL, '\0', NULL, NULL},
};

/* getopt returns the letter, or the row of a long option, which is below every letter. */
struct option_table {
    struct option longs[OPTIONS + 1];
    char brief[2 * OPTIONS + 2];
    const char *names[OPTIONS + 1];
};

static void table_init(struct option_table *t)
{
    size_t n = 0;

    memset(t, 0, sizeof(*t));
    t->brief[n++] = ':';
    for (int i = 0; i < OPTIONS; i++) {
        const struct daemon_option *o = &daemon_options[i];
        int has_arg = o->arg != NULL ? required_argument : no_argument;

        t->longs[i] = (struct option){o->name, has_arg, NULL, i};
        t->names[i] = o->name;
        if (o->letter == '\0')
            continue;
        t->brief[n++] = o->letter;
        if (o->arg != NULL)
            t->brief[n++] = ':';
    }
}

static int row_of(int got)
{
    for (int i = 0; i < OPTIONS; i++)
        if (got == i || (got != '\0' && daemon_options[i].letter == got))
            return i;
    return OPTIONS;
}

/* Append the letter of an unknown option, or the word. */
static void show(struct buf *safe, const char *word)
{
    char dash[3] = {'-', (char)optopt, '\0'};

    if (strncmp(word, "--", 2) != 0)
        word = dash;
    text_escape(safe, word, strcspn(word, "="));
    text_cut(safe, 48);
}

static int refuse(const struct option_table *t, int got, char **argv, struct err *err)
{
    const char *word = argv[optind - 1];
    CLEANUP_BUF struct buf safe = BUF_INIT;
    CLEANUP_BUF struct buf name = BUF_INIT;
    const char *near;

    if (got == ':' || (optopt != '\0' && row_of(optopt) < OPTIONS))
        return err_set(err, ERR_USAGE, "option --%s %s", daemon_options[row_of(optopt)].name,
                       got == ':' ? "needs a value" : "takes no value");
    show(&safe, word);
    if (strncmp(word, "--", 2) == 0)
        buf_add(&name, word + 2, strcspn(word + 2, "="));
    near = text_nearest(buf_str(&name), t->names);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "unknown option %s: did you mean --%s?", buf_str(&safe),
                       near);
    return err_set(err, ERR_USAGE, "unknown option %s (try: laterd --help)", buf_str(&safe));
}

static void take(struct options *ret, int row)
{
    static const enum daemon_mode modes[] = {[CHECK] = DAEMON_CHECK,
                                             [PRINT] = DAEMON_PRINT,
                                             [VERSION] = DAEMON_VERSION,
                                             [HELP] = DAEMON_HELP};

    if (row == CONFIG)
        ret->config = optarg;
    else
        ret->mode = modes[row];
}

int options_parse(struct options *ret, int argc, char **argv, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    struct option_table t;
    int got;

    *ret = (struct options){NULL, DAEMON_RUN};
    table_init(&t);
    opterr = 0;
    while ((got = getopt_long(argc, argv, t.brief, t.longs, NULL)) != -1) {
        if (got == '?' || got == ':')
            return refuse(&t, got, argv, err);
        take(ret, row_of(got));
        /* The first of these two ends the parsing, whatever follows. */
        if (ret->mode == DAEMON_HELP || ret->mode == DAEMON_VERSION)
            return 0;
    }
    if (optind >= argc)
        return 0;
    text_escape(&safe, argv[optind], strlen(argv[optind]));
    text_cut(&safe, 48);
    return err_set(err, ERR_USAGE, "unexpected argument '%s' (try: laterd --help)", buf_str(&safe));
}

void options_help(const char *config)
{
    static const char other[] = "/etc/laterd/laterd.yaml";

    (void)puts("Usage: laterd [--config FILE] [--check-config | --print-config]\n"
               "Runs jobs that Redis holds when they are due. Stays in the foreground, logs to "
               "stderr.\n");
    for (const struct daemon_option *o = daemon_options; o->name != NULL; o++) {
        char letter[] = {'-', o->letter, ',', '\0'};
        char left[32];

        (void)snprintf(left, sizeof(left), "--%s%s%s", o->name, o->arg != NULL ? " " : "",
                       o->arg != NULL ? o->arg : "");
        (void)printf("  %3s %-15s %s\n", o->letter != '\0' ? letter : "", left, o->prose);
    }
    (void)printf("\nWithout --config: LATERD_CONFIG, else %s%s.\n", config,
                 strcmp(config, other) == 0 ? "" : ", else /etc/laterd/laterd.yaml");
    (void)puts("Each setting can also be given as LATERD_<KEY> in the environment.\n"
               "Signals: TERM stop in order, twice: now; USR1 claim no more; HUP reload.\n"
               "See also: later help");
}
