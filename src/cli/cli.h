/*
 * The command `later`: one const struct cli_verb per verb, and what all verbs share.
 *
 * A verb's run() reads its operands and options from struct cli and calls Redis with cli_fcall. It
 * returns an exit status, or -1 with *err filled: then cli_main prints the error on stderr and
 * exits with cli_status(err): a status of sysexits.h, or 1 for some refusals. One thread.
 */
#ifndef LATER_CLI_CLI_H
#define LATER_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/args/target.h"
#include "redis/client.h"

#define CLI_OPTIONS_MAX 40 /* per verb */
#define CLI_MANY (-1)      /* any number of operands */
#define CLI_COMMAND (-2)   /* the same; after the first one, a command with its own options */
#define CLI_TIME_MAX 24    /* bytes of a time in ms as text */
#define CLI_CALL_MAX 80    /* arguments of one call: all options with values, and a few more */

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
    struct target_flags flags;
    bool json;
    struct target target; /* valid after cli_target */
    bool has_target;
    struct client *client;              /* NULL until cli_connect */
    int argc;                           /* operands */
    char **argv;                        /* NULL-ended */
    const char *value[CLI_OPTIONS_MAX]; /* of the verb's options, in the same order */
    char *joined[CLI_OPTIONS_MAX];      /* owned: a value that was given several times, or NULL */
    char time_text[CLI_OPTIONS_MAX]
                  [CLI_TIME_MAX]; /* values that were rewritten: see args/time_options.h */
    char *recent; /* owned: the ids that stand for operands, see args/recents.h; or NULL */
};

/* Run the command. Returns the exit status. */
int cli_main(int argc, char **argv);

/* All verbs in the order of the help; NULL-ended. */
extern const struct cli_verb *const cli_verbs[];
const struct cli_verb *cli_verb(const char *name); /* NULL: no such verb */

/* The value of an option of this verb ("" for one without a value), NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *option);
/* The value as a duration. *ret_ms stays as it is when the option was not given. 0, or -1 with code
 * USAGE. */
int cli_duration(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err);

/* Resolve server and namespace into cli->target, once. 0, or -1 as target_find. */
int cli_target(struct cli *cli, struct err *err);
/* Connect, unless connected. 0 or -1. */
int cli_connect(struct cli *cli, struct err *err);
void cli_disconnect(struct cli *cli);

/* The arguments of one call. They are not copied: keep them valid until the call. */
struct cli_call {
    const char *argv[CLI_CALL_MAX];
    size_t lens[CLI_CALL_MAX];
    int n;
};
void cli_call_add(struct cli_call *call, const char *p, size_t n);
void cli_call_puts(struct cli_call *call, const char *s);
/* Append name and value of each of these options (NULL-ended) that was given. */
void cli_call_options(struct cli_call *call, const struct cli *cli, const char *const *options);

/* Call a function of the library in the namespace. The caller frees the reply; NULL with err. */
struct reply *cli_fcall(struct cli *cli, const char *function, const struct cli_call *call,
                        struct err *err);

/* The same, but a function that the server does not have is an error: no library is loaded. */
struct reply *cli_ask(struct cli *cli, const char *function, const struct cli_call *call,
                      struct err *err);
/*
 * The same of what is not part of the answer, on the present connection. The output so far is
 * written first, and nobody waits for long: if the server stands still, the connection is closed,
 * and the next call makes a new one. NULL: there is no answer, or no connection.
 */
struct reply *cli_ask_aside(struct cli *cli, const char *function, const struct cli_call *call);
/* Is err that error? */
bool cli_lacks_function(const struct err *err);

/* A second connection, subscribed to R:<channel>. The caller closes it. NULL with err. */
struct client *cli_subscribe(struct cli *cli, const char *channel, struct err *err);

/* Redis TIME in ms. 0 or -1. */
int cli_ask_time(struct cli *cli, int64_t *ret_ms, struct err *err);
/* The same; 0 if Redis cannot or may not be asked. */
int64_t cli_now_ms(struct cli *cli);

/*
 * Call one() for every operand. A failure is printed and the next operand follows, unless the
 * server cannot be reached or denied the call. Returns the exit status of the first failure, or 0.
 */
int cli_each(struct cli *cli, int (*one)(struct cli *cli, const char *operand, struct err *err));

/* Print the error on stderr, with the server's name where that helps. */
void cli_complain(const struct cli *cli, const struct err *err);
/* The exit status for this error. */
int cli_status(const struct err *err);
/* Whether err is a refusal by the library with this code ("ELATER_NOJOB"). */
bool cli_is_refusal(const struct err *err, const char *code);

/* Each is defined in a file of verbs/. */
extern const struct cli_verb cmd_add, cmd_show, cmd_explain, cmd_wait, cmd_ls, cmd_cancel,
    cmd_retry, cmd_run_now, cmd_reschedule, cmd_pause, cmd_resume, cmd_quiet, cmd_stats,
    cmd_workers, cmd_health, cmd_fsck, cmd_setup, cmd_cli, cmd_limits, cmd_throttle, cmd_lock,
    cmd_sem, cmd_once, cmd_gates, cmd_purge, cmd_export, cmd_import, cmd_tail, cmd_batch,
    cmd_schedule, cmd_publish, cmd_topic, cmd_broadcast, cmd_top, cmd_seen, cmd_find;

#endif
