/*
 * The calls of workers in the model, except for the sync: enter, beat, reconcile, reap, leave,
 * quiet, housekeeping and lists.
 */
#include "model.h"

#include "model_fair.h"
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lua/lua_lib.h"

#define REAP_MAX 128
#define SILENT_MS 12000
#define REAP_LOOK 1024
#define TIDY_ROWS 100
#define TIDY_TIMERS 16
#define TRIM_ROWS 1000

/* Copy a short text; NULL becomes "". */
#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", (from) != NULL ? (from) : "")

/* ---- room */

/* How many jobs of a queue does a worker run? */
static int64_t running_of(const struct model *m, const struct model_worker *w, int q)
{
    int64_t n = 0;

    for (size_t i = 0; i < m->jobs; i++) {
        const struct model_job *j = &m->job[i];

        n += j->state == JOB_RUNNING && j->score == w->epoch && j->queue == q;
    }
    return n;
}

/* The number after "mail=" in "mail=4,web=2"; -1: there is none. */
static int64_t limit_in(const struct model_worker *w, const char *queue)
{
    char text[sizeof(w->limits)], *save = NULL;

    memcpy(text, w->limits, sizeof(text));
    for (char *at = strtok_r(text, ",", &save); at != NULL; at = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(at, '=');

        if (eq != NULL && strncmp(at, queue, (size_t)(eq - at)) == 0 &&
            strlen(queue) == (size_t)(eq - at))
            return atoll(eq + 1);
    }
    return -1;
}

static bool serves(const struct model_worker *w, const char *queue)
{
    char list[sizeof(w->queues) + 2], name[MODEL_NAME];

    (void)snprintf(list, sizeof(list), ",%s,", w->queues);
    (void)snprintf(name, sizeof(name), ",%s,", queue);
    return strstr(list, name) != NULL;
}

static bool has_room(const struct model *m, const struct model_worker *w, int q)
{
    int64_t limit = limit_in(w, m->queue[q].name);

    if (!w->is_there || w->is_dead || w->quiet == 1 || w->places[0] == '\0' ||
        strcmp(w->room, "0") == 0 || MODEL_MS(m) - w->beat_ms >= SILENT_MS)
        return false;
    return model_count_running(m, w->epoch) < atoll(w->places) &&
           (limit < 0 || running_of(m, w, q) < limit);
}

bool workers_have_room(struct model *m, int q)
{
    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];

        bool is_full = w->epoch == m->gates->syncer && m->gates->room[q] == 0;

        if (!is_full && serves(w, m->queue[q].name) && has_room(m, w, q))
            return true;
    }
    return false;
}

/* ---- register */

/* Does the job wait since its worker was reaped while it ran this start? */
static bool was_reaped(const struct model_job *j, int64_t start, int64_t worker)
{
    long long of, died;

    return j->error != NULL &&
           sscanf(j->error, "failed %*d %*d %lld worker %lld died while it ran", &of, &died) == 2 &&
           of == start && died == worker;
}

static const char *adopt(struct model *m, const struct model_held *h, int64_t epoch, int64_t old)
{
    struct model_job *j = model_find(m, h->id);

    if (j == NULL || j->state == JOB_DEAD || j->state == JOB_DONE)
        return "gone";
    if (j->state == JOB_RUNNING) {
        if (j->starts != h->start || (j->score != old && model_worker(m, j->score) != NULL))
            return "taken";
        j->score = epoch;
        return "adopted";
    }
    /* A call that Redis lost may have started it, or it waits since its worker was reaped. */
    if (j->starts + 1 != h->start && !(j->starts == h->start && was_reaped(j, h->start, old)))
        return "taken";
    if (!waiters_regain(m, j))
        return "taken";
    fair_leave(m, j);
    j->attempts += h->start - j->starts;
    j->attempts = j->attempts < 1 ? 1 : j->attempts;
    j->starts = h->start;
    j->tries_due = j->has_tries ? j->tries_due : MODEL_MS(m);
    j->has_tries = true;
    j->state = JOB_RUNNING;
    j->score = epoch;
    return "adopted";
}

static bool is_named(const struct model_job *j, size_t n, const struct model_held *held)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(held[i].id, j->id) == 0)
            return true;
    return false;
}

/* Release the jobs of this epoch that nobody named. Returns how many. */
static int64_t release_unheard(struct model *m, int64_t epoch, size_t n,
                               const struct model_held *held)
{
    struct model_job *freed[MODEL_JOBS];
    int64_t released = 0;

    for (size_t i = 0; i < m->jobs; i++) {
        struct model_job *j = &m->job[i];

        if (j->state != JOB_RUNNING || j->score != epoch || is_named(j, n, held))
            continue;
        model_release(m, j, 0);
        freed[released++] = j;
    }
    for (int64_t i = 0; i < released; i++)
        gates_let_go(m, freed[i], false);
    return released;
}

/* Remove earlier registrations of this process, and list the other workers. */
static void reply_peers(struct model *m, const char *inst, struct buf *out)
{
    buf_puts(out, "[ ");
    for (size_t i = 0; i < m->workers; i++) {
        struct model_worker *w = &m->worker[i];

        if (w->is_there && !w->is_dead && strcmp(w->inst, inst) == 0) {
            (void)worker_leave_gate(m, w);
            w->is_there = false;
        }
        if (!w->is_there)
            continue;
        out_number(out, w->epoch);
        if (w->is_dead)
            out_text(out, "dead");
        else
            out_number(out, w->counter);
        out_text(out, w->host);
        for (int k = 0; k < 4; k++)
            out_text(out, "");
    }
    buf_puts(out, "] ");
}

static void set_served(struct model *m, struct model_worker *w, const char *queues)
{
    COPY(w->queues, queues);
    for (int q = 0; q < MODEL_QUEUES; q++)
        m->queue[q].is_known |= serves(w, m->queue[q].name);
}

static void enter(struct model *m, const struct model_entry *e, int64_t epoch)
{
    struct model_worker *w = &m->worker[m->workers++];

    if (m->workers > MODEL_WORKERS)
        abort();
    memset(w, 0, sizeof(*w));
    w->is_there = true;
    w->epoch = epoch;
    w->counter = w->link = 1;
    w->seq = e->seq;
    w->started = w->beat_ms = MODEL_MS(m);
    w->quiet = -1;
    COPY(w->inst, e->inst);
    COPY(w->host, e->host);
    set_served(m, w, e->queues);
    COPY(w->places, e->places);
    COPY(w->limits, e->limits);
    COPY(w->room, e->room);
    if (e->max_payload != MODEL_NONE)
        m->max_payload = e->max_payload;
    if (e->limited_queue >= 0)
        m->queue[e->limited_queue].max_payload = e->queue_max_payload;
}

void model_register(struct model *m, const struct model_entry *e, struct buf *out)
{
    struct buf peers = BUF_INIT;
    bool is_rewound = m->clock < e->seen;
    const struct model_worker *was;
    int64_t epoch;

    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];

        if (w->is_there && !w->is_dead && strcmp(w->inst, e->inst) == 0 && w->seq >= e->seq) {
            out_refusal(out, "ELATER_WORKER");
            return;
        }
    }
    reply_peers(m, e->inst, &peers);
    epoch = model_tick(m, 1, e->seen);
    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    out_number(out, epoch);
    out_int(out, 1);
    out_int(out, is_rewound);
    buf_puts(out, "[ ");
    for (size_t i = 0; i < e->held; i++)
        out_text(out, adopt(m, &e->job[i], epoch, e->old));
    buf_puts(out, "] ");
    buf_puts(out, buf_str(&peers));
    buf_puts(out, "] ");
    buf_done(&peers);
    was = model_worker(m, e->old);
    if (e->old != 0 && (was == NULL || !was->is_dead))
        (void)release_unheard(m, e->old, e->held, e->job);
    waiters_hand_on(m);
    enter(m, e, epoch);
}

/* ---- beat, leave, quiet, workers */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Epochs that hold jobs without being a worker. */
static void reply_strangers(struct model *m, struct buf *out)
{
    int64_t epochs[MODEL_JOBS];
    size_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].state == JOB_RUNNING && model_worker(m, m->job[i].score) == NULL)
            epochs[n++] = m->job[i].score;
    if (n > 1)
        qsort(epochs, n, sizeof(epochs[0]), by_number);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && epochs[i] == epochs[i - 1])
            continue;
        out_number(out, epochs[i]);
        out_text(out, "?");
    }
}

void model_beat(struct model *m, int64_t epoch, const char *queues, struct buf *out)
{
    struct model_worker *w = model_worker(m, epoch);

    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    out_text(out, model_status(m, epoch));
    if (w == NULL || w->is_dead) {
        buf_puts(out, "i0 i0 i0 [ ] ] ");
        return;
    }
    w->counter++;
    w->beat_ms = MODEL_MS(m);
    if (queues != NULL)
        set_served(m, w, queues);
    out_int(out, w->link);
    out_int(out, model_count_running(m, epoch));
    out_int(out, w->quiet > 0);
    buf_puts(out, "[ ");
    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *other = &m->worker[i];

        if (!other->is_there || other == w)
            continue;
        out_number(out, other->epoch);
        if (other->is_dead)
            out_text(out, "dead");
        else
            out_number(out, other->counter);
    }
    reply_strangers(m, out);
    buf_puts(out, "] ");
    if (m->schedules_changed > 0)
        out_number(out, m->schedules_changed);
    else
        out_text(out, "");
    out_int(out, lua_lib_number);
    buf_puts(out, "] ");
}

void model_leave(struct model *m, int64_t epoch, struct buf *out)
{
    struct model_worker *w = model_worker(m, epoch);

    if (w == NULL || w->is_dead) {
        out_text(out, "unknown");
    } else if (model_count_running(m, epoch) > 0) {
        out_text(out, "holds");
    } else {
        (void)worker_leave_gate(m, w);
        waiters_hand_on(m);
        w->is_there = false;
        out_text(out, "left");
    }
}

void model_quiet(struct model *m, int64_t epoch, bool on, struct buf *out)
{
    int64_t told = 0;

    for (size_t i = 0; i < m->workers; i++) {
        struct model_worker *w = &m->worker[i];

        if (w->is_there && !w->is_dead && (epoch == 0 || w->epoch == epoch)) {
            w->quiet = on;
            told++;
        }
    }
    if (told == 0) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    model_wake(m, "!beat");
    out_int(out, told);
}

/* Of each queue the first suspect that is due; the longest due one first. */
void model_suspects(struct model *m, struct buf *out)
{
    struct model_job *row[MODEL_JOBS];
    const struct model_job *first[MODEL_QUEUES];
    int64_t now = MODEL_MS(m), due[MODEL_QUEUES];
    int n = 0;

    for (int q = 0; q < MODEL_QUEUES; q++) {
        size_t there = model_jobs(m, q, JOB_WAITING, 10, row), k = 0;
        int at = n;

        if (there == 0 || row[0]->score > now)
            continue;
        while (k < there && row[k]->score <= now)
            k++;
        for (; at > 0 && (first[at - 1]->score > row[0]->score ||
                          (first[at - 1]->score == row[0]->score &&
                           strcmp(m->queue[first[at - 1]->queue].name, m->queue[q].name) > 0));
             at--) {
            first[at] = first[at - 1];
            due[at] = due[at - 1];
        }
        first[at] = row[0];
        due[at] = (int64_t)k;
        n++;
    }
    buf_puts(out, "[ ");
    out_int(out, now);
    for (int i = 0; i < n; i++) {
        buf_puts(out, "[ ");
        out_text(out, first[i]->id);
        out_text(out, m->queue[first[i]->queue].name);
        out_int(out, first[i]->score);
        out_int(out, first[i]->crashes);
        out_int(out, due[i]);
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
}

void model_workers(struct model *m, struct buf *out)
{
    buf_puts(out, "[ ");
    out_int(out, MODEL_MS(m));
    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];

        if (!w->is_there)
            continue;
        buf_puts(out, "[ ");
        out_number(out, w->epoch);
        if (w->is_dead)
            out_text(out, "dead");
        else
            out_number(out, w->counter);
        out_int(out, model_count_running(m, w->epoch));
        out_text(out, w->host);
        out_text(out, "");
        out_text(out, "");
        out_number(out, w->started);
        out_text(out, w->queues);
        out_text(out, w->quiet > 0 ? "1" : "0");
        out_text(out, "");
        out_text(out, "");
        out_text(out, w->places);
        out_text(out, "");
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
}

/* ---- reconcile */

void model_reconcile(struct model *m, int64_t epoch, int64_t link, size_t n,
                     const struct model_held *held, int64_t seen, struct buf *out)
{
    struct model_worker *w = model_worker(m, epoch);
    const char *status = model_status(m, epoch);
    struct model_held *kept = mem_new((n + 1) * sizeof(*kept));
    struct buf lost = BUF_INIT;
    bool is_rewound = false;
    size_t keeps = 0;

    if (strcmp(status, "ok") == 0 && w->link != link)
        status = "link";
    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    out_text(out, status);
    if (strcmp(status, "ok") != 0) {
        buf_puts(out, "i0 i0 [ ] i0 ] ");
        free(kept);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct model_job *j = model_find(m, held[i].id);

        if (j != NULL && j->state == JOB_RUNNING && j->score == epoch && j->starts == held[i].start)
            kept[keeps++] = held[i];
        else
            out_text(&lost, held[i].id);
    }
    is_rewound = m->clock < seen;
    m->clock = is_rewound ? seen : m->clock;
    out_int(out, ++w->link);
    out_int(out, release_unheard(m, epoch, keeps, kept));
    waiters_hand_on(m);
    buf_printf(out, "[ %s] ", buf_str(&lost));
    out_int(out, is_rewound);
    buf_puts(out, "] ");
    buf_done(&lost);
    free(kept);
}

/* ---- reap */

static void recover(struct model *m, struct model_job *j, int64_t victim, int64_t crashes,
                    int64_t dead_max)
{
    int64_t now = MODEL_MS(m);
    char text[96], why[96];

    if (j->corrupt != NULL) {
        model_bury_corrupt(m, j, -1);
        return;
    }
    if (j->cancel_ms != MODEL_NONE) {
        model_end_cancelled(
            m, j, model_outcome("cancelled", 0, now, j->starts, "cancelled; its worker died", ""));
        return;
    }
    if (model_end_replaced(m, j, 0, ""))
        return;
    model_set(&j->progress, NULL);
    j->crashes++;
    j->tries_due = j->has_tries ? j->tries_due : now;
    j->has_tries = true;
    (void)snprintf(text, sizeof(text), "%sworker %lld died while it ran (crash %lld)",
                   j->crashes >= crashes ? "poison pill: " : "", (long long)victim,
                   (long long)j->crashes);
    (void)snprintf(why, sizeof(why), "worker %lld died while it ran (crash %lld)",
                   (long long)victim, (long long)j->crashes);
    model_fail(m, j, victim, 0, why);
    if (j->crashes >= crashes) {
        model_bury(m, j, model_outcome("dead", 0, now, j->starts, text, ""), dead_max);
        return;
    }
    model_set(&j->error, model_outcome("failed", 0, now, j->starts, text, ""));
    model_enqueue(m, j, j->tries_due);
}

static void reply_reap(struct buf *out, const char *status, int64_t moved)
{
    buf_puts(out, "[ ");
    out_text(out, status);
    out_int(out, moved);
    buf_puts(out, "] ");
}

void model_reap(struct model *m, int64_t epoch, int64_t victim, int64_t counter, int64_t crashes,
                int64_t dead_max, struct buf *out)
{
    struct model_worker *w = model_worker(m, victim);
    int64_t held = model_count_running(m, victim), moved = 0;
    struct model_job *freed[REAP_MAX];

    if (strcmp(model_status(m, epoch), "ok") != 0) {
        reply_reap(out, model_status(m, epoch), 0);
        return;
    }
    if (counter != MODEL_NONE && w == NULL) {
        reply_reap(out, "clear", 0);
        return;
    }
    if (w != NULL && !w->is_dead) {
        if (counter == MODEL_NONE || w->counter != counter) {
            reply_reap(out, "alive", 0);
            return;
        }
        w->is_dead = true;
    }
    held = held > REAP_LOOK ? REAP_LOOK : held;
    m->moved = 0;
    for (size_t i = 0; i < m->jobs && moved < REAP_MAX && !model_is_spent(m); i++) {
        struct model_job *j = &m->job[i];

        if (j->state != JOB_RUNNING || j->score != victim)
            continue;
        m->moved += model_record_bytes(j);
        recover(m, j, victim, crashes, dead_max);
        freed[moved++] = j;
    }
    for (int64_t i = 0; i < moved; i++)
        gates_let_go(m, freed[i], false);
    if (moved < REAP_MAX && moved == held)
        (void)worker_leave_gate(m, w);
    waiters_hand_on(m);
    if (moved == REAP_MAX || moved < held) {
        reply_reap(out, "more", moved);
        return;
    }
    if (w != NULL)
        w->is_there = false;
    reply_reap(out, "clear", moved);
}

/* ---- tidy */

static int64_t bury_never(struct model *m, int q)
{
    struct model_raw *row[MODEL_RAWS];
    size_t n = model_raws(m, q, row), i = 0;
    int64_t buried = 0;

    while (i < n && row[i]->score <= 1e14)
        i++;
    for (; i < n && buried < TIDY_ROWS; i++) {
        struct model_job *j = model_new_job(m, model_tick(m, 1, 0), q, row[i]->member);
        char score[OUT_SCORE_BYTES], text[96];

        out_score_text(row[i]->score, score);
        (void)snprintf(text, sizeof(text), "its score %s is not finite or after the year 5000",
                       score);
        row[i]->is_there = false;
        model_bury(m, j, model_outcome("dead", 0, MODEL_MS(m), 0, text, ""), 10000);
        buried++;
    }
    return buried;
}

static void repair_marks(struct model *m, int q)
{
    struct model_job *row[MODEL_JOBS];

    for (int p = 0; p <= 10; p++)
        if (p != 5 && model_jobs(m, q, JOB_WAITING, p, row) > 0)
            model_mark(m, q, p == 10 ? 's' : (char)('0' + p));
}

static bool is_served(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->workers; i++) {
        char list[80], wanted[32];

        (void)snprintf(list, sizeof(list), ",%s,", m->worker[i].queues);
        (void)snprintf(wanted, sizeof(wanted), ",%s,", name);
        if (m->worker[i].is_there && !m->worker[i].is_dead && strstr(list, wanted) != NULL)
            return true;
    }
    return false;
}

/* The due queues by the due time of their first job, then name. Returns how many. */
static int due_queues(const struct model *m, int *order)
{
    int n = 0;

    for (int q = 0; q < MODEL_QUEUES; q++) {
        const struct model_queue *queue = &m->queue[q];
        int i = n;

        if (!queue->has_head || queue->head > MODEL_MS(m))
            continue;
        for (; i > 0; i--) {
            const struct model_queue *before = &m->queue[order[i - 1]];

            if (before->head < queue->head ||
                (before->head == queue->head && strcmp(before->name, queue->name) < 0))
                break;
            order[i] = order[i - 1];
        }
        order[i] = q;
        n++;
    }
    return n;
}

/* Put the head of a queue right that nobody serves. A granted job keeps it as it is. */
static void mend_head(struct model *m, int q)
{
    struct model_queue *queue = &m->queue[q];
    struct model_raw *raw[MODEL_RAWS];
    int64_t first = INT64_MAX;

    if (strchr(queue->marks, 'g') != NULL)
        return;
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].state == JOB_WAITING && m->job[i].queue == q && m->job[i].pin[0] == '\0' &&
            m->job[i].score < first)
            first = m->job[i].score;
    if (model_raws(m, q, raw) > 0 && model_due(raw[0]->score) < first)
        first = model_due(raw[0]->score);
    queue->has_head = first < INT64_MAX;
    if (queue->has_head && first > MODEL_MS(m))
        queue->head = first;
}

static void unserved(struct model *m, struct buf *out)
{
    int order[MODEL_QUEUES], n = due_queues(m, order);
    char note[80];

    for (int i = 0; i < n; i++) {
        struct model_queue *queue = &m->queue[order[i]];

        if (is_served(m, queue->name))
            continue;
        mend_head(m, order[i]);
        if (!queue->has_head || queue->head > MODEL_MS(m) || model_paused(m, order[i]) >= 0)
            continue;
        if (queue->unserved == MODEL_NONE)
            queue->unserved = MODEL_MS(m);
        if (MODEL_MS(m) - queue->unserved < 60000)
            continue;
        (void)snprintf(note, sizeof(note), "unserved-queue:%s", queue->name);
        model_put_note(m, note);
        out_text(out, queue->name);
    }
    for (int q = 0; q < MODEL_QUEUES; q++) {
        struct model_queue *queue = &m->queue[q];

        if (queue->unserved == MODEL_NONE ||
            (!is_served(m, queue->name) && queue->has_head && queue->head <= MODEL_MS(m)))
            continue;
        queue->unserved = MODEL_NONE;
        (void)snprintf(note, sizeof(note), "unserved-queue:%s", queue->name);
        model_drop_note(m, note);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* If the clock was set back, timers may lie in the future: check all gates and grants. */
static void judge_gates(struct model *m)
{
    const char *what[TIMERS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (m->gates->timer[i].is_there)
            what[n++] = m->gates->timer[i].what;
    if (n > TIDY_TIMERS)
        abort();
    if (n > 1)
        qsort((void *)what, n, sizeof(what[0]), by_text);
    for (size_t i = 0; i < n; i++)
        if (strncmp(what[i], "gate:", 5) == 0)
            gate_touch(m, gate_of(m, what[i] + 5));
        else if (strncmp(what[i], "granted:", 8) == 0)
            waiters_arm(m, "granted", what[i] + 8, MODEL_MS(m));
    waiters_hand_on(m);
}

void model_tidy(struct model *m, int64_t epoch, const int64_t *keep, struct buf *out)
{
    int64_t now = MODEL_MS(m), buried = 0;
    struct model_pin *pin[MODEL_PINS];

    if (strcmp(model_status(m, epoch), "ok") != 0) {
        buf_puts(out, "[ [ ] i0 ] ");
        return;
    }
    for (int q = 0; q < MODEL_QUEUES; q++) {
        if (keep[q] == MODEL_NONE)
            continue;
        model_trim(m, q, JOB_DONE, now, TRIM_ROWS);
        model_trim(m, q, JOB_DEAD, now - keep[q], TRIM_ROWS);
        repair_marks(m, q);
        if (pins_sorted(m, q, pin) > 0)
            model_mark(m, q, 'p');
        fair_tidy(m, q);
        buried += bury_never(m, q);
    }
    pins_tidy(m);
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].await_ms < now)
            m->job[i].await_ms = MODEL_NONE;
    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].seen < now - 600000)
            m->note[i].is_there = false;
    batches_tidy(m);
    schedules_tidy(m);
    bulks_tidy(m);
    judge_gates(m);
    series_tidy(m);
    buf_puts(out, "[ [ ");
    unserved(m, out);
    buf_puts(out, "] ");
    out_int(out, buried);
    if (bulks_active(m) > 0)
        out_int(out, (int64_t)bulks_active(m));
    buf_puts(out, "] ");
}

static bool has_jobs(struct model *m, int q, bool running)
{
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    struct model_pin *pin[MODEL_PINS];
    size_t n = model_raws(m, q, raw);

    for (int state = JOB_WAITING; state <= JOB_DONE; state++)
        if (running || state != JOB_RUNNING)
            n += model_jobs(m, q, (enum model_state)state, -1, row);
    return n > 0 || pins_sorted(m, q, pin) > 0;
}

void model_known_queue(struct model *m, int q, struct buf *out)
{
    bool served = is_served(m, m->queue[q].name);

    buf_puts(out, "[ ");
    out_int(out, served || m->queue[q].is_known || has_jobs(m, q, false));
    out_int(out, served);
    buf_puts(out, "] ");
}

void model_forget_queue(struct model *m, int q, struct buf *out)
{
    struct model_queue *queue = &m->queue[q];
    char note[80];

    if (has_jobs(m, q, true) || is_served(m, queue->name)) {
        out_refusal(out, "ELATER_STATE");
        return;
    }
    (void)snprintf(note, sizeof(note), "unserved-queue:%s", queue->name);
    model_drop_note(m, note);
    *queue = (struct model_queue){
        .name = queue->name, .unserved = MODEL_NONE, .max_payload = MODEL_NONE};
    topics_forget_file(m, q);
    fair_forget(m, q);
    out_text(out, "forgotten");
}

void model_note(struct model *m, const char *kind, const char *name, struct buf *out)
{
    char note[80];

    (void)snprintf(note, sizeof(note), "%s:%s", kind, name);
    model_put_note(m, note);
    out_text(out, "noted");
}

void model_note_raw(struct model *m, int q, struct buf *out)
{
    struct model_raw *row[MODEL_RAWS];

    if (model_raws(m, q, row) > 0) {
        int64_t due = model_due(row[0]->score), now = MODEL_MS(m);

        model_lower_head(m, q, due > now ? due : now);
    }
    out_text(out, "noted");
}
