#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "chain.h"
#include "finding.h"

struct child *child_new(struct ledger *l, int serial, const struct job *parent,
                        const struct job *job)
{
    struct child *c = &l->child[l->children];

    if (l->children++ == LEDGER_CHILDREN)
        abort();
    *c = (struct child){.serial = serial, .parent = (int)(parent - l->job), .job = *job};
    return c;
}

void child_added(struct ledger *l, struct child *first, int n)
{
    for (int i = 0; i < n; i++) {
        first[i].is_due = true;
        batch_join(l, first[i].job.batch, &l->job[first[i].parent]);
    }
}

/* The child with the payload of this record. A next job may have the payload of its parent, so the
 * parent must fit, too. */
static struct child *find(struct ledger *l, const char *record)
{
    const char *body = strchr(record, '\n');
    char parent[64], payload[32];

    if (body == NULL || body[1] != 'n' || !chain_field(record, 'p', parent))
        return NULL;
    for (int i = l->children - 1; i >= 0; i--) {
        struct child *c = &l->child[i];

        (void)snprintf(payload, sizeof(payload), "n%d", c->serial);
        if (strcmp(payload, body + 1) == 0 && strcmp(l->job[c->parent].id, parent) == 0)
            return c;
    }
    return NULL;
}

struct job *child_meet(struct ledger *l, const char *id, const char *record)
{
    struct child *c = find(l, record);
    struct job *j;

    if (c == NULL)
        return NULL;
    if (!c->is_due || ++c->met > 1)
        finding_break("child",
                      "%s %s is there, number %d of n%d, which was %sadded with the end of "
                      "%s",
                      l->root, id, c->met, c->serial, c->is_due ? "" : "not ",
                      l->job[c->parent].id);
    if (!chain_is_such(record, c->job.queue, &c->job.chain,
                       c->job.batch >= 0 ? l->batch[c->job.batch].name : LEDGER_NONE))
        finding_break("child", "%s %s was added with the record %.80s", l->root, id, record);
    j = ledger_add(l, id, c->job.queue);
    if (j != NULL) {
        memcpy(c->job.id, j->id, sizeof(j->id));
        *j = c->job;
    }
    return j;
}

struct job *child_died_unseen(struct ledger *l, const char *id, const char *told)
{
    const char *body = strchr(told, '\n');
    char payload[32];

    for (int i = l->children - 1; i >= 0 && body != NULL; i--) {
        struct child *c = &l->child[i];

        (void)snprintf(payload, sizeof(payload), "n%d", c->serial);
        if (c->is_due && c->met == 0 && c->job.may_expire && strcmp(payload, body + 1) == 0) {
            struct job *j = ledger_add(l, id, c->job.queue);

            c->met = 1;
            if (j != NULL) {
                memcpy(c->job.id, j->id, sizeof(j->id));
                *j = c->job;
            }
            return j;
        }
    }
    return NULL;
}

void child_check(struct ledger *l)
{
    for (int i = 0; i < l->children; i++) {
        struct child *c = &l->child[i];

        if (!c->is_due || c->met > 0)
            continue;
        c->met = 1;
        if (!l->is_blurred)
            finding_break("child", "%s n%d was added with the end of %s, and is not there", l->root,
                          c->serial, l->job[c->parent].id);
    }
}
