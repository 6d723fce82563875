#include "ask/next_job.h"

#include <string.h>

#include "ask/listing.h"
#include "ask/replies.h"
#include "base/text.h"

#define PAGES 20 /* most that are read in a state */

/* Take this job if it would start before the one that was found. A parked job was due. */
static void take(struct next_job *next, const struct reply *row, bool is_parked, int64_t now_ms)
{
    int64_t due_ms = is_parked ? now_ms : reply_int(reply_at(row, ROW_SCORE));

    if (next->is_due || (next->is_there && next->due_ms <= due_ms))
        return;
    text_copy(next->id, sizeof(next->id), reply_str(reply_at(row, ROW_ID)));
    next->is_there = true;
    next->due_ms = due_ms;
    next->is_due = due_ms <= now_ms;
}

/* Jobs are listed as they run, priority by priority: the first one that is due would be the next.
 */
static int find(struct ask_server *s, const char *queue, const char *state, int64_t now_ms,
                struct next_job *next, struct err *err)
{
    struct listing list;

    listing_init(&list, queue, state);
    for (int page = 0; page < PAGES && !list.is_over && !next->is_due; page++) {
        struct reply *r = listing_next(&list, s, LISTING_PAGE, err);

        if (r == NULL)
            return -1;
        for (size_t i = 1; i < reply_count(r); i++)
            take(next, reply_at(r, i), strcmp(state, "parked") == 0, now_ms);
        reply_free(r);
    }
    return 0;
}

int next_job_find(struct ask_server *s, const char *queue, int64_t now_ms, struct next_job *ret,
                  struct err *err)
{
    *ret = (struct next_job){.is_there = false};
    if (find(s, queue, "due", now_ms, ret, err) < 0)
        return -1;
    return ret->is_due ? 0 : find(s, queue, "parked", now_ms, ret, err);
}
