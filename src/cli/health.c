#include "cli/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ask/figures.h"
#include "ask/replies.h"
#include "ask/schedules.h"
#include "base/text.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/pause.h"

static __attribute__((format(printf, 4, 0))) json_t *
add(json_t *list, const char *kind, const char *name, const char *fmt, va_list ap)
{
    json_t *one = json_object();
    char text[512];

    (void)vsnprintf(text, sizeof(text), fmt, ap);
    json_put_text(one, kind, name, strlen(name));
    json_put_text(one, "text", text, strlen(text));
    (void)json_array_append_new(list, one);
    return one;
}

json_t *health_add(json_t *list, const char *kind, const char *name, const char *fmt, ...)
{
    json_t *one;
    va_list ap;

    va_start(ap, fmt);
    one = add(list, kind, name, fmt, ap);
    va_end(ap);
    return one;
}

void health_add_queue(json_t *list, const char *kind, const char *name, const char *queue,
                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    json_put_text(add(list, kind, name, fmt, ap), "queue", queue, strlen(queue));
    va_end(ap);
}

void health_worker_name(const struct reply *w, char out[160])
{
    (void)snprintf(out, 160, "worker %.20s on %.64s (pid %.10s)",
                   reply_str(reply_at(w, WORKER_EPOCH)), reply_str(reply_at(w, WORKER_HOST)),
                   reply_str(reply_at(w, WORKER_PID)));
}

static int read_span(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err)
{
    const char *value = cli_value(cli, option);

    *ret_ms = -1;
    if (value == NULL || text_parse_duration(value, ret_ms) == 0)
        return 0;
    return err_set(err, ERR_USAGE, "--%s '%.40s' is no span: 30s, 5m, 1h30m", option, value);
}

int health_limits_read(struct health_limits *l, const struct cli *cli, struct err *err)
{
    const char *dead = cli_value(cli, "dead");

    l->dead = -1;
    if (read_span(cli, "late", &l->late_ms, err) < 0 ||
        read_span(cli, "parked", &l->parked_ms, err) < 0 ||
        read_span(cli, "paused", &l->paused_ms, err) < 0)
        return -1;
    if (dead != NULL && text_parse_int(dead, 0, INT64_MAX, &l->dead) < 0)
        return err_set(err, ERR_USAGE, "--dead '%.40s' is no number from 0 on", dead);
    return 0;
}

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
                         out_span(late_ms, span), text_duration(l->late_ms, limit));
    if (l->parked_ms >= 0 && parked_ms > l->parked_ms)
        health_add_queue(h->causes, "cause", "parked", q->name,
                         "queue %s: its first parked job has waited at its gates for %s; the "
                         "limit is %s (later gates)",
                         q->name, out_span(parked_ms, span), text_duration(l->parked_ms, limit));
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
        (void)snprintf(ends, sizeof(ends), "it ends in %s", out_span(p.until_ms - now_ms, left));
    json_put_text(health_add(j->h->causes, "cause", "paused",
                             "%s %.128s has been paused for %s by %.64s%s%.100s; the limit is %s, "
                             "and %s (%s %.128s)",
                             kind, name, out_span(now_ms - p.since_ms, span), p.by,
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
static int judge_paused_queue(const struct judging *j, const char *queue, struct cli *cli,
                              struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_stats", queue, NULL);

    if (r == NULL)
        return -1;
    judge_pause(j, "queue", queue, "later resume",
                reply_at(reply_at(r, STATS_QUEUES), QUEUE_PAUSED),
                reply_int(reply_at(r, STATS_NOW)));
    reply_free(r);
    return 0;
}

static int judge_pauses(const struct judging *j, const struct figures *f, struct cli *cli,
                        struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        if (f->queues[i].value[FIGURE_PAUSED] != 0)
            rc = judge_paused_queue(j, f->queues[i].name, cli, err);
    }
    return rc == 0 ? schedules_each(&cli->server, judge_paused_schedule, (void *)(uintptr_t)j, err)
                   : rc;
}

int health_limits_judge(const struct health_limits *l, struct health *h, struct cli *cli,
                        struct err *err)
{
    struct figures f = {.n = 0};
    int rc = 0;

    if (health_limits_any(l))
        rc = figures_read(&f, &cli->server, err);
    for (size_t i = 0; i < f.n; i++)
        judge_queue(l, h, &f.queues[i]);
    if (rc == 0 && l->paused_ms >= 0)
        rc = judge_pauses(&(struct judging){l, h}, &f, cli, err);
    figures_done(&f);
    return rc;
}
