/*
 * The tidy of the daemon: it names the queues whose old jobs Redis is to remove, and reports how
 * this worker is and what it has counted.
 */
#include "daemon/daemon_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/long_runs.h"

#define STATE_FIELDS 10
#define REPORT_FIELDS (STATE_FIELDS + 2 + SCHED_TIDY_QUEUES)

/* Fields with their values, and the texts that some of them point to. Zero it first, and free it
 * with report_done. */
struct report {
    const char *pairs[2 * REPORT_FIELDS];
    size_t n;
    char names[SCHED_TIDY_QUEUES][JOB_QUEUE_MAX + 8];
    struct buf counts[SCHED_TIDY_QUEUES];
    size_t ncounts;
    struct buf keys;
    char retried[24];
};

static void report_done(struct report *r)
{
    for (size_t i = 0; i < r->ncounts; i++)
        buf_done(&r->counts[i]);
    buf_done(&r->keys);
}

static void put(struct report *r, const char *field, const char *value)
{
    r->pairs[2 * r->n] = field;
    r->pairs[2 * r->n++ + 1] = value;
}

/* Take what was counted of all queues together and of keys since the last call of this. It is
 * forgotten even though the call that reports it may be lost: so nothing is counted twice. */
static void put_counts(struct report *r, struct runner *runner)
{
    uint64_t retried = runner_take_retried(runner);

    key_counts_take(runner_keys(runner), mono_now(), &r->keys);
    if (r->keys.len > 0)
        put(r, "keys", buf_str(&r->keys));
    (void)snprintf(r->retried, sizeof(r->retried), "%llu", (unsigned long long)retried);
    if (retried > 0)
        put(r, "retried", r->retried);
}

/* The same of one queue. Nothing if nothing was counted, or if there is no room. */
static void put_queue(struct report *r, struct queue_count *count)
{
    struct buf *text;
    char *name;

    if (count == NULL || r->ncounts == SCHED_TIDY_QUEUES)
        return;
    name = r->names[r->ncounts];
    text = &r->counts[r->ncounts];
    if (!queue_count_take(count, text))
        return;
    r->ncounts++;
    (void)snprintf(name, sizeof(r->names[0]), "series:%s", count->queue);
    put(r, name, buf_str(text));
}

void daemon_tell_max_at_once(const struct daemon *d, struct buf *out)
{
    for (size_t i = 0; i < d->served->n; i++) {
        int64_t n = d->served->at[i].conf->concurrency;

        if (n > 0 && n < d->conf->concurrency)
            buf_printf(out, "%s%s=%lld", out->len > 0 ? "," : "", d->served->at[i].name,
                       (long long)n);
    }
}

static int send_report(struct daemon *d, int64_t epoch, const struct store_fields *queues,
                       const struct report *r)
{
    return store_tidy(d->store, epoch, queues, &(struct store_fields){r->pairs, r->n});
}

/* The host does not bear as many jobs at once as are configured: say so in the log when it begins
 * and ends, and in `later health` as long as it lasts. */
static void tell_small_host(struct daemon *d, const struct sched_status *s)
{
    bool is_small = s->places < (unsigned)d->conf->concurrency;
    char note[160];

    if (is_small && !d->is_small)
        log_warn(
            "event=small-host state=begun places=%u concurrency=%lld reason=\"processes could "
            "not be started (see event=end outcome=released): descriptors, processes or memory "
            "are short; raise the limit (LimitNOFILE=, TasksMax=), or lower concurrency\"",
            s->places, (long long)d->conf->concurrency);
    if (!is_small && d->is_small)
        log_notice("event=small-host state=over");
    d->is_small = is_small;
    if (!is_small)
        return;
    (void)snprintf(note, sizeof(note), "%.64s %u %lld", d->me.host, s->places,
                   (long long)d->conf->concurrency);
    (void)store_note(d->store, "small-host", note);
}

/* Add how this worker is, then send the report. */
static int send_with_state(struct daemon *d, int64_t epoch, const struct store_fields *queues,
                           struct report *r)
{
    CLEANUP_BUF struct buf at_once = BUF_INIT, modes = BUF_INIT, defects = BUF_INIT;
    CLEANUP_BUF struct buf refusal = BUF_INIT;
    struct long_runs runs = {BUF_INIT, BUF_INIT};
    char unsent[24], unwritten[24], skew[24], room[24];
    struct sched_status s;
    int rc;

    d->tell_at = mono_add_ms(mono_now(), SCHED_TIDY_MS - SCHED_TIDY_LEAST_MS);
    sched_status(d->sched, &s);
    tell_small_host(d, &s);
    (void)snprintf(unsent, sizeof(unsent), "%zu", s.unsent);
    (void)snprintf(unwritten, sizeof(unwritten), "%zu", s.unwritten);
    (void)snprintf(skew, sizeof(skew), "%lld", (long long)d->skew_ms);
    (void)snprintf(room, sizeof(room), "%u", sched_free_places(d->sched, mono_now()));
    daemon_tell_max_at_once(d, &at_once);
    handler_defects_modes(d->served, &modes);
    handler_defects_tell(&d->defects, d->runner, d->served, &defects);
    text_escape(&refusal, d->reload_refused.text, strlen(d->reload_refused.text));
    long_runs_tell(d->sched, d->served, mono_now(), wall_skew_ms(0) - d->skew_ms, &runs);
    put(r, "unsent", unsent);
    put(r, "refused", unwritten);
    put(r, "skew_ms", skew);
    put(r, "room", room);
    put(r, "limits", buf_str(&at_once));
    put(r, "modes", buf_str(&modes));
    put(r, "defects", buf_str(&defects));
    put(r, "reload", buf_str(&refusal));
    put(r, "runs", buf_str(&runs.started));
    put(r, "timeouts", buf_str(&runs.timeouts));
    put_counts(r, d->runner);
    rc = send_report(d, epoch, queues, r);
    long_runs_done(&runs);
    return rc;
}

/* The next served queues, and how long each keeps its dead jobs. -> how many */
static size_t next_queues(struct daemon *d, const char **pairs, char (*keeps)[24])
{
    size_t n = 0;

    for (; n < SCHED_TIDY_QUEUES && d->tidy_from < d->served->n; n++, d->tidy_from++) {
        const struct served_queue *q = &d->served->at[d->tidy_from];

        (void)snprintf(keeps[n], sizeof(keeps[n]), "%lld", (long long)q->conf->dead_keep);
        pairs[2 * n] = q->name;
        pairs[2 * n + 1] = keeps[n];
    }
    if (d->tidy_from >= d->served->n)
        d->tidy_from = 0;
    return n;
}

/* Each queue is tidied once in SCHED_TIDY_MS; what was counted of it is reported with it. */
int daemon_tidy(struct daemon *d, int64_t epoch)
{
    char keeps[SCHED_TIDY_QUEUES][24];
    const char *pairs[2 * SCHED_TIDY_QUEUES];
    struct store_fields queues = {pairs, next_queues(d, pairs, keeps)};
    struct report r = {.n = 0};
    int rc;

    for (size_t i = 0; i < queues.n; i++)
        put_queue(&r, queue_counts_find(runner_counts(d->runner), pairs[2 * i]));
    d->tidy_tells = !mono_before(mono_now(), d->tell_at);
    rc =
        d->tidy_tells ? send_with_state(d, epoch, &queues, &r) : send_report(d, epoch, &queues, &r);
    report_done(&r);
    return rc;
}

void daemon_tidy_last(struct daemon *d, int64_t epoch)
{
    const struct store_fields none = {NULL, 0};
    struct queue_counts *counts = runner_counts(d->runner);
    struct report counted = {.n = 0};

    d->tidy_tells = false;
    put_counts(&counted, d->runner);
    if (counted.n > 0)
        (void)send_report(d, epoch, &none, &counted);
    report_done(&counted);
    for (size_t i = 0; i < counts->n;) {
        struct report some = {.n = 0};

        for (; i < counts->n && some.ncounts < SCHED_TIDY_QUEUES; i++)
            put_queue(&some, &counts->at[i]);
        if (some.n > 0)
            (void)send_report(d, epoch, &none, &some);
        report_done(&some);
    }
}
