#include "health/limits.h"

#include <stdio.h>
#include <string.h>

#include "ask/figures.h"
#include "ask/replies.h"
#include "ask/schedules.h"
#include "base/text.h"
#include "json/pause.h"
#include "json/put.h"

bool health_limits_any(const struct health_limits *l)
{
    return l->late_ms >= 0 || l->parked_ms >= 0 || l->paused_ms >= 0 || l->dead >= 0;
}

static void judge_queue(const struct health_limits *l, struct health *h,
                        const struct queue_figures *q)
{
    int64_t late_ms = q->value[FIGURE_OLDEST_DUE], parked_ms = q->value[FIGURE_OLDEST_PARKED];
    char span[48], limit[24];

    /* Whoever paused a queue knows that its jobs wait. */
    if (l->late_ms >= 0 && late_ms > l->late_ms && q->value[FIGURE_PAUSED] == 0)
        health_add_queue(h->causes, "cause", "late", q->name,
                         "queue %s: its first job has been due for %s; the limit is %s", q->name,
                         text_span(late_ms, span), text_duration(l->late_ms, limit));
    if (l->parked_ms >= 0 && parked_ms > l->parked_ms)
        health_add_queue(h->causes, "cause", "parked", q->name,
                         "queue %s: its first parked job has waited at its gates for %s; the "
                         "limit is %s (later gates)",
                         q->name, text_span(parked_ms, span), text_duration(l->parked_ms, limit));
    if (l->dead >= 0 && q->value[FIGURE_DEAD] > l->dead)
        health_add_queue(
            h->causes, "cause", "dead-jobs", q->name,
            "queue %s has %lld dead jobs; the limit is %lld (later ls %s --state dead)", q->name,
            (long long)q->value[FIGURE_DEAD], (long long)l->dead, q->name);
}

struct judging {
    const struct health_limits *limits;
    struct health *h;
};

/* A pause that nobody ends looks like peace: no job is late, and nothing fails. kind: "queue" or
 * "schedule". resume: what ends it. */
static void judge_pause(const struct judging *j, const char *kind, const char *name,
                        const char *resume, const struct reply *value, int64_t now_ms)
{
    char span[48], limit[24], ends[64] = "nobody has said until when", left[48];
    struct pause p;

    if (!pause_read(value, &p) || (p.until_ms != 0 && p.until_ms <= now_ms) ||
        now_ms - p.since_ms <= j->limits->paused_ms)
        return;
    if (p.until_ms != 0)
        (void)snprintf(ends, sizeof(ends), "it ends in %s", text_span(p.until_ms - now_ms, left));
    json_put_text(health_add(j->h->causes, "cause", "paused",
                             "%s %.128s has been paused for %s by %.64s%s%.100s; the limit is %s, "
                             "and %s (%s %.128s)",
                             kind, name, text_span(now_ms - p.since_ms, span), p.by,
                             p.reason[0] != '\0' ? ": " : "", p.reason,
                             text_duration(j->limits->paused_ms, limit), ends, resume, name),
                  kind, name, strlen(name));
}

static bool judge_paused_schedule(void *arg, const struct reply *row, int64_t now_ms)
{
    judge_pause(arg, "schedule", reply_str(reply_named(row, "schedule")), "later schedule resume",
                reply_named(row, "paused"), now_ms);
    return true;
}

/* The figures only say that it is paused. */
static int judge_paused_queue(const struct judging *j, const char *queue, struct ask_server *s,
                              struct err *err)
{
    struct reply *r = ask_words(s, err, "later_stats", queue, NULL);

    if (r == NULL)
        return -1;
    judge_pause(j, "queue", queue, "later resume",
                reply_at(reply_at(r, STATS_QUEUES), QUEUE_PAUSED),
                reply_int(reply_at(r, STATS_NOW)));
    reply_free(r);
    return 0;
}

static int judge_pauses(const struct judging *j, const struct figures *f, struct ask_server *s,
                        struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        if (f->queues[i].value[FIGURE_PAUSED] != 0)
            rc = judge_paused_queue(j, f->queues[i].name, s, err);
    }
    return rc == 0 ? schedules_each(s, judge_paused_schedule, (void *)(uintptr_t)j, err) : rc;
}

int health_limits_judge(const struct health_limits *l, struct health *h, struct ask_server *s,
                        struct err *err)
{
    struct figures f = {.n = 0};
    int rc = 0;

    if (health_limits_any(l))
        rc = figures_read(&f, s, err);
    for (size_t i = 0; i < f.n; i++)
        judge_queue(l, h, &f.queues[i]);
    if (rc == 0 && l->paused_ms >= 0)
        rc = judge_pauses(&(struct judging){l, h}, &f, s, err);
    figures_done(&f);
    return rc;
}
