#include "health/namespace.h"

#include <stdio.h>
#include <string.h>

#include "ask/replies.h"
#include "ask/schedules.h"
#include "base/text.h"
#include "health/server.h"
#include "health/workers.h"
#include "job/job.h"
#include "json/put.h"

#define SCHEDULE_LATE_MS 60000
#define SKEW_MS 1000          /* from here on, a worker's log and LATER_LATE_MS mislead */
#define SUSPECT_WAIT_MS 10000 /* from then on workers empty themselves for it */
#define UNSENT_MANY 256       /* results; as many as two full syncs */
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
                       name, text_span(unheard, span)),
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
                       name, text_span(skew < 0 ? -skew : skew, span),
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
                     text_span(now_ms - reply_int(reply_at(late, LATE_DUE)), span), epoch,
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
        queue, text_span(now_ms - reply_int(reply_at(broken, LATE_DUE)), span),
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
                         epoch, host, text_span(ago_ms, span), id, queue);
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
                             name, text_span(now_ms - reply_int(reply_at(batch, 1)), span), name),
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

static void judge(struct health *h, const struct reply *r)
{
    int64_t now_ms = reply_int(reply_at(r, HEALTH_NOW));
    const struct reply *notes = reply_at(r, HEALTH_NOTES);

    for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_WORKERS)); i++)
        judge_worker(h, reply_at(reply_at(r, HEALTH_WORKERS), i), now_ms);
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
                             name, text_span(now_ms - reply_int(next), span)),
                  "schedule", name, strlen(name));
    return true;
}

/* It waits for a worker that runs nothing, and the workers of its queue empty themselves for it. */
static void judge_suspects(struct health *h, struct ask_server *s)
{
    struct err ignored = ERR_INIT;
    struct reply *r = ask_words(s, &ignored, "later_v1_suspects", NULL);
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
                text_span(waits_ms, span), id, id);
    }
    reply_free(r);
}

int health_namespace(struct health *h, struct ask_server *s, struct err *err)
{
    struct err ignored = ERR_INIT;
    struct reply *r = ask_words(s, err, "later_v1_health", HEALTH_LATE_MS, NULL);

    if (r == NULL)
        return -1;
    judge(h, r);
    reply_free(r);
    health_workers_judge(h, s);
    (void)schedules_each(s, judge_schedule, h, &ignored);
    judge_suspects(h, s);
    health_server_judge(h, s);
    return 0;
}

void health_no_worker(struct health *h)
{
    health_add(h->causes, "cause", "no-worker",
               "no worker is running in this namespace: start laterd");
}
