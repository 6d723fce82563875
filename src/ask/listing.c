#include "ask/listing.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void listing_init(struct listing *l, const char *queue, const char *state)
{
    memset(l, 0, sizeof(*l));
    l->queue = queue;
    l->state = state;
}

/* A cursor that stands still would make us ask for ever. */
static int move_on(struct listing *l, const struct reply *cursor, struct err *err)
{
    if (reply_kind(cursor) != REPLY_STR || reply_len(cursor) >= sizeof(l->cursor) ||
        (reply_len(cursor) > 0 && strcmp(reply_str(cursor), l->cursor) == 0))
        return err_set(err, ERR_DATA, "the list of jobs came with a bad cursor");
    text_copy(l->cursor, sizeof(l->cursor), reply_str(cursor));
    l->is_over = l->cursor[0] == '\0';
    return 0;
}

struct reply *listing_next(struct listing *l, struct ask_server *s, int64_t count, struct err *err)
{
    char cursor[sizeof(l->cursor)];
    char digits[24];
    struct reply *r;

    memcpy(cursor, l->cursor, sizeof(cursor));
    (void)snprintf(digits, sizeof(digits), "%lld", (long long)count);
    r = ask_words(s, err, "later_v1_list", l->queue, l->state, cursor, digits, NULL);
    if (r != NULL && move_on(l, reply_at(r, 0), err) == 0)
        return r;
    reply_free(r);
    return NULL;
}
