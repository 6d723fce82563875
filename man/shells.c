/* The lists of the completions. Nothing of a table is a command to the shell: all is in quotes. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/args/args.h"
#include "cli/args/arg_words.h"
#include "cli/verbs/verbs.h"
#include "daemon/options.h"
#include "parts.h"

#define OPERANDS_MAX 8

/* In single quotes. */
static void put_quoted(struct buf *out, const char *text)
{
    buf_puts(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_puts(out, "'\\''");
        else
            buf_add(out, text, 1);
    }
    buf_puts(out, "'");
}

/* ---- what operands a verb takes, from its synopsis: by position, the words or a name in capitals
 */

struct operands {
    struct buf at[OPERANDS_MAX];
    bool is_words[OPERANDS_MAX];
    size_t n;
    bool is_many; /* the last one any number of times */
    /* "REST" alone: what follows is another program's. */
};

static bool is_word(const char *token)
{
    return token[0] >= 'a' && token[0] <= 'z' &&
           token[strspn(token, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

/* Whether token is `name`, or a choice that has it: "FILE|-". */
static bool is_or_has(const char *token, const char *name)
{
    size_t n = strlen(name);

    for (;;) {
        size_t part = strcspn(token, "|");

        if (part == n && strncmp(token, name, n) == 0)
            return true;
        if (token[part] == '\0')
            return false;
        token += part + 1;
    }
}

static bool has_part(const struct buf *words, const char *token)
{
    return words->len > 0 && is_or_has(words->data, token);
}

/* ---- operands and values that are names, which `later find` completes */

/* What NAME is as an operand of a verb. */
static const struct {
    const char *verb, *kind;
} named_by[] = {
    {"batch", "batch"},   {"schedule", "schedule"}, {"lock", "lock"},   {"sem", "sem"},
    {"throttle", "rate"}, {"gates", "gate"},        {"limits", "gate"},
};

static bool is_name(const char *token)
{
    return strcmp(token, "QUEUE") == 0 || strcmp(token, "ID") == 0 || strcmp(token, "TOPIC") == 0 ||
           strcmp(token, "NAME") == 0;
}

/* The kind of `later find` that a part of an operand or value stands for, `any` for all; NULL: it
 * is no name. option: NULL for an operand */
static const char *kind_of(const char *verb, const char *option, const char *part, size_t n)
{
    static const char *const same[] = {"lock", "sem", "rate", "batch"};
    static const struct {
        const char *part, *kind;
    } kinds[] = {{"QUEUE", "queue"}, {"ID", "job"}, {"TOPIC", "topic"}, {"PREFIX", "any"}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (n == strlen(kinds[i].part) && strncmp(part, kinds[i].part, n) == 0)
            return kinds[i].kind;
    if (n != 4 || strncmp(part, "NAME", n) != 0)
        return NULL;
    for (size_t i = 0; option != NULL && i < sizeof(same) / sizeof(same[0]); i++)
        if (strcmp(option, same[i]) == 0)
            return same[i];
    for (size_t i = 0; option == NULL && i < sizeof(named_by) / sizeof(named_by[0]); i++)
        if (strcmp(verb, named_by[i].verb) == 0)
            return named_by[i].kind;
    return NULL;
}

/* Append `mark` and the kind of each part that is a name, with `between` between them; behind the
 * last one a comma if there may be several in a value. */
static void put_kinds(struct buf *out, const char *verb, const char *option, const char *arg,
                      const char *mark, const char *between)
{
    size_t whole = strcspn(arg, ","), was = out->len;

    for (const char *part = arg; part < arg + whole; part += strcspn(part, "|,") + 1) {
        const char *kind = kind_of(verb, option, part, strcspn(part, "|,"));

        if (kind != NULL)
            buf_printf(out, "%s%s%s", out->len > was ? between : "", mark, kind);
    }
    if (out->len > was && arg_words_is_list(arg))
        buf_puts(out, ",");
}

/* Several alternatives may have a token in one position: their words, or else the first one, and
 * those that are names. */
static void merge(struct operands *o, size_t pos, const char *token)
{
    struct buf *at = &o->at[pos];

    o->n = pos < o->n ? o->n : pos + 1;
    if (is_word(token)) {
        if (!o->is_words[pos])
            buf_clear(at);
        o->is_words[pos] = true;
        if (!has_part(at, token))
            buf_printf(at, "%s%s", at->len > 0 ? "|" : "", token);
    } else if (at->len == 0) {
        buf_puts(at, is_or_has(token, "FILE") ? "FILE" : token);
    } else if (!o->is_words[pos] && is_name(token) && !has_part(at, token)) {
        buf_printf(at, "|%s", token);
    }
}

/* Whether what follows this word of a synopsis is the value of an option: "--state S". */
static bool takes_value(const struct cli_verb *verb, const char *token)
{
    for (const struct cli_option *o = verb->options; o != NULL && o->name != NULL; o++)
        if (strncmp(token, "--", 2) == 0 && strcmp(token + 2, o->name) == 0)
            return o->arg != NULL;
    return false;
}

static void read_operands(struct operands *o, const struct cli_verb *verb)
{
    CLEANUP_FREE char *copy = mem_strdup(verb->synopsis);
    size_t max = verb->max >= 0 && verb->max < OPERANDS_MAX ? (size_t)verb->max : OPERANDS_MAX;
    size_t pos = 0;
    char *rest = copy, *token;
    bool is_value = false;

    memset(o, 0, sizeof(*o));
    if (verb->passes_rest) {
        merge(o, 0, "REST");
        return;
    }
    while ((token = strsep(&rest, " []()")) != NULL) {
        size_t n = strlen(token);
        bool is_many = n > 3 && strcmp(token + n - 3, "...") == 0;

        if (strcmp(token, "|") == 0) {
            pos = 0;
            continue;
        }
        if (n == 0)
            continue;
        if (is_value || token[0] == '-' || token[0] == '.' || pos >= max) {
            is_value = takes_value(verb, token);
            continue;
        }
        if (is_many)
            token[n - 3] = '\0';
        o->is_many = o->is_many || is_many;
        merge(o, pos++, token);
    }
}

static void operands_done(struct operands *o)
{
    for (size_t i = 0; i < OPERANDS_MAX; i++)
        buf_done(&o->at[i]);
}

/* ---- bash */

void bash_verbs(struct buf *out)
{
    buf_puts(out, "    echo '");
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        buf_printf(out, "%s ", cli_verbs[i]->name);
    buf_puts(out, "help'\n");
}

static void bash_option(struct buf *out, char letter, const char *name)
{
    if (letter != '\0')
        buf_printf(out, " -%c", letter);
    buf_printf(out, " --%s", name);
}

static void bash_list(struct buf *out, const char *verb, const struct cli_option *o)
{
    buf_printf(out, "    %s) echo '", verb);
    for (; o != NULL && o->name != NULL; o++)
        bash_option(out, args_letter(o->name), o->name);
    buf_puts(out, "' ;;\n");
}

/* The branch of an empty name: the options of every verb. */
void bash_options(struct buf *out)
{
    bash_list(out, "''", args_globals);
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        if (cli_verbs[i]->options != NULL)
            bash_list(out, cli_verbs[i]->name, cli_verbs[i]->options);
}

static void bash_value(struct buf *out, const char *verb, char letter, const char *name,
                       const char *arg)
{
    CLEANUP_BUF struct buf kinds = BUF_INIT;
    CLEANUP_FREE char *words = NULL;

    if (arg == NULL)
        return;
    put_kinds(&kinds, verb, name, arg, "@", "|");
    buf_printf(out, "    %s/--%s", verb, name);
    if (letter != '\0')
        buf_printf(out, " | %s/-%c", verb, letter);
    buf_puts(out, ") echo ");
    words = arg_words_named(arg) ? arg_words_copy(arg) : mem_strdup(arg);
    put_quoted(out, is_or_has(arg, "FILE") ? "FILE" : kinds.len > 0 ? buf_str(&kinds) : words);
    buf_puts(out, " ;;\n");
}

void bash_values(struct buf *out)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        const struct cli_verb *verb = cli_verbs[i];

        for (const struct cli_option *o = verb->options; o != NULL && o->name != NULL; o++)
            bash_value(out, verb->name, args_letter(o->name), o->name, o->arg);
    }
    for (const struct cli_option *o = args_globals; o->name != NULL; o++)
        bash_value(out, "*", args_letter(o->name), o->name, o->arg);
}

/* "@queue" for a name, else what the synopsis says. */
static void bash_operand(struct buf *out, const char *verb, struct buf *operand)
{
    size_t was = out->len;

    put_kinds(out, verb, NULL, buf_str(operand), "@", "|");
    if (out->len == was)
        buf_puts(out, buf_str(operand));
}

void bash_operands(struct buf *out)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        struct operands o;

        read_operands(&o, cli_verbs[i]);
        buf_printf(out, "    %s) echo '", cli_verbs[i]->name);
        for (size_t k = 0; k < o.n; k++) {
            buf_puts(out, k > 0 ? " " : "");
            bash_operand(out, cli_verbs[i]->name, &o.at[k]);
        }
        buf_printf(out, "%s' ;;\n", o.is_many ? "..." : "");
        operands_done(&o);
    }
    buf_puts(out, "    help) echo 'VERB' ;;\n");
}

void bash_daemon_options(struct buf *out)
{
    buf_puts(out, "    echo '");
    for (const struct daemon_option *o = daemon_options; o->name != NULL; o++)
        bash_option(out, o->letter, o->name);
    buf_puts(out, "'\n");
}

void bash_daemon_values(struct buf *out)
{
    for (const struct daemon_option *o = daemon_options; o->name != NULL; o++)
        bash_value(out, "*", o->letter, o->name, o->arg);
}

/* ---- zsh */

/* Within [] or behind a colon of a specification. */
static void zsh_escape(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("[]:\\", *text) != NULL)
            buf_puts(out, "\\");
        buf_add(out, text, 1);
    }
}

/* How a value is completed: words, files, names, or only told what it is. */
static void zsh_value(struct buf *spec, const char *verb, const char *option, const char *arg)
{
    CLEANUP_BUF struct buf kinds = BUF_INIT;

    buf_puts(spec, ":");
    put_kinds(&kinds, verb, option, arg, "", " ");
    if (arg_words_named(arg)) {
        CLEANUP_FREE char *words = arg_words_copy(arg);

        for (char *c = words; *c != '\0'; c++)
            *c = *c == '|' ? ' ' : *c;
        buf_printf(spec, "word:(%s)", words);
        return;
    }
    zsh_escape(spec, arg);
    if (is_or_has(arg, "FILE"))
        buf_puts(spec, ":_files");
    else if (kinds.len > 0)
        buf_printf(spec, ": _later_names %s", buf_str(&kinds));
    else
        buf_puts(spec, ": ");
}

static void zsh_option(struct buf *out, const char *verb, char letter, const char *name,
                       const char *arg, const char *prose)
{
    CLEANUP_BUF struct buf spec = BUF_INIT;

    buf_puts(&spec, "[");
    zsh_escape(&spec, prose);
    buf_puts(&spec, "]");
    if (arg != NULL)
        zsh_value(&spec, verb, name, arg);
    buf_puts(out, "        ");
    if (letter != '\0')
        buf_printf(out, "'(-%c --%s)'{-%c,--%s%s}", letter, name, letter, name,
                   arg != NULL ? "=" : "");
    else
        buf_printf(out, "--%s%s", name, arg != NULL ? "=" : "");
    put_quoted(out, buf_str(&spec));
    buf_puts(out, "\n");
}

static void zsh_options(struct buf *out, const char *verb, const struct cli_option *o)
{
    for (; o != NULL && o->name != NULL; o++)
        zsh_option(out, verb, args_letter(o->name), o->name, o->arg, o->prose);
}

void zsh_verbs(struct buf *out)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        CLEANUP_BUF struct buf line = BUF_INIT;

        buf_printf(&line, "%s:", cli_verbs[i]->name);
        zsh_escape(&line, cli_verbs[i]->brief);
        buf_puts(out, "        ");
        put_quoted(out, buf_str(&line));
        buf_puts(out, "\n");
    }
}

void zsh_globals(struct buf *out)
{
    zsh_options(out, "", args_globals);
}

/* A position of an operand; the last one may be any number of times, or a whole command line. */
static void zsh_operand(struct buf *out, const char *verb, const struct operands *o, size_t k)
{
    struct buf at = o->at[k];
    CLEANUP_BUF struct buf spec = BUF_INIT;
    const char *name = buf_str(&at);
    bool is_rest = o->is_many && k + 1 == o->n;

    if (is_rest && strcmp(name, "COMMAND") == 0)
        buf_puts(&spec, "*:::COMMAND:_normal");
    else {
        if (is_rest)
            buf_puts(&spec, "*");
        else
            buf_printf(&spec, "%zu", k + 1);
        zsh_value(&spec, verb, NULL, name);
    }
    buf_puts(out, "        ");
    put_quoted(out, buf_str(&spec));
    buf_puts(out, "\n");
}

void zsh_arguments(struct buf *out)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        struct operands o;

        read_operands(&o, cli_verbs[i]);
        buf_printf(out, "    %s) arguments=(\n", cli_verbs[i]->name);
        zsh_options(out, cli_verbs[i]->name, cli_verbs[i]->options);
        for (size_t k = 0; k < o.n; k++)
            zsh_operand(out, cli_verbs[i]->name, &o, k);
        buf_puts(out, "        ) ;;\n");
        operands_done(&o);
    }
}

void zsh_daemon_options(struct buf *out)
{
    for (const struct daemon_option *o = daemon_options; o->name != NULL; o++)
        zsh_option(out, "", o->letter, o->name, o->arg, o->prose);
}
