#include "daemon/foreign_queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf_adopt.h"
#include "sched/server_clock.h"

#define ROUND_MS 1000 /* at most so long between two looks at a queue */
#define EVENT_MS 10   /* at least so long between two looks for which events ask */
#define CLOSER_US 50  /* the alarm is set anew if the clock is known better by this */
#define ITEM_WORDS 6  /* of a queue in a call */
#define NEVER INT64_MAX
#define NUMBER_BYTES 24

struct foreign_queue {
    char queue[65];
    char *zset, *bodies; /* bodies "": none */
    const char *unit;
    int64_t ask_ms;   /* when to ask Redis about it, by its clock */
    int64_t asked_ms; /* when it was asked about last */
    int64_t next_ms;  /* what it said of the next due time; NEVER: none is known */
    int64_t again_ms; /* when to look for missing bodies, by the pages of this round; NEVER */
    int64_t passed;   /* where the next page begins */
    char why[200];    /* what is wrong with it, as it was logged last; "": nothing */
};

struct foreign_queues {
    struct loop_alarm *alarm;
    struct link *link;
    int64_t answer_ms; /* no answer takes longer */
    char root[80];
    char epoch[NUMBER_BYTES]; /* "": not registered */
    int64_t phase_ms;         /* of the rounds: daemons that start together look at other times */
    struct server_clock clock;
    struct mono asked; /* when the call under way was sent */
    struct foreign_queue *at;
    size_t n;
    size_t first; /* the one to begin with: each has its turn */
    struct foreign_queue *in_call[CONF_ADOPT_MAX];
    size_t ncalled;   /* 0: no call is under way */
    bool is_outdated; /* the queues have changed since it was sent */
    bool is_stopped;
    char refusal[200]; /* of a whole call, as it was logged last; "": none */
};

static void go_on(struct foreign_queues *f);

static int64_t redis_now_ms(const struct foreign_queues *f)
{
    return server_clock_ms(&f->clock, mono_now());
}

/* ---- asking */

/* The end of the round: the same instants for all queues of this daemon, so that one call asks
 * about many. */
static int64_t round_end(const struct foreign_queues *f, int64_t now_ms)
{
    return ((now_ms - f->phase_ms) / ROUND_MS + 1) * ROUND_MS + f->phase_ms;
}

/* A call of later_v1_collect. */
struct call {
    const char *words[6 + CONF_ADOPT_MAX * ITEM_WORDS];
    char numbers[CONF_ADOPT_MAX][2][NUMBER_BYTES];
    int n;
};

static void put_item(struct call *c, const struct foreign_queue *q, char numbers[2][NUMBER_BYTES])
{
    (void)snprintf(numbers[0], NUMBER_BYTES, "%lld", (long long)q->next_ms);
    (void)snprintf(numbers[1], NUMBER_BYTES, "%lld", (long long)q->passed);
    c->words[c->n++] = q->queue;
    c->words[c->n++] = q->zset;
    c->words[c->n++] = q->bodies;
    c->words[c->n++] = q->unit;
    c->words[c->n++] = q->next_ms == NEVER ? "-" : numbers[0];
    c->words[c->n++] = numbers[1];
}

static void on_collected(void *arg, const struct reply *r);

/* Has the time of a queue come? A time after the end of the round is from before Redis' clock was
 * set back. */
static bool is_due(const struct foreign_queue *q, int64_t now_ms)
{
    return q->ask_ms <= now_ms || q->ask_ms > now_ms + ROUND_MS;
}

/* Ask about the queues whose time has come. */
static void ask(struct foreign_queues *f)
{
    struct call c = {.words = {"FCALL", "later_v1_collect", "1", f->root, f->epoch}, .n = 6};
    int64_t now_ms = redis_now_ms(f);
    char count[NUMBER_BYTES];

    f->ncalled = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct foreign_queue *q = &f->at[(f->first + i) % f->n];

        if (!is_due(q, now_ms))
            continue;
        q->asked_ms = now_ms;
        put_item(&c, q, c.numbers[f->ncalled]);
        f->in_call[f->ncalled++] = q;
    }
    if (f->ncalled == 0)
        return;
    (void)snprintf(count, sizeof(count), "%zu", f->ncalled);
    c.words[5] = count;
    f->first = (f->first + 1) % f->n;
    f->is_outdated = false;
    f->asked = mono_now();
    if (link_call(f->link, c.n, c.words, NULL, on_collected, f) < 0)
        f->ncalled = 0;
}

/* ---- answers */

static void tell(struct foreign_queue *q, const char *why)
{
    CLEANUP_BUF struct buf zset = BUF_INIT;

    if (strncmp(q->why, why, sizeof(q->why) - 1) == 0)
        return;
    text_copy(q->why, sizeof(q->why), why);
    text_escape(&zset, q->zset, strlen(q->zset));
    if (why[0] == '\0')
        log_notice("event=adoption queue=%s zset=\"%s\" state=works", q->queue, buf_str(&zset));
    else
        log_warn("event=bad-adoption queue=%s zset=\"%s\" reason=\"%s\" effect=\"its members stay "
                 "there\"",
                 q->queue, buf_str(&zset), q->why);
}

static int64_t time_of(const struct reply *r)
{
    return reply_kind(r) == REPLY_INT ? reply_int(r) : NEVER;
}

/* row: as of later_v1_collect. */
static void take_row(struct foreign_queues *f, struct foreign_queue *q, const struct reply *row)
{
    const struct reply *passed = reply_at(row, 2);
    int64_t again_ms = time_of(reply_at(row, 1)), now_ms = redis_now_ms(f), first_ms;

    q->again_ms = again_ms < q->again_ms ? again_ms : q->again_ms;
    if (reply_kind(passed) == REPLY_INT) {
        q->passed = reply_int(passed);
        q->ask_ms = now_ms;
        return;
    }
    tell(q, reply_str(reply_at(row, 5)));
    q->next_ms = time_of(reply_at(row, 0));
    first_ms = q->next_ms < q->again_ms ? q->next_ms : q->again_ms;
    q->again_ms = NEVER;
    q->passed = 0;
    q->ask_ms = round_end(f, now_ms);
    if (first_ms < q->ask_ms)
        q->ask_ms = first_ms > now_ms ? first_ms : now_ms + 1;
}

static void tell_refusal(struct foreign_queues *f, const char *text)
{
    if (text[0] != '\0' && strncmp(f->refusal, text, sizeof(f->refusal) - 1) != 0)
        log_err("event=refused class=adoption reason=\"%s\" effect=\"members stay where they are\"",
                text);
    text_copy(f->refusal, sizeof(f->refusal), text);
}

static void on_collected(void *arg, const struct reply *r)
{
    struct foreign_queues *f = arg;
    size_t n = f->ncalled;
    bool is_fine = reply_kind(r) == REPLY_ARRAY && reply_count(r) == n + 1;

    f->ncalled = 0;
    if (is_fine)
        (void)server_clock_note_time(&f->clock, f->asked, mono_now(), reply_int(reply_at(r, 0)));
    tell_refusal(f, is_fine ? "" : reply_kind(r) == REPLY_ERROR ? reply_str(r) : "a bad answer");
    for (size_t i = 0; i < n && !f->is_outdated; i++) {
        if (is_fine)
            take_row(f, f->in_call[i], reply_at(r, i + 1));
        else
            f->in_call[i]->ask_ms = round_end(f, redis_now_ms(f));
    }
    go_on(f);
}

/* ---- what comes next */

static void set_alarm(struct foreign_queues *f)
{
    int64_t first_ms = redis_now_ms(f) + ROUND_MS;

    for (size_t i = 0; i < f->n; i++)
        first_ms = f->at[i].ask_ms < first_ms ? f->at[i].ask_ms : first_ms;
    if (f->n > 0)
        loop_alarm_set(f->alarm, server_clock_at(&f->clock, first_ms));
}

/* Ask, or set the alarm for the next time. Without a link a beat goes on. */
static void go_on(struct foreign_queues *f)
{
    loop_alarm_set(f->alarm, MONO_NEVER);
    if (f->ncalled > 0 || !link_is_up(f->link) || f->is_stopped || f->epoch[0] == '\0' ||
        f->clock.received.us == 0)
        return;
    ask(f);
    if (f->ncalled == 0)
        set_alarm(f);
}

static void on_alarm(void *arg)
{
    go_on(arg);
}

/* ---- the daemon */

struct foreign_queues *foreign_queues_new(struct loop *loop, struct link *link, const char *ns,
                                          int64_t answer_ms)
{
    struct foreign_queues *f = mem_new(sizeof(*f));

    f->link = link;
    f->answer_ms = answer_ms;
    (void)snprintf(f->root, sizeof(f->root), "later:{%s}", ns);
    f->alarm = loop_alarm_new(loop, on_alarm, f);
    if (f->alarm != NULL)
        return f;
    free(f);
    return NULL;
}

static void forget(struct foreign_queues *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->at[i].zset);
        free(f->at[i].bodies);
    }
    free(f->at);
    f->at = NULL;
    f->n = f->first = 0;
    f->is_outdated = true;
}

void foreign_queues_free(struct foreign_queues *f)
{
    if (f == NULL)
        return;
    forget(f);
    loop_alarm_free(f->alarm);
    free(f);
}

static void add(struct foreign_queues *f, const struct served_queue *served)
{
    struct foreign_queue *q = &f->at[f->n++];

    text_copy(q->queue, sizeof(q->queue), served->name);
    q->zset = mem_strdup(served->conf->adopt_zset);
    q->bodies = mem_strdup(served->conf->adopt_bodies);
    q->unit = served->conf->adopt_unit == CONF_ADOPT_MS ? "ms" : "s";
    q->next_ms = q->again_ms = NEVER;
}

void foreign_queues_set(struct foreign_queues *f, const struct served_queues *served)
{
    const char *keys[CONF_ADOPT_MAX + 1] = {NULL};

    if (f == NULL)
        return;
    forget(f);
    f->at = mem_new(CONF_ADOPT_MAX * sizeof(*f->at));
    for (size_t i = 0; i < served->n && f->n < CONF_ADOPT_MAX; i++)
        if (served->at[i].conf->adopt_zset[0] != '\0')
            add(f, &served->at[i]);
    for (size_t i = 0; i < f->n; i++)
        keys[i] = f->at[i].zset;
    link_watch(f->link, keys);
    go_on(f);
}

void foreign_queues_registered(struct foreign_queues *f, int64_t epoch)
{
    if (f == NULL)
        return;
    (void)snprintf(f->epoch, sizeof(f->epoch), "%lld", (long long)epoch);
    f->phase_ms = epoch % ROUND_MS;
    go_on(f);
}

void foreign_queues_note_time(struct foreign_queues *f, int64_t now_us)
{
    int64_t was_us;

    if (f == NULL || now_us <= 0)
        return;
    was_us = f->clock.behind_us;
    (void)server_clock_note_time(&f->clock, mono_add_ms(mono_now(), -f->answer_ms), mono_now(),
                                 now_us);
    if (was_us - f->clock.behind_us > CLOSER_US && f->ncalled == 0)
        go_on(f);
}

void foreign_queues_changed(struct foreign_queues *f, const char *key)
{
    int64_t now_ms;

    if (f == NULL)
        return;
    now_ms = redis_now_ms(f);
    for (size_t i = 0; i < f->n; i++) {
        struct foreign_queue *q = &f->at[i];
        int64_t soon_ms = (q->asked_ms < now_ms ? q->asked_ms : now_ms) + EVENT_MS;

        if (strcmp(q->zset, key) == 0 && q->ask_ms > soon_ms)
            q->ask_ms = soon_ms;
    }
    go_on(f);
}

void foreign_queues_beat(struct foreign_queues *f)
{
    if (f != NULL)
        go_on(f);
}

void foreign_queues_link_down(struct foreign_queues *f)
{
    if (f == NULL)
        return;
    f->ncalled = 0;
    loop_alarm_set(f->alarm, MONO_NEVER);
}

void foreign_queues_stop(struct foreign_queues *f)
{
    if (f == NULL)
        return;
    f->is_stopped = true;
    loop_alarm_set(f->alarm, MONO_NEVER);
}
