/*
 * Unique keys in the model: under each, a queue has at most one waiting or running job.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct model_unique *unique_of(struct model *m, int q, const char *key)
{
    for (size_t i = 0; i < UNIQUES_MAX; i++) {
        struct model_unique *u = &m->gates->unique[i];

        if (u->is_there && u->queue == q && strcmp(u->key, key) == 0)
            return u;
    }
    return NULL;
}

void unique_take(struct model *m, const struct model_job *j)
{
    struct model_unique *u;

    if (j->unique == NULL)
        return;
    u = unique_of(m, j->queue, j->unique);
    for (size_t i = 0; u == NULL && i < UNIQUES_MAX; i++)
        u = m->gates->unique[i].is_there ? NULL : &m->gates->unique[i];
    if (u == NULL)
        abort();
    *u = (struct model_unique){true, j->queue, j->unique, "", MODEL_NONE};
    (void)snprintf(u->id, sizeof(u->id), "%s", j->id);
}

void unique_lock(char name[MODEL_NAME], const struct model *m, const struct model_job *j)
{
    (void)snprintf(name, MODEL_NAME, "~unique:%s:%s", m->queue[j->queue].name, j->unique);
}

void unique_succeed(struct model *m, struct model_job *runs)
{
    struct model_gate *g;
    char name[MODEL_NAME];
    int64_t opens;

    unique_lock(name, m, runs);
    g = gate_named(m, KIND_LOCK, name);
    if (gate_permits(m, g, &opens) <= 0)
        return;
    gate_take(m, g, runs->id, model_tick(m, 1, 0), NO_END, false);
    model_set(&runs->holds,
              runs->holds != NULL ? mem_printf("%s\n%s", runs->holds, g->id) : mem_strdup(g->id));
}

void unique_free(struct model *m, int q, const char *key, const char *id, int64_t until)
{
    struct model_unique *u = unique_of(m, q, key);
    struct model_gate *g;
    char name[MODEL_NAME];

    if (u == NULL || strcmp(u->id, id) != 0)
        return;
    /* A successor that ends first gives the key back. */
    (void)snprintf(name, sizeof(name), "~unique:%s:%s", m->queue[q].name, key);
    g = gate_named(m, KIND_LOCK, name);
    if (g->is_held && strcmp(g->holder, id) != 0) {
        (void)snprintf(u->id, sizeof(u->id), "%.15s", g->holder);
        u->end = MODEL_NONE;
        return;
    }
    u->is_there = until != MODEL_NONE && until > MODEL_MS(m);
    u->end = until;
}

void unique_end(struct model *m, const struct model_job *j)
{
    if (j->unique != NULL)
        unique_free(m, j->queue, j->unique, j->id, j->unique_until);
}
