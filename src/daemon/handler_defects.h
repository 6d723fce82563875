/*
 * Which queues this daemon cannot run, and why: handlers that are refused or missing. What it finds
 * is logged once; the reasons are told to Redis with the state of the worker. Main thread.
 */
#ifndef LATER_DAEMON_HANDLER_DEFECTS_H
#define LATER_DAEMON_HANDLER_DEFECTS_H

#include "serve/runner.h"
#include "serve/served_queues.h"

/* Empty when zeroed. */
struct handler_defects {
    char **found,
        **before;  /* NULL-ended, of the last build and the one before: what, reason, ... */
    size_t nfound; /* pairs */
};

void handler_defects_done(struct handler_defects *f);

/* Begin a build of the served queues. is_news: log all of its defects, also those that the last one
 * had: the daemon starts, or its operator asked. */
void handler_defects_begin(struct handler_defects *f, bool is_news);
/* served_queues_report_f; arg is the struct handler_defects. */
void handler_defects_report(void *arg, const char *what, const char *reason, bool is_warning);

/*
 * Append "QUEUE REASON" LF for the queues that cannot be run: those that were reported and are not
 * served, and served ones whose streams or plug-in the runner has in trouble. At most 16 queues,
 * and 200 bytes a reason.
 */
void handler_defects_tell(const struct handler_defects *f, struct runner *runner,
                          const struct served_queues *served, struct buf *out);
/* Append "QUEUE=MODE,..." of the first 100 served queues that have another mode than exec. */
void handler_defects_modes(const struct served_queues *served, struct buf *out);

#endif
