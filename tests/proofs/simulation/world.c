#include "world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define BEGIN_US INT64_C(1000000000)              /* of the monotonic clock */
#define WALL_US INT64_C(1767225600) * 1000 * 1000 /* at that time: 2026-01-01 */

struct event {
    int64_t at_us;
    /* Events at one time happen by when they were due, then by when they were planned. */
    int64_t due_us;
    uint64_t seq;
    const struct owner *owner;
    event_f *fn, *drop; /* fn NULL: cancelled */
    void *arg;
};

struct world world;
static struct event **heap;
static size_t nheap, heap_cap;
static uint64_t next_seq, random_state;

/* ---- the heap of events */

static bool is_before(const struct event *a, const struct event *b)
{
    if (a->at_us != b->at_us)
        return a->at_us < b->at_us;
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->seq < b->seq;
}

static void push(struct event *e)
{
    size_t i = nheap++;

    if (nheap > heap_cap) {
        heap_cap = nheap * 2;
        heap = mem_grow(heap, heap_cap, sizeof(*heap));
    }
    while (i > 0 && is_before(e, heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = e;
}

static struct event *pop(void)
{
    struct event *first = heap[0], *last = heap[--nheap];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < nheap) {
        if (child + 1 < nheap && is_before(heap[child + 1], heap[child]))
            child++;
        if (!is_before(heap[child], last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

struct event *world_at(int64_t at_us, const struct owner *owner, event_f *fn, void *arg,
                       event_f *drop)
{
    struct event *e = mem_new(sizeof(*e));

    at_us = at_us > world.now_us ? at_us : world.now_us;
    *e = (struct event){at_us, at_us, ++next_seq, owner, fn, drop, arg};
    push(e);
    return e;
}

struct event *world_in(int64_t us, const struct owner *owner, event_f *fn, void *arg, event_f *drop)
{
    return world_at(world.now_us + us, owner, fn, arg, drop);
}

void world_cancel(struct event *e)
{
    if (e != NULL)
        e->fn = NULL;
}

static void drop(struct event *e)
{
    if (e->fn != NULL && e->drop != NULL)
        e->drop(e->arg);
    free(e);
}

static void happen(struct event *e)
{
    struct event now = *e;

    if (e->fn == NULL || (e->owner != NULL && e->owner->is_dead)) {
        drop(e);
    } else if (e->owner != NULL && e->owner->frozen_until > world.now_us) {
        e->at_us = e->owner->frozen_until;
        push(e);
    } else {
        free(e);
        world.current = now.owner;
        now.fn(now.arg);
        world.current = NULL;
    }
}

bool world_run(int64_t until_us, bool (*stop)(void *arg), void *arg)
{
    while (world.broken[0] == '\0') {
        if (stop != NULL && stop(arg))
            return true;
        if (nheap == 0 || heap[0]->at_us > until_us) {
            world.now_us = until_us;
            return false;
        }
        if (heap[0]->at_us > world.now_us)
            world.now_us = heap[0]->at_us;
        happen(pop());
    }
    return false;
}

/* ---- begin and end */

void world_begin(uint64_t seed, FILE *log)
{
    memset(&world, 0, sizeof(world));
    world.now_us = BEGIN_US;
    world.is_running = true;
    world.log = log;
    next_seq = 0;
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
}

void world_end(void)
{
    while (nheap > 0)
        drop(heap[--nheap]);
    free(heap);
    heap = NULL;
    heap_cap = 0;
    world.is_running = false;
    world.current = NULL;
}

int64_t world_age_us(void)
{
    return world.now_us - BEGIN_US;
}

int64_t world_wall_us(void)
{
    return WALL_US + world_age_us() + world.wall_step_us;
}

/* ---- chance: splitmix64 (Steele, Lea, Flood 2014) */

uint64_t random_next(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t random_between(int64_t from, int64_t to)
{
    return from + (int64_t)(random_next() % (uint64_t)(to - from + 1));
}

bool random_chance(unsigned permille)
{
    return random_next() % 1000 < permille;
}

/* The product asks the system for random bytes; here they come from the seed. */
ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t r = random_next();

        memcpy((char *)out + i, &r, n - i < 8 ? n - i : 8);
    }
    return (ssize_t)n;
}

/* ---- clock and log of the product, replaced */

struct mono mono_now(void)
{
    struct timespec ts;

    if (world.is_running)
        return (struct mono){world.now_us};
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (struct mono){(int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000};
}

/* Machines never sleep here. */
struct boot boot_now(void)
{
    return (struct boot){mono_now().us};
}

int64_t wall_skew_ms(int64_t told_us)
{
    return (world_wall_us() - world.wall_step_us - told_us) / 1000;
}

__attribute__((format(printf, 1, 0))) static void say(const char *fmt, va_list ap)
{
    int64_t us = world_age_us();

    (void)fprintf(world.log, "%5lld.%06lld %-5s ", (long long)(us / SECOND),
                  (long long)(us % SECOND), world.current != NULL ? world.current->name : "-");
    (void)vfprintf(world.log, fmt, ap);
    (void)fputc('\n', world.log);
}

void world_say(const char *fmt, ...)
{
    va_list ap;

    if (world.log == NULL)
        return;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

void world_break(const char *property, const char *fmt, ...)
{
    char why[256];
    va_list ap;

    if (world.broken[0] != '\0')
        return;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    (void)snprintf(world.broken, sizeof(world.broken), "%s", property);
    (void)snprintf(world.why, sizeof(world.why), "%s", why);
    world_say("BROKEN %s: %s", property, why);
}

void log_init(enum log_level max)
{
    (void)max;
}

void log_set_level(enum log_level max)
{
    (void)max;
}

void log_set_worker(int64_t epoch)
{
    (void)epoch;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    (void)level;
    if (world.log == NULL)
        return;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}
