/*
 * The command `later`: one const struct cli_verb a verb, and what all verbs share.
 *
 * A verb's run() reads its operands and options from struct cli, talks to Redis by cli_fcall, and
 * returns an exit status, or -1 with *err filled: then cli_main tells the error, on stderr, and its
 * exit status (cli_status). Exit statuses are those of sysexits.h. One thread.
 */
#ifndef LATER_CLI_CLI_H
#define LATER_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/args/target.h"
#include "redis/client.h"

#define CLI_OPTIONS_MAX 20 /* of one verb */
#define CLI_MANY (-1)      /* no upper bound of operands */
#define CLI_COMMAND (-2)   /* nor here: behind the first one a command with its own options */
#define CLI_TIME_MAX 24    /* a time in ms, as text */
#define CLI_CALL_MAX 48    /* arguments of one call: all options with their values, and some */

struct cli_option {
    const char *name;  /* without the dashes */
    const char *arg;   /* what its value is called in the help ("FILE"), or the words that it must
                          be one of ("keep|kill", see args/arg_words.h); NULL: it has none */
    const char *prose; /* one line */
};

struct cli;

struct cli_verb {
    const char *name;
    const char *synopsis;             /* the operands: "QUEUE [PAYLOAD|-]" */
    const char *brief;                /* one line, for the list of verbs */
    const char *prose;                /* the long help: paragraphs, their lines are filled anew, and
                                         examples and tables, whose lines begin with blanks */
    int min, max;                     /* operands; max may be CLI_MANY or CLI_COMMAND */
    bool passes_rest;                 /* everything behind the verb belongs to another program */
    const struct cli_option *options; /* ended by a NULL name; NULL: none of its own */
    int (*run)(struct cli *cli, struct err *err);
};

struct cli {
    const struct cli_verb *verb;
    struct target_flags flags;
    bool json;
    struct target target; /* valid while run() runs, if the server is asked for: see cli_target */
    bool has_target;
    struct client *client;              /* NULL until cli_connect */
    int argc;                           /* operands */
    char **argv;                        /* NULL-ended */
    const char *value[CLI_OPTIONS_MAX]; /* of the verb's options, in their order */
    char time_text[CLI_OPTIONS_MAX]
                  [CLI_TIME_MAX]; /* values that were rewritten: see args/time_options.h */
};

int cli_main(int argc, char **argv);

/* Every verb, sorted as the help shows them; NULL-ended. */
extern const struct cli_verb *const cli_verbs[];
const struct cli_verb *cli_verb(const char *name); /* NULL: there is none */

/* The value of an option of this verb ("" for one without a value), NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *option);

/* Find out which server is meant (once). 0 or -1. */
int cli_target(struct cli *cli, struct err *err);
/* Connect, if that has not been done yet. 0 or -1. */
int cli_connect(struct cli *cli, struct err *err);
void cli_disconnect(struct cli *cli);

/* The arguments of one call; they must live until it is made. */
struct cli_call {
    const char *argv[CLI_CALL_MAX];
    size_t lens[CLI_CALL_MAX];
    int n;
};
void cli_call_add(struct cli_call *call, const char *p, size_t n);
void cli_call_puts(struct cli_call *call, const char *s);
/* Append "name value" for each of these options (NULL-ended) that was given. */
void cli_call_options(struct cli_call *call, const struct cli *cli, const char *const *options);

/* Call a function of the library in the namespace. The reply is the caller's; NULL with err. */
struct reply *cli_fcall(struct cli *cli, const char *function, const struct cli_call *call,
                        struct err *err);

/* A connection of its own that hears R:<channel>; the caller's. NULL with err. */
struct client *cli_subscribe(struct cli *cli, const char *channel, struct err *err);

/* Redis TIME in ms, or 0 when it may not be asked: only for showing "in 5m". */
int64_t cli_now_ms(struct cli *cli);

/*
 * Do one() for every operand from the first one on; a failure is told and the rest goes on, unless
 * the server is gone. Returns the exit status of the first failure, or 0.
 */
int cli_each(struct cli *cli, int (*one)(struct cli *cli, const char *operand, struct err *err));

/* Write the error for a person to stderr, with the server it came from where that helps. */
void cli_complain(const struct cli *cli, const struct err *err);
int cli_status(const struct err *err);
/* The library's code of a refusal: whether err is that one ("ELATER_NOJOB"). */
bool cli_is_refusal(const struct err *err, const char *code);

/* The verbs' own files. */
extern const struct cli_verb cmd_add, cmd_show, cmd_explain, cmd_wait, cmd_ls, cmd_cancel,
    cmd_retry, cmd_run_now, cmd_reschedule, cmd_pause, cmd_resume, cmd_quiet, cmd_stats,
    cmd_workers, cmd_health, cmd_fsck, cmd_setup, cmd_cli, cmd_limits, cmd_throttle, cmd_lock,
    cmd_sem, cmd_gates, cmd_purge, cmd_export, cmd_import, cmd_tail;

#endif
