#include "moves.h"

#include <stdio.h>
#include <string.h>

#define FOREIGN_MOST 2
#define NAME 160

/* A key of a foreign type, planted where no key was. */
static struct foreign {
    char key[NAME];
    int space;
    int calls; /* it stays for this many moves */
    bool is_there;
} foreign[FOREIGN_MOST];

/* ---- names */

static const char *any_gate(struct world *w, char out[NAME])
{
    static const char *const kinds[] = {"sem", "rate"};

    if (dice_percent(&w->dice, 50))
        (void)snprintf(out, NAME, "lock:%s", PICK(&w->dice, names_lock));
    else
        (void)snprintf(out, NAME, "%s:%s", PICK(&w->dice, kinds), PICK(&w->dice, names_limited));
    return out;
}

static void name_of_gate(struct world *w, char out[NAME])
{
    static const char *const rates[] = {"granted", "gcra", "sliding", "fixed"};
    char gate[NAME];

    switch (dice_below(&w->dice, 6)) {
    case 0:
        (void)snprintf(out, NAME, "wait:%s", any_gate(w, gate));
        break;
    case 1:
        (void)snprintf(out, NAME, "line:%s:%s", PICK(&w->dice, names_queue), any_gate(w, gate));
        break;
    case 2:
        (void)snprintf(out, NAME, "lock:%s", PICK(&w->dice, names_lock));
        break;
    case 3:
        (void)snprintf(out, NAME, "sem:%s", PICK(&w->dice, names_limited));
        break;
    case 4:
        (void)snprintf(out, NAME, "uniq:%s:%s", PICK(&w->dice, names_queue),
                       PICK(&w->dice, names_unique));
        break;
    default:
        (void)snprintf(out, NAME, "rate:%s:%s", PICK(&w->dice, rates),
                       PICK(&w->dice, names_limited));
        break;
    }
}

static void name_of_queue(struct world *w, char out[NAME])
{
    static const char *const sets[] = {"solo",   "dead",    "done",  "due",
                                       "parked", "granted", "aside", "total"};
    const char *queue = PICK(&w->dice, names_queue);

    if (dice_percent(&w->dice, 30))
        (void)snprintf(out, NAME, "q:%s:%d", queue, PICK(&w->dice, names_priority));
    else
        (void)snprintf(out, NAME, "%s:%s", PICK(&w->dice, sets), queue);
}

static void any_name(struct world *w, char out[NAME])
{
    static const char *const single[] = {
        "jobs",     "prio",        "heads",    "names",    "running",    "tries",      "errors",
        "failures", "results",     "cancel",   "progress", "paused",     "config",     "clock",
        "workers",  "await",       "limits",   "queues",   "holds",      "parked",     "timers",
        "stats",    "notes",       "unserved", "batches",  "batch:open", "members:b1", "members:b2",
        "index",    "index:state", "series",   "seen"};

    switch (dice_below(&w->dice, 3)) {
    case 0:
        (void)snprintf(out, NAME, "%s", PICK(&w->dice, single));
        break;
    case 1:
        name_of_queue(w, out);
        break;
    default:
        name_of_gate(w, out);
        break;
    }
}

/* ---- planting */

static bool is_any(void)
{
    for (int i = 0; i < FOREIGN_MOST; i++)
        if (foreign[i].is_there)
            return true;
    return false;
}

static void remove_one(struct world *w, struct foreign *f)
{
    struct ledger *was = w->l;

    w->l = w->space[f->space];
    call_begin(&w->call, "DEL");
    call_text(&w->call, f->key);
    world_tell(w, ROLE_ALL);
    w->l = was;
    f->is_there = false;
}

/* Plant a list under this name, unless the key exists. No key of ours is a list. */
static void plant(struct world *w, struct foreign *f)
{
    struct reply *r;

    call_begin(&w->call, "EVAL");
    call_text(&w->call, "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end "
                        "redis.call('RPUSH', KEYS[1], 'foreign') return 1");
    call_text(&w->call, "1");
    call_text(&w->call, f->key);
    r = world_ask(w, ROLE_ALL);
    f->is_there = reply_int(r) == 1;
    reply_free(r);
}

void move_foreign(struct world *w)
{
    struct foreign *f = &foreign[dice_below(&w->dice, FOREIGN_MOST)];
    char name[NAME];

    if (f->is_there)
        return;
    any_name(w, name);
    (void)snprintf(f->key, sizeof(f->key), "%.40s:%.110s", w->l->root, name);
    f->space = w->l->space;
    f->calls = 1 + dice_below(&w->dice, 6);
    plant(w, f);
    w->is_disturbed = is_any();
}

void foreign_go_on(struct world *w)
{
    for (int i = 0; i < FOREIGN_MOST; i++)
        if (foreign[i].is_there && --foreign[i].calls < 0)
            remove_one(w, &foreign[i]);
    w->is_disturbed = is_any();
}

void foreign_remove_all(struct world *w)
{
    for (int i = 0; i < FOREIGN_MOST; i++)
        if (foreign[i].is_there)
            remove_one(w, &foreign[i]);
    w->is_disturbed = false;
}
