/*
 * The command `later`: one const struct cli_verb per verb, and what a verb is given.
 *
 * A verb's run() reads its operands and options from struct cli and calls Redis with ask_fcall. It
 * returns an exit status, or -1 with *err filled: then the run (main.c) prints the error on stderr
 * and exits with complain_status(err): a status of sysexits.h, or 1 for some refusals. One thread.
 */
#ifndef LATER_CLI_CLI_H
#define LATER_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask/ask.h"
#include "base/err.h"

#define CLI_OPTIONS_MAX 40 /* per verb */
#define CLI_MANY (-1)      /* any number of operands */
#define CLI_COMMAND (-2)   /* the same; after the first one, a command with its own options */
#define CLI_TIME_MAX 24    /* bytes of a time in ms as text */

struct cli_option {
    const char *name;  /* without the dashes */
    const char *arg;   /* name of the value in the help ("FILE"), or its allowed words
                          ("keep|kill", see args/arg_words.h); NULL: the option has no value */
    const char *prose; /* one line */
};

struct cli;

struct cli_verb {
    const char *name;
    const char *synopsis; /* the operands: "QUEUE [PAYLOAD|-]" */
    const char *brief;    /* one line, for the list of verbs */
    const char *prose;    /* the long help: paragraphs, which are refilled; lines that begin
                             with blanks (examples, tables) are printed as they are */
    int min, max;         /* operands; max may be CLI_MANY or CLI_COMMAND */
    bool passes_rest;     /* everything after the verb belongs to another program */
    const struct cli_option *options; /* ended by a NULL name; NULL: no options of its own */
    int (*run)(struct cli *cli, struct err *err);
};

struct cli {
    const struct cli_verb *verb;
    struct ask_server server;
    bool json;
    int argc;                           /* operands */
    char **argv;                        /* NULL-ended */
    const char *value[CLI_OPTIONS_MAX]; /* of the verb's options, in the same order */
    char *joined[CLI_OPTIONS_MAX];      /* owned: a value that was given several times, or NULL */
    char time_text[CLI_OPTIONS_MAX]
                  [CLI_TIME_MAX]; /* values that were rewritten: see args/time_options.h */
    char *recent; /* owned: the ids that stand for operands, see args/recents.h; or NULL */
};

/* The value of an option of this verb ("" for one without a value), NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *option);
/* The value as a duration. *ret_ms stays as it is when the option was not given. 0, or -1 with code
 * USAGE. */
int cli_duration(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err);

/* Append name and value of each of these options (NULL-ended) that was given. */
void cli_call_options(struct ask_call *call, const struct cli *cli, const char *const *options);

#endif
