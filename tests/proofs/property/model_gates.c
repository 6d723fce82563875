/*
 * Single gates of the model: permits, limits, rates.
 */
#include "model_gates.h"

#include "model_fair.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

static const char *const KINDS[] = {"lock", "sem", "rate"};

/* ---- the whole */

void gates_reset(struct model *m)
{
    if (m->gates == NULL)
        m->gates = calloc(1, sizeof(*m->gates));
    else
        memset(m->gates, 0, sizeof(*m->gates));
    if (m->gates == NULL)
        abort();
}

int64_t sem_ends(const struct model_gate *g)
{
    int64_t last = 0;

    for (size_t i = 0; i < g->permits; i++)
        last = g->permit[i].until > last ? g->permit[i].until : last;
    return last;
}

static void expire(struct model *m, struct model_gate *g)
{
    int64_t now = MODEL_MS(m);

    if (g->kind == KIND_SEM && sem_ends(g) < now)
        g->permits = 0;

    if (g->is_held && g->until > 0 && g->until < now)
        g->is_held = false;
    g->has_tat = g->has_tat && g->tat_end >= now;
    g->has_window = g->has_window && g->window_end >= now;
    if (g->log_end < now)
        g->logged = 0;
}

void gates_set_time(struct model *m, int64_t was_us)
{
    struct model_gates *s = m->gates;

    if (m->now_us > was_us)
        s->elapsed_us += m->now_us - was_us;
    /* A lease that had ended counts again. */
    for (size_t i = 0; m->now_us < was_us && i < s->n; i++)
        s->gate[i].last_permits = s->gate[i].permits;
    s->was_set_back |= m->now_us < was_us;
    for (size_t i = 0; i < s->n; i++)
        expire(m, &s->gate[i]);
    for (size_t i = 0; i < UNIQUES_MAX; i++)
        if (s->unique[i].end != MODEL_NONE && s->unique[i].end < MODEL_MS(m))
            s->unique[i].is_there = false;
}

struct model_gate *gate_of(struct model *m, const char *id)
{
    struct model_gates *s = m->gates;
    struct model_gate *g;

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->gate[i].id, id) == 0)
            return &s->gate[i];
    if (s->n == GATES_MAX)
        abort();
    g = &s->gate[s->n++];
    (void)snprintf(g->id, sizeof(g->id), "%s", id);
    g->name = strchr(g->id, ':') + 1;
    g->kind = g->id[0] == 'l' ? KIND_LOCK : g->id[0] == 's' ? KIND_SEM : KIND_RATE;
    return g;
}

struct model_gate *gate_named(struct model *m, enum gate_kind kind, const char *name)
{
    char id[MODEL_GATE_ID];

    (void)snprintf(id, sizeof(id), "%s:%s", KINDS[kind], name);
    return gate_of(m, id);
}

void gate_touch(struct model *m, struct model_gate *g)
{
    for (size_t i = 0; i < m->gates->touched; i++)
        if (m->gates->touch[i] == g)
            return;
    if (m->gates->touched == TOUCHED_MAX)
        abort();
    m->gates->touch[m->gates->touched++] = g;
}

/* ---- limits */

bool fill_key(char out[MODEL_NAME * 2], const char *name, const char *key)
{
    const char *at = strstr(name, "{key}");

    if (at == NULL)
        (void)snprintf(out, (size_t)MODEL_NAME * 2, "%s", name);
    else if (key != NULL)
        (void)snprintf(out, (size_t)MODEL_NAME * 2, "%.*s%s%s", (int)(at - name), name, key,
                       at + 5);
    return at == NULL || key != NULL;
}

static const struct model_limit *limit_called(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->gates->limits; i++)
        if (strcmp(m->gates->limit[i].name, name) == 0)
            return &m->gates->limit[i];
    return NULL;
}

bool limit_fits(const char *template, const char *name)
{
    size_t before = (size_t)(strstr(template, "{key}") - template), n = strlen(name);
    size_t after = strlen(template) - before - 5;

    return n > before + after && strncmp(name, template, before) == 0 &&
           strcmp(name + n - after, template + before + 5) == 0;
}

/* The template that fits the name with the longest beginning. */
static const struct model_limit *template_of(const struct model *m, const char *name)
{
    const struct model_limit *best = NULL;
    size_t best_before = 0;

    for (size_t i = 0; i < m->gates->templates; i++) {
        const char *t = m->gates->template[i];
        size_t before = (size_t)(strstr(t, "{key}") - t);

        if (!limit_fits(t, name) || (best != NULL && before <= best_before))
            continue;
        best = limit_called(m, t);
        best_before = before;
    }
    return best;
}

const struct model_limit *limit_of(struct model *m, enum gate_kind kind, const char *name)
{
    const struct model_limit *l = limit_called(m, name);

    l = l != NULL ? l : template_of(m, name);
    return l != NULL && kind != KIND_LOCK && l->is_sem == (kind == KIND_SEM) ? l : NULL;
}

/* ---- rates */

/* How far the theoretical arrival time is later than now. */
static double gcra(const struct model *m, const struct model_gate *g, const struct model_limit *l,
                   double *step, double *burst)
{
    double lead = g->has_tat ? (double)(g->tat_base - m->now_us) + g->tat_behind : 0;

    *step = (double)l->per_ms * 1000 / (double)l->n;
    *burst = *step * (double)l->burst;
    return fmin(fmax(lead, 0), *burst);
}

static int by_start(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : 1;
}

/* Starts later than a clock that was set back count as if they were now. */
static void trim_log(const struct model *m, struct model_gate *g, const struct model_limit *l)
{
    size_t n = 0;

    for (size_t i = 0; i < g->logged; i++) {
        if (g->log[i][0] <= m->now_us - l->per_ms * 1000)
            continue;
        g->log[n][0] = g->log[i][0] > m->now_us ? m->now_us : g->log[i][0];
        g->log[n++][1] = g->log[i][1];
    }
    g->logged = n;
}

static int64_t ceil_ms(double us)
{
    return (int64_t)ceil(us / 1000);
}

static void put_lead(const struct model *m, struct model_gate *g, double lead)
{
    g->tat_base = m->now_us;
    g->tat_behind = lead;
    g->has_tat = true;
    g->tat_end = MODEL_MS(m) + ceil_ms(lead) + 1000;
}

/* The present window. If the window of earlier starts is later, since the clock was set back, it is
 * the next one. */
static int64_t window_now(const struct model *m, const struct model_gate *g,
                          const struct model_limit *l)
{
    return m->now_us / (l->per_ms * 1000) +
           (g->has_window && g->window > m->now_us / (l->per_ms * 1000));
}

static void put_count(const struct model *m, struct model_gate *g, const struct model_limit *l,
                      int64_t count)
{
    int64_t per_us = l->per_ms * 1000;

    g->count = count;
    g->window = window_now(m, g, l);
    g->has_window = true;
    g->window_end = MODEL_MS(m) + ceil_ms((double)((g->window + 1) * per_us - m->now_us)) + 1000;
}

static int64_t window_count(const struct model *m, const struct model_gate *g,
                            const struct model_limit *l)
{
    return g->has_window && g->window >= m->now_us / (l->per_ms * 1000) ? g->count : 0;
}

/* Free starts, without those that are reserved for granted jobs. */
static int64_t rate_permits(struct model *m, struct model_gate *g, const struct model_limit *l,
                            int64_t *opens_ms)
{
    int64_t kept = (int64_t)g->permits, free;
    double step, burst, lead;

    *opens_ms = MODEL_NONE;
    if (l->algorithm == RATE_GCRA) {
        if (l->n == 0)
            return 0;
        lead = gcra(m, g, l, &step, &burst);
        /* Write it relative to now; otherwise it would be as much too late at every read. */
        if (g->has_tat &&
            (g->tat_base > m->now_us || (double)(g->tat_base - m->now_us) + g->tat_behind > burst))
            put_lead(m, g, lead);
        free = (int64_t)floor((burst - lead) / step + 1e-6);
    } else if (l->algorithm == RATE_SLIDING) {
        trim_log(m, g, l);
        free = l->n - (int64_t)g->logged;
    } else {
        if (g->has_window && g->window > window_now(m, g, l))
            put_count(m, g, l, g->count);
        free = l->n - window_count(m, g, l);
    }
    if (free <= 0)
        *opens_ms = rate_opens(m, g, l, 1);
    else if (free <= kept)
        *opens_ms = rate_opens(m, g, l, kept + 1);
    return free > kept ? free - kept : 0;
}

int64_t rate_opens(struct model *m, struct model_gate *g, const struct model_limit *l, int64_t n)
{
    int64_t per_us = l->per_ms * 1000, over;
    double step, burst, lead;

    if (n > (l->algorithm == RATE_GCRA ? l->burst : l->n) || l->n == 0)
        return MODEL_NONE;
    if (l->algorithm == RATE_GCRA) {
        lead = gcra(m, g, l, &step, &burst);
        return ceil_ms((double)m->now_us + ceil(lead + (double)n * step - burst));
    }
    if (l->algorithm == RATE_SLIDING) {
        /* A start that was counted while the clock was back may come after some that were not cut
         * yet. */
        if (g->logged > 1)
            qsort(g->log, g->logged, sizeof(g->log[0]), by_start);
        over = (int64_t)g->logged + n - l->n;
        return over <= 0 ? MODEL_MS(m) : ceil_ms((double)(g->log[over - 1][0] + per_us + 1));
    }
    if (window_count(m, g, l) + n <= l->n)
        return MODEL_MS(m);
    return ceil_ms((double)((window_now(m, g, l) + 1) * per_us));
}

/* GcraWindow and the like: no window has more starts than the definition allows. */
static void count_starts(struct model *m, struct model_gate *g, const struct model_limit *l,
                         int64_t n)
{
    int64_t now = m->gates->elapsed_us, sum = 0, per_us = l->per_ms * 1000;

    if (g->starts == STARTS_MAX)
        abort();
    g->start[g->starts++] = (struct model_start){now, n};
    for (size_t i = g->starts; i > 0; i--) {
        int64_t window = now - g->start[i - 1].at_us;

        sum += g->start[i - 1].n;
        if (l->algorithm == RATE_GCRA &&
            (double)sum > (double)l->burst + (double)window * (double)l->n / (double)per_us + 1e-5)
            m->gates->broken = "GcraWindow: more starts in a window than burst + rate * W";
        if (l->algorithm == RATE_SLIDING && window < per_us && sum > l->n)
            m->gates->broken = "more than n starts in a window that slides";
        if (l->algorithm == RATE_FIXED && window < per_us && sum > 2 * l->n)
            m->gates->broken = "more than 2 n starts around a border";
    }
}

void rate_take(struct model *m, struct model_gate *g, const struct model_limit *l, int64_t n)
{
    double step, burst, lead;

    count_starts(m, g, l, n);
    if (l->algorithm == RATE_GCRA) {
        lead = gcra(m, g, l, &step, &burst);
        put_lead(m, g, lead + (double)n * step);
    } else if (l->algorithm == RATE_SLIDING) {
        int64_t number = model_tick(m, n, 0);

        for (int64_t i = 0; i < n; i++) {
            if (g->logged == STARTS_MAX)
                abort();
            g->log[g->logged][0] = m->now_us;
            g->log[g->logged++][1] = number + i;
        }
        g->log_end = MODEL_MS(m) + l->per_ms + 1000;
    } else {
        put_count(m, g, l, window_count(m, g, l) + n);
    }
}

void gate_keep_claims(struct model *m, struct model_gate *g)
{
    const struct model_limit *l = g->kind == KIND_RATE ? limit_of(m, KIND_RATE, g->name) : NULL;

    if (l != NULL && l->algorithm == RATE_SLIDING && g->logged > 0)
        g->log_end = MODEL_MS(m) + l->per_ms + 1000;
}

int64_t rate_seen(struct model *m, struct model_gate *g, const struct model_limit *l,
                  int64_t *reset_us)
{
    int64_t per_us = l->per_ms * 1000, used = 0, last = MODEL_NONE, count;
    double step, burst, lead;

    *reset_us = 0;
    if (l->algorithm == RATE_GCRA) {
        int64_t free;

        if (l->n == 0)
            return 0;
        lead = gcra(m, g, l, &step, &burst);
        free = (int64_t)floor((burst - lead) / step + 1e-6);
        *reset_us = (int64_t)ceil(lead);
        return free > 0 ? free : 0;
    }
    if (l->algorithm == RATE_SLIDING) {
        for (size_t i = 0; i < g->logged; i++) {
            int64_t at = g->log[i][0] > m->now_us ? m->now_us : g->log[i][0];

            if (at <= m->now_us - per_us)
                continue;
            used++;
            last = at > last ? at : last;
        }
        *reset_us = last != MODEL_NONE ? last + per_us - m->now_us : 0;
        return l->n > used ? l->n - used : 0;
    }
    count = window_count(m, g, l);
    *reset_us = count > 0 ? (window_now(m, g, l) + 1) * per_us - m->now_us : 0;
    return l->n > count ? l->n - count : 0;
}

/* ---- one gate */

bool lock_is_over(const struct model *m, const struct model_gate *g)
{
    return !g->is_held || (g->until > 0 && g->until <= MODEL_MS(m));
}

/* Jobs wait at a gate without a definition; a note tells `later health`. */
static int64_t no_limit(struct model *m, const struct model_gate *g)
{
    CLEANUP_FREE char *note = mem_printf("no-limit:%.191s", g->name);

    model_put_note(m, note);
    return 0;
}

static int64_t sem_permits(struct model *m, struct model_gate *g, int64_t *opens_ms)
{
    const struct model_limit *l = limit_of(m, KIND_SEM, g->name);
    int64_t first = NO_END;
    size_t n = 0;

    if (l == NULL)
        return no_limit(m, g);
    for (size_t i = 0; i < g->permits; i++)
        if (g->permit[i].until > MODEL_MS(m))
            g->permit[n++] = g->permit[i];
    g->permits = n;
    if ((int64_t)n < l->n)
        return l->n - (int64_t)n;
    for (size_t i = 0; i < n; i++)
        first = g->permit[i].until < first ? g->permit[i].until : first;
    *opens_ms = first == NO_END ? MODEL_NONE : first;
    return 0;
}

int64_t gate_permits(struct model *m, struct model_gate *g, int64_t *opens_ms)
{
    const struct model_limit *l;

    *opens_ms = MODEL_NONE;
    if (g->kind == KIND_SEM)
        return sem_permits(m, g, opens_ms);
    if (g->kind == KIND_RATE) {
        l = limit_of(m, KIND_RATE, g->name);
        return l == NULL ? no_limit(m, g) : rate_permits(m, g, l, opens_ms);
    }
    if (lock_is_over(m, g))
        return 1;
    *opens_ms = g->until > 0 ? g->until : MODEL_NONE;
    return 0;
}

static struct model_holder *holder_called(struct model_gate *g, const char *who)
{
    for (size_t i = 0; i < g->permits; i++)
        if (strcmp(g->permit[i].who, who) == 0)
            return &g->permit[i];
    return NULL;
}

void gate_take(struct model *m, struct model_gate *g, const char *who, int64_t fence, int64_t until,
               bool is_reserved)
{
    struct model_holder *h;

    if (g->kind == KIND_RATE) {
        rate_take(m, g, limit_of(m, KIND_RATE, g->name), 1);
        return;
    }
    if (g->kind == KIND_SEM) {
        h = holder_called(g, who);
        if (h == NULL && g->permits == PERMITS_MAX)
            abort();
        h = h != NULL ? h : &g->permit[g->permits++];
        (void)snprintf(h->who, sizeof(h->who), "%s", who);
        h->until = until;
        h->since = MODEL_MS(m);
        return;
    }
    if (!lock_is_over(m, g))
        m->gates->broken = "I7: a lock was taken that somebody holds";
    g->is_held = true;
    (void)snprintf(g->holder, sizeof(g->holder), "%s", who);
    g->has_token = false;
    g->fence = fence;
    g->depth = is_reserved ? 0 : 1;
    g->until = until == NO_END ? 0 : until;
    g->since = MODEL_MS(m);
}

bool gate_drop(struct model *m, struct model_gate *g, const char *who)
{
    struct model_holder *h = holder_called(g, who);

    if (g->kind != KIND_LOCK) {
        if (h == NULL)
            return false;
        *h = g->permit[--g->permits];
        /* The key goes with the last lease. */
        if (g->kind == KIND_SEM && sem_ends(g) <= MODEL_MS(m))
            g->permits = 0;
    } else {
        if (!g->is_held || strcmp(g->holder, who) != 0)
            return false;
        g->is_held = false;
    }
    gate_touch(m, g);
    return true;
}

void gate_promise(struct model *m, struct model_gate *g, const char *who)
{
    struct model_holder *h = holder_called(g, who);

    if (g->kind != KIND_RATE) {
        gate_take(m, g, who, g->kind == KIND_LOCK ? model_tick(m, 1, 0) : 0, NO_END, false);
        return;
    }
    if (h != NULL)
        return;
    if (g->permits == PERMITS_MAX)
        abort();
    h = &g->permit[g->permits++];
    *h = (struct model_holder){.until = NO_END};
    (void)snprintf(h->who, sizeof(h->who), "%s", who);
}

void gate_spend(struct model *m, struct model_gate *g, const char *who, int64_t fence)
{
    struct model_holder *h = holder_called(g, who);
    const char *broken = m->gates->broken;
    bool is_earlier = h != NULL && h->is_earlier;
    size_t starts = g->starts;

    if (g->kind == KIND_LOCK && g->is_held && strcmp(g->holder, who) == 0)
        g->fence = fence;
    if (g->kind != KIND_RATE)
        return;
    if (h != NULL)
        *h = g->permit[--g->permits];
    if (limit_of(m, KIND_RATE, g->name) != NULL)
        gate_take(m, g, who, fence, NO_END, false);
    if (is_earlier) {
        g->starts = starts;
        m->gates->broken = broken;
    }
    gate_touch(m, g);
}

/* ---- jobs */

void gates_let_go(struct model *m, struct model_job *j, bool is_end)
{
    char *all, *next, *line;

    if (j->holds == NULL)
        return;
    all = j->holds;
    j->holds = NULL;
    for (line = strtok_r(all, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        if (strncmp(line, "then", 4) == 0 || strncmp(line, "batch ", 6) == 0)
            continue;
        if (strncmp(line, "fair ", 5) == 0)
            fair_finish(m, line);
        else if (strncmp(line, "uniq:", 5) != 0)
            (void)gate_drop(m, gate_of(m, line), j->id);
        else if (is_end)
            unique_end(m, j);
    }
    free(all);
}
