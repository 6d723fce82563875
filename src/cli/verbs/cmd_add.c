#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask/add_call.h"
#include "ask/shards.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/args/payload.h"
#include "cli/args/queue_name.h"
#include "cli/args/recents.h"
#include "cli/args/thens.h"
#include "cli/await.h"
#include "cli/bulk/add_from.h"
#include "cli/confirm.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define AWAITED_KEEP "1h" /* the job may end before this program listens */

static const struct cli_option options[] = {
    {"from", "FILE", "a job for each line of FILE (-: standard input)"},
    {"in", "D", "run it after this time: 250ms 10s 5m 1h30m 7d"},
    {"at", "TIME", "run it at: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, @SECONDS"},
    {"priority", "P", "0 first ... 9 last (default: 5)"},
    {"key", "K", "what the job is about; the handler gets it as LATER_KEY"},
    {"attempts", "N", "starts before it is dead (default: the queue's)"},
    {"timeout", "D", "how long one attempt may run"},
    {"expire", "D", "dead if not started within this time of when it was due"},
    {"keep", "D", "how long the outcome is kept when it is done"},
    {"token", "T", "add once: the same token within 24 h answers with the first id"},
    {"trace", "T", "a W3C traceparent for the handler"},
    {"lock", "NAME", "hold this lock while it runs; {key} in a name is the job's key"},
    {"sem", "NAME", "hold a permit of this semaphore while it runs"},
    {"rate", "NAME", "count its start against this rate"},
    {"unique", "K", "one waiting or running job of the queue has this key"},
    {"unique-mode", "drop|replace|move",
     "the key is taken: drop the new one (default), replace the other, or move it too (debounce)"},
    {"unique-for", "D", "the key stays taken so long from now, whatever the job does"},
    {"then", "QUEUE,...", "when it is done, go on there: its result is the next job's payload"},
    {"on-dead", "QUEUE", "when it dies, add a job there, with its payload and the reason"},
    {"batch", "NAME", "it belongs to this batch (see later help batch)"},
    {"replicas", "N", "wait until so many replicas have the job; else exit 75, with its id"},
    {"confirm", "D", "with --replicas: wait at most this long (default: 1s)"},
    {"fsync", NULL, "with --replicas: until it is on their disks, and on the master's"},
    {"wait", NULL, "wait until the job has ended; print its output, exit with its status"},
    {"wait-timeout", "D", "with --wait: wait at most this long"},
    {NULL, NULL, NULL},
};

static void show(struct cli *cli, const struct reply *r, bool is_own_token)
{
    const struct reply *status = reply_at(r, 1);
    char id[SHARDS_ID];
    /* `repeated` for a token that only we know: our own first call got through, so the job was
     * added. But with a unique key, that call may have dropped the job or moved another one. */
    bool was_added = is_own_token && cli_value(cli, "unique") == NULL;
    const char *word = was_added && reply_is(status, "repeated") ? "added" : reply_str(status);
    int64_t due_ms = reply_int(reply_at(r, 2));
    char instant[48], when[48];

    (void)shards_show_id(&cli->server, reply_str(reply_at(r, 0)), id);
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "id", id, strlen(id));
        json_put_text(line, "status", word, strlen(word));
        json_put_int(line, "due_ms", due_ms);
        json_print(line);
        return;
    }
    out_text(id, strlen(id));
    if (out_is_tty()) {
        out_printf("  ");
        out_text(word, strlen(word));
        out_printf(", due %s", out_instant(due_ms, instant));
        out_printf(" (%s)", out_when(due_ms, ask_now_ms(&cli->server), when));
    }
    out_printf("\n");
}

/* The job that has the unique key was added by somebody else. */
static void note(struct cli *cli, const struct reply *r)
{
    char text[SHARDS_ID];
    const char *id = shards_show_id(&cli->server, reply_str(reply_at(r, 0)), text);

    if (!reply_is(reply_at(r, 1), "dropped"))
        recents_note(cli, &id, 1);
}

/* The job of this id has ended, as far as the caller may ask. */
static bool has_ended(struct cli *cli, const char *id)
{
    struct err err = ERR_INIT;
    const struct reply *state;
    struct reply *r;
    bool has;

    r = ask_words(&cli->server, &err, "later_show", id, NULL);
    state = reply_named(r, "state");
    has = r == NULL ? ask_is_refusal(&err, "ELATER_NOJOB")
                    : reply_is(state, "done") || reply_is(state, "dead");
    reply_free(r);
    return has;
}

/* With unique_for a job keeps its unique key after its end. The id that is printed then is no job
 * that will run. -> whether that was told */
static bool warn_dropped(struct cli *cli, const struct reply *r)
{
    const char *unique = cli_value(cli, "unique");
    char text[SHARDS_ID];
    const char *id = shards_show_id(&cli->server, reply_str(reply_at(r, 0)), text);

    if (unique == NULL || !reply_is(reply_at(r, 1), "dropped") || !has_ended(cli, id))
        return false;
    (void)fprintf(stderr,
                  "later: nothing was added: job %s has ended, and its unique_for holds the "
                  "unique key. To free it: later cancel %s@%s\n",
                  id, cli->argv[0], unique);
    return true;
}

/* Append an option for which the library has another name. */
static void add_option(struct ask_call *call, const struct cli *cli, const char *option,
                       const char *name)
{
    if (cli_value(cli, option) == NULL)
        return;
    ask_call_puts(call, name);
    ask_call_puts(call, cli_value(cli, option));
}

/* The queue and the options, as later_add and later_add_many take them. *ret_thens has some of the
 * words; the caller frees it after the call. */
static int put_front(struct ask_call *call, const struct cli *cli, char **ret_thens,
                     struct err *err)
{
    static const char *const names[] = {
        "in",    "at",    "priority", "key", "attempts", "timeout", "expire", "keep",
        "token", "trace", "lock",     "sem", "rate",     "unique",  "batch",  NULL};

    ask_call_puts(call, cli->argv[0]);
    cli_call_options(call, cli, names);
    add_option(call, cli, "unique-mode", "unique_mode");
    add_option(call, cli, "unique-for", "unique_for");
    add_option(call, cli, "on-dead", "on_dead");
    if (cli_value(cli, "wait") != NULL && cli_value(cli, "keep") == NULL) {
        ask_call_puts(call, "keep");
        ask_call_puts(call, AWAITED_KEEP);
    }
    return thens_add(call, cli, ret_thens, err);
}

static int run_from(struct cli *cli, const char *path, struct err *err)
{
    static const char *const of_one[] = {"token", "unique",   "unique-mode", "unique-for",
                                         "wait",  "replicas", NULL};
    CLEANUP_FREE char *thens = NULL;
    struct ask_call front = {.n = 0};

    if (cli->argc > 1)
        return err_set(err, ERR_USAGE, "with --from FILE the payloads are its lines: write none");
    for (size_t i = 0; of_one[i] != NULL; i++) {
        if (cli_value(cli, of_one[i]) != NULL)
            return err_set(err, ERR_USAGE, "--%s is of one job: it does not go with --from",
                           of_one[i]);
    }
    if (put_front(&front, cli, &thens, err) < 0)
        return -1;
    return add_from(cli, &front, path, err);
}

/* Add the job. The reply is the caller's; NULL with err. */
static struct reply *add_one(struct cli *cli, bool is_own_token, struct err *err)
{
    CLEANUP_BUF struct buf payload = BUF_INIT;
    CLEANUP_FREE char *thens = NULL;
    char token[ADD_TOKEN];
    struct ask_call call = {.n = 0};

    if (ask_target(&cli->server, err) < 0 || payload_take(cli, 1, &payload, err) < 0 ||
        put_front(&call, cli, &thens, err) < 0)
        return NULL;
    if (is_own_token) {
        if (add_token(&call, token, err) < 0)
            return NULL;
    }
    ask_call_add(&call, buf_str(&payload), payload.len);
    return add_call(&cli->server, "later_add", &call, err);
}

/* The output stands for the handler's, as that of `later wait`: the id is only for whoever looks.
 */
static int wait_for(struct cli *cli, const struct reply *r, int64_t timeout_ms, struct err *err)
{
    char text[SHARDS_ID];
    const char *id = shards_show_id(&cli->server, reply_str(reply_at(r, 0)), text);
    int status;

    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "later: waiting for job %.40s\n", id);
    status = await_job(cli, id, timeout_ms, err);
    if (status < 0 && err->code != ERR_REFUSED && err->code != ERR_TEMP)
        return err_wrap(err, "job %.40s is in queue %.64s, but this program cannot wait for it", id,
                        cli->argv[0]);
    return status;
}

static int run(struct cli *cli, struct err *err)
{
    bool is_own_token = cli_value(cli, "token") == NULL, waits = cli_value(cli, "wait") != NULL;
    int64_t timeout_ms = AWAIT_FOREVER;
    struct confirm confirm;
    struct reply *r;
    int status = 0;

    if (await_timeout(cli, &timeout_ms, err) < 0 || confirm_parse(cli, &confirm, err) < 0)
        return -1;
    if (cli_value(cli, "from") != NULL)
        return run_from(cli, cli_value(cli, "from"), err);
    r = add_one(cli, is_own_token, err);
    if (r == NULL)
        return -1;
    if (!waits)
        show(cli, r, is_own_token);
    if (confirm.replicas > 0 && confirm_wait(cli, &confirm, reply_str(reply_at(r, 0)), err) < 0) {
        note(cli, r);
        reply_free(r);
        return -1;
    }
    if (!warn_dropped(cli, r))
        queue_name_warn(cli, cli->argv[0], "the job waits");
    if (waits)
        status = wait_for(cli, r, timeout_ms, err);
    note(cli, r);
    reply_free(r);
    return status;
}

const struct cli_verb cmd_add = {
    "add",
    "QUEUE [PAYLOAD|-|--from FILE]",
    "put a job, or one for each line of a file, into a queue",
    "Put a job into QUEUE. PAYLOAD is given to the handler as it is, byte for byte.\n"
    "With - instead, or without PAYLOAD when standard input is no terminal, it is read\n"
    "from standard input to its end. A payload that starts with - goes behind --.\n"
    "\n"
    "  later add mail --in 5m '{\"to\":\"a@b.c\"}'\n"
    "  later add resize --key album:7 <photo.jpg\n"
    "  later add sync --unique order:42 --unique-mode move --in 5m 42\n"
    "  later add export --lock 'tenant:{key}' --key acme --sem disk report\n"
    "  later add report --at 'monday 8:00' weekly\n"
    "\n"
    "Times are local (TZ), counted from the clock of Redis: now, in 90m, 18:00 (the next\n"
    "one), today 17:30, tomorrow 09:00, monday 8:00, 2030-12-24 18:00; and as programs\n"
    "write them: integer ms, @SECONDS, 2030-01-31T09:00:00Z, +5m. One that the clocks skip\n"
    "is as much later, of one that they show twice it is the first that is not past.\n"
    "\n"
    "Gates are passed besides those of the queue; a job whose gate is shut is parked and\n"
    "costs nothing until it opens. With a unique key that is taken the id is that of the\n"
    "job that has it; --json tells dropped, replaced or moved.\n"
    "\n"
    "If the answer is lost with the connection, the add is repeated once on a new one;\n"
    "a token sees to it that the job is there once all the same.\n"
    "\n"
    "Replication is asynchronous: a failover loses what had not reached the replica. With\n"
    "--replicas N the add waits until N replicas have the job (WAIT of Redis), and with\n"
    "--fsync until it is on the disk there and at the master (WAITAOF, Redis 7.2). If it\n"
    "takes longer than --confirm, the id is printed all the same, and the status is 75.\n"
    "\n"
    "  later add pay --replicas 1 --confirm 200ms 42\n"
    "\n"
    "  later add resize --from paths.txt --priority 9\n"
    "  find . -name '*.jpg' | later add resize --from -\n"
    "\n"
    "--wait does what `later wait ID` does: it prints the output of the job, not its id, and\n"
    "exits with the status of its handler (see `later help wait`). With a unique key that\n"
    "is taken it waits for the job that has it. Its outcome is kept for an hour, unless\n"
    "--keep says how long. If the wait ends first (--wait-timeout, Ctrl-C), the job stays.\n"
    "\n"
    "  later add report --wait --wait-timeout 10m today >report.txt\n"
    "\n"
    "--from makes a job of every line: what stands before its end, byte for byte. An empty\n"
    "line is an empty payload, a last line needs no end. The options hold for all of them;\n"
    "--token, --unique and --wait, which are of one job, do not go with it. It prints how\n"
    "many were added. At the first error it stops and says which lines were added, which were "
    "not,\n"
    "and for which nobody knows (the connection was lost, and they had been sent): those\n"
    "are not repeated. Ctrl-C stops it likewise, with status 130.",
    1,
    2,
    false,
    options,
    run,
};
