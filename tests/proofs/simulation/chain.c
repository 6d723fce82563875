#include "chain.h"

#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "foreign.h"
#include "schedule.h"

void chain_option(struct chain *c, const char *name, const char *value)
{
    size_t n = strlen(c->then);

    if (strcmp(name, "then") == 0)
        (void)snprintf(c->then + n, sizeof(c->then) - n, "%s%s", n > 0 ? "," : "", value);
    else if (strcmp(name, "on_dead") == 0)
        (void)snprintf(c->on_dead, sizeof(c->on_dead), "%s", value);
}

bool chain_field(const char *record, char name, char *value, size_t size)
{
    const char key[] = {' ', name, '=', '\0'};
    const char *end = strchr(record, '\n'), *at = strstr(record, key);

    value[0] = '\0';
    if (end == NULL || at == NULL || at > end)
        return false;
    at += strlen(key);
    (void)snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
    return true;
}

/* Must the record name this batch, or none? It joins it. */
static void check_batch(struct entry *e, const struct entry *parent, const char *record, int want)
{
    char name[16];
    int has = chain_field(record, 'b', name, sizeof(name)) ? batch_number(name) : 0;

    if (has != want)
        world_break("I11-chain", "%s has batch %d, its parent %s has %d", e->id, has, parent->id,
                    parent->batch);
    if (has != 0)
        batch_join(e, has, parent);
}

/* A child has the payload `child of <id of its parent>`. A next job of it has that, too, and
 * another parent. */
static bool is_child(const char *record, const char *parent_id)
{
    const char *body = strchr(record, '\n');

    return body != NULL && strncmp(body + 1, CHAIN_CHILD, strlen(CHAIN_CHILD)) == 0 &&
           strncmp(body + 1 + strlen(CHAIN_CHILD), parent_id, JOB_ID_LEN) == 0;
}

static struct entry *meet_child(struct entry *parent, const char *id, const char *queue,
                                const char *record)
{
    bool joins = strstr(record, CHAIN_JOINS) != NULL;
    struct entry *e;
    int batch = joins ? parent->batch : 0;
    size_t at = ledger_index(parent);

    parent->chain.born++;
    e = ledger_add(id, queue);
    e->is_child = true;
    check_batch(e, ledger_at(at), record, batch);
    return e;
}

/* The record must have the queue and the rest of the chain that its parent says. */
static void check_record(const struct entry *parent, const char *record, bool is_death)
{
    const char *then = parent->chain.then;
    const char *rest = then + strcspn(then, ",");
    size_t len = is_death ? strlen(parent->chain.on_dead) : (size_t)(rest - then);
    struct chain has;

    (void)chain_field(record, 'n', has.then, sizeof(has.then));
    (void)chain_field(record, 'd', has.on_dead, sizeof(has.on_dead));
    rest += rest[0] == ',';
    if (len == 0 || strncmp(record + 1, is_death ? parent->chain.on_dead : then, len) != 0 ||
        record[1 + len] != ' ' || strcmp(has.then, is_death ? "" : rest) != 0 ||
        strcmp(has.on_dead, is_death ? "" : parent->chain.on_dead) != 0)
        world_break("I11-chain", "%s has then '%s', on_dead '%s' and caused %.80s", parent->id,
                    then, parent->chain.on_dead, record);
}

/* A job that no other one caused. */
static struct entry *meet_first(const char *id, const char *record)
{
    char text[8];
    struct entry *e;

    if (chain_field(record, 'S', text, sizeof(text)))
        return schedule_meet(id, record);
    e = foreign_meet(id, record);
    return e != NULL ? e : batch_meet(id, record);
}

struct entry *chain_meet(const char *id, const char *record)
{
    char parent_id[JOB_ID_LEN + 1], queue[JOB_QUEUE_MAX + 1], reason[8];
    struct entry *parent, *e;
    bool is_death = chain_field(record, 'm', reason, sizeof(reason));
    size_t at;

    if (!chain_field(record, 'p', parent_id, sizeof(parent_id)))
        return meet_first(id, record);
    parent = ledger_find(parent_id);
    if (parent == NULL) {
        world_break("I11-chain", "%s was caused by %s, which nobody added", id, parent_id);
        return NULL;
    }
    at = ledger_index(parent);
    (void)snprintf(queue, sizeof(queue), "%.*s", (int)strcspn(record + 1, " \n"), record + 1);
    world_say("%s was caused by the %s of %s", id, is_death ? "death" : "end", parent_id);
    if (is_child(record, parent_id) && !is_death)
        return meet_child(parent, id, queue, record);
    check_record(parent, record, is_death);
    if (is_death)
        parent->chain.told++;
    else
        parent->chain.followed++;
    e = ledger_add(id, queue);
    (void)chain_field(record, 'n', e->chain.then, sizeof(e->chain.then));
    (void)chain_field(record, 'd', e->chain.on_dead, sizeof(e->chain.on_dead));
    check_batch(e, ledger_at(at), record, is_death ? 0 : ledger_at(at)->batch);
    return e;
}

bool chain_owes(const struct entry *e)
{
    return e->chain.followed != e->chain.ends || e->chain.told != e->chain.deaths ||
           e->chain.born != e->chain.children;
}

void chain_check(const struct entry *e)
{
    if (chain_owes(e))
        world_break("I11-chain",
                    "%s was done %u times and has %u next jobs, died %u times and %u tell, has %u "
                    "children of %u",
                    e->id, e->chain.ends, e->chain.followed, e->chain.deaths, e->chain.told,
                    e->chain.born, e->chain.children);
}
