#include "daemon/gate_settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define PIECE 200 /* most limits, and most queues, in a call: about a millisecond for Redis */

/* Name, text pairs as the store takes them. */
struct pairs {
    char **at;
    size_t n;
};

struct gate_settings {
    struct store_redis *store;
    int64_t epoch; /* 0: not registered yet */
    struct pairs limits, queues;
    char **cures;      /* by limit: the command that sets it in Redis */
    char **told;       /* by limit: the definition in force that was logged, or NULL */
    bool is_wanted;    /* it has to be told */
    bool has_failed;   /* a piece of what is under way was refused */
    size_t out;        /* pieces under way */
    char refusal[160]; /* the refusal that was logged last */
};

static void add_pair(struct pairs *p, const char *name, struct buf *text)
{
    p->at[2 * p->n] = mem_strdup(name);
    p->at[2 * p->n + 1] = mem_strdup(buf_str(text));
    p->n++;
}

static void texts_free(char **at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(at[i]);
    free(at);
}

static bool is_same(const struct pairs *a, const struct pairs *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < 2 * a->n; i++)
        if (strcmp(a->at[i], b->at[i]) != 0)
            return false;
    return true;
}

/* Append a name as one word of a shell command. */
static void put_word(const char *name, struct buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@/+-";

    if (name[strspn(name, plain)] == '\0') {
        buf_puts(out, name);
        return;
    }
    buf_puts(out, "'");
    for (; *name != '\0'; name++) {
        if (*name == '\'')
            buf_puts(out, "'\\''");
        else
            buf_add(out, name, 1);
    }
    buf_puts(out, "'");
}

static void put_cure(const struct conf_limit *limit, struct buf *out)
{
    char per[24];

    buf_puts(out, "later limits set ");
    put_word(limit->name, out);
    if (!limit->is_rate) {
        buf_printf(out, " semaphore %lld%s", (long long)limit->semaphore,
                   limit->on_lost == CONF_ON_LOST_KILL ? " --on-lost kill" : "");
        return;
    }
    buf_printf(out, " rate %lld/%s", (long long)limit->rate.n,
               text_duration(limit->rate.per_ms, per));
    if (limit->burst != 1)
        buf_printf(out, " --burst %lld", (long long)limit->burst);
    if (limit->algorithm == CONF_ALGORITHM_SLIDING)
        buf_puts(out, " --algorithm sliding");
    else if (limit->algorithm == CONF_ALGORITHM_FIXED)
        buf_puts(out, " --algorithm fixed");
}

static struct pairs limits_of(const struct conf *conf)
{
    struct pairs p = {mem_new((2 * conf->nlimits + 1) * sizeof(char *)), 0};

    for (size_t i = 0; i < conf->nlimits; i++) {
        CLEANUP_BUF struct buf text = BUF_INIT;

        conf_limit_text(&conf->limits[i], &text);
        add_pair(&p, conf->limits[i].name, &text);
    }
    return p;
}

static struct pairs queues_of(const struct conf *conf)
{
    struct pairs p = {mem_new((2 * conf->nqueues + 1) * sizeof(char *)), 0};

    for (size_t i = 0; i < conf->nqueues; i++) {
        CLEANUP_BUF struct buf text = BUF_INIT;

        conf_queue_gates(&conf->queues[i], &text);
        add_pair(&p, conf->queues[i].name, &text);
    }
    return p;
}

static void forget(struct gate_settings *g)
{
    texts_free(g->cures, g->limits.n);
    texts_free(g->told, g->limits.n);
    texts_free(g->limits.at, 2 * g->limits.n);
    texts_free(g->queues.at, 2 * g->queues.n);
}

struct gate_settings *gate_settings_new(struct store_redis *store)
{
    struct gate_settings *g = mem_new(sizeof(*g));

    g->store = store;
    return g;
}

void gate_settings_free(struct gate_settings *g)
{
    if (g == NULL)
        return;
    forget(g);
    free(g);
}

/* Piece i of a list; past its end it is empty. */
static struct store_fields piece(const struct pairs *p, size_t i)
{
    size_t from = i * PIECE < p->n ? i * PIECE : p->n;
    size_t n = p->n - from < PIECE ? p->n - from : PIECE;

    return (struct store_fields){(const char *const *)p->at + 2 * from, n};
}

static void tell(struct gate_settings *g)
{
    size_t longest = g->limits.n > g->queues.n ? g->limits.n : g->queues.n;

    if (!g->is_wanted || g->epoch == 0 || g->out > 0)
        return;
    g->has_failed = false;
    for (size_t i = 0; i * PIECE < longest; i++) {
        struct store_fields limits = piece(&g->limits, i), queues = piece(&g->queues, i);

        if (store_declare(g->store, g->epoch, &limits, &queues) < 0)
            return; /* gate_settings_link_down follows */
        g->out++;
    }
    g->is_wanted = false;
}

void gate_settings_set(struct gate_settings *g, const struct conf *conf)
{
    struct pairs limits, queues;

    if (g == NULL)
        return;
    limits = limits_of(conf);
    queues = queues_of(conf);
    if (is_same(&limits, &g->limits) && is_same(&queues, &g->queues)) {
        texts_free(limits.at, 2 * limits.n);
        texts_free(queues.at, 2 * queues.n);
        return;
    }
    forget(g);
    g->limits = limits;
    g->queues = queues;
    g->told = mem_new((limits.n + 1) * sizeof(char *));
    g->cures = mem_new((limits.n + 1) * sizeof(char *));
    for (size_t i = 0; i < limits.n; i++) {
        struct buf cure = BUF_INIT;

        put_cure(&conf->limits[i], &cure);
        g->cures[i] = buf_take(&cure);
    }
    g->is_wanted = true;
    tell(g);
}

void gate_settings_registered(struct gate_settings *g, int64_t epoch)
{
    if (g == NULL)
        return;
    g->epoch = epoch;
    g->is_wanted = true;
    tell(g);
}

void gate_settings_beat(struct gate_settings *g)
{
    if (g != NULL)
        tell(g);
}

void gate_settings_link_down(struct gate_settings *g)
{
    if (g == NULL)
        return;
    g->is_wanted = g->is_wanted || g->out > 0;
    g->out = 0;
}

/* in_force: what Redis has; "" if it takes no more limits. */
static void tell_difference(struct gate_settings *g, const char *name, const char *in_force)
{
    for (size_t i = 0; i < g->limits.n; i++) {
        if (strcmp(g->limits.at[2 * i], name) != 0)
            continue;
        if (g->told[i] != NULL && strcmp(g->told[i], in_force) == 0)
            return;
        free(g->told[i]);
        g->told[i] = mem_strdup(in_force);
        if (in_force[0] == '\0')
            log_warn("event=limit-not-taken limit=%s here=\"%s\" reason=\"the fleet has as many "
                     "limits as it takes\" cure=\"later limits delete what nothing uses, or one "
                     "name with {key} for many\"",
                     name, g->limits.at[2 * i + 1]);
        else
            log_warn("event=limit-differs limit=%s here=\"%s\" fleet=\"%s\" reason=\"what the "
                     "fleet has holds\" cure=\"%s, or change the file\"",
                     name, g->limits.at[2 * i + 1], in_force, g->cures[i]);
        return;
    }
}

static void tell_refusal(struct gate_settings *g, const char *text)
{
    if (strncmp(g->refusal, text, sizeof(g->refusal) - 1) == 0)
        return;
    text_copy(g->refusal, sizeof(g->refusal), text);
    log_warn("event=gates-refused reason=\"%s\" effect=\"limits and gates of queues in the "
             "configuration are not in force yet\"",
             text);
}

void gate_settings_declared(struct gate_settings *g, const struct store_declare_reply *r)
{
    if (g == NULL || g->out == 0)
        return;
    g->out--;
    if (r->error != NULL) {
        g->has_failed = true;
        tell_refusal(g, r->error);
    }
    for (size_t i = 0; i < r->n; i++)
        tell_difference(g, r->differing[2 * i], r->differing[2 * i + 1]);
    if (g->out > 0)
        return;
    if (g->has_failed) {
        g->is_wanted = true; /* told again with the next beat */
        return;
    }
    g->refusal[0] = '\0';
    tell(g);
}
