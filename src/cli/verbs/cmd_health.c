/* The verb health: whether the work goes on, and if not, why. With --live or --ready: whether the
 * event loops of this host's daemons run, and whether they can take jobs. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask/replies.h"
#include "ask/schedules.h"
#include "ask/shards.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/each_shard.h"
#include "cli/health_server.h"
#include "cli/health_options.h"
#include "health/namespace.h"
#include "cli/probe_host.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "job/job.h"

#define STATUS_DEGRADED 1
#define PROBE_MS 2000 /* for the answers of all daemons of this host */
#define READY_MS 3000 /* for an answer of Redis, however long redis_timeout is */

/* No worker is registered here. A daemon of this host that has a link and a registration is then at
 * another server: `redis` was changed in the file, which only its restart applies. */
static void judge_no_worker(struct health *h, const struct cli *cli)
{
    struct probe_daemon *found = NULL;
    struct err ignored = ERR_INIT;
    pid_t elsewhere = 0;
    size_t n = 0;

    if (probe_host(cli->server.target.ns, PROBE_MS, &found, &n, &ignored) == 0) {
        for (size_t i = 0; i < n; i++)
            elsewhere = found[i].is_linked && found[i].is_registered ? found[i].pid : elsewhere;
    }
    free(found);
    if (elsewhere != 0)
        health_add(h->causes, "cause", "no-worker",
                   "no worker is running in this namespace of this Redis, and laterd (pid %d) of "
                   "this host is registered at another one: if redis was changed in its file, "
                   "restart it",
                   (int)elsewhere);
    else
        health_no_worker(h);
}

static void show_list(const json_t *list, const char *kind, const char *label, enum out_style style)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(one, "text"));

        out_printf("%s%s%s %s: ", out_style(style), label, out_style(OUT_PLAIN),
                   json_string_value(json_object_get(one, kind)));
        out_text(text, strlen(text));
        out_printf("\n");
    }
}

/* Frees the lists of h. */
static void show(const struct cli *cli, struct health *h, const char *status)
{
    if (cli->json) {
        json_print(health_to_json(h, status));
        return;
    }
    if (json_array_size(h->causes) == 0)
        out_printf("%sok%s: %zu %s, no due job waits that could run\n", out_style(OUT_GOOD),
                   out_style(OUT_PLAIN), h->live, h->live == 1 ? "worker" : "workers");
    show_list(h->causes, "cause", "degraded:", OUT_BAD);
    show_list(h->warnings, "warning", "warning:", OUT_BOLD);
    health_done(h);
}

static int judge_namespace(struct cli *cli, struct err *err)
{
    struct health_limits limits;
    struct health h;
    bool is_degraded;

    health_init(&h);
    if (health_options_read(&limits, cli, err) < 0 || health_namespace(&h, &cli->server, err) < 0 ||
        health_limits_judge(&limits, &h, &cli->server, err) < 0) {
        health_done(&h);
        if (!cli->json)
            return -1;
        health_init(&h);
        health_add(h.causes, "cause", "redis", "%s", err->text);
        show(cli, &h, "down");
        return -1;
    }
    if (h.live == 0)
        judge_no_worker(&h, cli);
    is_degraded = json_array_size(h.causes) > 0;
    show(cli, &h, is_degraded ? "degraded" : "ok");
    return is_degraded ? STATUS_DEGRADED : 0;
}

/* ---- the daemons of this host */

/* Why this daemon cannot take jobs in Redis' view. NULL: it can. */
static const char *why_not_in_redis(const struct reply *r, int64_t epoch)
{
    const struct reply *workers = reply_at(r, HEALTH_WORKERS);

    for (size_t i = 0; i < reply_count(workers); i++) {
        const struct reply *w = reply_at(workers, i);

        if (reply_int(reply_at(w, WORKER_EPOCH)) != epoch)
            continue;
        if (reply_is(reply_at(w, WORKER_COUNTER), "dead"))
            return "it was given up";
        if (reply_int(reply_at(r, HEALTH_NOW)) - reply_int(reply_at(w, HEALTH_BEAT)) >
            HEALTH_SILENT_MS)
            return "its beats do not arrive in Redis";
        return NULL;
    }
    return "Redis does not know it";
}

/* The same by the daemon's own answer. */
static const char *why_not_by_itself(const struct probe_daemon *d)
{
    return !d->has_answered    ? "it does not answer: its loop does not run"
           : d->is_stopping    ? "it is stopping"
           : !d->is_linked     ? "it has no link to Redis"
           : !d->is_registered ? "it is not registered yet"
           : d->is_quiet       ? "it is quiet: it claims no more"
           : d->queues == 0    ? "it serves no queue: there is no handler"
                               : NULL;
}

/* Add a cause if this daemon has one. server: the reply of ask_server; NULL: do not judge by it. */
static void judge_daemon(struct health *h, const struct probe_daemon *d, bool must_be_ready,
                         const struct reply *server)
{
    const char *why = d->has_answered && !must_be_ready ? NULL : why_not_by_itself(d);

    if (why == NULL && server != NULL)
        why = why_not_in_redis(server, d->epoch);
    h->live += why == NULL;
    if (why != NULL)
        json_put_int(health_add(h->causes, "cause", d->has_answered ? "not-ready" : "silent",
                                "laterd (pid %d, uid %u): %s", (int)d->pid, (unsigned)d->uid, why),
                     "pid", d->pid);
}

/* Would this daemon be ready if Redis thinks so, too? Of the others Redis need not be asked. */
static bool is_any_ready(const struct probe_daemon *found, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (why_not_by_itself(&found[i]) == NULL)
            return true;
    }
    return false;
}

/* Redis' view of the workers, for --ready. NULL: it cannot be asked, which is a cause. */
static struct reply *ask_server(struct cli *cli, struct health *h)
{
    struct err err = ERR_INIT;
    struct reply *r;

    if (cli->server.target.timeout_ms > READY_MS)
        cli->server.target.timeout_ms = READY_MS;
    r = ask_words(&cli->server, &err, "later_v1_health", HEALTH_LATE_MS, NULL);
    if (r == NULL)
        health_add(h->causes, "cause", "redis", "%s", err.text);
    return r;
}

static void show_daemons(const struct cli *cli, struct health *h, const char *word)
{
    bool is_well = json_array_size(h->causes) == 0;

    if (cli->json) {
        show(cli, h, is_well ? word : "degraded");
        return;
    }
    if (is_well)
        out_printf("%s%s%s: %zu %s of namespace %s on this host\n", out_style(OUT_GOOD), word,
                   out_style(OUT_PLAIN), h->live, h->live == 1 ? "daemon" : "daemons",
                   cli->server.target.base);
    show_list(h->causes, "cause", "degraded:", OUT_BAD);
    health_done(h);
}

/* Judge the daemons of this host that serve the namespace, or the present one of its shards. *n
 * goes up by how many there are. 0, or -1 with err. */
static int probe(struct cli *cli, struct health *h, bool must_be_ready, size_t *n, struct err *err)
{
    struct probe_daemon *found = NULL;
    struct reply *server = NULL;
    size_t here = 0;

    if (probe_host(cli->server.target.ns, PROBE_MS, &found, &here, err) < 0)
        return -1;
    if (must_be_ready && is_any_ready(found, here))
        server = ask_server(cli, h);
    for (size_t i = 0; i < here; i++)
        judge_daemon(h, &found[i], must_be_ready, server);
    free(found);
    reply_free(server);
    *n += here;
    return 0;
}

/* All daemons found must be well: nobody else would notice one that hangs beside a healthy one. */
static int run_probe(struct cli *cli, bool must_be_ready, struct err *err)
{
    int rc = ask_target(&cli->server, err);
    const char *ns = cli->server.target.base;
    struct health h;
    size_t n = 0;
    bool is_well;

    health_init(&h);
    for (int i = 0; rc == 0 && i < shards_count(&cli->server); i++) {
        shards_use(&cli->server, i);
        rc = probe(cli, &h, must_be_ready, &n, err);
    }
    if (rc == 0 && n == 0)
        health_add(
            h.causes, "cause", "no-daemon",
            "no laterd of namespace %s that belongs to uid %u%s listens on this host (sockets "
            "@laterd/%s/... in /proc/net/unix)",
            ns, (unsigned)geteuid(), geteuid() == 0 ? " or anybody" : " or root",
            cli->server.target.ns);
    if (rc < 0) {
        health_done(&h);
        return -1;
    }
    is_well = json_array_size(h.causes) == 0;
    show_daemons(cli, &h, must_be_ready ? "ready" : "live");
    return is_well ? 0 : STATUS_DEGRADED;
}

static int run_health(struct cli *cli, struct err *err)
{
    bool must_be_ready = cli_value(cli, "ready") != NULL;
    bool is_probe = must_be_ready || cli_value(cli, "live") != NULL;
    bool is_server = cli_value(cli, "server") != NULL;
    struct health_limits limits;

    if (health_options_read(&limits, cli, err) < 0)
        return -1;
    if (is_server && (is_probe || health_limits_any(&limits)))
        return err_set(err, ERR_USAGE, "--server goes without the other options");
    if (is_server)
        return health_server(cli, err);
    if (!is_probe)
        return each_shard(cli, judge_namespace, err);
    if (health_limits_any(&limits))
        return err_set(err, ERR_USAGE,
                       "--late, --parked, --paused and --dead are about queues: they go without "
                       "--live and --ready");
    return run_probe(cli, must_be_ready, err);
}

static const struct cli_option health_options[] = {
    {"live", NULL, "only: the loop of the daemon of this host runs; does not touch Redis"},
    {"ready", NULL, "only: the daemon of this host can take jobs"},
    {"late", "D",
     "degraded if the first due job of a queue waits longer (paused ones do not count)"},
    {"parked", "D", "degraded if the first parked job of a queue waits longer at its gates"},
    {"paused", "D", "degraded if a queue or a schedule has been paused for longer"},
    {"dead", "N", "degraded if a queue has more than N dead jobs"},
    {"server", NULL, "only: what the server can do, and what it costs where it cannot"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_health = {
    "health",
    "",
    "say whether the work goes on, and if not, why",
    "Exit 0: due jobs start. Exit 1: degraded, with the causes: due jobs that wait while\n"
    "a worker has room or cannot run them, queues that nobody serves, workers that are silent, "
    "results that\n"
    "Redis does not take, a clock that is off, a Redis that refuses every add (it is full),\n"
    "as many queue names as there may be. Exit 69: Redis cannot be reached. Warnings are\n"
    "about what may cost jobs one day (eviction, no append-only file, memory or queue names\n"
    "that run out) and do not count.\n"
    "\n"
    "A monitor without Prometheus says from when on a queue is too late:\n"
    "\n"
    "  later health --late 5m --parked 1h --paused 1h --dead 10\n"
    "\n"
    "With --json one object: status (ok, degraded, down), workers, causes, warnings.\n"
    "--live and --ready are for a container's probes and ask the daemons of this host,\n"
    "namespace and user (root's, too; root asks all): exit 0 if there is one and all of\n"
    "them are live or ready, else 1. The answers take at most 2 seconds; --ready also asks\n"
    "Redis, whose answer may take 3 more.\n"
    "\n"
    "--server shows a table of what the server allows the user that asks, so ask as the\n"
    "daemon's user. Jobs run without everything that has a cost there. Exit 0; 78: the\n"
    "server has no functions, and no laterd can use it.",
    0,
    0,
    false,
    health_options,
    run_health,
};
