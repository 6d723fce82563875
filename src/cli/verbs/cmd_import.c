#include "cli/cli.h"

#include <unistd.h>

#include "cli/bulk/import_lines.h"
#include "cli/bulk/import_zset.h"

static int run_zset(struct cli *cli, struct err *err)
{
    if (cli->argc > 1)
        return err_set(err, ERR_USAGE, "with --zset the jobs are its members: write no FILE");
    if (cli_value(cli, "once") != NULL)
        return err_set(err, ERR_USAGE,
                       "--once is for lines: with --zset, --remove sees to it that "
                       "each member is added once");
    if (cli_value(cli, "keep-dead") != NULL)
        return err_set(err, ERR_USAGE, "--keep-dead is for lines: a member has no state");
    return import_zset(cli, err);
}

static int run(struct cli *cli, struct err *err)
{
    static const char *const of_zset[] = {"unit", "hash", "remove", NULL};
    struct import_how how = {.is_once = cli_value(cli, "once") != NULL,
                             .keeps_dead = cli_value(cli, "keep-dead") != NULL};

    if (cli_value(cli, "zset") != NULL)
        return run_zset(cli, err);
    for (size_t i = 0; of_zset[i] != NULL; i++) {
        if (cli_value(cli, of_zset[i]) != NULL)
            return err_set(err, ERR_USAGE, "--%s goes with --zset KEY", of_zset[i]);
    }
    if (cli->argc < 2 && isatty(STDIN_FILENO) == 1)
        return err_set(err, ERR_USAGE,
                       "the jobs are missing: write FILE behind the queue, or - and type them");
    return import_lines(cli, cli->argc > 1 ? cli->argv[1] : "-", &how, err);
}

static const struct cli_option options[] = {
    {"once", NULL, "a line that was imported within 24 h is not added again"},
    {"keep-dead", NULL, "a line whose state is dead becomes a dead job, not one that runs"},
    {"zset", "KEY", "add the members of this sorted set on the same server instead"},
    {"unit", "s|ms", "what the scores of that set are: seconds or milliseconds since 1970"},
    {"hash", "KEY", "the payloads are in this hash, under the members"},
    {"remove", NULL, "take members out of the set (and the hash) as they are added"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_import = {
    "import",
    "QUEUE [FILE|-] | QUEUE --zset KEY --unit s|ms",
    "add the jobs that `later export` wrote, or those of another delay queue",
    "Add a job to QUEUE for each line of FILE, or of standard input: a JSON object as\n"
    "`later export` and `later show --json` write them. payload or payload_base64 has to be\n"
    "there; due_ms (else: now), priority, key, attempts_max, timeout_ms, expire_ms, keep_ms,\n"
    "trace, lock, sem, rate, unique, unique_mode, unique_until_ms, then, on_dead, parent,\n"
    "reason, checkpoint, steps and token may be. What tells of another life (id, queue,\n"
    "state, starts ...) is passed over: it becomes a new job, whatever state it was in. With\n"
    "--keep-dead a dead one stays dead, with its outcome and its tries: `later retry` runs it.\n"
    "Any other name is refused.\n"
    "\n"
    "  later export mail | later --namespace new import mail\n"
    "  later export mail --state dead | later --namespace new import mail --keep-dead\n"
    "\n"
    "The same file again adds the same jobs again, unless --once says not to: then each\n"
    "line goes with a token made of its id, and a job that is still to run in QUEUE itself\n"
    "is not added beside itself. Errors, Ctrl-C and exit statuses are those of\n"
    "`later add --from`: nothing behind the first bad line is sent.\n"
    "\n"
    "  later import mail --zset schedule --unit s           # Sidekiq's schedule\n"
    "  later import mail --zset delayed --unit ms --hash bodies --remove\n"
    "\n"
    "--zset reads a sorted set whose members are payloads, or names of payloads in a hash.\n"
    "It stays as it is, and another import adds its members again; with --remove each\n"
    "leaves it in the very call that adds it. What cannot be a job is left there and told\n"
    "of, with exit status 65.",
    1,
    2,
    false,
    options,
    run,
};
