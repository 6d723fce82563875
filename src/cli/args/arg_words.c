#include "cli/args/arg_words.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#define LIST ",..."

bool arg_words_named(const char *arg)
{
    const char *rest = arg != NULL ? arg + strspn(arg, "abcdefghijklmnopqrstuvwxyz-|") : "";

    return arg != NULL && strchr(arg, '|') != NULL && (*rest == '\0' || strcmp(rest, LIST) == 0);
}

bool arg_words_is_list(const char *arg)
{
    const char *comma = arg != NULL ? strchr(arg, ',') : NULL;

    return comma != NULL && strcmp(comma, LIST) == 0;
}

char *arg_words_copy(const char *arg)
{
    return mem_dup(arg, strcspn(arg, ","));
}

/* Cut text at the bars; names becomes NULL-ended. */
static void split(char *text, const char *names[ARG_WORDS_MAX + 1])
{
    size_t n = 0;
    char *word;

    while (n < ARG_WORDS_MAX && (word = strsep(&text, "|")) != NULL)
        names[n++] = word;
    names[n] = NULL;
}

/* "keep, kill" */
static void list(struct buf *out, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", names[i]);
}

static int check_word(const struct cli_option *option, const char *const *names, const char *value,
                      struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    CLEANUP_BUF struct buf known = BUF_INIT;
    const char *near, *aside;

    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], value) == 0)
            return 0;
    text_escape(&safe, value, strlen(value));
    text_cut(&safe, 48);
    near = text_nearest(value, names);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "--%s '%s': did you mean %s?", option->name, buf_str(&safe),
                       near);
    list(&known, names);
    aside = strchr(option->prose, '('); /* what is done with another word */
    return err_set(err, ERR_USAGE, "--%s '%s': there are %s%s%s", option->name, buf_str(&safe),
                   buf_str(&known), aside != NULL ? " " : "", aside != NULL ? aside : "");
}

static int check_list(const struct cli_option *option, const char *const *names, const char *value,
                      struct err *err)
{
    CLEANUP_FREE char *given = mem_strdup(value);
    char *rest = given, *word;

    while ((word = strsep(&rest, ",")) != NULL) {
        if (check_word(option, names, word, err) < 0)
            return -1;
    }
    return 0;
}

int arg_words_check(const struct cli_option *option, const char *value, struct err *err)
{
    CLEANUP_FREE char *text = NULL;
    const char *names[ARG_WORDS_MAX + 1];

    if (!arg_words_named(option->arg))
        return 0;
    text = arg_words_copy(option->arg);
    split(text, names);
    if (!arg_words_is_list(option->arg))
        return check_word(option, names, value, err);
    return check_list(option, names, value, err);
}
