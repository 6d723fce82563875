/*
 * Broadcasts in the model (src/lua/public/broadcast.lua, src/lua/broadcast/pins.lua): jobs that
 * only one worker, or the workers of one host, may run.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define EXPIRE_MS 3600000
#define TIDY_TARGETS 32
#define TIDY_ROWS 100
#define TIDY_ENDS 200

static struct broadcast_counts counts;

const struct broadcast_counts *broadcast_counts(void)
{
    return &counts;
}

void broadcast_claimed(void)
{
    counts.claimed++;
}

/* ---- the targets of a queue */

static struct model_pin *find(struct model *m, int q, const char *target)
{
    for (int i = 0; i < MODEL_PINS; i++)
        if (m->pin[i].is_there && m->pin[i].queue == q && strcmp(m->pin[i].target, target) == 0)
            return &m->pin[i];
    return NULL;
}

void pins_put(struct model *m, int q, const char *target)
{
    struct model_pin *free_pin = NULL;

    m->is_pinned[q] = true;
    if (find(m, q, target) != NULL)
        return;
    for (int i = 0; i < MODEL_PINS && free_pin == NULL; i++)
        free_pin = m->pin[i].is_there ? NULL : &m->pin[i];
    if (free_pin == NULL)
        abort();
    *free_pin = (struct model_pin){.is_there = true, .queue = q};
    (void)snprintf(free_pin->target, sizeof(free_pin->target), "%s", target);
}

static int by_target(const void *a, const void *b)
{
    return strcmp((*(struct model_pin *const *)a)->target, (*(struct model_pin *const *)b)->target);
}

size_t pins_sorted(struct model *m, int q, struct model_pin *row[MODEL_PINS])
{
    size_t n = 0;

    for (int i = 0; i < MODEL_PINS; i++)
        if (m->pin[i].is_there && m->pin[i].queue == q)
            row[n++] = &m->pin[i];
    if (n > 1)
        qsort(row, n, sizeof(row[0]), by_target);
    return n;
}

size_t pins_jobs(struct model *m, int q, const char *target, struct model_job **row)
{
    size_t n = model_jobs(m, q, JOB_WAITING, MODEL_PINNED, row), own = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(row[i]->pin, target) == 0)
            row[own++] = row[i];
    return own;
}

void pins_drop_empty(struct model *m, int q, const char *target)
{
    struct model_job *row[MODEL_JOBS];
    struct model_pin *pin = find(m, q, target);

    if (pin != NULL && pins_jobs(m, q, target, row) == 0)
        pin->is_there = false;
}

size_t pins_of_worker(const struct model *m, int64_t epoch, char target[2][MODEL_TARGET])
{
    const struct model_worker *w = model_worker((struct model *)(uintptr_t)m, epoch);

    (void)snprintf(target[0], MODEL_TARGET, "w%lld", (long long)epoch);
    if (w == NULL || w->host[0] == '\0')
        return 1;
    (void)snprintf(target[1], MODEL_TARGET, "h%s", w->host);
    return 2;
}

/* -> whether it has targets; if not, it is a queue without pinned jobs */
bool pins_any(struct model *m, int q)
{
    struct model_pin *row[MODEL_PINS];
    bool is_any = pins_sorted(m, q, row) > 0;

    m->is_pinned[q] &= is_any;
    return is_any;
}

/* ---- tidying */

static bool serves(const struct model_worker *w, const char *queue)
{
    char list[80], wanted[32];

    (void)snprintf(list, sizeof(list), ",%s,", w->queues);
    (void)snprintf(wanted, sizeof(wanted), ",%s,", queue);
    return w->is_there && !w->is_dead && strstr(list, wanted) != NULL;
}

static bool is_gone(const struct model *m, int q, const char *target)
{
    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];
        char names[2][MODEL_TARGET];

        (void)snprintf(names[0], MODEL_TARGET, "w%lld", (long long)w->epoch);
        (void)snprintf(names[1], MODEL_TARGET, "h%s", w->host);
        if (serves(w, m->queue[q].name) &&
            (strcmp(names[0], target) == 0 || strcmp(names[1], target) == 0))
            return false;
    }
    return true;
}

/* True: it was ended. */
static bool end_job(struct model *m, struct model_job *j)
{
    int64_t x = j->x == MODEL_NONE ? EXPIRE_MS : j->x;
    char why[96];

    if (j->pin[0] == 'w') {
        (void)model_cancel_live(m, j, "its worker is gone");
        counts.gone++;
        return true;
    }
    if (j->score + x >= MODEL_MS(m))
        return false;
    if (j->starts > 0) {
        (void)model_cancel_live(m, j, "its host is gone");
        return true;
    }
    (void)snprintf(why, sizeof(why), "expired: not started within %lld ms of its due time",
                   (long long)x);
    model_bury(m, j, model_outcome("dead", 0, MODEL_MS(m), 0, why, ""), 10000);
    counts.expired++;
    return true;
}

static void tidy_queue(struct model *m, int q, int *left)
{
    struct model_pin *row[MODEL_PINS];
    struct model_job *job[MODEL_JOBS];
    size_t n = pins_sorted(m, q, row);

    if (n > TIDY_TARGETS)
        abort(); /* they would be chosen at random */
    for (size_t i = 0; i < n; i++) {
        size_t jobs = is_gone(m, q, row[i]->target) ? pins_jobs(m, q, row[i]->target, job) : 0;

        if (jobs > TIDY_ROWS)
            abort();
        for (size_t k = 0; k<jobs && * left> 0; k++)
            *left -= end_job(m, job[k]);
        pins_drop_empty(m, q, row[i]->target);
    }
    if (!pins_any(m, q)) {
        char *mark = strchr(m->queue[q].marks, 'p');

        if (mark != NULL)
            memmove(mark, mark + 1, strlen(mark));
    }
}

void pins_tidy(struct model *m)
{
    static const int sorted[MODEL_QUEUES] = {3, 2, 0, 1}; /* 0 Q-7_x mail sms */
    int left = TIDY_ENDS;

    for (int i = 0; i < MODEL_QUEUES; i++)
        if (m->is_pinned[sorted[i]])
            tidy_queue(m, sorted[i], &left);
}

/* ---- broadcast */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The targets, sorted, each once. Returns how many. */
static size_t targets(const struct model *m, int q, bool per_host,
                      char target[MODEL_WORKERS][MODEL_TARGET])
{
    size_t n = 0, once = 0;

    for (size_t i = 0; i < m->workers; i++) {
        const struct model_worker *w = &m->worker[i];

        if (!serves(w, m->queue[q].name) || w->quiet == 1 || (per_host && w->host[0] == '\0'))
            continue;
        if (per_host)
            (void)snprintf(target[n++], MODEL_TARGET, "h%s", w->host);
        else
            (void)snprintf(target[n++], MODEL_TARGET, "w%lld", (long long)w->epoch);
    }
    if (n > 1)
        qsort(target, n, sizeof(target[0]), by_name);
    for (size_t i = 0; i < n; i++)
        if (once == 0 || strcmp(target[once - 1], target[i]) != 0)
            memmove(target[once++], target[i], MODEL_TARGET);
    return once;
}

/* The name of the token of this target's job. */
static const char *token_for(const struct model_options *o, const char *target,
                             char token[MODEL_TOKEN])
{
    if (o->token == NULL)
        return NULL;
    (void)snprintf(token, MODEL_TOKEN, "%s %s", o->token, target);
    return token;
}

static void deliver(struct model *m, int q, const char *target, const struct model_options *o,
                    struct bytes payload, struct buf *out)
{
    char name[MODEL_TOKEN];
    struct model_options copy = *o;
    const struct model_token *was;
    const char *id;

    copy.token = token_for(o, target, name);
    was = copy.token != NULL ? model_token(m, name) : NULL;
    if (was == NULL) {
        struct model_job *j = model_insert(m, model_tick(m, 1, 0), q, &copy, payload);

        (void)snprintf(j->pin, sizeof(j->pin), "%s", target);
        model_enqueue(m, j, o->due);
        if (copy.token != NULL)
            model_put_token(m, &copy, j->id, o->due, q, payload);
        counts.added++;
        id = j->id;
    } else {
        id = was->id;
    }
    buf_puts(out, "[ ");
    out_text(out, target + 1);
    out_text(out, id);
    buf_puts(out, "] ");
}

void model_broadcast(struct model *m, int q, bool per_host, const struct model_options *given,
                     struct bytes payload, struct buf *out)
{
    char target[MODEL_WORKERS][MODEL_TARGET], name[MODEL_TOKEN];
    const char *refusal = given->refusal;
    struct model_options o = *given;
    size_t n = targets(m, q, per_host, target);

    o.x = o.x == MODEL_NONE ? EXPIRE_MS : o.x;
    if (refusal == NULL && (int64_t)payload.n > model_max_payload(m, q))
        refusal = "ELATER_SIZE";
    for (size_t i = 0; refusal == NULL && i < n; i++)
        if (token_for(&o, target[i], name) != NULL)
            refusal = model_token_refusal(m, name, q, payload);
    if (refusal != NULL) {
        out_refusal(out, refusal);
        return;
    }
    buf_puts(out, "[ ");
    out_int(out, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        deliver(m, q, target[i], &o, payload, out);
    buf_puts(out, "] ");
}

/* ---- keys, promises */

void pins_render(const struct model *m, struct rows *rows)
{
    for (int q = 0; q < MODEL_QUEUES; q++)
        if (m->is_pinned[q])
            rows_text(rows, "pinned", "set", NULL, model_queue_name(q));
    for (int i = 0; i < MODEL_PINS; i++) {
        char key[64];

        (void)snprintf(key, sizeof(key), "pins:%s", model_queue_name(m->pin[i].queue));
        if (m->pin[i].is_there)
            rows_put(rows, key, "set", NULL, m->pin[i].target, strlen(m->pin[i].target));
    }
}

const char *pins_broken_job(struct model *m, const struct model_job *j)
{
    if (find(m, j->queue, j->pin) == NULL)
        return "a pinned job waits for a target that is not listed";
    return strchr(m->queue[j->queue].marks, 'p') == NULL
               ? "a pinned job waits in a queue that is not marked"
               : NULL;
}
