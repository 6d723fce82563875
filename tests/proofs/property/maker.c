#include "maker.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t rnd_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int below(struct maker *k, int n)
{
    return (int)(rnd_next(&k->rnd) % (uint64_t)n);
}

bool percent(struct maker *k, int p)
{
    return below(k, 100) < p;
}

int64_t any(struct maker *k, int64_t most)
{
    int64_t limit = 1;

    while (limit < most && !percent(k, 8))
        limit *= 3;
    return (int64_t)(rnd_next(&k->rnd) % (uint64_t)(limit < most ? limit : most));
}

/* ---- arguments */

void begin(struct maker *k, const char *function)
{
    args_text(k->args, "FCALL");
    args_text(k->args, function);
    args_text(k->args, "1");
    args_text(k->args, MODEL_ROOT);
}

void arg(struct maker *k, const char *s)
{
    args_text(k->args, s);
}

void number(struct maker *k, int64_t n)
{
    args_number(k->args, n);
}

void name(struct maker *k, const char *s)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%s", s);
    if (percent(k, 20))
        for (char *c = text; *c != '\0'; c++)
            *c = (char)toupper((unsigned char)*c);
    arg(k, text);
}

int queue_arg(struct maker *k)
{
    /* Most jobs in two queues, so that they meet. */
    int q = percent(k, 75) ? below(k, 2) : below(k, MODEL_QUEUES);

    arg(k, k->m->queue[q].name);
    return q;
}

struct model_options no_options(const struct model *m)
{
    return (struct model_options){.due = MODEL_MS(m),
                                  .priority = 5,
                                  .a = MODEL_NONE,
                                  .t = MODEL_NONE,
                                  .x = MODEL_NONE,
                                  .k = MODEL_NONE,
                                  .unique_for = MODEL_NONE,
                                  .chain = MODEL_NO_CHAIN};
}

/* Bytes of any length up to 600,000; different ones for different i. */
struct bytes large(int i, size_t n)
{
    static char all[700000];

    if (all[0] == '\0')
        for (size_t k = 0; k < sizeof(all); k++)
            all[k] = (char)(1 + k % 255);
    return (struct bytes){all + i, n};
}

struct bytes payload(struct maker *k)
{
    static const struct bytes small[] = {
        {"", 0},   {"x", 1},  {"hello world", 11},        {"a\nb\r\n", 5},  {"\0\0\xff\xfe\0", 5},
        {"in", 2}, {"--", 2}, {"{\"to\":\"a@b.c\"}", 14}, {"-mail 5\nx", 9}};
    static const size_t sizes[] = {64, 65, 1024, 1025, 2000, 16384, 16385, 20000};

    if (percent(k, 90))
        return PICK(k, small);
    return large(below(k, 10), percent(k, 2) ? 600000 : PICK(k, sizes));
}

int64_t duration_arg(struct maker *k, int64_t most)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"H", 3600000}, {"d", 86400000}};
    int u = percent(k, 50) ? 0 : below(k, (int)COUNT(units));
    int64_t n = any(k, most) / units[u].ms;
    char text[40];

    (void)snprintf(text, sizeof(text), "%lld%s", (long long)n, units[u].unit);
    arg(k, text);
    return n * units[u].ms;
}

static void rfc3339(char *text, size_t size, int64_t ms, int offset_min)
{
    time_t t = (time_t)(ms / 1000 + (int64_t)offset_min * 60);
    char zone[32] = "Z";
    struct tm tm;

    if (gmtime_r(&t, &tm) == NULL)
        abort();
    if (offset_min != 0)
        (void)snprintf(zone, sizeof(zone), "%c%02d:%02d", offset_min < 0 ? '-' : '+',
                       abs(offset_min) / 60, abs(offset_min) % 60);
    (void)snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%s", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms % 1000),
                   zone);
}

int64_t time_arg(struct maker *k)
{
    int64_t now = MODEL_MS(k->m);
    int64_t ms = percent(k, 70) ? now + any(k, 100000000) : now - any(k, 100000000);
    char text[64];

    switch (below(k, 5)) {
    case 0:
        ms = percent(k, 90) ? ms : any(k, 100000000);
        (void)snprintf(text, sizeof(text), "%lld", (long long)ms);
        break;
    case 1:
        ms = ms / 1000 * 1000;
        (void)snprintf(text, sizeof(text), "@%lld", (long long)(ms / 1000));
        break;
    case 2:
        (void)snprintf(text, sizeof(text), "@%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
        break;
    case 3:
        ms = now + any(k, 100000000);
        (void)snprintf(text, sizeof(text), "+%lldms", (long long)(ms - now));
        break;
    default:
        rfc3339(text, sizeof(text), ms, percent(k, 50) ? 0 : below(k, 1440) - 720);
        break;
    }
    arg(k, text);
    return ms;
}

const char *pick_id(struct maker *k)
{
    static const char *const wrong[] = {"j00000000000", "j0", "", "j0000000000A", "x"};
    static const char *const unique[] = {"mail@u1", "mail@u2", "sms@u1", "0@u:3", "mail@nobody"};

    if (percent(k, k->m->is_gated ? 8 : 1))
        return PICK(k, unique);

    for (int i = 0; i < 5 && k->m->jobs > 0 && !percent(k, 3); i++) {
        const struct model_job *j = &k->m->job[below(k, (int)k->m->jobs)];

        if (j->state != JOB_GONE || percent(k, 10))
            return j->id;
    }
    return PICK(k, wrong);
}

int64_t pick_epoch(struct maker *k, bool alive)
{
    for (int i = 0; i < 8 && k->m->workers > 0; i++) {
        const struct model_worker *w = &k->m->worker[below(k, (int)k->m->workers)];

        if ((w->is_there && !w->is_dead) || (!alive && percent(k, 50)))
            return w->epoch;
    }
    return k->m->workers > 0 ? k->m->worker[0].epoch : 7;
}
