#include "cli/quiet_wait.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ask/replies.h"
#include "base/mem.h"
#include "cli/again.h"

#define ASK_AGAIN_MS 200
#define SILENT_MS 25000 /* a worker beats every 5 s; after so long others give it up */

struct quiet_worker {
    int64_t epoch;
    int64_t counter; /* of its beats, when it was first seen */
    int64_t last;    /* the same now */
    struct mono beaten;
    bool was_nudged; /* to beat once more */
    bool is_done;
};

struct quiet_waiting {
    struct cli *cli;
    const char *who;
    struct quiet_worker *at;
    size_t n;
    int64_t held;
};

static struct quiet_worker *find(const struct quiet_waiting *w, int64_t epoch)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->at[i].epoch == epoch)
            return &w->at[i];
    }
    return NULL;
}

static bool is_meant(const struct quiet_waiting *w, const struct reply *row)
{
    return (strcmp(w->who, "*") == 0 && !reply_is(reply_at(row, WORKER_COUNTER), "dead")) ||
           reply_is(reply_at(row, WORKER_EPOCH), w->who);
}

/* Remember those that are meant. Others may register later. */
static int begin(struct quiet_waiting *w, struct err *err)
{
    struct reply *r = ask_words(&w->cli->server, err, "later_v1_workers", NULL);

    if (r == NULL)
        return -1;
    w->at = mem_new((reply_count(r) + 1) * sizeof(*w->at));
    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);

        if (is_meant(w, row))
            w->at[w->n++] =
                (struct quiet_worker){.epoch = reply_int(reply_at(row, WORKER_EPOCH)),
                                      .counter = reply_int(reply_at(row, WORKER_COUNTER)),
                                      .beaten = mono_now()};
    }
    reply_free(r);
    return 0;
}

/* A worker learns that it is quiet by the answer to a beat, and may have sent a claim before that.
 * A second beat is sent after that answer, so behind every such claim: from then on what it holds
 * can only become less. */
static bool knows_it(const struct quiet_worker *q, const struct reply *row)
{
    return reply_is(reply_at(row, WORKER_COUNTER), "dead") ||
           reply_int(reply_at(row, WORKER_COUNTER)) >= q->counter + 2;
}

/* One that died says nothing any more, and where no other worker runs nobody takes its jobs. 0, or
 * -1 with err. */
static int check_alive(struct quiet_worker *q, const struct reply *row, struct err *err)
{
    int64_t counter = reply_int(reply_at(row, WORKER_COUNTER));

    if (counter != q->last)
        q->beaten = mono_now();
    q->last = counter;
    if (q->is_done || mono_before(mono_now(), mono_add_ms(q->beaten, SILENT_MS)))
        return 0;
    return err_set(err, ERR_TEMP,
                   "worker %lld on %.64s has been silent for 25 s: it died, hangs, or has no link. "
                   "Another worker, once one runs, puts its jobs back",
                   (long long)q->epoch, reply_str(reply_at(row, WORKER_HOST)));
}

/* 1: tell it again, so that it beats once more. 0, or -1 with err. */
static int judge(struct quiet_waiting *w, const struct reply *row, struct err *err)
{
    struct quiet_worker *q = find(w, reply_int(reply_at(row, WORKER_EPOCH)));
    int64_t held = reply_int(reply_at(row, WORKER_HELD));
    bool is_nudge;

    if (q == NULL)
        return 0;
    q->is_done = held == 0 && knows_it(q, row);
    w->held += held;
    if (!reply_is(reply_at(row, WORKER_QUIET), "1") &&
        !reply_is(reply_at(row, WORKER_COUNTER), "dead"))
        return err_set(err, ERR_REFUSED,
                       "ELATER_STATE worker %lld is not quiet any more: somebody took it back",
                       (long long)q->epoch);
    if (check_alive(q, row, err) < 0)
        return -1;
    is_nudge = !q->was_nudged && reply_int(reply_at(row, WORKER_COUNTER)) > q->counter;
    q->was_nudged = q->was_nudged || is_nudge;
    return is_nudge ? 1 : 0;
}

static int tell_again(const struct quiet_waiting *w, struct err *err)
{
    struct reply *r = ask_words(&w->cli->server, err, "later_v1_quiet", w->who, "on", NULL);

    /* Meanwhile it may have stopped. */
    if (r == NULL && !ask_is_refusal(err, "ELATER_WORKER"))
        return -1;
    reply_free(r);
    *err = (struct err)ERR_INIT;
    return 0;
}

/* 1: all of them hold nothing. 0: not yet. -1 with err. */
static int query(struct quiet_waiting *w, struct err *err)
{
    struct reply *r = ask_words(&w->cli->server, err, "later_v1_workers", NULL);
    bool is_all = true, must_tell = false;
    int rc = r != NULL ? 0 : -1;

    w->held = 0;
    for (size_t i = 0; i < w->n; i++)
        w->at[i].is_done = true; /* unless it is still registered */
    for (size_t i = 1; i < reply_count(r) && rc >= 0; i++) {
        rc = judge(w, reply_at(r, i), err);
        must_tell = must_tell || rc > 0;
    }
    reply_free(r);
    if (rc < 0 || (must_tell && tell_again(w, err) < 0))
        return -1;
    for (size_t i = 0; i < w->n; i++)
        is_all = is_all && w->at[i].is_done;
    return is_all;
}

/* Held jobs may be none and yet become more: not every worker was heard of. */
static int too_late(const struct quiet_waiting *w, struct err *err)
{
    if (w->held == 0)
        return err_set(err, ERR_TEMP,
                       "no job is running there, but not all of them were heard of since: a worker "
                       "tells within 10 s that it claims no more");
    return err_set(err, ERR_TEMP, "%lld %s still running there", (long long)w->held,
                   w->held == 1 ? "job is" : "jobs are");
}

int quiet_wait(struct cli *cli, const char *who, struct mono deadline, int64_t *held,
               struct err *err)
{
    struct quiet_waiting w = {.cli = cli, .who = who};
    struct again again = {0};
    int rc = begin(&w, err);

    while (rc == 0) {
        rc = query(&w, err);
        if (rc < 0 && again_after(&again, cli, deadline, err)) {
            rc = 0;
            continue;
        }
        if (rc >= 0)
            again_well(&again);
        if (rc == 0 && !mono_before(mono_now(), deadline))
            rc = too_late(&w, err);
        else if (rc == 0)
            (void)poll(NULL, 0, ASK_AGAIN_MS);
    }
    free(w.at);
    *held = w.held;
    return rc < 0 ? -1 : 0;
}
