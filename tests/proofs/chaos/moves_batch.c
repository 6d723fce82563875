#include "moves.h"

#include <string.h>

#include "batch.h"
#include "finding.h"

/* The queues of the callbacks differ, so that a callback is known by its queue. */
static void option_callbacks(struct world *w, struct batch *b)
{
    static const char *const options[CALLBACKS] = {"finally", "then", "on_dead"};
    int queue = dice_below(&w->dice, QUEUES);

    for (int c = 0; c < CALLBACKS; c++, queue = (queue + 1) % QUEUES) {
        b->callback[c] = dice_percent(&w->dice, 70) ? queue : LEDGER_NONE;
        if (b->callback[c] < 0)
            continue;
        call_text(&w->call, options[c]);
        call_text(&w->call, names_queue[queue]);
    }
}

static void open_batch(struct world *w)
{
    struct batch b = {.name = dice_below(&w->dice, BATCHES), .serial = w->serial++};
    struct reply *r;

    if (w->l->batches == LEDGER_BATCHES)
        return;
    world_begin(w, "later_batch");
    call_text(&w->call, names_batch[b.name]);
    option_callbacks(w, &b);
    b.keep_ms = dice_below(&w->dice, dice_percent(&w->dice, 70) ? 3000 : 60000);
    call_text(&w->call, "keep");
    call_printf(&w->call, "%lldms", (long long)b.keep_ms);
    call_printf(&w->call, "batch %d", b.serial);
    r = world_ask(w, dice_percent(&w->dice, 50) ? ROLE_PRODUCER : ROLE_ALL);
    if (r != NULL)
        batch_opened(w->l, &b);
    reply_free(r);
}

void batch_seal(struct world *w, int name)
{
    struct batch *b = batch_of(w->l, name);
    struct reply *r;

    world_begin(w, "later_batch_seal");
    call_text(&w->call, names_batch[name]);
    r = world_ask(w, dice_percent(&w->dice, 50) ? ROLE_PRODUCER : ROLE_ALL);
    if (r != NULL && b == NULL)
        finding_break("batch", "%s %s is sealed, and it is not there", w->l->root,
                      names_batch[name]);
    if (r != NULL && b != NULL) {
        b->is_sealed = true;
        b->is_hindered &= w->is_disturbed;
    }
    reply_free(r);
}

/* Cancel a batch that has at most one page of members. Jobs that were caused since the last look
 * would be cancelled unseen, so it is not cancelled then. */
static void cancel_batch(struct world *w, int name)
{
    struct batch *b = batch_of(w->l, name);
    struct reply *r;

    if (w->is_disturbed || w->l->is_blurred)
        return;
    world_begin(w, "later_batch_cancel");
    call_text(&w->call, names_batch[name]);
    r = world_ask(w, dice_percent(&w->dice, 50) ? ROLE_ADMIN : ROLE_ALL);
    if (r != NULL && b == NULL)
        finding_break("batch", "%s %s is cancelled, and it is not there", w->l->root,
                      names_batch[name]);
    else if (r != NULL && reply_str(reply_at(r, 2))[0] != '\0')
        finding_break("batch", "%s %s has a second page", w->l->root, names_batch[name]);
    else if (r != NULL)
        batch_cancelled(w->l, b);
    reply_free(r);
}

static void read_batch(struct world *w, int name)
{
    static const char *const functions[] = {"later_batch_show", "later_batch_jobs"};

    world_begin(w, PICK(&w->dice, functions));
    call_text(&w->call, names_batch[name]);
    world_tell(w, ROLE_ALL);
}

void move_batch(struct world *w)
{
    int name = dice_below(&w->dice, BATCHES), percent = dice_below(&w->dice, 100);

    if (batch_of(w->l, name) == NULL && percent < 80)
        open_batch(w);
    else if (percent < 55)
        batch_seal(w, name);
    else if (percent < 75)
        cancel_batch(w, name);
    else
        read_batch(w, name);
}

void option_batch(struct world *w, int percent, struct job *o)
{
    const struct batch *b = NULL;
    int name = 0;

    if (!dice_percent(&w->dice, percent))
        return;
    for (int i = 0; i < 4 && (b == NULL || b->is_sealed); i++) {
        name = dice_below(&w->dice, BATCHES);
        b = batch_of(w->l, name);
    }
    if (b == NULL && dice_percent(&w->dice, 90))
        return;
    call_text(&w->call, "batch");
    call_text(&w->call, names_batch[name]);
    o->batch = b != NULL ? (int)(b - w->l->batch) : LEDGER_NONE;
}
