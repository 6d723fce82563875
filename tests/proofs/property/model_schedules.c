/*
 * Schedules in the model (src/lua/schedule, src/lua/calls/fire.lua).
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define GONE_MS INT64_C(7776000000)
#define DAY_MS INT64_C(86400000)
#define KEPT_DAYS 400

static struct schedule_counts counts;

const struct schedule_counts *schedule_counts(void)
{
    return &counts;
}

/* The names, and the first eight digits of their SHA-1. */
static const struct {
    const char *name;
    int64_t sha;
} NAMES[MODEL_SCHEDULES] = {
    {"mail", 0x1d6e1cf7}, {"nightly", 0xd7900bba}, {"s:2", 0xe9439310}, {"Q-7_x", 0x40e04233}};

static int number_of(const struct model *m, const struct model_schedule *s)
{
    return (int)(s - m->schedule);
}

void schedules_reset(struct model *m)
{
    for (int i = 0; i < MODEL_SCHEDULES; i++)
        m->schedule[i] = (struct model_schedule){.name = NAMES[i].name,
                                                 .file_ms = MODEL_NONE,
                                                 .gone_ms = MODEL_NONE,
                                                 .planned = MODEL_NONE,
                                                 .last = MODEL_NONE,
                                                 .next = MODEL_NONE};
}

struct model_schedule *schedule_of(struct model *m, const char *name)
{
    for (int i = 0; name != NULL && i < MODEL_SCHEDULES; i++)
        if (strcmp(m->schedule[i].name, name) == 0)
            return &m->schedule[i];
    return NULL;
}

/* A schedule that is there, or NULL and the refusal. */
static struct model_schedule *need(struct model *m, const char *name, struct buf *out)
{
    struct model_schedule *s = schedule_of(m, name);

    if (s == NULL || !s->is_there)
        out_refusal(out, name == NULL ? "ELATER_SCHEDULE" : "ELATER_NOSCHEDULE");
    return s != NULL && s->is_there ? s : NULL;
}

static void tell_change(struct model *m)
{
    m->schedules_changed = model_tick(m, 1, 0);
    model_wake(m, "!schedules");
}

/* ---- calendars */

enum calendar_row { ROW_DUE, ROW_OK, ROW_FAILED, ROW_MISSED };

/* The end of a calendar: so many days after its year. */
static int64_t end_of(int year)
{
    int64_t leaps = (year / 4 - year / 100 + year / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);

    return ((int64_t)(year + 1 - 1970) * 365 + leaps + KEPT_DAYS) * DAY_MS;
}

static struct model_calendar *calendar(struct model *m, int schedule, int year, bool is_new)
{
    struct model_calendar *c, *room = NULL;

    for (int i = 0; i < MODEL_CALENDARS; i++) {
        c = &m->calendar[i];
        if (c->is_there && c->schedule == schedule && c->year == year)
            return c;
        room = c->is_there ? room : c;
    }
    if (!is_new)
        return NULL;
    if (room == NULL)
        abort();
    *room = (struct model_calendar){true, schedule, year, {0}, 0, end_of(year)};
    return room;
}

static void mark_day(struct model *m, const char *name, int64_t day, enum calendar_row row)
{
    int bit = (int)row * 512 + (int)(day % 1000) - 1;
    struct model_calendar *c;

    if (day == 0)
        return;
    c = calendar(m, number_of(m, schedule_of(m, name)), (int)(day / 1000), true);
    c->bits[bit / 8] |= (unsigned char)(128 >> bit % 8);
    if (c->n <= (size_t)bit / 8)
        c->n = (size_t)bit / 8 + 1;
    c->is_there = c->until_ms > MODEL_MS(m);
}

void schedule_mark_end(struct model *m, const struct model_job *j, bool is_ok)
{
    if (j->chain.schedule == NULL || j->corrupt != NULL)
        return;
    counts.ended++;
    mark_day(m, j->chain.schedule, j->chain.day, is_ok ? ROW_OK : ROW_FAILED);
}

void schedules_set_time(struct model *m)
{
    for (int i = 0; i < MODEL_CALENDARS; i++)
        m->calendar[i].is_there &= m->calendar[i].until_ms > MODEL_MS(m);
}

void model_schedule_calendar(struct model *m, const char *name, int year, struct buf *out)
{
    const struct model_schedule *s = schedule_of(m, name);
    const struct model_calendar *c = s != NULL ? calendar(m, number_of(m, s), year, false) : NULL;

    if (name == NULL)
        out_refusal(out, "ELATER_SCHEDULE");
    else
        out_bytes(out, c != NULL ? (const char *)c->bits : "", c != NULL ? c->n : 0);
}

/* ---- set, delete */

static bool is_same_timing(const struct model_schedule *a, const struct model_schedule *b)
{
    return strcmp(a->when, b->when) == 0 && strcmp(a->tz, b->tz) == 0 && a->from_ms == b->from_ms &&
           a->until_ms == b->until_ms;
}

static bool is_same(const struct model_schedule *a, const struct model_schedule *b)
{
    return is_same_timing(a, b) && a->queue == b->queue && strcmp(a->overlap, b->overlap) == 0 &&
           strcmp(a->catch_up, b->catch_up) == 0 && a->window_ms == b->window_ms &&
           a->splay_ms == b->splay_ms && strcmp(a->options, b->options) == 0 &&
           a->payload.n == b->payload.n && memcmp(a->payload.p, b->payload.p, a->payload.n) == 0;
}

static bool has_lock(const struct model_schedule *s)
{
    return strcmp(s->overlap, "queue") == 0 || strcmp(s->overlap, "replace") == 0;
}

static const char *refusal_of(struct model *m, const struct model_schedule_options *o)
{
    const struct model_schedule *s = &o->s;

    if (s->name == NULL)
        return "ELATER_SCHEDULE";
    if (o->refusal != NULL || s->o.refusal != NULL)
        return o->refusal != NULL ? o->refusal : s->o.refusal;
    if (s->queue < 0)
        return "ELATER_QUEUE";
    if (has_lock(s) && s->o.gate[KIND_LOCK] != NULL)
        return "ELATER_OPTION";
    if (s->from_ms != MODEL_NONE && s->until_ms != MODEL_NONE && s->from_ms >= s->until_ms)
        return "ELATER_TIME";
    return s->payload.n > MODEL_BIG ? "ELATER_SIZE"
                                    : model_refusal(m, s->queue, &s->o, s->payload.n);
}

/* The timing and options of `from`; the rest of a schedule stays. */
static void copy_definition(struct model_schedule *s, const struct model_schedule *from)
{
    memcpy(s->when, from->when, sizeof(s->when));
    memcpy(s->options, from->options, sizeof(s->options));
    s->tz = from->tz;
    s->overlap = from->overlap;
    s->catch_up = from->catch_up;
    s->queue = from->queue;
    s->window_ms = from->window_ms;
    s->splay_ms = from->splay_ms;
    s->from_ms = from->from_ms;
    s->until_ms = from->until_ms;
    s->o = from->o;
    s->payload = from->payload;
}

static const char *put(struct model *m, const struct model_schedule *new)
{
    struct model_schedule *s = schedule_of(m, new->name);
    bool was_there = s->is_there;

    m->queue[new->queue].is_known = true;
    model_reserve(m, &new->o.chain);
    if (was_there && is_same(s, new))
        return "same";
    if (!was_there || !is_same_timing(s, new))
        s->revision = model_tick(m, 1, 0);
    copy_definition(s, new);
    s->is_there = true;
    s->gone_ms = MODEL_NONE;
    tell_change(m);
    return was_there ? "changed" : "added";
}

void model_schedule_set(struct model *m, const struct model_schedule_options *o, struct buf *out)
{
    const char *refusal = refusal_of(m, o), *status;

    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    status = put(m, &o->s);
    schedule_of(m, o->s.name)->file_ms = MODEL_NONE;
    buf_puts(out, "[ ");
    out_text(out, o->s.name);
    out_text(out, status);
    buf_puts(out, "] ");
}

static void drop(struct model *m, struct model_schedule *s)
{
    s->is_there = false;
    s->paused[0] = '\0';
    s->file_ms = MODEL_NONE;
    s->gone_ms = MODEL_MS(m) + GONE_MS;
    tell_change(m);
}

static void reply_word(struct buf *out, const char *name, const char *word)
{
    buf_puts(out, "[ ");
    out_text(out, name);
    out_text(out, word);
    buf_puts(out, "] ");
}

void model_schedule_del(struct model *m, const char *name, struct buf *out)
{
    struct model_schedule *s = need(m, name, out);

    if (s == NULL)
        return;
    drop(m, s);
    reply_word(out, name, "deleted");
}

void schedules_tidy(struct model *m)
{
    for (int i = 0; i < MODEL_SCHEDULES; i++) {
        struct model_schedule *s = &m->schedule[i];

        if (s->gone_ms == MODEL_NONE || s->gone_ms > MODEL_MS(m))
            continue;
        counts.forgotten++;
        s->gone_ms = s->planned = s->last = s->next = MODEL_NONE;
        s->has_cursor = false;
        s->zones[0] = s->job_id[0] = '\0';
        memset(s->ahead, 0, sizeof(s->ahead));
        s->runs = s->skipped = s->missed = 0;
    }
}

/* ---- declared by a file */

static const char *declare(struct model *m, const struct model_schedule_options *o, int64_t read_ms)
{
    struct model_schedule *s = schedule_of(m, o->s.name);
    const char *status;

    if (s != NULL && s->file_ms != MODEL_NONE && s->file_ms > read_ms && s->file_ms <= MODEL_MS(m))
        return "older";
    status = refusal_of(m, o);
    if (status != NULL)
        return status;
    status = put(m, &o->s);
    s->file_ms = read_ms;
    return status;
}

/* Those of earlier readings, by the time of that and their names. */
static void drop_rest(struct model *m, int64_t read_ms)
{
    for (;;) {
        struct model_schedule *first = NULL;

        for (int i = 0; i < MODEL_SCHEDULES; i++) {
            struct model_schedule *s = &m->schedule[i];

            if (s->file_ms != MODEL_NONE && s->file_ms < read_ms &&
                (first == NULL || s->file_ms < first->file_ms ||
                 (s->file_ms == first->file_ms && strcmp(s->name, first->name) < 0)))
                first = s;
        }
        if (first == NULL)
            return;
        drop(m, first);
    }
}

void model_declare(struct model *m, int64_t epoch, int64_t read_ms, bool is_last, size_t n,
                   const struct model_schedule_options *all, struct buf *out)
{
    if (strcmp(model_status(m, epoch), "ok") != 0) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    if (read_ms > MODEL_MS(m))
        read_ms = MODEL_MS(m);
    buf_puts(out, "[ ");
    for (size_t i = 0; i < n; i++)
        reply_word(out, all[i].s.name, declare(m, &all[i], read_ms));
    if (is_last)
        drop_rest(m, read_ms);
    buf_puts(out, "] ");
}

/* ---- pause */

void model_schedule_pause(struct model *m, const char *name, const char *who, const char *reason,
                          int64_t for_ms, struct buf *out)
{
    struct model_schedule *s = need(m, name, out);

    if (s == NULL)
        return;
    if (for_ms == 0) {
        out_refusal(out, "ELATER_TIME");
        return;
    }
    s->paused_until_ms = for_ms == MODEL_NONE ? 0 : MODEL_MS(m) + for_ms;
    (void)snprintf(s->paused, sizeof(s->paused), "%lld %lld %s %s", (long long)s->paused_until_ms,
                   (long long)MODEL_MS(m), who, reason);
    reply_word(out, name, "paused");
}

void model_schedule_resume(struct model *m, const char *name, struct buf *out)
{
    struct model_schedule *s = need(m, name, out);

    if (s == NULL)
        return;
    reply_word(out, name, s->paused[0] != '\0' ? "resumed" : "repeated");
    s->paused[0] = '\0';
}

static bool is_paused(const struct model *m, const struct model_schedule *s)
{
    return s->paused[0] != '\0' && (s->paused_until_ms == 0 || s->paused_until_ms > MODEL_MS(m));
}

/* ---- its jobs */

struct occurrence {
    int64_t at, due, day;
};

static int64_t splay_of(const struct model *m, const struct model_schedule *s)
{
    return s->splay_ms > 0 ? NAMES[number_of(m, s)].sha % s->splay_ms : 0;
}

static struct model_options options_of(const struct model *m, const struct model_schedule *s,
                                       const struct occurrence *o, char lock[MODEL_NAME])
{
    struct model_options job = s->o;
    int64_t splay = splay_of(m, s);

    job.due = o->due + splay > MODEL_MS(m) ? o->due + splay : MODEL_MS(m);
    job.chain.schedule = s->name;
    job.chain.occurrence_ms = o->at;
    job.chain.day = o->day;
    (void)snprintf(lock, MODEL_NAME, "schedule:%s", s->name);
    if (has_lock(s))
        job.gate[KIND_LOCK] = lock;
    return job;
}

/* Why the jobs are refused, or NULL. */
static const char *job_refusal(struct model *m, const struct model_schedule *s)
{
    const struct occurrence none = {0, 0, 0};
    char lock[MODEL_NAME];
    struct model_options o = options_of(m, s, &none, lock);

    return model_refusal(m, s->queue, &o, s->payload.n);
}

/* What overlap has found: the jobs that have to give way, and those that are to come. */
struct behind {
    struct model_job *gives_way[1 + MODEL_AHEAD];
    char ahead[MODEL_AHEAD + 1][16];
    int n_ways, n_ahead;
};

/* A job of the schedule. Returns whether it keeps the next one out. */
static bool meet(const struct model *m, const struct model_schedule *s, struct model_job *j,
                 struct behind *b)
{
    bool is_retry = j->state == JOB_WAITING && j->attempts > 0;

    if (j->state == JOB_WAITING && !is_retry && j->score > MODEL_MS(m) + splay_of(m, s)) {
        memcpy(b->ahead[b->n_ahead++], j->id, sizeof(b->ahead[0]));
        return false;
    }
    if (strcmp(s->overlap, "queue") == 0)
        return j->state != JOB_RUNNING && !is_retry;
    if (strcmp(s->overlap, "skip") == 0 && !is_retry)
        return true;
    b->gives_way[b->n_ways++] = j;
    return false;
}

/* Does a job that has come keep the next one out? */
static bool keeps_out(struct model *m, const struct model_schedule *s, struct behind *b)
{
    bool is_out = false;

    *b = (struct behind){.n_ways = 0};
    for (int i = -1; i < MODEL_AHEAD && strcmp(s->overlap, "allow") != 0; i++) {
        const char *id = i < 0 ? s->job_id : s->ahead[i];
        struct model_job *j = id[0] != '\0' ? model_find(m, id) : NULL;

        if (j != NULL && j->corrupt == NULL && j->state <= JOB_RUNNING)
            is_out = meet(m, s, j, b) || is_out;
    }
    return is_out;
}

/* Those of `behind` give way, and the cursor keeps those that are to come. */
static void make_way(struct model *m, struct model_schedule *s, const struct behind *b)
{
    if (strcmp(s->overlap, "allow") == 0)
        return;
    memcpy(s->ahead, b->ahead, sizeof(s->ahead));
    for (int i = 0; i < b->n_ways; i++) {
        counts.superseded++;
        (void)model_cancel_live(m, b->gives_way[i], MODEL_SUPERSEDED);
    }
}

static void put_ahead(struct model_schedule *s, const char *id)
{
    memmove(s->ahead[1], s->ahead[0], sizeof(s->ahead) - sizeof(s->ahead[0]));
    (void)snprintf(s->ahead[0], sizeof(s->ahead[0]), "%s", id);
    counts.ahead++;
}

/* Its jobs are not refused. Returns whether it was added; else it was skipped. */
static bool start(struct model *m, struct model_schedule *s, const struct occurrence *o,
                  bool is_forced, struct model_added *added)
{
    char lock[MODEL_NAME];
    struct model_options job = options_of(m, s, o, lock);
    bool is_ahead = o->due > MODEL_MS(m);
    struct behind behind;

    s->has_cursor = true;
    if (!is_forced && !is_ahead && keeps_out(m, s, &behind)) {
        counts.skipped++;
        s->skipped++;
        return false;
    }
    if (!is_forced && !is_ahead)
        make_way(m, s, &behind);
    (void)model_add_one(m, s->queue, &job, s->payload, added);
    counts.added++;
    if (!is_forced && is_ahead)
        put_ahead(s, added->id);
    else if (!is_forced)
        memcpy(s->job_id, added->id, sizeof(s->job_id));
    s->runs++;
    return true;
}

void model_schedule_run(struct model *m, const char *name, int64_t at, int64_t occurrence,
                        bool is_forced, struct buf *out)
{
    struct model_schedule *s = need(m, name, out);
    int64_t due = at > MODEL_MS(m) ? at : MODEL_MS(m);
    struct occurrence o = {occurrence != MODEL_NONE ? occurrence : due, due, 0};
    struct model_added added = {"", "skipped", 0};
    struct behind behind;
    const char *refusal;

    if (s == NULL)
        return;
    refusal =
        !is_forced && due <= MODEL_MS(m) && keeps_out(m, s, &behind) ? NULL : job_refusal(m, s);
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    (void)start(m, s, &o, is_forced, &added);
    waiters_hand_on(m);
    buf_puts(out, "[ ");
    out_text(out, added.id);
    out_text(out, added.word);
    out_int(out, added.due);
    buf_puts(out, "] ");
}

/* ---- fire */

static const char *judge(const struct model *m, const struct model_fire *f,
                         const struct model_schedule *s)
{
    bool is_planned = s->planned == s->revision;
    int64_t known = is_planned ? s->next : MODEL_NONE;

    if (f->revision != s->revision || f->next != known)
        return "moved";
    if (f->times == 0 && f->missed == 0 && known != MODEL_NONE && strcmp(f->zones, s->zones) <= 0)
        return "moved";
    for (size_t i = 0; i < f->times; i++) {
        if (f->at[i] > MODEL_MS(m))
            return "early";
        if (is_planned && s->last != MODEL_NONE && f->at[i] <= s->last)
            return "moved";
    }
    return "fired";
}

static void note_failure(struct model *m, const struct model_schedule *s, const char *code)
{
    const struct occurrence none = {0, 0, 0};
    char note[200], text[MODEL_REFUSAL], lock[MODEL_NAME];
    struct model_options o = options_of(m, s, &none, lock);

    model_refusal_text(m, s->queue, &o, code, s->payload.n, text);
    (void)snprintf(note, sizeof(note), "bad-schedule:%s %s %s", s->name, code, text);
    model_put_note(m, note);
}

/* Returns whether the jobs were not refused. */
static bool add_jobs(struct model *m, const struct model_fire *f, struct model_schedule *s)
{
    struct behind behind;
    const char *refusal = keeps_out(m, s, &behind) ? NULL : job_refusal(m, s);
    struct model_added added;

    if (refusal != NULL) {
        note_failure(m, s, refusal);
        return false;
    }
    for (size_t i = 0; i < f->times; i++) {
        struct occurrence o = {f->at[i], f->at[i], f->day[i]};

        if (start(m, s, &o, false, &added))
            mark_day(m, s->name, o.day, ROW_DUE);
    }
    return true;
}

static const char *fire(struct model *m, const struct model_fire *f, struct model_schedule *s)
{
    const char *status = "fired";

    if (f->times > 0 && is_paused(m, s)) {
        s->skipped += (int64_t)f->times;
    } else if (f->times > 0 && !add_jobs(m, f, s)) {
        status = "failed";
        counts.failed++;
        s->missed += (int64_t)f->times;
        for (size_t i = 0; i < f->times; i++)
            mark_day(m, s->name, f->day[i], ROW_MISSED);
    }
    for (size_t i = 0; i < f->missed_days; i++)
        mark_day(m, s->name, f->missed_day[i], ROW_MISSED);
    counts.missed += (uint64_t)f->missed;
    s->has_cursor = true;
    s->missed += f->missed;
    s->planned = s->revision;
    (void)snprintf(s->zones, sizeof(s->zones), "%s", f->zones);
    s->last = f->times > 0 ? f->at[f->times - 1] : s->last;
    s->next = f->new_next;
    return status;
}

static void out_number_or_dash(struct buf *out, int64_t n)
{
    if (n == MODEL_NONE)
        out_text(out, "-");
    else
        out_number(out, n);
}

void model_fire(struct model *m, int64_t epoch, size_t n, const struct model_fire *item,
                struct buf *out)
{
    if (strcmp(model_status(m, epoch), "ok") != 0) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    for (size_t i = 0; i < n; i++) {
        struct model_schedule *s = schedule_of(m, item[i].name);
        const char *answer = s->is_there ? judge(m, &item[i], s) : "gone";

        counts.moved += strcmp(answer, "moved") == 0;
        if (strcmp(answer, "fired") == 0)
            answer = fire(m, &item[i], s);
        buf_puts(out, "[ ");
        out_text(out, answer);
        out_number_or_dash(out, s->is_there ? s->revision : MODEL_NONE);
        out_number_or_dash(out, s->last);
        out_number_or_dash(out, s->is_there && s->planned == s->revision ? s->next : MODEL_NONE);
        out_text(out, s->zones[0] != '\0' ? s->zones : "-");
        buf_puts(out, "] ");
    }
    waiters_hand_on(m);
    buf_puts(out, "] ");
}

/* ---- shown */

static void reply_row(const struct model *m, const struct model_schedule *s, bool with_payload,
                      struct buf *out)
{
    buf_puts(out, "[ ");
    out_named_text(out, "schedule", s->name);
    out_named_number(out, "revision", s->revision);
    out_named_text(out, "when", s->when);
    out_named_text(out, "tz", s->tz);
    out_named_text(out, "queue", m->queue[s->queue].name);
    out_named_text(out, "overlap", s->overlap);
    out_named_text(out, "catch_up", s->catch_up);
    out_named_number(out, "catch_up_window_ms", s->window_ms);
    out_named_number(out, "splay_ms", s->splay_ms);
    out_named_number(out, "from_ms", s->from_ms);
    out_named_number(out, "until_ms", s->until_ms);
    out_named_text(out, "options", s->options);
    out_named_text(out, "origin", s->file_ms != MODEL_NONE ? "file" : "call");
    out_named_text(out, "paused", is_paused(m, s) ? s->paused : "");
    out_named_number(out, "last_ms", s->last);
    out_named_text(out, "zones", s->zones);
    out_named_text(out, "job", s->job_id);
    out_named_number(out, "runs", s->runs);
    out_named_number(out, "skipped", s->skipped);
    out_named_number(out, "missed", s->missed);
    out_named_number(out, "next_ms", s->planned == s->revision ? s->next : MODEL_NONE);
    out_named_number(out, "payload_bytes", (int64_t)s->payload.n);
    if (with_payload && s->payload.n > 0) {
        out_text(out, "payload");
        out_bytes(out, s->payload.p, s->payload.n);
    }
    buf_puts(out, "] ");
}

void model_schedule_show(struct model *m, const char *name, struct buf *out)
{
    const struct model_schedule *s = need(m, name, out);

    if (s != NULL)
        reply_row(m, s, true, out);
}

void model_schedules(struct model *m, bool is_page, struct buf *out)
{
    buf_puts(out, "[ ");
    if (is_page) {
        out_int(out, m->now_us);
        if (m->schedules_changed > 0)
            out_number(out, m->schedules_changed);
        else
            out_text(out, "");
        out_text(out, "0");
    }
    for (int i = 0; i < MODEL_SCHEDULES; i++)
        if (m->schedule[i].is_there)
            reply_row(m, &m->schedule[i], false, out);
    buf_puts(out, "] ");
}

void model_schedule_audit(struct model *m, bool of_cursors, struct buf *out)
{
    int64_t n = 0;

    for (int i = 0; i < MODEL_SCHEDULES; i++)
        n += of_cursors ? m->schedule[i].has_cursor : m->schedule[i].is_there;
    buf_puts(out, "[ s0: ");
    out_int(out, n);
    buf_puts(out, "] ");
}

/* ---- keys */

static void add_number(struct buf *out, const char *name, int64_t n, const char *between)
{
    if (n != MODEL_NONE)
        buf_printf(out, "%s=%lld%s", name, (long long)n, between);
}

static void render_definition(const struct model *m, const struct model_schedule *s,
                              struct rows *rows)
{
    struct buf text = BUF_INIT;

    buf_printf(&text, "revision=%lld\nwhen=%s\ntz=%s\nqueue=%s\noverlap=%s\ncatch_up=%s\n",
               (long long)s->revision, s->when, s->tz, m->queue[s->queue].name, s->overlap,
               s->catch_up);
    add_number(&text, "catch_up_window", s->window_ms, "\n");
    add_number(&text, "splay", s->splay_ms, "\n");
    add_number(&text, "from", s->from_ms, "\n");
    add_number(&text, "until", s->until_ms, "\n");
    if (s->options[0] != '\0')
        buf_printf(&text, "options=%s\n", s->options);
    buf_puts(&text, "\n");
    if (s->payload.n > 0)
        buf_add(&text, s->payload.p, s->payload.n);
    rows_put(rows, "schedules", "hash", s->name, text.data, text.len);
    rows_index(rows, "schedule", s->name);
    buf_done(&text);
}

static void render_cursor(const struct model_schedule *s, struct rows *rows)
{
    struct buf text = BUF_INIT;

    add_number(&text, "revision", s->planned, " ");
    add_number(&text, "last", s->last, " ");
    add_number(&text, "next", s->next, " ");
    if (s->zones[0] != '\0')
        buf_printf(&text, "zones=%s ", s->zones);
    if (s->job_id[0] != '\0')
        buf_printf(&text, "job=%s ", s->job_id);
    for (int i = 0; i < MODEL_AHEAD && s->ahead[i][0] != '\0'; i++)
        buf_printf(&text, "%s%s", i == 0 ? "ahead=" : ",", s->ahead[i]);
    if (s->ahead[0][0] != '\0')
        buf_puts(&text, " ");
    buf_printf(&text, "runs=%lld skipped=%lld missed=%lld", (long long)s->runs,
               (long long)s->skipped, (long long)s->missed);
    rows_text(rows, "cursors", "hash", s->name, buf_str(&text));
    buf_done(&text);
}

static void render_calendar(const struct model *m, const struct model_calendar *c,
                            struct rows *rows)
{
    char key[64], full[96];

    (void)snprintf(key, sizeof(key), "cal:%s:%d", m->schedule[c->schedule].name, c->year);
    (void)snprintf(full, sizeof(full), MODEL_ROOT ":%s", key);
    rows_put(rows, key, "string", NULL, (const char *)c->bits, c->n);
    rows_number(rows, "!expires", "key", full, c->until_ms);
}

void schedules_render(const struct model *m, struct rows *rows)
{
    for (int i = 0; i < MODEL_SCHEDULES; i++) {
        const struct model_schedule *s = &m->schedule[i];

        if (s->is_there)
            render_definition(m, s, rows);
        if (s->has_cursor)
            render_cursor(s, rows);
        if (s->file_ms != MODEL_NONE)
            rows_number(rows, "schedule:file", "zset", s->name, s->file_ms);
        if (s->gone_ms != MODEL_NONE)
            rows_number(rows, "schedule:gone", "zset", s->name, s->gone_ms);
        if (s->paused[0] != '\0')
            rows_text(rows, "schedule:paused", "hash", s->name, s->paused);
    }
    for (int i = 0; i < MODEL_CALENDARS; i++)
        if (m->calendar[i].is_there)
            render_calendar(m, &m->calendar[i], rows);
    if (m->schedules_changed > 0)
        rows_number(rows, "schedule:state", "hash", "changed", m->schedules_changed);
}
