#include "audit.h"

#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "batch.h"
#include "store/keys.h"
#include "finding.h"

#define PAGE 200

static struct call call;

static void begin(const struct ledger *l, const char *phase, const char *cursor)
{
    call_function(&call, "later_v1_audit", l->root);
    call_text(&call, phase);
    call_text(&call, cursor);
    call_number(&call, PAGE);
}

/* Read one page. Its findings go to finding_break. The next cursor, "" at the end, is copied to
 * next. */
static void ask(const struct ledger *l, char next[24])
{
    struct reply *r = arena_must(&call);

    for (size_t i = 2; i < reply_count(r); i++) {
        const struct reply *f = reply_at(r, i);

        /* What could not be put back because of a foreign key is left to the reaper, by design. */
        if (reply_is(reply_at(f, 0), "stranger"))
            continue;
        if (reply_is(reply_at(f, 0), "lost-callback") &&
            batch_is_hindered(l, reply_str(reply_at(f, 1))))
            continue;
        finding_break(reply_str(reply_at(f, 0)), "%s %s %s: %s", l->root, reply_str(reply_at(f, 1)),
                      reply_str(reply_at(f, 2)), reply_str(reply_at(f, 3)));
    }
    (void)snprintf(next, 24, "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
}

/* Read all pages of a phase, with this name (NULL: no name). */
static void audit_phase(const struct ledger *l, const char *phase, const char *name)
{
    char cursor[24] = "";

    do {
        begin(l, phase, cursor);
        if (name != NULL)
            call_text(&call, name);
        ask(l, cursor);
    } while (cursor[0] != '\0');
}

static struct reply *keys_of(const struct ledger *l)
{
    call_begin(&call, "KEYS");
    call_printf(&call, "%s:*", l->root);
    return arena_must(&call);
}

static bool is_one_of(const char *name, const char *const *kinds)
{
    for (size_t k = 0; kinds[k] != NULL; k++)
        if (strncmp(name, kinds[k], strlen(kinds[k])) == 0)
            return true;
    return false;
}

/* Audit the keys whose names begin with one of `kinds` in one call; NULL: all keys, each with its
 * type. */
static void audit_keys(const struct ledger *l, const struct reply *keys, const char *phase,
                       const char *const *kinds)
{
    char end[24];
    int n = 0;

    begin(l, phase, "");
    for (size_t i = 0; i < reply_count(keys) && n < PAGE; i++) {
        const char *name = reply_str(reply_at(keys, i)) + strlen(l->root) + 1;
        const char *type = keys_type(name, strlen(name));

        if (type == NULL)
            finding_break("stray-key", "%s", name);
        else if (kinds == NULL || is_one_of(name, kinds)) {
            call_text(&call, name);
            if (kinds == NULL)
                call_text(&call, type);
            n++;
        }
    }
    ask(l, end);
}

static void audit_members(const struct ledger *l, const struct reply *keys)
{
    for (size_t i = 0; i < reply_count(keys); i++) {
        const char *name = reply_str(reply_at(keys, i)) + strlen(l->root) + 1;

        if (strncmp(name, "members:", 8) == 0)
            audit_phase(l, "members", name);
    }
}

static void audit_sets(const struct ledger *l, const struct reply *keys)
{
    for (size_t i = 0; i < reply_count(keys); i++) {
        const char *name = reply_str(reply_at(keys, i)) + strlen(l->root) + 1;
        size_t len;

        if (keys_queue_of_set(name, strlen(name), &len) != NULL)
            audit_phase(l, "set", name);
    }
}

void audit(const struct ledger *l)
{
    static const char *const gates[] = {
        "lock:", "sem:", "rate:granted:", "wait:", "granted:", NULL};
    static const char *const phases[] = {"running", "jobs",   "tries",    "errors", "failures",
                                         "results", "cancel", "progress", "resume", "workers",
                                         "parked",  "holds",  "batches"};
    struct reply *keys = keys_of(l);

    audit_keys(l, keys, "keys", NULL);
    audit_sets(l, keys);
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        audit_phase(l, phases[i], NULL);
    audit_members(l, keys);
    audit_keys(l, keys, "gates", gates);
    for (int q = 0; q < QUEUES; q++)
        audit_phase(l, "queue", names_queue[q]);
    reply_free(keys);
}
