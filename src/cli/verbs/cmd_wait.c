#include "cli/await.h"

static int run(struct cli *cli, struct err *err)
{
    int64_t timeout_ms = AWAIT_FOREVER;

    if (cli_duration(cli, "timeout", &timeout_ms, err) < 0)
        return -1;
    return await_job(cli, cli->argv[0], timeout_ms, err);
}

static const struct cli_option options[] = {
    {"timeout", "D", "wait at most this long: 250ms 10s 5m 2h 7d"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_wait = {
    "wait",
    "ID",
    "wait until a job has ended; exits with its status",
    "Wait until a job has ended, through all its attempts, and print its output: as it is,\n"
    "byte for byte, where standard output is no terminal, so without a line end of its own.\n"
    "\n"
    "Exit status: 0 done; the handler's own if the job is dead (1 if it has none, 128+N\n"
    "for signal N); 130 cancelled; 75 not ended within --timeout; 66 no such job (also\n"
    "one that has ended and was not kept, or was removed); 69 Redis cannot be reached. A\n"
    "lost link does not end the wait: it tries again until --timeout, and says so once.\n"
    "\n"
    "The outcome of a job that is done or cancelled is forgotten at once, unless it was\n"
    "added with --keep, or done in a queue that has keep:. Who waits when the job ends\n"
    "hears of it all the same.",
    1,
    1,
    false,
    options,
    run,
};
