/*
 * Foreign queues in the model (src/lua/calls/collect.lua): the set z with scores in ms and the hash
 * h of bodies, and the set y with scores in seconds, whose members are payloads.
 */
#include "model_gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define LATEST 1e14
#define FIELD_MS 10000
#define FORGET_MS 60000
#define EXPIRE_MS 3600000

static struct foreign_counts counts;

const struct foreign_counts *foreign_counts(void)
{
    return &counts;
}

bool model_foreign_is_ms(int set)
{
    return set == 0;
}

static struct model_member_of *find(struct model *m, int set, const char *member)
{
    struct model_foreign *f = &m->foreign[set];

    for (int i = 0; i < MODEL_MEMBERS; i++)
        if (f->member[i].name != NULL && strcmp(f->member[i].name, member) == 0)
            return &f->member[i];
    for (int i = 0; i < MODEL_MEMBERS; i++) {
        if (f->member[i].name != NULL)
            continue;
        f->member[i] = (struct model_member_of){.name = member};
        return &f->member[i];
    }
    abort();
}

int model_foreign_add(struct model *m, int set, double score, const char *member)
{
    struct model_member_of *one = find(m, set, member);
    bool was_there = one->is_there;

    one->is_there = true;
    one->score = score;
    return !was_there;
}

int model_foreign_remove(struct model *m, int set, const char *member)
{
    struct model_member_of *one = find(m, set, member);
    bool was_there = one->is_there;

    one->is_there = false;
    return was_there;
}

int model_foreign_body(struct model *m, const char *member, struct bytes body)
{
    struct model_member_of *one = find(m, 0, member);
    bool had_body = one->body.p != NULL;

    one->body = body;
    return !had_body;
}

/* ---- collecting */

static int by_score(const void *a, const void *b)
{
    const struct model_member_of *x = *(struct model_member_of *const *)a,
                                 *y = *(struct model_member_of *const *)b;

    return x->score != y->score ? (x->score < y->score ? -1 : 1) : strcmp(x->name, y->name);
}

/* The members of a set by score. Returns how many. */
static size_t sorted(struct model *m, int set, struct model_member_of *row[MODEL_MEMBERS])
{
    size_t n = 0;

    for (int i = 0; i < MODEL_MEMBERS; i++)
        if (m->foreign[set].member[i].is_there)
            row[n++] = &m->foreign[set].member[i];
    if (n > 1)
        qsort(row, n, sizeof(row[0]), by_score);
    return n;
}

/* The due time of a score, MODEL_NONE: none, for the reason in why. */
static int64_t due_of(const struct model *m, int set, double score, const char **why)
{
    double ms = model_foreign_is_ms(set) ? ceil(score) : floor(score * 1000 + 0.5);

    *why = NULL;
    if (isinf(ms))
        *why = "is not finite";
    else if (ms > LATEST)
        *why = model_foreign_is_ms(set) ? "is after the year 5000"
                                        : "is after the year 5000: is it in ms?";
    else if (model_foreign_is_ms(set) && ms >= 1e8 && ms <= 1e11)
        *why = "looks like seconds, and the unit is ms";
    if (*why != NULL)
        return MODEL_NONE;
    return ms >= 1e8 ? (int64_t)ms : MODEL_MS(m);
}

/* A time as a score, as precise as the library writes it. */
static double score_of(int set, int64_t ms)
{
    char text[40];

    if (model_foreign_is_ms(set))
        return (double)ms;
    (void)snprintf(text, sizeof(text), "%.3f", (double)ms / 1000);
    return strtod(text, NULL);
}

/* A row that leaves its set: a job, or a dead one. */
struct leaving {
    struct model_member_of *of;
    struct model_options o;
    struct bytes payload;
    char why[MODEL_REFUSAL]; /* "": none */
};

static void why_unfit(struct model *m, int q, struct leaving *l)
{
    const char *code = model_refusal(m, q, &l->o, l->payload.n);

    if (code != NULL)
        model_refusal_text(m, q, &l->o, code, l->payload.n, l->why);
}

static void judge_score(struct leaving *l, const char *why)
{
    char text[OUT_SCORE_BYTES];

    out_score_text(l->of->score, text);
    (void)snprintf(l->why, sizeof(l->why), "its score %s %s", text, why);
}

/* ---- members without a body */

/* What was seen without a body, and when, is forgotten after an hour without another one. */
static void expire(struct model *m, int q)
{
    for (int i = 0; i < MODEL_MEMBERS && m->foreign[0].expires_ms[q] < MODEL_MS(m); i++)
        m->foreign[0].member[i].seen_ms[q] = 0;
}

static int64_t waits_ms(struct model *m, int q, struct model_member_of *one)
{
    int64_t now = MODEL_MS(m), since = one->score < (double)now ? (int64_t)ceil(one->score) : now;

    expire(m, q);
    if (one->seen_ms[q] == 0 || one->seen_ms[q] > now) {
        one->seen_ms[q] = now;
        m->foreign[0].expires_ms[q] = now + EXPIRE_MS;
    }
    return now - (since > one->seen_ms[q] ? since : one->seen_ms[q]);
}

static void forget_bodyless(struct model *m, int q, const struct leaving *l, size_t n)
{
    expire(m, q);
    for (size_t i = 0; i < n; i++)
        l[i].of->seen_ms[q] = 0;
    for (int i = 0; i < MODEL_MEMBERS; i++)
        if (m->foreign[0].member[i].seen_ms[q] <= MODEL_MS(m) - FORGET_MS)
            m->foreign[0].member[i].seen_ms[q] = 0;
}

/* ---- what becomes of a member */

enum judgement { LEAVES, WAITS, STAYS };

/* Its payload, and why it can be no job. True: it waits, and is to be looked at again in *again ms.
 */
static bool take_body(struct model *m, int q, struct leaving *l, int64_t due, int64_t *again)
{
    int64_t age;

    if (strchr(l->of->name, ' ') == NULL)
        l->o.key = l->of->name;
    else
        (void)snprintf(l->why, sizeof(l->why), "%s",
                       "its member is no key: 1 to 256 bytes without spaces and control "
                       "characters");
    if (l->of->body.p != NULL) {
        l->payload = l->of->body;
        return false;
    }
    if (l->why[0] != '\0' || due == MODEL_NONE)
        return false;
    age = waits_ms(m, q, l->of);
    *again = age < 10 ? 10 : age > 1000 ? 1000 : age;
    if (age >= FIELD_MS)
        (void)snprintf(l->why, sizeof(l->why), "it has no field in 'h' after 10 s");
    return age < FIELD_MS;
}

/* Is the score a time to come in the other unit? */
static bool is_of_other_unit(const struct model *m, int set, double score)
{
    double other = model_foreign_is_ms(set) ? score * 1000 : score;

    if (model_foreign_is_ms(set) && (score < 1e8 || score > 1e11))
        return false;
    return other <= LATEST && other > (double)MODEL_MS(m);
}

static enum judgement judge(struct model *m, int set, int q, struct model_member_of *one,
                            struct leaving *l, int64_t *again)
{
    const char *why;
    int64_t now = MODEL_MS(m), due = due_of(m, set, one->score, &why);

    *l = (struct leaving){.of = one, .payload = {one->name, strlen(one->name)}};
    l->o = (struct model_options){.priority = 5,
                                  .due = due == MODEL_NONE || due > now ? now : due,
                                  .a = MODEL_NONE,
                                  .t = MODEL_NONE,
                                  .x = MODEL_NONE,
                                  .k = MODEL_NONE,
                                  .unique_for = MODEL_NONE,
                                  .chain = MODEL_NO_CHAIN};
    if (set == 0 && take_body(m, q, l, due, again))
        return WAITS;
    if (why != NULL)
        judge_score(l, why);
    if (l->why[0] == '\0')
        why_unfit(m, q, l);
    return why != NULL && is_of_other_unit(m, set, one->score) ? STAYS : LEAVES;
}

static void bury(struct model *m, int q, const struct leaving *l)
{
    struct model_job *j = model_insert(m, model_tick(m, 1, 0), q, &l->o, l->payload);

    model_bury(m, j, model_outcome("dead", 0, MODEL_MS(m), 0, l->why, ""), 10000);
    counts.buried++;
}

/* The rows leave: the dead ones first. Returns how many are jobs. */
static size_t leave(struct model *m, int q, struct leaving *l, size_t n)
{
    size_t jobs = 0;
    int64_t number;

    for (size_t i = 0; i < n; i++) {
        if (l[i].why[0] != '\0')
            bury(m, q, &l[i]);
        jobs += l[i].why[0] == '\0';
    }
    number = jobs > 0 ? model_tick(m, (int64_t)jobs, 0) : 0;
    for (size_t i = 0; i < n; i++) {
        if (l[i].why[0] == '\0')
            model_enqueue(m, model_insert(m, number++, q, &l[i].o, l[i].payload), l[i].o.due);
        l[i].of->is_there = false;
        l[i].of->body = (struct bytes){NULL, 0};
    }
    m->queue[q].adopted += (int64_t)jobs;
    counts.added += jobs;
    return jobs;
}

/* The next due time of what stays, MODEL_NONE for none. */
static int64_t next_due(struct model *m, const struct model_collect *c, double last,
                        struct model_member_of *const *row, size_t n)
{
    const char *why;

    if (c->next_ms != MODEL_NONE && c->next_ms > MODEL_MS(m)) {
        size_t between = 0;

        for (size_t i = 0; i < n; i++)
            between += row[i]->score > last && row[i]->score < score_of(c->set, c->next_ms);
        if (between == 0)
            return c->next_ms;
    }
    for (size_t i = 0; i < n; i++)
        if (row[i]->score > last) {
            int64_t due = due_of(m, c->set, row[i]->score, &why);

            return due != MODEL_NONE && due <= MODEL_MS(m) ? MODEL_MS(m) + 1 : due;
        }
    return MODEL_NONE;
}

static void out_time(struct buf *out, int64_t ms)
{
    if (ms == MODEL_NONE)
        out_text(out, "-");
    else
        out_int(out, ms);
}

static void collect(struct model *m, const struct model_collect *c, struct buf *out)
{
    struct model_member_of *row[MODEL_MEMBERS];
    struct leaving l[MODEL_MEMBERS];
    size_t n = sorted(m, c->set, row), leaving = 0, jobs, passed = (size_t)c->passed;
    double last = score_of(c->set, MODEL_MS(m)), never = score_of(c->set, (int64_t)LATEST);
    int64_t again = MODEL_NONE, next = next_due(m, c, last, row, n);
    char why[MODEL_REFUSAL] = "", note[400];

    for (size_t i = 0; i < n; i++) {
        int64_t wait = MODEL_NONE;
        enum judgement j;

        if ((row[i]->score <= last && i < passed) ||
            (row[i]->score > last && row[i]->score <= never))
            continue;
        j = judge(m, c->set, c->queue, row[i], &l[leaving], &wait);
        if (j == STAYS && why[0] == '\0')
            memcpy(why, l[leaving].why, sizeof(why));
        if (j == WAITS && (again == MODEL_NONE || MODEL_MS(m) + wait < again))
            again = MODEL_MS(m) + wait;
        counts.waited += j == WAITS;
        counts.stayed += j == STAYS;
        leaving += j == LEAVES;
    }
    jobs = leave(m, c->queue, l, leaving);
    if ((leaving > 0 || again != MODEL_NONE) && c->set == 0)
        forget_bodyless(m, c->queue, l, leaving);
    (void)snprintf(note, sizeof(note), "bad-adoption:%s %s", m->queue[c->queue].name, why);
    if (why[0] != '\0')
        model_put_note(m, note);
    buf_puts(out, "[ ");
    out_time(out, next);
    out_time(out, again);
    out_text(out, "-");
    out_int(out, (int64_t)jobs);
    out_int(out, (int64_t)(leaving - jobs));
    out_text(out, why);
    buf_puts(out, "] ");
}

void model_collect(struct model *m, int64_t epoch, size_t n, const struct model_collect *item,
                   struct buf *out)
{
    if (strcmp(model_status(m, epoch), "ok") != 0) {
        out_refusal(out, "ELATER_WORKER");
        return;
    }
    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    for (size_t i = 0; i < n; i++)
        collect(m, &item[i], out);
    buf_puts(out, "] ");
}

/* ---- keys */

static void render_bodyless(const struct model *m, int q, struct rows *rows)
{
    const struct model_foreign *f = &m->foreign[0];
    bool is_any = false;
    char key[64], expires[24];

    (void)snprintf(key, sizeof(key), "bodyless:%s", model_queue_name(q));
    for (int i = 0; i < MODEL_MEMBERS && f->expires_ms[q] >= MODEL_MS(m); i++) {
        if (f->member[i].name == NULL || f->member[i].seen_ms[q] == 0)
            continue;
        rows_number(rows, key, "zset", f->member[i].name, f->member[i].seen_ms[q]);
        is_any = true;
    }
    if (!is_any)
        return;
    (void)snprintf(key, sizeof(key), MODEL_ROOT ":bodyless:%s", model_queue_name(q));
    (void)snprintf(expires, sizeof(expires), "%lld", (long long)f->expires_ms[q]);
    rows_text(rows, "!expires", "key", key, expires);
}

void foreign_render(const struct model *m, struct rows *rows)
{
    static const char *const keys[] = {"!z", "!y"};

    for (int set = 0; set < MODEL_FOREIGNS; set++)
        for (int i = 0; i < MODEL_MEMBERS; i++) {
            const struct model_member_of *one = &m->foreign[set].member[i];
            char text[48];

            if (one->name != NULL && one->is_there) {
                (void)snprintf(text, sizeof(text), "%.17g", one->score);
                rows_text(rows, keys[set], "zset", one->name, text);
            }
            if (one->name != NULL && one->body.p != NULL)
                rows_put(rows, "!h", "hash", one->name, one->body.p, one->body.n);
        }
    for (int q = 0; q < MODEL_QUEUES; q++)
        render_bodyless(m, q, rows);
}
