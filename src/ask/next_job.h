/* The job of a queue that would start next. */
#ifndef LATER_ASK_NEXT_JOB_H
#define LATER_ASK_NEXT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "ask/ask.h"
#include "job/job.h"

struct next_job {
    char id[JOB_ID_LEN + 1]; /* "": it was written by ZADD and has none yet */
    bool is_there, is_due;
    int64_t due_ms;
};

/* Find it, at now_ms by Redis' clock. 0, or -1 with err. */
int next_job_find(struct ask_server *s, const char *queue, int64_t now_ms, struct next_job *ret,
                  struct err *err);

#endif
