/* A command under a lock or at a place of a semaphore: later lock, later sem. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/lock.h"

#define WAIT_MAX_S 1e9

/* ---- the command line */

/* Seconds with a fraction, as flock takes them. */
static int read_wait(const char *text, int64_t *ret_ms, struct err *err)
{
    char *end = NULL;
    double seconds = strtod(text, &end);

    if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0' ||
        seconds > WAIT_MAX_S)
        return err_set(err, ERR_USAGE, "--wait takes seconds, with a fraction if need be: -w 1.5");
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
    if (n == 0 || n > 256)
        return err_set(err, ERR_USAGE,
                       "a name has 1 to 256 bytes, no spaces, control characters or braces");
    return 0;
}

/* ---- the same place inside itself */

/* The epoch that our ancestor entered this gate with, 0 if there is none. */
static int64_t inherited(const char *gate)
{
    const char *at = getenv(LOCK_TOKENS);
    size_t n = strlen(gate);

    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, " ");
        const char *colon = memchr(at, ':', len);
        int64_t epoch = 0;

        if (at[0] == '@' && colon != NULL && len - (size_t)(colon - at) - 1 == n &&
            memcmp(colon + 1, gate, n) == 0) {
            CLEANUP_FREE char *number = mem_dup(at + 1, (size_t)(colon - at) - 1);

            if (text_parse_int(number, 1, INT64_MAX, &epoch) == 0)
                return epoch;
        }
        at += len;
        at += strspn(at, " ");
    }
    return 0;
}

static struct reply *ask(struct cli *cli, const char *command, const char *key, const char *field,
                         struct err *err)
{
    CLEANUP_FREE char *full = mem_printf("later:{%s}:%s", cli->target.ns, key);
    const char *argv[] = {command, full, field};

    return client_call(cli->client, 3, argv, NULL, err);
}

/* 1: it holds the gate and lives. 0: not so. */
static int holds(struct cli *cli, const struct lock_order *order, int64_t epoch, struct err *err)
{
    CLEANUP_FREE char *who = mem_printf("@%lld", (long long)epoch);
    bool is_sem = order->keeper.is_sem, is_so;
    struct reply *mark, *place;

    if (cli_connect(cli, err) < 0)
        return -1;
    mark = ask(cli, "HGET", "workers", who + 1, err);
    if (mark == NULL)
        return -1;
    place = ask(cli, is_sem ? "ZSCORE" : "HGET", order->gate, is_sem ? who : "holder", err);
    is_so = reply_len(mark) > 0 && !reply_is(mark, "dead") &&
            (is_sem ? reply_len(place) > 0 : reply_is(place, who));
    reply_free(mark);
    if (place == NULL)
        return -1;
    reply_free(place);
    return is_so;
}

/* In our own process: whoever guards the place guards us. */
static int become(struct cli *cli, const struct lock_order *order, struct err *err)
{
    int status;

    cli_disconnect(cli);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execvp(order->argv[0], order->argv);
    err->errnum = errno;
    status = lock_not_run(order->argv[0], err);
    cli_complain(cli, err);
    return status;
}

static int run_inside(struct cli *cli, const struct lock_order *order, int64_t epoch,
                      struct err *err)
{
    int is_so = holds(cli, order, epoch, err);

    if (is_so < 0)
        return -1;
    if (is_so > 0)
        return become(cli, order, err);
    return err_set(err, ERR_TEMP,
                   "%.80s is not held any more by the program that this one was started under "
                   "(" LOCK_TOKENS
                   "): it was lost or has ended. To enter anew, unset that variable",
                   order->gate);
}

static int run(struct cli *cli, const char *kind, struct err *err)
{
    struct lock_order order = {.argv = cli->argv + 1};
    CLEANUP_FREE char *gate = mem_printf("%s:%s", kind, cli->argv[0]);
    int64_t epoch;

    order.gate = gate;
    order.keeper.is_sem = strcmp(kind, "sem") == 0;
    if (read_options(cli, &order, err) < 0 || check_name(cli->argv[0], err) < 0 ||
        cli_target(cli, err) < 0)
        return -1;
    epoch = inherited(gate);
    return epoch != 0 ? run_inside(cli, &order, epoch, err) : lock_run(cli, &order, err);
}

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
    {"wait", "SECONDS", "wait so long at most, then exit 1; 0.5 is fine"},
    {"conflict-exit-code", "CODE", "exit with this instead of 1"},
    {"ttl", "D", "end the command (TERM, after 5s KILL) when it runs longer"},
    {NULL, NULL, NULL},
};

#define STATUSES                                                                                   \
    "Exit status: that of COMMAND, 128+N for signal N; 1 (-E CODE) taken, with -n or -w;\n"        \
    "75 the place was lost and COMMAND killed; 124 --ttl; 126, 127 COMMAND cannot be run;\n"       \
    "64 wrong arguments; 65 no such semaphore; 69 Redis cannot be reached; 71, 77 this host\n"     \
    "is short of something, not allowed."

const struct cli_verb cmd_lock = {
    "lock",
    "NAME [--] COMMAND...",
    "run a command under a lock: once in the whole fleet",
    "Run COMMAND under the lock NAME, which only one has at a time: of all programs under\n"
    "later lock, and of the jobs whose queue names it. Without -n and -w it waits in line.\n"
    "\n"
    "  later lock nightly -n -- backup --all          # in cron, on every host\n"
    "  later lock deploy -w 60 -- sh -c 'make install && restart'\n"
    "  later lock index -n -E 0 -- reindex            # taken is fine, too\n"
    "\n"
    "No laterd needs to run. When this program dies, is frozen, or has no answer from\n"
    "Redis for 15s, its guard kills COMMAND; after 20 to 25s the lock is free for others.\n"
    "COMMAND finds LATER_LOCK, and LATER_FENCE, a number that rises from holder to holder.\n"
    "The same lock inside COMMAND is no obstacle: it runs at once (LATER_LOCK_TOKEN).\n"
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
    "run a command at a place of a semaphore: so many in the whole fleet",
    "Run COMMAND at one of the places of the semaphore NAME. How many there are says\n"
    "`later limits set NAME semaphore N`, or a daemon's configuration. Without -n and -w it\n"
    "waits in line.\n"
    "\n"
    "  later limits set encoder semaphore 4\n"
    "  later sem encoder -- ffmpeg -i in.mkv out.mp4\n"
    "\n"
    "A place that is lost (see: later lock --help) ends COMMAND only where the semaphore says\n"
    "on_lost: kill; otherwise it goes on, and there may be one too many for a while.\n"
    "\n" STATUSES,
    2,
    CLI_COMMAND,
    false,
    options,
    run_sem,
};
