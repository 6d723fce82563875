/* The command `later`: read the command line, run the verb, and end with its exit status. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/args/args.h"
#include "cli/args/recents.h"
#include "cli/args/time_options.h"
#include "cli/complain.h"
#include "cli/help.h"
#include "cli/hold/lock_start.h"
#include "cli/show/out.h"
#include "run/guard/guard.h"

#define STATUS_READER_GONE 141 /* as if SIGPIPE had ended this program */

/* What the command has done is done, and its answer is lost: the begin of it goes where it can be
 * read, such as the id of a job. */
static void tell_lost(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *lost;
    size_t n, all = out_lost(&lost, &n);

    for (size_t from = 0, line; from < n; from += line + 1) {
        const char *end = memchr(lost + from, '\n', n - from);

        line = end != NULL ? (size_t)(end - lost) - from : n - from;
        text_escape(&text, lost + from, line);
        buf_puts(&text, "\n");
    }
    (void)fprintf(stderr, "later: not written (%zu bytes%s):\n%s", all,
                  all > n ? ", the begin of them" : "", buf_str(&text));
}

/* Output that could not be written makes the command fail. */
static int finish(struct cli *cli, int status)
{
    struct err err = ERR_INIT;

    ask_done(&cli->server);
    for (size_t i = 0; i < CLI_OPTIONS_MAX; i++)
        free(cli->joined[i]);
    free(cli->recent);
    if (out_finish(&err) == 0)
        return status;
    if (err.errnum == EPIPE)
        return STATUS_READER_GONE;
    complain(cli, &err);
    tell_lost();
    return status != 0 ? status : complain_status(&err);
}

/* Before anything else is told, and before a command runs for hours. */
static void warn(const struct target *target)
{
    if (target->warning.code != ERR_NONE)
        (void)fprintf(stderr, "later: warning: %s (the rest of the file is not used)\n",
                      target->warning.text);
}

static int run(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct cli cli = {.server.on_target = warn};
    int status;

    out_init();
    switch (args_parse(&cli, argc, argv, &err)) {
    case ARGS_RUN:
        status = time_options_read(&cli, &err) < 0 || recents_read(&cli, &err) < 0
                     ? -1
                     : cli.verb->run(&cli, &err);
        break;
    case ARGS_HELP:
        status = cli.verb != NULL ? help_verb(cli.verb) : help_all();
        break;
    case ARGS_VERSION:
        status = help_version();
        break;
    case ARGS_BAD:
    default:
        status = -1;
    }
    if (status < 0) {
        complain(&cli, &err);
        status = complain_status(&err);
    }
    return finish(&cli, status);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], GUARD_ARG) == 0)
        return guard_main(NULL);
    if (argc > 1 && strcmp(argv[1], LOCK_START_ARG) == 0)
        return lock_start_main(argv + 2);
    /* A server that closes the connection is an error to report, not the end of this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit is an error like others */
    /* One write for a line: newer C libraries write a long one in pieces, and other output came
     * between. */
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    return run(argc, argv);
}
