#include "ask/reasons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PAGE "250" /* takes Redis some two milliseconds, where all differ */

void reasons_init(struct reasons *r, const char *queue)
{
    *r = (struct reasons){.queue = queue, .cursor = mem_strdup("")};
}

void reasons_done(struct reasons *r)
{
    free(r->cursor);
}

/* A cursor that stands still would make us ask for ever. */
static int move_on(struct reasons *r, const struct reply *cursor, struct err *err)
{
    if (reply_kind(cursor) != REPLY_STR ||
        (reply_len(cursor) > 0 && strcmp(reply_str(cursor), r->cursor) == 0))
        return err_set(err, ERR_DATA, "the reasons of dead jobs came with a bad cursor");
    free(r->cursor);
    r->cursor = mem_strdup(reply_str(cursor));
    r->is_over = r->cursor[0] == '\0';
    return 0;
}

struct reply *reasons_next(struct reasons *r, struct ask_server *s, struct err *err)
{
    char from[24], step[24];
    struct reply *page;

    (void)snprintf(from, sizeof(from), "%lld", (long long)r->from_ms);
    (void)snprintf(step, sizeof(step), "%lld", (long long)r->step_ms);
    page = ask_words(s, err, "later_v1_reasons", r->queue, r->cursor, PAGE,
                     r->step_ms > 0 ? from : NULL, step, NULL);

    if (page != NULL && move_on(r, reply_at(page, REASONS_CURSOR), err) == 0)
        return page;
    reply_free(page);
    return NULL;
}
