#include "fair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "server.h"
#include "world.h"

#define R SERVER_ROOT
#define PRIORITIES 10

static const struct plan *plan;

/* ---- what people do */

const char *fair_any_text(void)
{
    static const char *const texts[] = {"", "fair=1", "fair=1 w=3:t1 w=100:t2", "fair=1 w=1000:t3"};

    return texts[random_between(0, (int64_t)(sizeof(texts) / sizeof(texts[0])) - 1)];
}

const char *fair_any_tenant(void)
{
    static const char *const tenants[] = {"t1", "t2", "t3", "t4"};

    return tenants[random_between(0, (int64_t)(sizeof(tenants) / sizeof(tenants[0])) - 1)];
}

void fair_begin(const struct plan *p)
{
    plan = p;
    for (unsigned q = 0; q < PLAN_QUEUES; q++) {
        const char *text = (p->fair & (1U << q)) != 0 ? fair_any_text() : "";
        const char *words[] = {"HSET", R ":queues", plan_queue(q), text};

        if (text[0] == '\0')
            continue;
        reply_free(server_call(4, words, NULL));
        world_say("queue %s: %s", plan_queue(q), text);
    }
}

/* ---- the rows */

/* What Redis has of a queue. */
struct rows {
    const char *queue;
    struct reply *text, *state, *marks;         /* in R:queues, R:fair, R:prio */
    struct reply *active, *later, *debts, *all; /* fair:, fair-next:, fair-debts:, fair-jobs: */
};

static struct reply *ask(const char *before, const char *queue, const char *behind)
{
    char words[128];

    (void)snprintf(words, sizeof(words), "%s%s%s", before, queue, behind);
    return server_ask(words);
}

static struct rows rows_get(const char *queue)
{
    return (struct rows){
        .queue = queue,
        .text = ask("HGET " R ":queues ", queue, ""),
        .state = ask("HGET " R ":fair ", queue, ""),
        .marks = ask("HGET " R ":prio ", queue, ""),
        .active = ask("ZRANGE " R ":fair:", queue, " 0 -1 WITHSCORES"),
        .later = ask("ZRANGE " R ":fair-next:", queue, " 0 -1 WITHSCORES"),
        .debts = ask("ZRANGE " R ":fair-debts:", queue, " 0 -1 WITHSCORES"),
        .all = ask("ZRANGE " R ":fair-jobs:", queue, " 0 -1"),
    };
}

static void rows_free(struct rows *rows)
{
    reply_free(rows->text);
    reply_free(rows->state);
    reply_free(rows->marks);
    reply_free(rows->active);
    reply_free(rows->later);
    reply_free(rows->debts);
    reply_free(rows->all);
}

/* -> the score of a member of pairs, NULL for none */
static const char *score_of(const struct reply *set, const char *member)
{
    for (size_t i = 0; i < reply_count(set); i++)
        if (reply_is(reply_at(reply_at(set, i), 0), member))
            return reply_str(reply_at(reply_at(set, i), 1));
    return NULL;
}

static bool has_line(const struct reply *lines, const char *line)
{
    for (size_t i = 0; i < reply_count(lines); i++)
        if (reply_is(reply_at(lines, i), line))
            return true;
    return false;
}

/* Do the tenants take turns, and have all waiting jobs? "<virtual time> <since>", and then nothing
 * that is to be done. */
static bool is_settled(const struct rows *rows)
{
    const char *state = reply_str(rows->state);
    const char *since = strchr(state, ' ');

    return strncmp(reply_str(rows->text), "fair=1", 6) == 0 && since != NULL &&
           strchr(since + 1, ' ') == NULL;
}

static void check_job(const struct rows *rows, unsigned priority, const struct reply *row)
{
    const char *id = reply_str(reply_at(row, 0)), *due = reply_str(reply_at(row, 1)), *first;
    struct reply *record = ask("HGET " R ":jobs ", id, "");
    char tenant[32], line[128];

    (void)chain_field(reply_str(record), 'K', tenant, sizeof(tenant));
    (void)snprintf(line, sizeof(line), "%s %u%015lld%s", tenant, priority, atoll(due), id);
    first = score_of(rows->later, tenant);
    if (!has_line(rows->all, line))
        world_break("fair-turn", "the tenant '%s' of %s does not have %s", tenant, rows->queue, id);
    if ((score_of(rows->active, tenant) != NULL) == (first != NULL))
        world_break("fair-turn", "the tenant '%s' of %s has %s, and is %s", tenant, rows->queue, id,
                    first != NULL ? "in both lists" : "in none");
    if (first != NULL && atoll(first) > atoll(due))
        world_break("fair-turn", "the tenant '%s' of %s sleeps until %s, and %s is due %s", tenant,
                    rows->queue, first, id, due);
    reply_free(record);
}

/* -> how many jobs wait */
static size_t check_jobs(const struct rows *rows)
{
    size_t n = 0;

    for (unsigned p = 0; p < PRIORITIES; p++) {
        char behind[32];
        struct reply *set;

        (void)snprintf(behind, sizeof(behind), ":%u 0 -1 WITHSCORES", p);
        set = ask("ZRANGE " R ":q:", rows->queue, behind);
        for (size_t i = 0; i < reply_count(set); i++)
            check_job(rows, p, reply_at(set, i));
        n += reply_count(set);
        reply_free(set);
    }
    return n;
}

/* Each of them has a waiting job. */
static void check_tenants(const struct rows *rows, const struct reply *tenants)
{
    for (size_t i = 0; i < reply_count(tenants); i++) {
        const char *tenant = reply_str(reply_at(reply_at(tenants, i), 0));
        size_t n = 0;

        for (size_t k = 0; k < reply_count(rows->all); k++) {
            const char *line = reply_str(reply_at(rows->all, k));

            n += strncmp(line, tenant, strlen(tenant)) == 0 && line[strlen(tenant)] == ' ';
        }
        if (n == 0)
            world_break("fair-left", "the tenant '%s' of %s has no jobs", tenant, rows->queue);
    }
}

static void check_debts(const struct rows *rows)
{
    for (size_t i = 0; i < reply_count(rows->debts); i++) {
        const char *tenant = reply_str(reply_at(reply_at(rows->debts, i), 0));

        if (score_of(rows->active, tenant) != NULL)
            world_break("fair-debt", "the tenant '%s' of %s has due jobs and a debt beside them",
                        tenant, rows->queue);
    }
}

static void check_queue(const char *queue)
{
    struct rows rows = rows_get(queue);
    size_t n;

    if (reply_str(rows.state)[0] != '\0' && strchr(reply_str(rows.marks), 'f') == NULL)
        world_break("I8-mark", "queue %s has tenants and no mark for that, only '%s'", queue,
                    reply_str(rows.marks));
    if (is_settled(&rows)) {
        n = check_jobs(&rows);
        if (n != reply_count(rows.all))
            world_break("fair-turn", "%zu jobs wait in %s, and its tenants have %zu", n, queue,
                        reply_count(rows.all));
        check_tenants(&rows, rows.active);
        check_tenants(&rows, rows.later);
        check_debts(&rows);
    }
    rows_free(&rows);
}

void fair_check(void)
{
    for (unsigned q = 0; plan->fair != 0 && q < PLAN_QUEUES; q++)
        check_queue(plan_queue(q));
}

/* ---- the end */

static void check_end_of(const char *queue)
{
    struct rows rows = rows_get(queue);
    const char *state = reply_str(rows.state);
    size_t n = reply_count(rows.active) + reply_count(rows.later) + reply_count(rows.debts) +
               reply_count(rows.all);

    if (n > 0)
        world_break("fair-left", "%zu rows of tenants of %s are left", n, queue);
    if (state[0] != '\0' && (strncmp(state, "0 ", 2) != 0 || !is_settled(&rows)))
        world_break("fair-left", "queue %s is left as '%s', it should be '%s'", queue, state,
                    reply_str(rows.text));
    rows_free(&rows);
}

void fair_check_end(void)
{
    for (unsigned q = 0; plan->fair != 0 && q < PLAN_QUEUES; q++)
        check_end_of(plan_queue(q));
}
