/*
 * A queue's jobs in one state, page by page (later_v1_list).
 */
#ifndef LATER_CLI_SHOW_LISTING_H
#define LATER_CLI_SHOW_LISTING_H

#include "cli/cli.h"

#define LISTING_PAGE 25 /* a third of a millisecond of Redis */

struct listing {
    const char *queue, *state; /* state: due running dead done */
    char cursor[64];
    bool is_over; /* there is no further page */
};

void listing_init(struct listing *l, const char *queue, const char *state);

/*
 * The next page of at most count (1 to LISTING_PAGE) rows; its rows are elements 1 and up. NULL
 * with err; code DATA when the server's cursor does not move on. The reply is the caller's.
 */
struct reply *listing_next(struct listing *l, struct cli *cli, int64_t count, struct err *err);

#endif
