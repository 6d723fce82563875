/* later lock, sem, once: run a command under a lock, with a permit of a semaphore, once in a time.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/shards.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/hold/lock.h"
#include "cli/hold/lock_inside.h"
#include "cli/hold/lock_token.h"

#define WAIT_MAX_S 1e9
#define NAME_MAX_BYTES 256
#define PER_MAX_MS (7 * 86400000LL) /* the longest lease of a lock */

/* ---- the command line */

/* Seconds with a fraction, as flock(1) takes them; or a duration. */
static int read_wait(const char *text, int64_t *ret_ms, struct err *err)
{
    char *end = NULL;
    double seconds = strtod(text, &end);

    if (text_parse_duration(text, ret_ms) == 0 && *ret_ms <= (int64_t)(WAIT_MAX_S * 1000))
        return 0;
    if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0' ||
        seconds > WAIT_MAX_S)
        return err_set(
            err, ERR_USAGE,
            "--wait takes seconds, with a fraction if need be, or a duration: -w 1.5, -w 5m");
    *ret_ms = (int64_t)(seconds * 1000 + 0.999);
    return 0;
}

static int read_options(const struct cli *cli, struct lock_order *order, struct err *err)
{
    const char *wait = cli_value(cli, "wait"), *code = cli_value(cli, "conflict-exit-code");
    const char *ttl = cli_value(cli, "ttl");
    int64_t n = 1;

    order->keeper.wait_ms = -1;
    if (wait != NULL && cli_value(cli, "nonblock") != NULL)
        return err_set(err, ERR_USAGE, "-n does not wait, -w does: give one of them");
    if (wait != NULL && read_wait(wait, &order->keeper.wait_ms, err) < 0)
        return -1;
    if (cli_value(cli, "nonblock") != NULL)
        order->keeper.wait_ms = 0;
    if (code != NULL && text_parse_int(code, 0, 255, &n) < 0)
        return err_set(err, ERR_USAGE, "--conflict-exit-code takes 0 to 255");
    order->busy_status = (int)n;
    if (ttl != NULL &&
        (text_parse_duration(ttl, &order->keeper.ttl_ms) < 0 || order->keeper.ttl_ms == 0))
        return err_set(err, ERR_USAGE, "--ttl is no duration: write it like 250ms 10s 5m 2h 7d");
    return 0;
}

static int check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '{' || name[i] == '}')
            n = 0;
    }
    if (n == 0 || n > NAME_MAX_BYTES)
        return err_set(err, ERR_USAGE,
                       "a name has 1 to 256 bytes, no spaces, control characters or braces");
    return 0;
}

static int run_at(struct cli *cli, const struct lock_order *order, struct err *err)
{
    bool is_once = order->keeper.is_once;
    enum lock_token token;

    shards_use_name(&cli->server, cli->argv[0], strlen(cli->argv[0]));
    if (lock_token_query(cli, order->gate, &token, err) < 0)
        return -1;
    ask_disconnect(
        &cli->server); /* the command must not inherit it, a long wait need not keep it */
    if (token == LOCK_TOKEN_HELD) /* an ancestor of ours is just doing it */
        return is_once ? order->busy_status : lock_inside(cli, order, err);
    if (token == LOCK_TOKEN_NONE || is_once)
        return lock_run(cli, order, err);
    return err_set(err, ERR_TEMP,
                   "%.80s is not held any more by the program that this one was started under "
                   "(" LOCK_TOKENS "): it was lost. To enter anew, unset that variable",
                   order->gate);
}

static int run(struct cli *cli, const char *kind, struct err *err)
{
    struct lock_order order = {.argv = cli->argv + 1};
    CLEANUP_FREE char *gate = mem_printf("%s:%s", kind, cli->argv[0]);

    order.gate = gate;
    order.keeper.is_sem = strcmp(kind, "sem") == 0;
    if (read_options(cli, &order, err) < 0 || check_name(cli->argv[0], err) < 0 ||
        ask_target(&cli->server, err) < 0)
        return -1;
    return run_at(cli, &order, err);
}

/* ---- later once */

static int read_once(const struct cli *cli, struct lock_order *order, struct err *err)
{
    const char *per = cli_value(cli, "per");

    if (per == NULL)
        return err_set(err, ERR_USAGE,
                       "--per is missing: how long is it done, once it is done? "
                       "For a job of every night --per 12h");
    if (text_parse_duration(per, &order->per_ms) < 0 || order->per_ms < 1 ||
        order->per_ms > PER_MAX_MS)
        return err_set(err, ERR_USAGE,
                       "--per takes a duration of at most 7d: write it like 10s 5m 12h 7d");
    order->is_forced = cli_value(cli, "again") != NULL;
    order->keeper.is_once = true;
    if (cli_value(cli, "wait") == NULL)
        order->keeper.wait_ms = 0;
    return 0;
}

static int run_once(struct cli *cli, struct err *err)
{
    struct lock_order order = {.argv = cli->argv + 1};
    CLEANUP_FREE char *gate = mem_printf("lock:%s:once", cli->argv[0]);
    CLEANUP_FREE char *done = mem_printf("%s:done", cli->argv[0]);

    order.gate = gate;
    order.done = done;
    if (read_options(cli, &order, err) < 0 || read_once(cli, &order, err) < 0 ||
        check_name(cli->argv[0], err) < 0 || check_name(done, err) < 0 ||
        ask_target(&cli->server, err) < 0)
        return -1;
    return run_at(cli, &order, err);
}

/* ---- the verbs */

static int run_lock(struct cli *cli, struct err *err)
{
    return run(cli, "lock", err);
}

static int run_sem(struct cli *cli, struct err *err)
{
    return run(cli, "sem", err);
}

static const struct cli_option options[] = {
    {"nonblock", NULL, "do not wait: exit 1 when it is taken"},
    {"wait", "SECONDS", "wait so long at most, then exit 1; 0.5 and 5m are fine"},
    {"conflict-exit-code", "CODE", "exit with this instead of 1"},
    {"ttl", "D", "end the command (TERM, after 5s KILL) when it runs longer"},
    {NULL, NULL, NULL},
};

static const struct cli_option once_options[] = {
    {"per", "D", "how long it counts as done after it was done; at most 7d"},
    {"wait", "SECONDS", "wait so long for one that runs it now, and run it if that one fails"},
    {"again", NULL, "run it even if it is done"},
    {"conflict-exit-code", "CODE", "exit with this instead of 1"},
    {"ttl", "D", "end the command (TERM, after 5s KILL) when it runs longer"},
    {NULL, NULL, NULL},
};

#define STATUSES                                                                                   \
    "Exit status: that of COMMAND, 128+N for signal N; 1 (-E CODE) taken, with -n or -w;\n"        \
    "75 the permit was lost and COMMAND killed; 124 --ttl; 126, 127 COMMAND cannot be run;\n"      \
    "64 wrong arguments; 65 no such semaphore; 69 Redis cannot be reached, or refuses; 71, 77\n"   \
    "this host is short of something, not allowed."

const struct cli_verb cmd_lock = {
    "lock",
    "NAME [--] COMMAND...",
    "run a command under a lock: one at a time in the whole fleet",
    "Run COMMAND under the lock NAME, which only one has at a time: of all programs under\n"
    "later lock, and of the jobs whose queue names it. Without -n and -w it waits.\n"
    "\n"
    "  later lock deploy -w 60 -- sh -c 'make install && restart'\n"
    "  later lock index -n -E 0 -- reindex            # taken is fine, too\n"
    "\n"
    "A lock keeps two from running at once. It does not keep the second from running after\n"
    "the first: for a command of cron on every host, see later once.\n"
    "\n"
    "No laterd needs to run. When this program dies, is frozen, or has no answer from\n"
    "Redis for 15s, its guard kills COMMAND. On the same host the next one gets the lock at\n"
    "once, also with -n; elsewhere after 20 to 25s, if a laterd runs or a later lock waits.\n"
    "COMMAND finds LATER_LOCK, and LATER_FENCE, a number that rises from holder to holder.\n"
    "The same lock inside COMMAND is no obstacle: it runs at once (LATER_LOCK_TOKEN), with a\n"
    "--ttl of its own. In another namespace or server it is another lock.\n"
    "\n" STATUSES,
    2,
    CLI_COMMAND,
    false,
    options,
    run_lock,
};

const struct cli_verb cmd_sem = {
    "sem",
    "NAME [--] COMMAND...",
    "run a command with a permit of a semaphore: so many in the whole fleet",
    "Run COMMAND with one of the permits of the semaphore NAME. How many there are says\n"
    "`later limits set NAME semaphore N`, or a daemon's configuration. Without -n and -w it\n"
    "waits.\n"
    "\n"
    "  later limits set encoder semaphore 4\n"
    "  later sem encoder -- ffmpeg -i in.mkv out.mp4\n"
    "\n"
    "A permit that is lost (see: later lock --help) ends COMMAND only where the semaphore says\n"
    "on_lost: kill; otherwise it goes on, and there may be one too many for a while.\n"
    "\n" STATUSES,
    2,
    CLI_COMMAND,
    false,
    options,
    run_sem,
};

const struct cli_verb cmd_once = {
    "once",
    "NAME --per D [--] COMMAND...",
    "run a command once in a time: once in the whole fleet",
    "Run COMMAND unless NAME is being done, or was done in the last D. For cron on every host:\n"
    "\n"
    "  0 3 * * *  root  later once nightly --per 12h -- backup --all\n"
    "\n"
    "One host runs it; the others exit 1 and print nothing, at the same moment or an hour\n"
    "later. Choose D longer than the clocks of the hosts differ and shorter than until the next\n"
    "time. D is counted from the end of COMMAND, by Redis' clock.\n"
    "\n"
    "Only a COMMAND that exits 0 is done. If it fails, the next later once runs it again. If\n"
    "its host dies, COMMAND may have been done in part; who comes 15s after that or later\n"
    "waits until its death is found (25s at most) and runs it. With --wait, so does one\n"
    "that came earlier.\n"
    "\n"
    "COMMAND runs under the lock NAME:once, with all that later lock --help says. That it is\n"
    "done is a lease of the lock NAME:done, which `later gates NAME:done` shows.\n"
    "\n"
    "Exit status: that of COMMAND, 128+N for signal N; 1 (-E CODE) done already, or being done;\n"
    "75 the lock was lost and COMMAND killed; 124 --ttl; 126, 127 COMMAND cannot be run;\n"
    "64 wrong arguments; 69 Redis cannot be reached, or refuses; 71, 77 this host is short of\n"
    "something, not allowed.",
    2,
    CLI_COMMAND,
    false,
    once_options,
    run_once,
};
