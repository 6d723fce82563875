#include "model.h"

#include "model_fair.h"
#include "model_gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LATEST INT64_C(100000000000000)

static const char *const NAMES[MODEL_QUEUES] = {"mail", "sms", "Q-7_x", "0"};

const char *model_queue_name(int q)
{
    return NAMES[q];
}

/* ---- replies */

void out_int(struct buf *out, int64_t n)
{
    buf_printf(out, "i%lld ", (long long)n);
}

void out_bytes(struct buf *out, const char *p, size_t n)
{
    buf_printf(out, "s%zu:", n);
    if (n > 0)
        buf_add(out, p, n);
    buf_puts(out, " ");
}

void out_text(struct buf *out, const char *s)
{
    out_bytes(out, s, s != NULL ? strlen(s) : 0);
}

void out_number(struct buf *out, int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    out_text(out, text);
}

void (*out_score_text)(double score, char text[OUT_SCORE_BYTES]);

void out_score(struct buf *out, double score)
{
    char text[OUT_SCORE_BYTES];

    if (score == floor(score) && fabs(score) < 1e15)
        (void)snprintf(text, sizeof(text), "%.17g", score);
    else
        out_score_text(score, text);
    out_text(out, text);
}

void out_refusal(struct buf *out, const char *code)
{
    buf_printf(out, "!%s ", code);
}

void out_named_number(struct buf *out, const char *name, int64_t n)
{
    if (n == MODEL_NONE)
        return;
    out_text(out, name);
    out_number(out, n);
}

void out_named_text(struct buf *out, const char *name, const char *s)
{
    if (s == NULL || s[0] == '\0')
        return;
    out_text(out, name);
    out_text(out, s);
}

/* ---- the whole */

static void free_job(struct model_job *j)
{
    free(j->progress);
    free(j->error);
    free(j->failures);
    free(j->caused);
    free(j->checkpoint);
    free(j->result);
    free(j->holds);
}

void model_set_time(struct model *m, int64_t now_us)
{
    int64_t was_us = m->now_us;

    m->now_us = now_us;
    if (m->latest_us < now_us)
        m->latest_us = now_us;
    for (size_t i = 0; i < m->tokens; i++)
        if (m->token[i].expire_ms < MODEL_MS(m))
            m->token[i].expire_ms = MODEL_NONE;
    schedules_set_time(m);
    gates_set_time(m, was_us);
    fair_set_time(m);
}

void model_reset(struct model *m, int64_t now_us)
{
    struct model_gates *gates = m->gates;
    struct buf heard = m->heard;

    for (size_t i = 0; i < m->jobs; i++)
        free_job(&m->job[i]);
    memset(m, 0, offsetof(struct model, job));
    m->jobs = m->raws = m->workers = m->tokens = m->notes = m->bulks = 0;
    for (size_t i = 0; i < MODEL_BATCHES; i++)
        m->batch[i].is_there = false;
    buf_clear(&heard);
    m->heard = heard;
    m->heard_before = 0;
    m->gates = gates;
    gates_reset(m);
    schedules_reset(m);
    m->now_us = now_us;
    model_set_time(m, now_us);
    m->max_payload = MODEL_NONE;
    for (int q = 0; q < MODEL_QUEUES; q++) {
        m->queue[q].name = NAMES[q];
        m->queue[q].unserved = m->queue[q].max_payload = MODEL_NONE;
    }
}

int64_t model_tick(struct model *m, int64_t n, int64_t seen)
{
    int64_t first = m->clock + 1;

    if (first < m->now_us)
        first = m->now_us;
    if (first < seen + 1)
        first = seen + 1;
    m->clock = first + n - 1;
    return first;
}

int64_t model_tick_at(struct model *m, int64_t us)
{
    m->clock = m->clock >= us ? m->clock + 1 : us;
    return m->clock;
}

void model_id(int64_t number, char id[16])
{
    id[0] = 'j';
    for (int i = 11; i >= 1; i--) {
        id[i] = "0123456789abcdefghjkmnpqrstvwxyz"[number % 32];
        number /= 32;
    }
    id[12] = '\0';
}

struct model_job *model_new_job(struct model *m, int64_t number, int q, struct bytes payload)
{
    struct model_job *j = &m->job[m->jobs++];

    if (m->jobs >= MODEL_JOBS)
        abort();
    memset(j, 0, sizeof(*j));
    model_id(number, j->id);
    j->queue = q;
    j->priority = 5;
    j->chain = MODEL_NO_CHAIN;
    j->a = j->t = j->x = j->k = j->unique_until = MODEL_NONE;
    j->cancel_ms = j->await_ms = MODEL_NONE;
    j->added_ms = number / 1000;
    j->payload = payload;
    series_count(m, q, COUNT_ADDED, 1);
    return j;
}

/* The unique key that QUEUE@KEY names, or NULL. */
static struct model_unique *resolve(struct model *m, const char *id)
{
    const char *at = strchr(id, '@');

    for (int q = 0; at != NULL && q < MODEL_QUEUES; q++) {
        size_t n = strlen(m->queue[q].name);

        if ((size_t)(at - id) == n && strncmp(id, m->queue[q].name, n) == 0)
            return unique_of(m, q, at + 1);
    }
    return NULL;
}

bool model_free_key(struct model *m, const char *id)
{
    struct model_unique *u = resolve(m, id);

    if (u != NULL)
        u->is_there = false;
    return u != NULL;
}

struct model_job *model_find(struct model *m, const char *id)
{
    const struct model_unique *u = resolve(m, id);

    if (strchr(id, '@') != NULL)
        id = u != NULL ? u->id : "";
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].state != JOB_GONE && strcmp(m->job[i].id, id) == 0)
            return &m->job[i];
    return NULL;
}

bool model_is_solo(const struct model_job *j)
{
    return j->crashes >= 2 && j->pin[0] == '\0';
}

bool model_is_followed(const struct model_job *j)
{
    return j->chain.thens > 0 || j->chain.schedule != NULL;
}

const char *model_state_name(enum model_state state)
{
    static const char *const names[] = {"gone", "waiting", "parked", "running", "dead", "done"};

    return names[state];
}

struct model_worker *model_worker(struct model *m, int64_t epoch)
{
    for (size_t i = 0; i < m->workers; i++)
        if (m->worker[i].is_there && m->worker[i].epoch == epoch)
            return &m->worker[i];
    return NULL;
}

const char *model_status(struct model *m, int64_t epoch)
{
    const struct model_worker *w = model_worker(m, epoch);

    return w == NULL ? "unknown" : w->is_dead ? "dead" : "ok";
}

int64_t model_count_running(const struct model *m, int64_t epoch)
{
    int64_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        n += m->job[i].state == JOB_RUNNING && m->job[i].score == epoch;
    return n;
}

void model_publish(struct model *m, const char *channel, const char *message, size_t n)
{
    buf_printf(&m->heard, "%s ", channel);
    buf_add(&m->heard, message, n);
    buf_puts(&m->heard, "\n");
}

static int priority_of(const struct model_job *j)
{
    return j->pin[0] != '\0' ? MODEL_PINNED : model_is_solo(j) ? 10 : j->priority;
}

void model_begin(struct model *m)
{
    for (size_t i = 0; i < m->jobs; i++) {
        struct model_job *j = &m->job[i];

        j->was = (struct model_place){j->state == JOB_WAITING, j->queue, priority_of(j), j->score};
    }
    m->heard_before = m->heard.len;
    for (int q = 0; q < MODEL_QUEUES; q++)
        m->queue[q].is_head_read = false;
    if (m->gates != NULL)
        m->gates->called = 0;
}

/* A wake is published once in a call. */
void model_wake(struct model *m, const char *message)
{
    char *line = mem_printf(MODEL_ROOT ":wake %s\n", message);
    bool is_known = strstr(buf_str(&m->heard) + m->heard_before, line) != NULL;

    free(line);
    if (is_known)
        return;
    model_publish(m, MODEL_ROOT ":wake", message, strlen(message));
}

void model_set(char **where, char *text)
{
    free(*where);
    *where = text;
}

char *model_line(const char *text)
{
    char *s = mem_dup(text, strnlen(text, 512));

    for (char *c = s; *c != '\0'; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = ' ';
    return s;
}

char *model_outcome(const char *state, int64_t code, int64_t now_ms, int64_t start,
                    const char *text, const char *output)
{
    char *clean = model_line(text);
    char *all = mem_printf("%s %lld %lld %lld %s\n%s", state, (long long)code, (long long)now_ms,
                           (long long)start, clean, output);

    free(clean);
    return all;
}

void model_fail(struct model *m, struct model_job *j, int64_t epoch, int64_t code, const char *text)
{
    char *cut = mem_printf("%.200s", text), *clean = model_line(cut);
    struct buf all = BUF_INIT;
    const struct model_worker *w = model_worker(m, epoch);
    const char *line = j->failures;

    series_count(m, j->queue, COUNT_FAILED, 1);
    buf_printf(&all, "%lld %lld %s %lld %s", (long long)MODEL_MS(m), (long long)epoch,
               w != NULL && w->host[0] != '\0' ? w->host : "-", (long long)code, clean);
    for (int n = 1; n < 5 && line != NULL && *line != '\0'; n++) {
        size_t len = strcspn(line, "\n");

        buf_puts(&all, "\n");
        buf_add(&all, line, len);
        line += len + (line[len] == '\n');
    }
    model_set(&j->failures, mem_strdup(buf_str(&all)));
    buf_done(&all);
    free(clean);
    free(cut);
}

/* ---- hints: heads and marks */

void model_lower_head(struct model *m, int q, int64_t due)
{
    struct model_queue *queue = &m->queue[q];

    queue->is_head_read = true;
    if (queue->has_head && queue->head <= due)
        return;
    queue->is_known |= !queue->has_head;
    queue->has_head = true;
    queue->head = due;
    model_wake(m, queue->name);
}

void model_mark(struct model *m, int q, char mark)
{
    char *marks = m->queue[q].marks;
    size_t n = strlen(marks);

    if (strchr(marks, mark) == NULL) {
        marks[n] = mark;
        marks[n + 1] = '\0';
    }
}

int64_t model_due(double score)
{
    score = ceil(score);
    return score < 0 ? 0 : score > (double)LATEST ? LATEST : (int64_t)score;
}

int64_t model_paused(const struct model *m, int q)
{
    const struct model_queue *queue = &m->queue[q];

    if (!queue->is_paused || (queue->until != 0 && queue->until <= MODEL_MS(m)))
        return -1;
    return queue->until;
}

/* ---- where a job goes */

void model_enqueue(struct model *m, struct model_job *j, int64_t due)
{
    fair_leave(m, j);
    j->state = JOB_WAITING;
    j->score = due;
    fair_put(m, j);
    if (j->pin[0] != '\0') {
        pins_put(m, j->queue, j->pin);
        m->queue[j->queue].is_known = true;
        model_wake(m, m->queue[j->queue].name);
        model_mark(m, j->queue, 'p');
        return;
    }
    if (model_is_solo(j))
        model_mark(m, j->queue, 's');
    else if (j->priority != 5)
        model_mark(m, j->queue, (char)('0' + j->priority));
    model_lower_head(m, j->queue, due);
}

void model_forget(struct model_job *j)
{
    j->state = JOB_GONE;
    j->cancel_ms = MODEL_NONE;
    j->has_tries = false;
    model_set(&j->progress, NULL);
    model_set(&j->error, NULL);
    model_set(&j->failures, NULL);
    model_set(&j->result, NULL);
    model_set(&j->caused, NULL);
    resume_drop(j);
}

void model_announce(struct model *m, struct model_job *j, const char *outcome)
{
    char channel[64];

    if (j->await_ms == MODEL_NONE)
        return;
    j->await_ms = MODEL_NONE;
    (void)snprintf(channel, sizeof(channel), MODEL_ROOT ":ended:%s", j->id);
    model_publish(m, channel, outcome, strlen(outcome));
}

/* The text of an outcome. */
static void outcome_text(const char *outcome, char *text, size_t size)
{
    for (int spaces = 0; spaces < 4; outcome++)
        spaces += *outcome == ' ';
    (void)snprintf(text, size, "%.*s", (int)strcspn(outcome, "\n"), outcome);
}

void model_bury(struct model *m, struct model_job *j, char *outcome, int64_t max)
{
    struct model_job *dead[MODEL_JOBS];
    char why[1024];
    int64_t over;

    outcome_text(outcome, why, sizeof(why));
    j->state = JOB_DEAD;
    j->score = MODEL_MS(m);
    j->cancel_ms = MODEL_NONE;
    model_set(&j->progress, NULL);
    model_set(&j->error, outcome);
    unique_end(m, j);
    batch_end(m, j, MEMBER_DEAD);
    schedule_mark_end(m, j, false);
    m->queue[j->queue].is_known = true;
    m->queue[j->queue].dead++;
    series_count(m, j->queue, COUNT_DEAD, 1);
    model_announce(m, j, outcome);
    over = (int64_t)model_jobs(m, j->queue, JOB_DEAD, -1, dead) - max;
    for (int64_t i = 0; i < over && i < 2; i++)
        model_forget(dead[i]);
    model_tell_death(m, j, why);
    model_keep_caused(j);
}

void model_trim(struct model *m, int q, enum model_state state, int64_t before, size_t rows)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(m, q, state, -1, row);

    for (size_t i = 0; i < n && i < rows && row[i]->score <= before; i++)
        model_forget(row[i]);
}

void model_finish(struct model *m, struct model_job *j, char *outcome, int64_t keep)
{
    fair_leave(m, j);
    model_announce(m, j, outcome);
    unique_end(m, j);
    batch_end(m, j, strncmp(outcome, "done ", 5) == 0 ? MEMBER_DONE : MEMBER_CANCELLED);
    if (keep <= 0) {
        model_forget(j);
        free(outcome);
        return;
    }
    j->state = JOB_DONE;
    j->score = MODEL_MS(m) + keep;
    j->cancel_ms = MODEL_NONE;
    model_set(&j->progress, NULL);
    model_set(&j->error, NULL);
    resume_drop(j);
    model_set(&j->result, outcome);
    m->queue[j->queue].is_known = true;
    model_trim(m, j->queue, JOB_DONE, MODEL_MS(m), 2);
}

void model_end_cancelled(struct model *m, struct model_job *j, char *outcome)
{
    model_finish(m, j, outcome, j->k == MODEL_NONE ? 0 : j->k);
    m->queue[j->queue].cancelled++;
    series_count(m, j->queue, COUNT_CANCELLED, 1);
}

bool model_end_replaced(struct model *m, struct model_job *j, int64_t code, const char *output)
{
    struct model_unique *u = j->unique != NULL ? unique_of(m, j->queue, j->unique) : NULL;
    struct model_job *next = u != NULL && strcmp(u->id, j->id) != 0 ? model_find(m, u->id) : NULL;
    char text[64];

    if (next == NULL || next->state > JOB_PARKED)
        return false;
    (void)snprintf(text, sizeof(text), "replaced by %s", next->id);
    model_end_cancelled(m, j,
                        model_outcome("cancelled", code, MODEL_MS(m), j->starts, text, output));
    return true;
}

void model_release(struct model *m, struct model_job *j, int64_t delay)
{
    int64_t now = MODEL_MS(m);

    if (j->corrupt != NULL) {
        model_bury_corrupt(m, j, -1);
        return;
    }
    if (j->cancel_ms != MODEL_NONE) {
        model_end_cancelled(
            m, j, model_outcome("cancelled", 0, now, j->starts, "cancelled before it started", ""));
        return;
    }
    if (model_end_replaced(m, j, 0, ""))
        return;
    j->attempts = j->attempts > 0 ? j->attempts - 1 : 0;
    j->tries_due = delay > 0 ? now + delay : j->has_tries ? j->tries_due : now;
    j->has_tries = true;
    model_set(&j->progress, NULL);
    model_enqueue(m, j, j->tries_due);
}

/* ---- orders */

static int by_score(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a, *y = *(struct model_job *const *)b;

    return x->score != y->score ? (x->score < y->score ? -1 : 1) : strcmp(x->id, y->id);
}

size_t model_jobs(struct model *m, int q, enum model_state state, int priority,
                  struct model_job **row)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs; i++) {
        struct model_job *j = &m->job[i];

        if (j->state == state && (q < 0 || j->queue == q) &&
            (priority < 0 || priority == priority_of(j)))
            row[n++] = j;
    }
    if (n > 1)
        qsort(row, n, sizeof(*row), by_score);
    return n;
}

static int by_raw(const void *a, const void *b)
{
    const struct model_raw *x = *(struct model_raw *const *)a, *y = *(struct model_raw *const *)b;
    size_t n = x->member.n < y->member.n ? x->member.n : y->member.n;
    int c;

    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    c = memcmp(x->member.p, y->member.p, n);
    return c != 0 ? c : x->member.n < y->member.n ? -1 : 1;
}

size_t model_raws(struct model *m, int q, struct model_raw **row)
{
    size_t n = 0;

    for (size_t i = 0; i < m->raws; i++)
        if (m->raw[i].is_there && m->raw[i].queue == q)
            row[n++] = &m->raw[i];
    if (n > 1)
        qsort(row, n, sizeof(*row), by_raw);
    return n;
}

/* ---- records */

static void put_number(struct buf *out, char name, int64_t n)
{
    if (n != MODEL_NONE)
        buf_printf(out, " %c=%lld", name, (long long)n);
}

void model_record(const struct model_job *j, struct buf *out)
{
    bool big = j->payload.n > MODEL_BIG;

    if (j->corrupt != NULL) {
        buf_puts(out, j->corrupt);
        return;
    }
    buf_printf(out, "%c%s", big ? '+' : '-', NAMES[j->queue]);
    if (j->priority != 5)
        buf_printf(out, " %d", j->priority);
    put_number(out, 'a', j->a);
    put_number(out, 't', j->t);
    put_number(out, 'x', j->x);
    put_number(out, 'k', j->k);
    if (j->key != NULL)
        buf_printf(out, " K=%s", j->key);
    if (j->trace != NULL)
        buf_printf(out, " T=%s", j->trace);
    for (int k = 0; k < MODEL_KINDS; k++)
        if (j->own[k][0] != '\0')
            buf_printf(out, " %c=%s", "lsr"[k], j -> own[k]);
    if (j->unique != NULL)
        buf_printf(out, " u=%s", j->unique);
    put_number(out, 'f', j->unique_until);
    if (j->is_successor)
        buf_puts(out, " o=1");
    model_record_chain(j, out);
    if (j->caused != NULL)
        buf_printf(out, " c=%s", j->caused);
    buf_puts(out, "\n");
    if (!big && j->payload.n > 0)
        buf_add(out, j->payload.p, j->payload.n);
}

/* ---- notes */

void model_put_note(struct model *m, const char *name)
{
    struct model_note *note = NULL;

    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].is_there && strcmp(m->note[i].name, name) == 0)
            note = &m->note[i];
    if (note == NULL) {
        if (m->notes == MODEL_NOTES)
            abort();
        note = &m->note[m->notes++];
        note->is_there = true;
        (void)snprintf(note->name, sizeof(note->name), "%s", name);
    }
    note->seen = MODEL_MS(m);
}

void model_drop_note(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->notes; i++)
        if (m->note[i].is_there && strcmp(m->note[i].name, name) == 0)
            m->note[i].is_there = false;
}

/* ---- from outside */

void model_zadd_raw(struct model *m, int q, double score, struct bytes member)
{
    struct model_raw *r = NULL;

    for (size_t i = 0; i < m->raws; i++)
        if (m->raw[i].is_there && m->raw[i].queue == q && m->raw[i].member.n == member.n &&
            memcmp(m->raw[i].member.p, member.p, member.n) == 0)
            r = &m->raw[i];
    if (r == NULL) {
        if (m->raws == MODEL_RAWS)
            abort();
        r = &m->raw[m->raws++];
    }
    *r = (struct model_raw){true, q, score, member};
}

void model_lose_worker(struct model *m, int64_t epoch)
{
    struct model_worker *w = model_worker(m, epoch);

    if (w != NULL)
        w->is_there = false;
}
