#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/args/args.h"
#include "cli/show/out.h"
#include "cli/verbs/verbs.h"
#include "lua/lua_lib.h"

#define WIDTH 80      /* if stdout is no terminal */
#define WIDTH_MAX 100 /* longer lines are hard to read */

static size_t width(void)
{
    size_t n = out_width();

    return n == 0 ? WIDTH : n < WIDTH_MAX ? n : WIDTH_MAX;
}

/* Write the words of text from column `at` on; wrapped lines begin at column `indent`. */
static void put_words(const char *text, size_t at, size_t indent)
{
    const char *gap = "";

    for (text += strspn(text, " \n"); *text != '\0'; text += strspn(text, " \n")) {
        size_t n = strcspn(text, " \n");

        if (gap[0] != '\0' && at + 1 + n >= width()) {
            out_printf("\n%*s", (int)indent, "");
            at = indent;
            gap = "";
        }
        out_printf("%s%.*s", gap, (int)n, text);
        at += strlen(gap) + n;
        gap = " ";
        text += n;
    }
    out_printf("\n");
}

/* Write two columns, the second one at `column`, on a new line if the first is too long. */
static void put_row(const char *left, const char *prose, size_t column)
{
    if (strlen(left) + 4 > column)
        out_printf("  %s\n%*s", left, (int)column, "");
    else
        out_printf("  %-*s", (int)column - 2, left);
    put_words(prose, column, column);
}

static void put_options(const struct cli_option *o)
{
    size_t column = width() < 60 ? 8 : 24;

    for (; o != NULL && o->name != NULL; o++) {
        char left[96], letter[8] = "";

        if (args_letter(o->name) != '\0')
            (void)snprintf(letter, sizeof(letter), "-%c, ", args_letter(o->name));
        (void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->arg != NULL ? " " : "",
                       o->arg != NULL ? o->arg : "");
        put_row(left, o->prose, column);
    }
}

static void put_title(const char *title)
{
    out_printf("\n%s%s%s\n", out_style(OUT_BOLD), title, out_style(OUT_PLAIN));
}

static void put_block(const char *title, const char *text)
{
    put_title(title);
    out_printf("  ");
    put_words(text, 2, 2);
}

int help_all(void)
{
    out_printf("usage: later [OPTIONS] VERB ...\n\n");
    put_words("Put jobs into laterd's queues, and look after them.", 0, 0);
    put_title("Verbs");
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        put_row(cli_verbs[i]->name, cli_verbs[i]->brief, 16);
    put_row("help", "show this, or help on one verb: later help VERB", 16);
    put_title("Options of every verb");
    put_options(args_globals);
    put_block("Which server",
              "--redis or --config, else LATER_REDIS_URL, else ~/.config/later.yaml, else the "
              "daemon's configuration, else redis://127.0.0.1:6379. The namespace: --namespace, "
              "LATER_NAMESPACE or that file. A password: redis_password_file, or REDISCLI_AUTH "
              "in the environment.");
    put_block("Exit status",
              "0 fine, 1 refused or limited, 64 wrong arguments, 65 bad input, 66 no such job, "
              "69 Redis cannot be reached, 74 the output cannot be written, 75 try again later, "
              "77 not allowed, 78 bad configuration.");
    return 0;
}

/* Refill paragraphs to the width. Lines that begin with blanks (examples, tables) are kept. */
static void put_prose(const char *prose)
{
    CLEANUP_BUF struct buf paragraph = BUF_INIT;

    while (*prose != '\0') {
        size_t n = strcspn(prose, "\n");
        bool is_text = n > 0 && prose[0] != ' ';

        if (!is_text && paragraph.len > 0) {
            put_words(buf_str(&paragraph), 0, 0);
            buf_clear(&paragraph);
        }
        if (is_text) {
            buf_add(&paragraph, prose, n);
            buf_puts(&paragraph, " ");
        } else {
            out_printf("%.*s\n", (int)n, prose);
        }
        prose += n + (prose[n] == '\n');
    }
    if (paragraph.len > 0)
        put_words(buf_str(&paragraph), 0, 0);
}

int help_verb(const struct cli_verb *verb)
{
    CLEANUP_BUF struct buf usage = BUF_INIT;

    buf_printf(&usage, "usage: later %s%s %s", verb->name,
               verb->options != NULL ? " [OPTIONS]" : "", verb->synopsis);
    put_words(buf_str(&usage), 0, 4);
    out_printf("\n");
    put_prose(verb->prose);
    if (verb->options != NULL) {
        put_title("Options");
        put_options(verb->options);
    }
    put_title("Options of every verb");
    put_options(args_globals);
    return 0;
}

int help_version(void)
{
    out_printf("later " PACKAGE_VERSION " (function library %ld)\n", lua_lib_number);
    return 0;
}
