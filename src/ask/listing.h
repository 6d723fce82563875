/*
 * A queue's jobs in one state, page by page (later_v1_list).
 */
#ifndef LATER_ASK_LISTING_H
#define LATER_ASK_LISTING_H

#include "ask/ask.h"

#define LISTING_PAGE 25 /* takes Redis a third of a millisecond */

struct listing {
    const char *queue, *state; /* not copied; state: due parked running dead done */
    char cursor[64];
    bool is_over; /* there is no further page */
};

void listing_init(struct listing *l, const char *queue, const char *state);

/*
 * The next page, of at most count (1 to LISTING_PAGE) rows: elements 1 and up of the reply, which
 * the caller frees. NULL with err; code DATA if the server's cursor does not move on.
 */
struct reply *listing_next(struct listing *l, struct ask_server *s, int64_t count, struct err *err);

#endif
