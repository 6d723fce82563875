/*
 * Fair queues in the model: tenants, their virtual times, and who is next.
 */
#include "model_fair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model_gates.h"

#define TICK_US 1000
#define INDEX_JOBS 512
#define INDEX_BYTES 1048576
#define USED_MINUTES 3
#define NEVER INT64_MAX

static struct fair_counts counts;

struct fair_counts *fair_counts(void)
{
    return &counts;
}

/* ---- tenants */

static const char *tenant_of_job(const struct model_job *j)
{
    return j->key != NULL ? j->key : "";
}

static struct model_tenant *tenant_of(struct model *m, int q, const char *name)
{
    struct model_fair *f = &m->fair[q];
    struct model_tenant *t;

    for (size_t i = 0; i < f->tenants; i++)
        if (strcmp(f->tenant[i].name, name) == 0)
            return &f->tenant[i];
    if (f->tenants == MODEL_TENANTS)
        abort();
    t = &f->tenant[f->tenants++];
    memset(t, 0, sizeof(*t));
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static int64_t weight_of(const struct model_fair *f, const char *name)
{
    for (const char *at = strstr(f->text, " w="); at != NULL; at = strstr(at + 1, " w=")) {
        char *colon;
        long long weight = strtoll(at + 3, &colon, 10);
        size_t n = strcspn(colon + 1, " ");

        if (strlen(name) == n && strncmp(colon + 1, name, n) == 0)
            return weight;
    }
    return 1;
}

static int64_t tick_of(const struct model_fair *f, const char *name)
{
    int64_t tick = TICK_US / weight_of(f, name);

    return tick > 0 ? tick : 1;
}

static bool is_fair(const struct model_fair *f)
{
    return f->text[0] != '\0';
}

bool fair_shares(const struct model *m, int q)
{
    const struct model_fair *f = &m->fair[q];

    return is_fair(f) && f->is_there && f->todo != FAIR_DROP;
}

/* Would a job of this tenant start at `now`, or has it jobs at all, for NEVER? */
static bool has_jobs(const struct model_tenant *t, int64_t now)
{
    return t->is_active || (t->sleeps && t->next <= now);
}

static bool is_idle_at(const struct model_fair *f, int64_t now)
{
    for (size_t i = 0; i < f->tenants; i++)
        if (has_jobs(&f->tenant[i], now))
            return false;
    return true;
}

bool fair_is_idle(const struct model *m, int q)
{
    return is_idle_at(&m->fair[q], MODEL_MS(m));
}

/* While nobody has due jobs there are no debts, and nobody shares. Returns whether it is so. */
static bool reset(struct model_fair *f, int64_t now)
{
    bool had_any = f->time > 0;

    if (f->todo != FAIR_NOTHING || !is_idle_at(f, now))
        return false;
    for (size_t i = 0; i < f->tenants; i++) {
        had_any |= f->tenant[i].has_debt;
        f->tenant[i].has_debt = false;
    }
    f->time = f->since = 0;
    counts.resets += had_any;
    return true;
}

/* ---- jobs that wait */

static bool is_of(const struct model_job *j, int q, const struct model_tenant *t)
{
    return j->turn.is_there && j->turn.queue == q && strcmp(j->turn.tenant, t->name) == 0;
}

static int64_t first_due(const struct model *m, int q, const struct model_tenant *t)
{
    int64_t first = NEVER;

    for (size_t i = 0; i < m->jobs; i++)
        if (is_of(&m->job[i], q, t) && m->job[i].turn.due < first)
            first = m->job[i].turn.due;
    return first;
}

/* A tenant has lost jobs: those that are left may not be due. */
static void settle(struct model *m, int q, struct model_tenant *t, int64_t now)
{
    int64_t first = first_due(m, q, t);

    if (t->is_active && first <= now)
        return;
    if (t->is_active && t->time > m->fair[q].time) {
        t->has_debt = true;
        t->debt = t->time;
        counts.debts++;
    }
    t->is_active = false;
    t->sleeps = first < NEVER;
    t->next = first;
}

static void put(struct model *m, struct model_job *j, int64_t due)
{
    struct model_tenant *t = tenant_of(m, j->queue, tenant_of_job(j));

    j->turn = (struct model_turn){true, j->queue, j->priority, due, t->name};
    if (t->is_active || (t->sleeps && t->next <= due))
        return;
    t->sleeps = true;
    t->next = due;
}

void fair_put(struct model *m, struct model_job *j)
{
    if (fair_shares(m, j->queue) && j->pin[0] == '\0' && !model_is_solo(j))
        put(m, j, j->score);
}

void fair_leave(struct model *m, struct model_job *j)
{
    struct model_tenant *t;

    if (!j->turn.is_there || !fair_shares(m, j->turn.queue))
        return;
    j->turn.is_there = false;
    t = tenant_of(m, j->turn.queue, j->turn.tenant);
    if (first_due(m, j->turn.queue, t) < NEVER)
        return;
    settle(m, j->turn.queue, t, 0);
    (void)reset(&m->fair[j->turn.queue], NEVER);
}

/* ---- becoming fair, and plain */

static void begin(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    if (!f->is_there || f->todo == FAIR_NOTHING) {
        f->todo = FAIR_INDEX;
        f->priority = 0;
        f->id[0] = '\0';
    }
    f->is_there = true;
    model_mark(m, q, 'f');
}

void fair_again(struct model *m, int q)
{
    begin(m, q);
}

static void drop(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];
    char *mark = strchr(m->queue[q].marks, 'f');

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].turn.queue == q)
            m->job[i].turn.is_there = false;
    f->tenants = 0;
    f->is_there = false;
    f->todo = FAIR_NOTHING;
    f->time = f->since = 0;
    if (mark != NULL)
        memmove(mark, mark + 1, strlen(mark));
    counts.dropped++;
}

/* Is this job behind the last one that got its tenant? */
static bool is_behind(const struct model_fair *f, const struct model_job *j)
{
    if (f->id[0] == '\0' || j->was.score != f->score)
        return f->id[0] == '\0' || j->was.score > f->score;
    return strcmp(j->id, f->id) > 0;
}

static int by_place(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a, *y = *(struct model_job *const *)b;

    return x->was.score != y->was.score ? (x->was.score < y->was.score ? -1 : 1)
                                        : strcmp(x->id, y->id);
}

/* The jobs of the present priority as they waited before the call, which reads them past what it
 * has changed itself. Returns how many. */
static size_t waited(struct model *m, int q, struct model_job **row)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].was.is_there && m->job[i].was.queue == q &&
            m->job[i].was.priority == m->fair[q].priority)
            row[n++] = &m->job[i];
    if (n > 1)
        qsort(row, n, sizeof(*row), by_place);
    return n;
}

static bool waits_there(const struct model_job *j)
{
    return j->state == JOB_WAITING && j->queue == j->was.queue && j->priority == j->was.priority &&
           !model_is_solo(j) && j->pin[0] == '\0';
}

/* Give jobs of the present priority their tenants. Returns how many are left of `most`; 0: enough,
 * -1: also of bytes. */
static int64_t index_some(struct model *m, int q, int64_t most)
{
    struct model_fair *f = &m->fair[q];
    struct model_job *row[MODEL_JOBS];
    size_t n = waited(m, q, row), from = 0, done;
    int64_t bytes = INDEX_BYTES, there;

    while (from < n && !is_behind(f, row[from]))
        from++;
    there = (int64_t)(n - from) < most ? (int64_t)(n - from) : most;
    done = model_within_bytes(row + from, (size_t)there, there, &bytes);
    for (size_t i = from; i < from + done; i++) {
        if (waits_there(row[i]))
            put(m, row[i], row[i]->score);
        f->score = row[i]->was.score;
        memcpy(f->id, row[i]->id, sizeof(f->id));
        counts.indexed++;
    }
    return (int64_t)done < there || there == most ? 0 : most - there;
}

static void index_jobs(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    for (int64_t left = INDEX_JOBS; left > 0 && f->priority <= 9;) {
        left = index_some(m, q, left) - 1; /* an empty set costs one, too */
        if (left < 0)
            break;
        f->priority++;
        f->id[0] = '\0';
    }
    if (f->priority > 9)
        f->todo = FAIR_NOTHING;
    (void)reset(f, MODEL_MS(m));
}

bool fair_advance(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    if (!f->is_there) {
        if (is_fair(f))
            begin(m, q);
        return is_fair(f);
    }
    if (f->todo == FAIR_DROP || !is_fair(f))
        drop(m, q);
    else if (f->todo == FAIR_INDEX)
        index_jobs(m, q);
    else
        return false;
    return true;
}

/* ---- whose turn it is */

static int by_time(const void *a, const void *b)
{
    const struct model_tenant *x = *(struct model_tenant *const *)a;
    const struct model_tenant *y = *(struct model_tenant *const *)b;

    return x->time != y->time ? (x->time < y->time ? -1 : 1) : strcmp(x->name, y->name);
}

static void wake(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    for (size_t i = 0; i < f->tenants; i++) {
        struct model_tenant *t = &f->tenant[i];

        if (!t->sleeps || t->next > MODEL_MS(m))
            continue;
        t->is_active = true;
        t->time = f->time > 0 ? f->time - 1 : 0; /* before those that are as far as the queue */
        if (t->has_debt && t->debt > t->time)
            t->time = t->debt;
        t->sleeps = t->has_debt = false;
    }
}

/* Does the first job come before the second, of the same tenant? */
static bool is_before(const struct model_job *a, const struct model_job *b)
{
    if (a->turn.priority != b->turn.priority)
        return a->turn.priority < b->turn.priority;
    return a->turn.due != b->turn.due ? a->turn.due < b->turn.due : strcmp(a->id, b->id) < 0;
}

/* The next due job of a tenant that the turns do not have yet; NULL: none. */
static struct model_job *next_job(struct model *m, int q, const struct model_tenant *t,
                                  const struct model_job *last)
{
    struct model_job *next = NULL;

    for (size_t i = 0; i < m->jobs; i++) {
        struct model_job *j = &m->job[i];

        if (is_of(j, q, t) && j->turn.due <= MODEL_MS(m) && (last == NULL || is_before(last, j)) &&
            (next == NULL || is_before(j, next)))
            next = j;
    }
    return next;
}

struct place {
    struct model_tenant *tenant;
    int64_t time;
    struct model_job *last;
};

static void meet(struct fair_turns *turns, struct model_tenant *t)
{
    for (size_t i = 0; i < turns->nmet; i++)
        if (turns->met[i] == t)
            return;
    turns->met[turns->nmet++] = t;
}

/* The tenant in front goes behind all that have its time or less. */
static void step_back(struct place *line, size_t n)
{
    struct place first = line[0];
    size_t i = 1;

    for (; i < n && line[i].time <= first.time; i++)
        line[i - 1] = line[i];
    line[i - 1] = first;
}

/* The time of the queue follows what the jobs that ended in this sync have run, up to the highest
 * time of their tenants. */
static void follow(struct model_fair *f)
{
    int64_t top = f->time;

    for (size_t i = 0; i < f->tenants; i++) {
        const struct model_tenant *t = &f->tenant[i];
        int64_t time = t->is_active ? t->time : t->has_debt ? t->debt : 0;

        top = t->has_paid && time > top ? time : top;
    }
    if (f->since > 0 && f->part > 0)
        f->time = f->time + f->part < top ? f->time + f->part : top;
    f->part = 0;
}

void fair_sync(struct model *m, int q)
{
    m->fair[q].part = 0;
    for (size_t i = 0; i < m->fair[q].tenants; i++)
        m->fair[q].tenant[i].has_paid = false;
}

/* One job after the other, of the tenant with the least virtual time: its time rises by a tick. */
void fair_turns(struct model *m, int q, int64_t room, struct fair_turns *turns)
{
    struct model_fair *f = &m->fair[q];
    struct model_tenant *active[MODEL_TENANTS];
    struct place line[MODEL_TENANTS];
    size_t n = 0;

    follow(f);
    wake(m, q);
    for (size_t i = 0; i < f->tenants; i++)
        if (f->tenant[i].is_active)
            active[n++] = &f->tenant[i];
    if (n > 1)
        qsort((void *)active, n, sizeof(active[0]), by_time);
    turns->may_be_more = (int64_t)n >= room;
    turns->may_share = f->since == 0 && n > 1;
    n = turns->may_be_more ? (size_t)room : n;
    for (size_t i = 0; i < n; i++)
        line[i] = (struct place){active[i], active[i]->time, NULL};
    while (n > 0 && (int64_t)turns->n < room) {
        struct model_job *j = next_job(m, q, line[0].tenant, line[0].last);

        meet(turns, line[0].tenant);
        if (j == NULL) {
            memmove(line, line + 1, --n * sizeof(line[0]));
            continue;
        }
        counts.claims++;
        counts.changes +=
            turns->n > 0 && strcmp(turns->job[turns->n - 1]->turn.tenant, j->turn.tenant) != 0;
        turns->job[turns->n++] = j;
        line[0].last = j;
        line[0].time += tick_of(f, line[0].tenant->name);
        if (n > 1 && line[0].time > line[1].time)
            step_back(line, n);
    }
}

void fair_turns_end(struct model *m, int q, const struct fair_turns *turns)
{
    struct model_fair *f = &m->fair[q];

    for (size_t i = 0; i < turns->nmet; i++)
        settle(m, q, turns->met[i], MODEL_MS(m));
    if (reset(f, MODEL_MS(m)) || !turns->may_share)
        return;
    f->since = m->now_us; /* not all that is due got a place */
    counts.shares++;
}

/* ---- charges */

void fair_start(struct model *m, struct model_job *j, int64_t began, bool is_its_turn)
{
    struct model_fair *f = &m->fair[j->queue];
    struct model_tenant *t = tenant_of(m, j->queue, tenant_of_job(j));
    int64_t tick = tick_of(f, t->name);

    if (t->is_active) {
        f->time = is_its_turn && t->time > f->time ? t->time : f->time;
        t->time += tick;
    } else {
        t->debt = (t->has_debt && t->debt > f->time ? t->debt : f->time) + tick;
        t->has_debt = true;
    }
    model_set(&j->holds, mem_printf("%s%sfair %lld %lld %s:%s", j->holds != NULL ? j->holds : "",
                                    j->holds != NULL ? "\n" : "", (long long)m->now_us,
                                    (long long)began, m->queue[j->queue].name, t->name));
}

static void count_used(struct model *m, int q, const char *tenant, int64_t ran_us)
{
    int64_t minute = m->now_us / 60000000;
    struct model_used *free_one = NULL;

    for (size_t i = 0; i < MODEL_USED; i++) {
        struct model_used *u = &m->used[i];

        if (!u->is_there)
            free_one = u;
        else if (u->queue == q && u->minute == minute && strcmp(u->tenant, tenant) == 0) {
            u->ms += (ran_us + 500) / 1000;
            return;
        }
    }
    if (free_one == NULL)
        abort();
    *free_one = (struct model_used){true, q, minute, (ran_us + 500) / 1000, ""};
    (void)snprintf(free_one->tenant, sizeof(free_one->tenant), "%s", tenant);
}

static int64_t due_tenants(const struct model_fair *f)
{
    int64_t n = 0;

    for (size_t i = 0; i < f->tenants; i++)
        n += f->tenant[i].is_active;
    return n;
}

/* It pays its run time in place of the tick; one that started before tenants shared pays what it
 * ran since then. */
static void charge(struct model *m, int q, struct model_tenant *t, int64_t began, int64_t from)
{
    struct model_fair *f = &m->fair[q];
    int64_t more = m->now_us - (from < f->since ? f->since : from);

    more = (more > 0 ? more : 0) / weight_of(f, t->name);
    t->has_paid = true;
    f->part += more / (due_tenants(f) > 1 ? due_tenants(f) : 1);
    if (from < f->since)
        counts.early++;
    else
        more -= tick_of(f, t->name);

    if (t->is_active) {
        t->time += more;
    } else if (!reset(f, MODEL_MS(m))) {
        if (!t->has_debt)
            t->debt = began < f->time ? began : f->time;
        t->debt += more;
        t->has_debt = true;
        counts.debts++;
    }
}

void fair_finish(struct model *m, const char *line)
{
    long long from, began;
    int at = 0, q = 0;
    const char *colon;
    int64_t ran;

    if (sscanf(line, "fair %lld %lld %n", &from, &began, &at) != 2)
        abort();
    colon = strchr(line + at, ':');
    while (strncmp(m->queue[q].name, line + at, (size_t)(colon - line) - (size_t)at) != 0)
        q++;
    if (!fair_shares(m, q))
        return;
    if (m->fair[q].since > 0)
        charge(m, q, tenant_of(m, q, colon + 1), began, from);
    ran = m->now_us > from ? m->now_us - from : 0;
    count_used(m, q, colon + 1, ran);
    count_used(m, q, " ", ran);
}

/* ---- the rest */

/* A value of R:queues. */
static void put_text(const struct model *m, int q, const char *fair, char out[MODEL_QUEUE_TEXT])
{
    static const char *const kinds[] = {"lock", "sem", "rate"};
    size_t n = (size_t)snprintf(out, MODEL_QUEUE_TEXT, "%s", fair);

    for (int k = 0; k < MODEL_KINDS; k++)
        if (m->queue[q].gates[k][0] != '\0')
            n += (size_t)snprintf(out + n, MODEL_QUEUE_TEXT - n, "%s%s=%s", n > 0 ? " " : "",
                                  kinds[k], m->queue[q].gates[k]);
}

void model_declare_fair(struct model *m, int64_t epoch, int q, const char *text, struct buf *out)
{
    struct model_worker *w = model_worker(m, epoch);
    struct model_fair *f = &m->fair[q];
    char was[MODEL_QUEUE_TEXT], now[MODEL_QUEUE_TEXT], note[80];
    bool was_fair = is_fair(f);

    if (w == NULL || w->is_dead) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    put_text(m, q, f->text, was);
    put_text(m, q, text, now);
    (void)snprintf(note, sizeof(note), "queue-gates:%s", m->queue[q].name);
    if (strcmp(was, now) != 0 && was[0] != '\0' && strcmp(was, w->declared[q]) != 0)
        model_put_note(m, note);
    (void)snprintf(f->text, sizeof(f->text), "%s", text);
    if (is_fair(f) && !was_fair)
        begin(m, q);
    else if (was_fair && !is_fair(f) && f->is_there) {
        f->todo = FAIR_DROP;
        model_mark(m, q, 'f');
    }
    memcpy(w->declared[q], now, sizeof(now));
    waiters_hand_on(m);
    buf_puts(out, "[ ] ");
}

const char *fair_words(const struct model *m, int q)
{
    return m->fair[q].text;
}

/* Debts that the virtual time of the queue has passed go. */
void fair_tidy(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    for (size_t i = 0; i < f->tenants; i++)
        f->tenant[i].has_debt &= f->tenant[i].debt > f->time;
}

void fair_forget(struct model *m, int q)
{
    drop(m, q);
    m->fair[q].text[0] = '\0';
}

void fair_set_time(struct model *m)
{
    for (size_t i = 0; i < MODEL_USED; i++)
        if ((m->used[i].minute + USED_MINUTES) * 60000 < MODEL_MS(m))
            m->used[i].is_there = false;
}

/* ---- rows */

static void render_tenants(const struct model *m, int q, struct rows *rows)
{
    const struct model_fair *f = &m->fair[q];
    char key[3][80];
    static const char *const names[] = {"fair", "fair-next", "fair-debts"};

    for (int i = 0; i < 3; i++)
        (void)snprintf(key[i], sizeof(key[i]), "%s:%s", names[i], m->queue[q].name);
    for (size_t i = 0; i < f->tenants; i++) {
        const struct model_tenant *t = &f->tenant[i];

        if (t->is_active)
            rows_number(rows, key[0], "zset", t->name, t->time);
        if (t->sleeps)
            rows_number(rows, key[1], "zset", t->name, t->next);
        if (t->has_debt)
            rows_number(rows, key[2], "zset", t->name, t->debt);
    }
}

static void render_state(const struct model *m, int q, struct rows *rows)
{
    const struct model_fair *f = &m->fair[q];
    char todo[80] = "", text[160];

    if (!f->is_there)
        return;
    if (f->todo == FAIR_DROP)
        (void)snprintf(todo, sizeof(todo), " drop");
    else if (f->todo == FAIR_INDEX && f->id[0] == '\0')
        (void)snprintf(todo, sizeof(todo), " index %d - -", f->priority);
    else if (f->todo == FAIR_INDEX)
        (void)snprintf(todo, sizeof(todo), " index %d %lld %s", f->priority, (long long)f->score,
                       f->id);
    (void)snprintf(text, sizeof(text), "%lld %lld%s", (long long)f->time, (long long)f->since,
                   todo);
    rows_text(rows, "fair", "hash", m->queue[q].name, text);
}

static void render_turn(const struct model *m, const struct model_job *j, struct rows *rows)
{
    char key[80], line[160];

    if (!j->turn.is_there)
        return;
    (void)snprintf(key, sizeof(key), "fair-jobs:%s", m->queue[j->turn.queue].name);
    (void)snprintf(line, sizeof(line), "%s %d%015lld%s", j->turn.tenant, j->turn.priority,
                   (long long)j->turn.due, j->id);
    rows_number(rows, key, "zset", line, 0);
}

static void render_used(const struct model *m, const struct model_used *u, struct rows *rows)
{
    char key[80], full[120];

    if (!u->is_there)
        return;
    (void)snprintf(key, sizeof(key), "fair-used:%s:%lld", m->queue[u->queue].name,
                   (long long)u->minute);
    rows_number(rows, key, "hash", u->tenant, u->ms);
    (void)snprintf(full, sizeof(full), MODEL_ROOT ":%s", key);
    if (strcmp(u->tenant, " ") == 0)
        rows_number(rows, "!expires", "key", full, (u->minute + USED_MINUTES) * 60000);
}

void fair_render(struct model *m, struct rows *rows)
{
    for (int q = 0; q < MODEL_QUEUES; q++) {
        render_tenants(m, q, rows);
        render_state(m, q, rows);
    }
    for (size_t i = 0; i < m->jobs; i++)
        render_turn(m, &m->job[i], rows);
    for (size_t i = 0; i < MODEL_USED; i++)
        render_used(m, &m->used[i], rows);
}

/* ---- promises */

static const char *broken_queue(struct model *m, int q)
{
    struct model_fair *f = &m->fair[q];

    for (size_t i = 0; i < m->jobs; i++) {
        const struct model_job *j = &m->job[i];
        bool waits =
            j->state == JOB_WAITING && j->queue == q && j->pin[0] == '\0' && !model_is_solo(j);

        if (waits && (!j->turn.is_there || j->turn.due != j->score))
            return "a waiting job of a fair queue has no turn";
        if (!waits && j->turn.is_there && j->turn.queue == q)
            return "a job that does not wait has a turn";
    }
    for (size_t i = 0; i < f->tenants; i++) {
        const struct model_tenant *t = &f->tenant[i];
        int64_t first = first_due(m, q, t);

        if ((first < NEVER) != (t->is_active || t->sleeps) || (t->is_active && t->sleeps))
            return "a tenant is not where its jobs say";
        if (t->sleeps && t->next > first)
            return "a tenant sleeps when its first job is due";
        if (t->is_active && t->has_debt)
            return "a tenant with due jobs has a debt beside them";
    }
    return NULL;
}

const char *fair_broken(struct model *m)
{
    const char *what = NULL;

    for (int q = 0; q < MODEL_QUEUES && what == NULL; q++)
        if (fair_shares(m, q) && m->fair[q].todo == FAIR_NOTHING)
            what = broken_queue(m, q);
    return what;
}
