#include "foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "server.h"

static const struct plan *plan;
/* Has the producer written this member? */
static bool is_there[PLAN_MEMBERS], was_there[PLAN_MEMBERS];

static void write_member(void *arg)
{
    size_t n = (size_t)((bool *)arg - is_there);
    int64_t due_ms = world_wall_us() / 1000 + random_between(-2000, 8000);
    char words[96];

    (void)snprintf(words, sizeof(words), "HSET bodies f%zu x", n);
    server_define(words);
    (void)snprintf(words, sizeof(words), "ZADD foreign %lld f%zu", (long long)due_ms, n);
    server_define(words);
    is_there[n] = true;
    world_say("a producer writes the member f%zu for %lld", n, (long long)due_ms);
}

void foreign_begin(const struct plan *p)
{
    plan = p;
    memset(is_there, 0, sizeof(is_there));
    memset(was_there, 0, sizeof(was_there));
    for (unsigned i = 0; i < p->members; i++)
        (void)world_in(random_between(0, p->chaos_us), NULL, write_member, &is_there[i], NULL);
}

const struct conf_queue *foreign_conf(const struct conf_queue *defaults)
{
    static struct conf_queue adopting;

    adopting = *defaults;
    adopting.adopt_zset = (char *)(uintptr_t) "foreign";
    adopting.adopt_bodies = (char *)(uintptr_t) "bodies";
    adopting.adopt_unit = CONF_ADOPT_MS;
    return &adopting;
}

void foreign_save(void)
{
    memcpy(was_there, is_there, sizeof(is_there));
}

void foreign_lose(void)
{
    memcpy(is_there, was_there, sizeof(is_there));
}

/* The number of this member, -1: it is none. */
static int number_of(const char *name)
{
    int n = name[0] == 'f' ? atoi(name + 1) : -1;

    return n < PLAN_MEMBERS ? n : -1;
}

static const struct entry *job_of(int n)
{
    for (size_t i = 0; i < ledger_count(); i++)
        if (ledger_at(i)->member == n + 1)
            return ledger_at(i);
    return NULL;
}

struct entry *foreign_meet(const char *id, const char *record)
{
    char key[16], queue[JOB_QUEUE_MAX + 1];
    const struct entry *other;
    struct entry *e;
    int n;

    if (!chain_field(record, 'K', key, sizeof(key)) || number_of(key) < 0)
        return NULL;
    n = number_of(key);
    other = job_of(n);
    if (other != NULL)
        world_break("foreign-once", "the member f%d became %s and %s", n, other->id, id);
    (void)snprintf(queue, sizeof(queue), "%.*s", (int)strcspn(record + 1, " \n"), record + 1);
    world_say("%s is the member f%d", id, n);
    e = ledger_add(id, queue);
    e->member = n + 1;
    return e;
}

bool foreign_is_left(void)
{
    struct reply *r;
    bool is_left;

    if (plan->members == 0)
        return false;
    r = server_ask("ZCARD foreign");
    is_left = reply_int(r) > 0;
    reply_free(r);
    return is_left;
}

void foreign_check(void)
{
    bool is_in_set[PLAN_MEMBERS] = {false};
    struct reply *r;

    if (plan->members == 0)
        return;
    r = server_ask("ZRANGE foreign 0 -1");
    for (size_t i = 0; i < reply_count(r); i++)
        if (number_of(reply_str(reply_at(r, i))) >= 0)
            is_in_set[number_of(reply_str(reply_at(r, i)))] = true;
    reply_free(r);
    for (int n = 0; n < PLAN_MEMBERS; n++) {
        const struct entry *job = is_there[n] ? job_of(n) : NULL;

        if (is_there[n] && is_in_set[n] == (job != NULL))
            world_break("foreign-once", "the member f%d is %s", n,
                        job != NULL ? "in its set and a job" : "lost");
    }
}
