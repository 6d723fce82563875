#include "chain.h"

#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "child.h"
#include "finding.h"

void chain_goes_on(const struct ledger *l, struct job *j)
{
    j->ends += j->chain.n > 0 && !batch_is_cancelled(l, j);
}

void chain_dies(struct job *j)
{
    j->deaths += j->chain.on_dead >= 0 && !j->is_told;
    j->is_told = j->has_died = true;
}

bool chain_field(const char *header, char name, char value[64])
{
    const char key[] = {' ', name, '=', '\0'};
    const char *end = strchr(header, '\n'), *at = strstr(header, key);

    if (end == NULL || at == NULL || at > end)
        return false;
    at += strlen(key);
    (void)snprintf(value, 64, "%.*s", (int)strcspn(at, " \n"), at);
    return true;
}

/* What is left of the chain of a job, as its record has to tell it. */
static struct chain rest_of(const struct job *parent, bool is_death)
{
    struct chain rest = {.on_dead = LEDGER_NONE};

    if (is_death)
        return rest;
    rest.on_dead = parent->chain.on_dead;
    for (int i = 1; i < parent->chain.n; i++)
        rest.then[rest.n++] = parent->chain.then[i];
    return rest;
}

bool chain_is_such(const char *record, int queue, const struct chain *chain, int batch)
{
    size_t len = queue >= 0 ? strlen(names_queue[queue]) : 0;
    char all[64] = "", value[64];

    for (int i = 0; i < chain->n; i++)
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? "," : "",
                       names_queue[chain->then[i]]);
    if (len == 0 || strncmp(record + 1, names_queue[queue], len) != 0 || record[1 + len] != ' ')
        return false;
    if (chain_field(record, 'n', value) != (chain->n > 0) ||
        (chain->n > 0 && strcmp(value, all) != 0))
        return false;
    if (chain_field(record, 'b', value) != (batch >= 0) ||
        (batch >= 0 && strcmp(value, names_batch[batch]) != 0))
        return false;
    return chain_field(record, 'd', value) == (chain->on_dead >= 0) &&
           (chain->on_dead < 0 || strcmp(value, names_queue[chain->on_dead]) == 0);
}

/* The batch that the next job joins: the one of its parent, if that is there. */
static int next_batch(const struct ledger *l, const struct job *parent, const char *record)
{
    char name[64];

    if (parent->batch < 0 || !l->batch[parent->batch].is_there ||
        (l->is_blurred && !chain_field(record, 'b', name)))
        return LEDGER_NONE;
    return parent->batch;
}

static struct job *meet_caused(struct ledger *l, const char *id, const char *record)
{
    char parent_id[64], reason[64];
    bool is_death = chain_field(record, 'm', reason);
    struct job *parent, *j;
    struct chain rest;
    int queue, batch;

    if (!chain_field(record, 'p', parent_id))
        return NULL;
    parent = ledger_find(l, parent_id);
    if (parent == NULL && is_death)
        parent = child_died_unseen(l, parent_id, record);
    if (parent == NULL) {
        finding_break("chain", "%s %s was caused by %s, which is unknown", l->root, id, parent_id);
        return NULL;
    }
    queue = is_death ? parent->chain.on_dead : parent->chain.n > 0 ? parent->chain.then[0] : -1;
    batch = is_death ? LEDGER_NONE : next_batch(l, parent, record);
    rest = rest_of(parent, is_death);
    if (!chain_is_such(record, queue, &rest, batch >= 0 ? l->batch[batch].name : LEDGER_NONE))
        finding_break("chain", "%s %s caused %s with the record %.80s", l->root, parent_id, id,
                      record);
    *(is_death ? &parent->told : &parent->followed) += 1;
    j = ledger_add(l, id, queue >= 0 ? queue : 0);
    if (j != NULL) {
        j->chain = rest;
        j->batch = batch;
    }
    return j;
}

struct job *chain_meet(struct ledger *l, const char *id, const char *record)
{
    struct job *j = child_meet(l, id, record);

    if (j == NULL)
        j = batch_meet(l, id, record);
    return j != NULL ? j : meet_caused(l, id, record);
}

static void check(const struct ledger *l, struct job *j)
{
    if (l->is_blurred && j->followed <= 1 && j->told <= j->deaths + 1) {
        j->ends = j->followed;
        j->deaths = j->told;
    }
    if (j->followed != j->ends)
        finding_break("chain", "%s %s was done %d times and is followed by %d jobs", l->root, j->id,
                      j->ends, j->followed);
    if (j->told != j->deaths)
        finding_break("chain", "%s %s died %d times, and %d jobs tell of it", l->root, j->id,
                      j->deaths, j->told);
}

void chain_check(struct ledger *l)
{
    for (int i = 0; i < l->jobs; i++)
        check(l, &l->job[i]);
}
