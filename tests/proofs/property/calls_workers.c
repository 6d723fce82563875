/*
 * Random calls of workers, except for the sync.
 */
#include "maker.h"

#include <stdio.h>
#include <string.h>

/* ---- workers */

/* The jobs that a worker says it holds: most of those of `epoch`, a few others, a few with wrong
 * start numbers. */
static size_t held_args(struct maker *k, int64_t epoch, struct model_held *held)
{
    size_t n = 0;

    for (size_t i = 0; i < k->m->jobs && n < HELD_MAX; i++) {
        const struct model_job *j = &k->m->job[i];
        bool own = j->state == JOB_RUNNING && j->score == epoch;

        if (!percent(k, own ? 70 : 6))
            continue;
        held[n].id = j->id;
        held[n++].start = j->starts + (percent(k, own ? 5 : 40) ? 1 : 0);
    }
    number(k, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        arg(k, held[i].id);
        number(k, held[i].start);
    }
    return n;
}

static const char *const SERVES[] = {"mail", "mail,sms", "Q-7_x,0", "sms,0"};
static const char *const PLACES[] = {"1", "2", "16"};
static const char *const LIMITS[] = {"mail=1", "sms=2,mail=3"};
static const char *const ROOMS[] = {"0", "2"};

static void config_args(struct maker *k, struct model_entry *e)
{
    char key[64];

    e->max_payload = percent(k, 20) ? 1500 + any(k, 1000000) : MODEL_NONE;
    e->limited_queue = percent(k, k->m->is_chained ? 50 : 20) ? below(k, MODEL_QUEUES) : -1;
    number(k, (e->max_payload != MODEL_NONE) + (e->limited_queue >= 0));
    if (e->max_payload != MODEL_NONE) {
        arg(k, "max_payload");
        number(k, e->max_payload);
    }
    if (e->limited_queue >= 0) {
        (void)snprintf(key, sizeof(key), "max_payload:%s", k->m->queue[e->limited_queue].name);
        arg(k, key);
        number(k, e->queue_max_payload = 1100 + any(k, 100000));
    }
}

static void field_arg(struct maker *k, const char *name, const char *value)
{
    if (value == NULL)
        return;
    arg(k, name);
    arg(k, value);
}

void make_register(struct maker *k)
{
    static const char *const insts[] = {"i0", "i1", "i2", "i3", "i4", "i5"};
    static struct model_held held[HELD_MAX];
    struct model_entry e = {.inst = PICK(k, insts), .seq = 1 + below(k, 6), .job = held};

    e.seen = percent(k, 70) ? 0 : percent(k, 80) ? k->m->clock : k->m->clock + any(k, 5000000);
    e.old = percent(k, 50) ? pick_epoch(k, false) : 0;
    e.host = percent(k, 50) ? "h1" : NULL;
    e.queues = percent(k, 50) ? PICK(k, SERVES) : NULL;
    begin(k, "later_v1_register");
    number(k, e.seen);
    arg(k, e.inst);
    number(k, e.seq);
    number(k, e.old);
    e.places = percent(k, 80) ? PICK(k, PLACES) : NULL;
    e.limits = percent(k, 25) ? PICK(k, LIMITS) : NULL;
    e.room = percent(k, 25) ? PICK(k, ROOMS) : NULL;
    number(k, (e.host != NULL) + (e.queues != NULL) + (e.places != NULL) + (e.limits != NULL) +
                  (e.room != NULL));
    field_arg(k, "host", e.host);
    field_arg(k, "queues", e.queues);
    field_arg(k, "places", e.places);
    field_arg(k, "limits", e.limits);
    field_arg(k, "room", e.room);
    config_args(k, &e);
    e.held = held_args(k, e.old, held);
    model_register(k->m, &e, k->want);
}

void make_beat(struct maker *k)
{
    int64_t epoch = pick_epoch(k, !percent(k, 10));
    const char *queues = percent(k, 50) ? PICK(k, SERVES) : NULL;

    begin(k, "later_v1_beat");
    number(k, epoch);
    if (queues != NULL)
        arg(k, queues);
    model_beat(k->m, epoch, queues, k->want);
}

int64_t link_of(struct maker *k, int64_t epoch)
{
    const struct model_worker *w = model_worker(k->m, epoch);

    return (w != NULL ? w->link : 1) + (percent(k, 5) ? -1 : 0);
}

void make_reconcile(struct maker *k)
{
    static struct model_held held[HELD_MAX];
    int64_t epoch = pick_epoch(k, !percent(k, 10)), link = link_of(k, epoch), seen = 0;
    size_t n;

    begin(k, "later_v1_reconcile");
    number(k, epoch);
    number(k, link);
    n = held_args(k, epoch, held);
    if (percent(k, 70)) {
        seen = percent(k, 70) ? k->m->clock : k->m->clock + any(k, 5000000);
        number(k, seen);
    }
    model_reconcile(k->m, epoch, link, n, held, seen, k->want);
}

/* Mostly an epoch that holds jobs. */
static int64_t pick_victim(struct maker *k)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(k->m, -1, JOB_RUNNING, -1, row);

    return n > 0 && percent(k, 70) ? row[below(k, (int)n)]->score : pick_epoch(k, false);
}

void make_reap(struct maker *k)
{
    static const int64_t crashes[] = {0, 1, 2, 3, 5, 5}, max[] = {0, 1, 2, 10000, 10000};
    int64_t epoch = pick_epoch(k, !percent(k, 5)), victim = pick_victim(k);
    const struct model_worker *w = model_worker(k->m, victim);
    int64_t counter = percent(k, w == NULL ? 80 : 5) ? MODEL_NONE
                      : w != NULL                    ? w->counter + (percent(k, 10) ? 1 : 0)
                                                     : 1;
    int64_t most_crashes = PICK(k, crashes), most_dead = PICK(k, max);

    begin(k, "later_v1_reap");
    number(k, epoch);
    number(k, victim);
    if (counter == MODEL_NONE)
        arg(k, "?");
    else
        number(k, counter);
    number(k, most_crashes);
    number(k, most_dead);
    model_reap(k->m, epoch, victim, counter, most_crashes, most_dead, k->want);
}

void make_leave(struct maker *k)
{
    int64_t epoch = pick_epoch(k, !percent(k, 20));

    begin(k, "later_v1_leave");
    number(k, epoch);
    model_leave(k->m, epoch, k->want);
}

void make_quiet(struct maker *k)
{
    int64_t epoch = percent(k, 40) ? 0 : pick_epoch(k, !percent(k, 20));
    bool on = percent(k, 50);

    begin(k, "later_v1_quiet");
    if (epoch == 0)
        arg(k, "*");
    else
        number(k, epoch);
    arg(k, on ? "on" : "off");
    model_quiet(k->m, epoch, on, k->want);
}

void make_workers(struct maker *k)
{
    begin(k, "later_v1_workers");
    model_workers(k->m, k->want);
}

void make_suspects(struct maker *k)
{
    begin(k, "later_v1_suspects");
    model_suspects(k->m, k->want);
}

void make_note(struct maker *k)
{
    static const char *const names[] = {"later:due:x", "later:{p}:nonsense", "a b"};
    const char *what = PICK(k, names);

    begin(k, "later_v1_note");
    if (percent(k, 40)) {
        arg(k, "stray-key");
        arg(k, what);
        model_note(k->m, "stray-key", what, k->want);
        return;
    }
    arg(k, "raw-queue");
    model_note_raw(k->m, queue_arg(k), k->want);
}

void make_tidy(struct maker *k)
{
    static const int64_t keeps[] = {0, 1000, 600000, 604800000};
    int64_t epoch = pick_epoch(k, !percent(k, 5)), keep[MODEL_QUEUES], n = 0;

    for (int q = 0; q < MODEL_QUEUES; q++) {
        keep[q] = percent(k, 70) ? PICK(k, keeps) : MODEL_NONE;
        n += keep[q] != MODEL_NONE;
    }
    begin(k, "later_v1_tidy");
    number(k, epoch);
    number(k, n);
    for (int q = 0; q < MODEL_QUEUES; q++)
        if (keep[q] != MODEL_NONE) {
            arg(k, k->m->queue[q].name);
            number(k, keep[q]);
        }
    model_tidy(k->m, epoch, keep, k->want);
}
