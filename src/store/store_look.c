/*
 * A look at many queues: which of them a step has to name, for a fraction of what it costs to name
 * them all. The library tells of due heads, marks and pauses; of the raw sets, which producers
 * write past it, plain EXISTS does. It tells how many of its keys there are: none, all, or it is
 * asked of each half.
 */
#include "store/store_redis_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#define KEYS_MOST 1024 /* of one EXISTS: no call is long */
#define KEY_MAX (sizeof(((struct store_redis *)0)->root) + sizeof(":due:") + JOB_QUEUE_MAX)

/* A question under way: of keys[from..to), with to 0 of all queues. */
struct look_range {
    unsigned round;
    size_t from, to;
};

/* Answers come in the order of the questions, those to a look that was given up too. */
struct look {
    unsigned round;
    char (*keys)[KEY_MAX];
    size_t n, prefix;          /* of each key, before the queue */
    struct look_range *ranges; /* under way are [first, last) */
    size_t first, last, cap;
    size_t open; /* of this round */
};

static void remember(struct look *l, size_t from, size_t to)
{
    if (l->first == l->last)
        l->first = l->last = 0;
    if (l->last == l->cap) {
        l->cap = l->cap == 0 ? 16 : 2 * l->cap;
        l->ranges = mem_grow(l->ranges, l->cap, sizeof(*l->ranges));
    }
    l->ranges[l->last++] = (struct look_range){l->round, from, to};
    l->open++;
}

/* The question that this answers; round 0: nobody waits for it any more. */
static struct look_range take_range(struct look *l)
{
    struct look_range range = l->ranges[l->first++];

    if (range.round != l->round)
        return (struct look_range){0};
    l->open--;
    return range;
}

static void give_up(struct look *l)
{
    l->open = 0;
    if (++l->round == 0)
        l->round = 1;
}

/* ---- what was found */

static void tell(struct store_redis *s, const char *const *names, size_t n)
{
    s->events.looked(s->events.arg, names, n, s->look->open == 0);
}

static void tell_range(struct store_redis *s, size_t from, size_t to)
{
    const struct look *l = s->look;
    CLEANUP_FREE const char **names = mem_new((to - from + 1) * sizeof(*names));

    for (size_t i = from; i < to; i++)
        names[i - from] = l->keys[i] + l->prefix;
    tell(s, names, to - from);
}

/* One error stands for the whole look. */
static void fail(struct store_redis *s, const struct reply *r)
{
    give_up(s->look);
    (void)store_redis_is_bad(s, r, SIZE_MAX);
}

/* ---- raw sets */

static void on_exists(void *arg, const struct reply *r);

static int ask_exists(struct store_redis *s, size_t from, size_t to)
{
    const char *argv[1 + KEYS_MOST];

    argv[0] = "EXISTS";
    for (size_t i = from; i < to; i++)
        argv[1 + i - from] = s->look->keys[i];
    if (link_call(s->link, (int)(1 + to - from), argv, NULL, on_exists, s) < 0)
        return -1;
    remember(s->look, from, to);
    return 0;
}

static void on_exists(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct look_range range = take_range(s->look);
    size_t n = range.to - range.from, middle = range.from + n / 2;
    int64_t there = reply_int(r);

    if (range.round == 0)
        return;
    if (reply_kind(r) != REPLY_INT || there < 0 || (size_t)there > n) {
        fail(s, r);
    } else if (there == 0) {
        tell_range(s, range.from, range.from);
    } else if ((size_t)there == n) {
        tell_range(s, range.from, range.to);
    } else {
        /* Without a link nobody waits for the rest. */
        (void)(ask_exists(s, range.from, middle) == 0 && ask_exists(s, middle, range.to) == 0);
    }
}

/* ---- heads, marks and pauses */

static void on_look(void *arg, const struct reply *r);

/* With to 0 of all queues. */
static int ask_library(struct store_redis *s, size_t from, size_t to)
{
    struct args a = args_begin(s, "later_v1_look", 0);

    for (size_t i = from; i < to; i++)
        args_str(&a, s->look->keys[i] + s->look->prefix);
    if (args_send(&a, s, on_look) < 0)
        return -1;
    remember(s->look, from, to);
    return 0;
}

/* The first of a chunk -> the first of the next. */
static size_t end_of_chunk(const struct look *l, size_t i)
{
    return l->n - i < KEYS_MOST ? l->n : i + KEYS_MOST;
}

static void on_look(void *arg, const struct reply *r)
{
    struct store_redis *s = arg;
    struct look *l = s->look;
    struct look_range range = take_range(l);
    CLEANUP_FREE const char **names = NULL;
    size_t n;

    if (range.round == 0)
        return;
    if (reply_count(r) == 0) {
        fail(s, r);
    } else if (range.to == 0 && reply_int(reply_at(r, 0)) != 0) {
        for (size_t i = 0; i < l->n; i = end_of_chunk(l, i)) {
            if (ask_library(s, i, end_of_chunk(l, i)) < 0)
                return;
        }
    } else {
        names = store_redis_texts(r, &n);
        tell(s, names + 1, n - 1);
    }
}

/* ---- the question */

static void set_keys(struct store_redis *s, const char *const *queues, size_t n)
{
    struct look *l = s->look;
    char prefix[KEY_MAX];

    l->keys = mem_grow(l->keys, n, sizeof(*l->keys));
    l->n = n;
    l->prefix = (size_t)snprintf(prefix, sizeof(prefix), "%s:due:", s->root);
    for (size_t i = 0; i < n; i++) {
        memcpy(l->keys[i], prefix, l->prefix);
        text_copy(l->keys[i] + l->prefix, sizeof(l->keys[i]) - l->prefix, queues[i]);
    }
}

int store_look(struct store_redis *s, const char *const *queues, size_t n)
{
    if (s->look == NULL)
        s->look = mem_new(sizeof(*s->look));
    give_up(s->look);
    set_keys(s, queues, n);
    if (ask_library(s, 0, 0) < 0)
        return -1;
    for (size_t i = 0; i < n; i = end_of_chunk(s->look, i)) {
        if (ask_exists(s, i, end_of_chunk(s->look, i)) < 0)
            return -1;
    }
    return 0;
}

void store_look_reset(struct look *l)
{
    if (l != NULL)
        l->first = l->last = l->open = 0;
}

void store_look_free(struct look *l)
{
    if (l == NULL)
        return;
    free(l->keys);
    free(l->ranges);
    free(l);
}
