/* later step: run a command once for the job of this handler. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/show/out.h"
#include "cli/step/step_call.h"
#include "cli/step/step_command.h"
#include "job/step.h"

static int keep(const char *where, const char *name, struct buf *output, struct err *err)
{
    CLEANUP_BUF struct buf kept = BUF_INIT;

    if (step_call(where, name, buf_str(output), output->len, &kept, err) < 0)
        return -1;
    out_bytes(kept.data, kept.len); /* that of another process, if it was quicker */
    return 0;
}

static int run_and_keep(struct cli *cli, const char *where, struct err *err)
{
    CLEANUP_BUF struct buf output = BUF_INIT;
    bool is_long = false;
    int status = step_command_run(cli->argv + 1, STEP_OUTPUT_MAX, &output, &is_long, err);

    if (err->code != ERR_NONE) {
        complain(cli, err);
        return status;
    }
    if (status == 0 && is_long)
        return err_set(err, ERR_DATA, "it printed more than %d bytes: it ran, and was not kept",
                       STEP_OUTPUT_MAX);
    if (status == 0)
        return keep(where, cli->argv[0], &output, err);
    out_bytes(output.data, output.len);
    return status;
}

static int run(struct cli *cli, struct err *err)
{
    CLEANUP_BUF struct buf kept = BUF_INIT;
    const char *where = getenv("LATER_STEP"), *name = cli->argv[0];
    int answer;

    if (!step_is_name(name))
        return err_set(err, ERR_USAGE,
                       "'%.80s' is no name of a step: up to %d of A-Z a-z 0-9 . _ : -, the first "
                       "one a letter or a digit",
                       name, STEP_NAME_MAX);
    if (where == NULL || where[0] == '\0')
        return err_set(
            err, ERR_USAGE,
            "LATER_STEP is not set: this works in a handler that laterd has started, and "
            "in what that starts with its environment");
    answer = step_call(where, name, NULL, 0, &kept, err);
    if (answer < 0)
        return err_wrap(err, "step %s", name);
    if (answer == STEP_RUN) {
        int status = run_and_keep(cli, where, err);

        return status < 0 ? err_wrap(err, "step %s", name) : status;
    }
    out_bytes(kept.data, kept.len);
    return 0;
}

const struct cli_verb cmd_step = {
    "step",
    "NAME [--] COMMAND [ARG]...",
    "in a handler, run a command once for its job",
    "Runs COMMAND, and prints its standard output when it has ended. If it ends with 0, the\n"
    "output (at most 16 KiB) is kept with the job under NAME before it is printed. When a\n"
    "later attempt of the job comes to the step, the kept output is printed and COMMAND is\n"
    "not run. If it ends with another status, that is passed on, and nothing is kept.\n"
    "\n"
    "What ran and could not be kept runs again: if the host fails between the two, for\n"
    "example. So COMMAND should do no harm if it runs twice; a step makes that rare. A job\n"
    "keeps at most 100 steps, and 256 KiB; they go with the job. `later show` lists them, and\n"
    "`later retry --from-start` forgets them.\n"
    "\n"
    "Exit status: that of COMMAND, 128+N for signal N; 65 if the job may not keep it (too\n"
    "large, too many); 75 if this attempt was given up, or Redis was away for a minute; 64\n"
    "for a wrong call.\n"
    "\n"
    "  #!/bin/sh -e\n"
    "  later step charge -- charge-card \"$LATER_ID\"\n"
    "  later step ship -- order-parcel \"$LATER_ID\"\n",
    2,
    CLI_COMMAND,
    false,
    NULL,
    run,
};
