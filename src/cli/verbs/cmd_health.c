/* The verb health: whether the work goes on, and if not, why. With --live or --ready: whether the
 * event loops of this host's daemons run, and whether they can take jobs. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask/replies.h"
#include "ask/schedules.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/health_server.h"
#include "cli/health_workers.h"
#include "cli/probe_host.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "job/job.h"

#define STATUS_DEGRADED 1
#define SCHEDULE_LATE_MS 60000
#define SKEW_MS 1000          /* from here on, a worker's log and LATER_LATE_MS mislead */
#define SUSPECT_WAIT_MS 10000 /* from then on workers empty themselves for it */
#define PROBE_MS 2000         /* for the answers of all daemons of this host */
#define READY_MS 3000         /* for an answer of Redis, however long redis_timeout is */
#define UNSENT_MANY 256       /* results; as many as two full steps */
#define NAMES_MANY_PERCENT 90

static void judge_worker(struct health *h, const struct reply *w, int64_t now_ms)
{
    long long epoch = (long long)reply_int(reply_at(w, WORKER_EPOCH));
    long long unsent = (long long)reply_int(reply_at(w, HEALTH_UNSENT));
    long long refused = (long long)reply_int(reply_at(w, HEALTH_REFUSED));
    long long skew = (long long)reply_int(reply_at(w, HEALTH_SKEW));
    int64_t unheard = now_ms - reply_int(reply_at(w, HEALTH_BEAT));
    char name[160], span[48];

    health_worker_name(w, name);
    if (reply_is(reply_at(w, WORKER_COUNTER), "dead")) {
        json_put_int(health_add(h->causes, "cause", "worker-dead",
                                "%s fell silent: its jobs are being put back", name),
                     "worker", epoch);
        return;
    }
    /* A program under later lock runs no jobs. */
    h->live += !reply_is(reply_at(w, HEALTH_PLACES), "0");
    if (reply_len(reply_at(w, HEALTH_BEAT)) > 0 && unheard > HEALTH_SILENT_MS)
        json_put_int(
            health_add(h->causes, "cause", "worker-silent",
                       "no beat of %s came for %s: it died, hangs, has no link to Redis, or its "
                       "calls are refused (its log says why)",
                       name, out_span(unheard, span)),
            "worker", epoch);
    if (refused > 0 || unsent > UNSENT_MANY)
        json_put_int(
            health_add(
                h->causes, "cause", "results-waiting",
                "%s has %lld results that Redis has not taken (%lld were refused: see its log)",
                name, unsent, refused),
            "worker", epoch);
    if (skew >= SKEW_MS || skew <= -SKEW_MS)
        json_put_int(
            health_add(h->causes, "cause", "clock-skew",
                       "the clock of %s is %s %s that of Redis: jobs run on time, but set it right",
                       name, out_span(skew < 0 ? -skew : skew, span),
                       skew < 0 ? "earlier than" : "later than"),
            "worker", epoch);
}

/* A queue whose jobs wait though a worker has room for them. */
static void judge_late(struct health *h, const struct reply *r, const struct reply *late,
                       int64_t now_ms)
{
    const char *queue = reply_str(reply_at(late, LATE_QUEUE));
    const char *epoch = reply_str(reply_at(late, LATE_WORKER));
    char span[48];

    health_add_queue(h->causes, "cause", "due-waiting", queue,
                     "queue %.64s: its first job has been due for %s, and worker %.20s %s", queue,
                     out_span(now_ms - reply_int(reply_at(late, LATE_DUE)), span), epoch,
                     health_is_hindered(r, epoch) ? "is not allowed to start it"
                                                  : "has room for it");
}

/* A queue whose jobs wait for a handler that can run. */
static void judge_broken(struct health *h, const struct reply *broken, int64_t now_ms)
{
    const char *queue = reply_str(reply_at(broken, LATE_QUEUE));
    char span[48];

    health_add_queue(
        h->causes, "cause", "handler", queue,
        "queue %.64s: its first job has been due for %s, and worker %.20s cannot run it: %.300s",
        queue, out_span(now_ms - reply_int(reply_at(broken, LATE_DUE)), span),
        reply_str(reply_at(broken, LATE_WORKER)), reply_str(reply_at(broken, LATE_WHY)));
}

/* "bad-schedule:NAME why", "bad-adoption:QUEUE why", "bad-batch:NAME why", "bad-queue:NAME why" */
static void judge_bad(struct health *h, const char *note, const char *what)
{
    int name = (int)strcspn(what, " ");
    const char *why = what + name + strspn(what + name, " ");

    if (strncmp(note, "bad-schedule:", 13) == 0)
        health_add(
            h->causes, "cause", "bad-schedule",
            "schedule %.*s: %.180s: its jobs are not added (later schedule add, or the file)", name,
            what, why);
    else if (strncmp(note, "bad-adoption:", 13) == 0)
        health_add(h->causes, "cause", "bad-adoption",
                   "queue %.*s: %.180s: what it adopts stays where it is", name, what, why);
    else if (strncmp(note, "bad-batch:", 10) == 0)
        health_add(h->causes, "cause", "bad-batch",
                   "batch %.*s: %.180s: its callbacks wait (later fsck --repair)", name, what, why);
    else if (strncmp(note, "bad-queue:", 10) == 0)
        health_add(h->causes, "cause", "bad-queue", "queue %.*s: its jobs wait: %.180s", name, what,
                   why);
}

/* "emptying:EPOCH HOST ID QUEUE", seen when it began. */
static void judge_emptying(struct health *h, const char *what, int64_t ago_ms)
{
    char epoch[24], host[72], id[JOB_ID_LEN + 1], queue[JOB_QUEUE_MAX + 1], span[48];

    if (sscanf(what, "%23s %71s %12s %64s", epoch, host, id, queue) == 4)
        health_add_queue(h->warnings, "warning", "emptying", queue,
                         "worker %s on %s claimed nothing for up to 30 s from %s ago on, so that "
                         "suspect %s of queue %s could start alone",
                         epoch, host, out_span(ago_ms, span), id, queue);
}

/* "HOST PLACES CONCURRENCY" of the last half minute; each worker repeats it every ten seconds. */
static void judge_small_host(struct health *h, const char *text, int64_t ago_ms)
{
    char host[65];
    unsigned places, wanted;

    if (ago_ms > 30000 || sscanf(text, "%64s %u %u", host, &places, &wanted) != 3)
        return;
    health_add(h->warnings, "warning", "small-host",
               "host %s is too small for concurrency %u: it runs %u jobs at once, since processes "
               "could not be started (descriptors, processes or memory: its log says which); raise "
               "the limit, or lower concurrency",
               host, wanted, places);
}

/* "unserved-queue:mail" of later_stats, and how long ago that was. */
static void judge_note(struct health *h, const char *note, int64_t ago_ms)
{
    const char *what = strchr(note, ':');

    if (what == NULL || strncmp(note, "missing-right:", 14) == 0) /* health_rights_judge */
        return;
    if (strncmp(note, "unserved-queue:", 15) == 0) {
        health_add_queue(h->causes, "cause", "unserved-queue", what + 1,
                         "queue %.64s has due jobs and no worker serves it: a handler is missing, "
                         "or its name is misspelt",
                         what + 1);
    } else if (strncmp(note, "small-host:", 11) == 0) {
        judge_small_host(h, what + 1, ago_ms);
    } else if (strncmp(note, "limit-differs:", 14) == 0) {
        health_add(
            h->warnings, "warning", "limit-differs",
            "limit %.160s is another in a worker's configuration than in the fleet, where it stays "
            "as later limits shows it; the warning ends when both are the same",
            what + 1);
    } else if (strncmp(note, "no-limit:", 9) == 0) {
        health_add(h->causes, "cause", "no-limit",
                   "jobs wait at %.160s, which is not defined as the gate that they need (later "
                   "gates shows it): later limits set defines it",
                   what + 1);
    } else if (strncmp(note, "queue-gates:", 12) == 0) {
        health_add(
            h->warnings, "warning", "queue-gates",
            "the gates of queue %.64s were replaced by a worker's configuration: where two differ "
            "the one that came last holds",
            what + 1);
    } else if (strncmp(note, "bad-", 4) == 0) {
        judge_bad(h, note, what + 1);
    } else if (strncmp(note, "emptying:", 9) == 0) {
        judge_emptying(h, what + 1, ago_ms);
    } else if (strncmp(note, "zone-differs:", 13) == 0) {
        health_add(h->warnings, "warning", "zone-differs",
                   "a worker has the time zones of %.20s, others have newer ones: update tzdata "
                   "there and restart",
                   what + 1);
    } else {
        health_add(h->warnings, "warning", "stray-key",
                   "%.200s is no key of laterd's (braces missing, or a wrong name?)", what + 1);
    }
}

/* The producer of this batch may have died before it sealed it. */
static void judge_unsealed(struct health *h, const struct reply *batch, int64_t now_ms)
{
    const char *name = reply_str(reply_at(batch, 0));
    char span[48];

    json_put_text(health_add(h->warnings, "warning", "unsealed-batch",
                             "batch %.128s is not sealed, and nothing has joined it for %s: "
                             "later batch seal %.128s, if its producer is gone",
                             name, out_span(now_ms - reply_int(reply_at(batch, 1)), span), name),
                  "batch", name, strlen(name));
}

static void judge_names(struct health *h, int64_t names, int64_t most)
{
    if (names >= most)
        health_add(
            h->causes, "cause", "queue-names",
            "there are %lld queue names, no more may be: adds to a new queue that no worker serves "
            "are refused; a queue is a kind of work, not a customer",
            (long long)names);
    else if (names * 100 >= most * NAMES_MANY_PERCENT)
        health_add(
            h->warnings, "warning", "queue-names",
            "there are %lld queue names of the %lld that may be; a queue is a kind of work, not a "
            "customer",
            (long long)names, (long long)most);
}

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
        health_add(h->causes, "cause", "no-worker",
                   "no worker is running in this namespace: start laterd");
}

static void judge(struct health *h, const struct cli *cli, const struct reply *r)
{
    int64_t now_ms = reply_int(reply_at(r, HEALTH_NOW));
    const struct reply *notes = reply_at(r, HEALTH_NOTES);

    for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_WORKERS)); i++)
        judge_worker(h, reply_at(reply_at(r, HEALTH_WORKERS), i), now_ms);
    if (h->live == 0)
        judge_no_worker(h, cli);
    for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_LATE)); i++)
        judge_late(h, r, reply_at(reply_at(r, HEALTH_LATE), i), now_ms);
    health_rights_judge(h, r);
    for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_BROKEN)); i++)
        judge_broken(h, reply_at(reply_at(r, HEALTH_BROKEN), i), now_ms);
    for (size_t i = 0; i + 1 < reply_count(notes); i += 2)
        judge_note(h, reply_str(reply_at(notes, i)), now_ms - reply_int(reply_at(notes, i + 1)));
    for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_UNSEALED)); i++)
        judge_unsealed(h, reply_at(reply_at(r, HEALTH_UNSEALED), i), now_ms);
    judge_names(h, reply_int(reply_at(r, HEALTH_NAMES)), reply_int(reply_at(r, HEALTH_NAMES_MAX)));
}

/* Nobody adds its jobs: no worker has a library that knows schedules, or none can add. */
static bool judge_schedule(void *arg, const struct reply *row, int64_t now_ms)
{
    struct health *h = arg;
    const char *name = reply_str(reply_named(row, "schedule"));
    const struct reply *next = reply_named(row, "next_ms");
    char span[48];

    if (next == NULL || now_ms - reply_int(next) < SCHEDULE_LATE_MS)
        return true;
    json_put_text(health_add(h->causes, "cause", "late-schedule",
                             "schedule %.128s was due %s ago, and no worker has added its job",
                             name, out_span(now_ms - reply_int(next), span)),
                  "schedule", name, strlen(name));
    return true;
}

/* It waits for a worker that runs nothing, and the workers of its queue empty themselves for it. */
static void judge_suspects(struct health *h, struct cli *cli)
{
    struct err ignored = ERR_INIT;
    struct reply *r = ask_words(&cli->server, &ignored, "later_v1_suspects", NULL);
    char span[48];

    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        const char *id = reply_str(reply_at(row, SUSPECT_ID));
        const char *queue = reply_str(reply_at(row, SUSPECT_QUEUE));
        int64_t waits_ms = reply_int(reply_at(r, 0)) - reply_int(reply_at(row, SUSPECT_DUE));

        if (waits_ms >= SUSPECT_WAIT_MS)
            health_add_queue(
                h->warnings, "warning", "suspect", queue,
                "job %.12s of queue %.64s, under which a worker died %lld times, has waited for %s "
                "to run where nothing else runs: the workers of its queue claim nothing for 30 s "
                "of every five minutes until it starts (later explain %.12s, later cancel %.12s)",
                id, queue, (long long)reply_int(reply_at(row, SUSPECT_CRASHES)),
                out_span(waits_ms, span), id, id);
    }
    reply_free(r);
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
        json_t *line = json_object();

        json_put_text(line, "status", status, strlen(status));
        json_put_int(line, "workers", (int64_t)h->live);
        (void)json_object_set_new(line, "causes", h->causes);
        (void)json_object_set_new(line, "warnings", h->warnings);
        json_print(line);
        return;
    }
    if (json_array_size(h->causes) == 0)
        out_printf("%sok%s: %zu %s, no due job waits that could run\n", out_style(OUT_GOOD),
                   out_style(OUT_PLAIN), h->live, h->live == 1 ? "worker" : "workers");
    show_list(h->causes, "cause", "degraded:", OUT_BAD);
    show_list(h->warnings, "warning", "warning:", OUT_BOLD);
    json_decref(h->causes);
    json_decref(h->warnings);
}

static int judge_namespace(struct cli *cli, const struct health_limits *limits, struct err *err)
{
    struct health h = {json_array(), json_array(), 0};
    struct err ignored = ERR_INIT;
    bool is_degraded;
    struct reply *r = ask_words(&cli->server, err, "later_v1_health", HEALTH_LATE_MS, NULL);

    if (r == NULL || health_limits_judge(limits, &h, cli, err) < 0) {
        reply_free(r);
        health_add(h.causes, "cause", "redis", "%s", err->text);
        if (cli->json) {
            show(cli, &h, "down");
        } else {
            json_decref(h.causes);
            json_decref(h.warnings);
        }
        return -1;
    }
    judge(&h, cli, r);
    reply_free(r);
    health_workers_judge(&h, cli);
    (void)schedules_each(&cli->server, judge_schedule, &h, &ignored);
    judge_suspects(&h, cli);
    health_server_judge(&h, cli);
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
                   cli->server.target.ns);
    show_list(h->causes, "cause", "degraded:", OUT_BAD);
    json_decref(h->causes);
    json_decref(h->warnings);
}

/* All daemons found must be well: nobody else would notice one that hangs beside a healthy one. */
static int run_probe(struct cli *cli, bool must_be_ready, struct err *err)
{
    struct health h = {json_array(), json_array(), 0};
    struct probe_daemon *found = NULL;
    struct reply *server = NULL;
    size_t n = 0;
    bool is_well;
    int rc = ask_target(&cli->server, err) < 0
                 ? -1
                 : probe_host(cli->server.target.ns, PROBE_MS, &found, &n, err);

    if (rc == 0 && n == 0)
        health_add(
            h.causes, "cause", "no-daemon",
            "no laterd of namespace %s that belongs to uid %u%s listens on this host (sockets "
            "@laterd/%s/... in /proc/net/unix)",
            cli->server.target.ns, (unsigned)geteuid(), geteuid() == 0 ? " or anybody" : " or root",
            cli->server.target.ns);
    if (rc == 0 && must_be_ready && is_any_ready(found, n))
        server = ask_server(cli, &h);
    for (size_t i = 0; i < n; i++)
        judge_daemon(&h, &found[i], must_be_ready, server);
    free(found);
    reply_free(server);
    if (rc < 0) {
        json_decref(h.causes);
        json_decref(h.warnings);
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

    if (health_limits_read(&limits, cli, err) < 0)
        return -1;
    if (is_server && (is_probe || health_limits_any(&limits)))
        return err_set(err, ERR_USAGE, "--server goes without the other options");
    if (is_server)
        return health_server(cli, err);
    if (!is_probe)
        return judge_namespace(cli, &limits, err);
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
