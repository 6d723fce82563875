#include "cli/args/args.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/arg_words.h"
#include "cli/verbs/verbs.h"

enum global {
    GLOBAL_REDIS,
    GLOBAL_CONFIG,
    GLOBAL_NAMESPACE,
    GLOBAL_SHARDS,
    GLOBAL_TLS_CA,
    GLOBAL_TLS_CERT,
    GLOBAL_TLS_KEY,
    GLOBAL_TLS_NAME,
    GLOBAL_JSON,
    GLOBAL_HELP,
    GLOBAL_VERSION,
    GLOBALS
};

#define OPTIONS_ALL (GLOBALS + CLI_OPTIONS_MAX + 1)
#define VALUE_BASE 256 /* getopt's values of long options, above every character */

const struct cli_option args_globals[] = {
    [GLOBAL_REDIS] =
        {"redis", "URL",
         "the server: redis://[USER@]HOST[:PORT][/DB], with TLS rediss://..., "
         "sentinel://HOST,HOST/MASTER, cluster://HOST,HOST or unix:[USER@]PATH[?db=N]"},
    [GLOBAL_CONFIG] = {"config", "FILE", "take server and namespace from this configuration"},
    [GLOBAL_NAMESPACE] = {"namespace", "NS", "the set of queues that is meant (default: default)"},
    [GLOBAL_SHARDS] = {"shards", "N",
                       "the namespace is cut into N shards (default: as the file says)"},
    [GLOBAL_TLS_CA] = {"tls-ca", "FILE", "rediss: certificates that may sign the server's"},
    [GLOBAL_TLS_CERT] = {"tls-cert", "FILE", "rediss: our certificate, if the server asks for one"},
    [GLOBAL_TLS_KEY] = {"tls-key", "FILE", "rediss: the key of that certificate"},
    [GLOBAL_TLS_NAME] = {"tls-name", "NAME", "rediss: name in the server's certificate"},
    [GLOBAL_JSON] = {"json", NULL, "print JSON, one value a line"},
    [GLOBAL_HELP] = {"help", NULL, "this help; later VERB --help for one verb"},
    [GLOBAL_VERSION] = {"version", NULL, "print the version"},
    [GLOBALS] = {NULL, NULL, NULL},
};

/* -h, and the letters of flock(1), which people are used to. */
static const struct {
    const char *name;
    char letter;
} letters[] = {
    {"help", 'h'}, {"nonblock", 'n'}, {"wait", 'w'}, {"conflict-exit-code", 'E'}, {"count", 'n'}};

char args_letter(const char *option)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (strcmp(letters[i].name, option) == 0)
            return letters[i].letter;
    }
    return '\0';
}

/* The options that are valid at this point of the command line. */
struct option_list {
    struct option option[OPTIONS_ALL];
    const char *names[OPTIONS_ALL]; /* NULL-ended */
    char brief[3 * OPTIONS_ALL];    /* getopt's short options */
    int n;
};

static void table_put(struct option_list *t, const struct cli_option *o)
{
    for (; o != NULL && o->name != NULL && t->n < OPTIONS_ALL - 1; o++) {
        t->option[t->n] = (struct option){o->name, o->arg != NULL ? required_argument : no_argument,
                                          NULL, VALUE_BASE + t->n};
        t->names[t->n++] = o->name;
    }
}

/* order: "+" ends the options at the first operand; with "" they may come in any order. */
static const struct option_list *table_of(struct option_list *t, const struct cli_verb *verb,
                                          const char *order)
{
    size_t at = strlen(order);

    memset(t, 0, sizeof(*t));
    table_put(t, args_globals);
    if (verb != NULL)
        table_put(t, verb->options);
    memcpy(t->brief, order, at);
    t->brief[at++] = ':';
    for (int i = 0; i < t->n; i++) {
        char letter = args_letter(t->names[i]);

        if (letter == '\0')
            continue;
        t->brief[at++] = letter;
        if (t->option[i].has_arg == required_argument)
            t->brief[at++] = ':';
    }
    return t;
}

/* The index of the option that getopt returned, as its number or its letter. */
static int index_of(const struct option_list *t, int got)
{
    for (int i = 0; i < t->n; i++) {
        if (got != '\0' && args_letter(t->names[i]) == got)
            return i;
    }
    return got - VALUE_BASE;
}

/* How many options start with this word: two or more make an abbreviation ambiguous. */
static int count_starting(const struct option_list *t, const char *word)
{
    int n = 0;

    for (int i = 0; i < t->n; i++)
        n += strncmp(t->names[i], word, strlen(word)) == 0;
    return n;
}

/* Text from the command line, escaped and cut for a message. */
static const char *shown(struct buf *safe, const char *text)
{
    text_escape(safe, text, strlen(text));
    text_cut(safe, 48);
    return buf_str(safe);
}

static int refuse_unknown(const struct option_list *t, const char *given, bool is_verb_known,
                          struct err *err)
{
    CLEANUP_BUF struct buf word = BUF_INIT;
    CLEANUP_BUF struct buf safe = BUF_INIT;
    const char *near;

    buf_add(&word, given, strcspn(given, "="));
    (void)shown(&safe, buf_str(&word));
    if (strncmp(buf_str(&word), "--", 2) != 0)
        return err_set(err, ERR_USAGE, "unknown option %s (%s)", buf_str(&safe),
                       is_verb_known ? "what starts with - and is no option goes behind --"
                                     : "try: later help");
    if (count_starting(t, buf_str(&word) + 2) > 1)
        return err_set(err, ERR_USAGE, "option %s could be several: write more of it",
                       buf_str(&safe));
    near = text_nearest(buf_str(&word) + 2, t->names);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "unknown option %s: did you mean --%s?", buf_str(&safe),
                       near);
    return err_set(err, ERR_USAGE, "unknown option %s (try --help)", buf_str(&safe));
}

/* Turn ? or : from getopt into an error. */
static int refuse(const struct option_list *t, int got, char **argv, bool is_verb_known,
                  struct err *err)
{
    const char *given = optind > 0 ? argv[optind - 1] : "";
    char dash[3] = {'-', (char)optopt, '\0'};

    if (index_of(t, optopt) >= 0 && index_of(t, optopt) < t->n) {
        const char *name = t->names[index_of(t, optopt)];

        return err_set(err, ERR_USAGE,
                       got == ':' ? "option --%s needs a value" : "option --%s takes no value",
                       name);
    }
    return refuse_unknown(t, optopt != 0 ? dash : given, is_verb_known, err);
}

struct parsing {
    struct cli *cli;
    bool wants_help, wants_version;
};

static void take_global(struct parsing *s, enum global which, const char *value)
{
    switch (which) {
    case GLOBAL_REDIS:
        s->cli->server.flags.redis = value;
        break;
    case GLOBAL_CONFIG:
        s->cli->server.flags.config = value;
        break;
    case GLOBAL_NAMESPACE:
        s->cli->server.flags.ns = value;
        break;
    case GLOBAL_SHARDS:
        s->cli->server.flags.shards = value;
        break;
    case GLOBAL_TLS_CA:
        s->cli->server.flags.tls_ca = value;
        break;
    case GLOBAL_TLS_CERT:
        s->cli->server.flags.tls_cert = value;
        break;
    case GLOBAL_TLS_KEY:
        s->cli->server.flags.tls_key = value;
        break;
    case GLOBAL_TLS_NAME:
        s->cli->server.flags.tls_name = value;
        break;
    case GLOBAL_JSON:
        s->cli->json = true;
        break;
    case GLOBAL_HELP:
        s->wants_help = true;
        break;
    case GLOBAL_VERSION:
        s->wants_version = true;
        break;
    case GLOBALS:
        break;
    }
}

/* A list that is given again goes on. */
static void join(struct cli *cli, int which, const char *value)
{
    char *all = mem_printf("%s,%s", cli->value[which], value);

    free(cli->joined[which]);
    cli->value[which] = cli->joined[which] = all;
}

static int take_own(struct cli *cli, int which, const char *value, struct err *err)
{
    assert(cli->verb != NULL); /* without a verb the table has global options only */
    if (arg_words_check(&cli->verb->options[which], value, err) < 0)
        return -1;
    if (cli->value[which] != NULL && arg_words_is_list(cli->verb->options[which].arg))
        join(cli, which, value);
    else
        cli->value[which] = value != NULL ? value : "";
    return 0;
}

/* Read options until there are no more. Then getopt's optind is the index of the first operand. */
static int take_options(struct parsing *s, int argc, char **argv, struct err *err)
{
    const struct cli_verb *verb = s->cli->verb;
    struct option_list table;
    const char *order = verb == NULL || verb->max == CLI_COMMAND ? "+" : "";
    const struct option_list *t = table_of(&table, verb, order);
    int got, at;

    opterr = 0;
    optind = 0; /* glibc: reset getopt, which then reads the order from t->brief */
    while ((got = getopt_long(argc, argv, t->brief, t->option, NULL)) != -1) {
        if (got == '?' || got == ':')
            return refuse(t, got, argv, verb != NULL, err);
        at = index_of(t, got);
        if (at < GLOBALS)
            take_global(s, (enum global)at, optarg);
        else if (take_own(s->cli, at - GLOBALS, optarg, err) < 0)
            return -1;
    }
    return 0;
}

static int find_verb(struct cli *cli, const char *word, struct err *err)
{
    const char *names[64] = {"help"};
    CLEANUP_BUF struct buf safe = BUF_INIT;
    const char *near;

    cli->verb = cli_verb(word);
    if (cli->verb != NULL)
        return 0;
    for (size_t i = 0; i < 62 && cli_verbs[i] != NULL; i++)
        names[i + 1] = cli_verbs[i]->name;
    near = text_nearest(word, names);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "there is no verb '%s': did you mean %s?",
                       shown(&safe, word), near);
    return err_set(err, ERR_USAGE, "there is no verb '%s' (try: later help)", shown(&safe, word));
}

/* A longer one would fill the text of an error, and the rest of it would be cut. */
#define SYNOPSIS_SHORT 150

static int count_operands(const struct cli *cli, struct err *err)
{
    const struct cli_verb *verb = cli->verb;
    CLEANUP_BUF struct buf safe = BUF_INIT;
    CLEANUP_FREE char *wrong = NULL;

    if (cli->argc >= verb->min && (verb->max < 0 || cli->argc <= verb->max))
        return 0;
    wrong = cli->argc < verb->min
                ? mem_strdup("something is missing")
                : mem_printf("there is no place for '%.40s'; a value with spaces needs quotes",
                             shown(&safe, cli->argv[verb->max]));
    if (strlen(verb->synopsis) > SYNOPSIS_SHORT)
        return err_set(err, ERR_USAGE, "%s (later %s --help tells what it takes)", wrong,
                       verb->name);
    return err_set(err, ERR_USAGE, "%s: write later %s%s%s (later %s --help tells more)", wrong,
                   verb->name, verb->synopsis[0] != '\0' ? " " : "", verb->synopsis, verb->name);
}

static enum args_result bad(struct err *err, const char *text)
{
    (void)err_set(err, ERR_USAGE, "%s", text);
    return ARGS_BAD;
}

/* `later help [VERB]`. It is not in the table of verbs because it needs no server. */
static enum args_result parse_help(struct parsing *s, int argc, char **argv, struct err *err)
{
    if (argc > 2)
        return bad(err, "write: later help [VERB]");
    if (argc < 2 || argv[1][0] == '-' || strcmp(argv[1], "help") == 0)
        return ARGS_HELP;
    return find_verb(s->cli, argv[1], err) < 0 ? ARGS_BAD : ARGS_HELP;
}

/* After such a verb, only --help as the first word is ours: -h is redis-cli's host. */
static enum args_result pass_rest(struct cli *cli, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--help") == 0)
        return ARGS_HELP;
    cli->argc = argc;
    cli->argv = argv;
    return ARGS_RUN;
}

/* After the operand come more options, perhaps --, and the command. Move the operand before it. */
static int take_command(struct parsing *s, struct err *err)
{
    struct cli *cli = s->cli;
    char *operand = cli->argv[0];

    if (take_options(s, cli->argc, cli->argv, err) < 0)
        return -1;
    cli->argc -= optind - 1;
    cli->argv += optind - 1;
    cli->argv[0] = operand;
    return 0;
}

enum args_result args_parse(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct parsing s = {.cli = cli};
    int at;

    if (take_options(&s, argc, argv, err) < 0)
        return ARGS_BAD;
    if (s.wants_version)
        return ARGS_VERSION;
    at = optind;
    if (at >= argc && s.wants_help)
        return ARGS_HELP;
    if (at >= argc)
        return bad(err, "a verb is missing (try: later help)");
    if (strcmp(argv[at], "help") == 0)
        return parse_help(&s, argc - at, argv + at, err);
    if (find_verb(cli, argv[at], err) < 0)
        return ARGS_BAD;
    if (cli->verb->passes_rest)
        return pass_rest(cli, argc - at - 1, argv + at + 1);
    if (take_options(&s, argc - at, argv + at, err) < 0)
        return ARGS_BAD;
    cli->argc = argc - at - optind;
    cli->argv = argv + at + optind;
    if (cli->verb->max == CLI_COMMAND && cli->argc > 0 && take_command(&s, err) < 0)
        return ARGS_BAD;
    if (s.wants_help)
        return ARGS_HELP;
    if (s.wants_version)
        return ARGS_VERSION;
    return count_operands(cli, err) < 0 ? ARGS_BAD : ARGS_RUN;
}
