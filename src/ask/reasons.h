/*
 * What the dead jobs of a queue died of, page by page (later_v1_reasons), those that died last
 * first.
 */
#ifndef LATER_ASK_REASONS_H
#define LATER_ASK_REASONS_H

#include "ask/ask.h"

/* A reply: the cursor, how many jobs the page has, then a row for each reason. */
enum { REASONS_CURSOR, REASONS_SEEN, REASONS_FIRST };
/* A row. Numbers in the text are folded to *. */
enum {
    REASON_TEXT,
    REASON_COUNT,
    REASON_FIRST_MS,
    REASON_LAST_MS,
    REASON_LAST_ID,
    REASON_DEATHS /* [step, jobs, ...], where they are asked for */
};

struct reasons {
    const char *queue; /* not copied */
    char *cursor;
    bool is_over; /* there is no further page */
    /* For REASON_DEATHS: the begin of step 0, and the length of each. step_ms 0: not asked for */
    int64_t from_ms, step_ms;
};

void reasons_init(struct reasons *r, const char *queue);
void reasons_done(struct reasons *r);

/* The next page; the caller frees it. NULL with err; code DATA if the server's cursor does not move
 * on. */
struct reply *reasons_next(struct reasons *r, struct ask_server *s, struct err *err);

#endif
