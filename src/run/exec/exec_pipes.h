/*
 * The four pipes between an attempt and its process: made, fed, closed. Pool thread.
 */
#ifndef LATER_RUN_EXEC_EXEC_PIPES_H
#define LATER_RUN_EXEC_EXEC_PIPES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* By the number the descriptor has in the process. */
enum exec_pipe { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_CTL, PIPES };

struct exec_pipes {
    int ours[PIPES];   /* non-blocking; -1: closed */
    int theirs[PIPES]; /* -1: closed */
    size_t sent;       /* payload bytes written */
    int errnum;        /* why the rest of the payload could not be written; 0: nothing is amiss */
};

/* -1 with err->errnum: a descriptor or memory is missing; nothing is left open. */
int exec_pipes_open(struct exec_pipes *p, struct err *err);
void exec_pipes_close(struct exec_pipes *p);
void exec_pipes_close_theirs(struct exec_pipes *p);
void exec_pipes_close_one(struct exec_pipes *p, enum exec_pipe which);
/* Write what fits; closes PIPE_IN when all of the payload is in or nobody reads it any more. */
void exec_pipes_feed(struct exec_pipes *p, const char *payload, size_t len);
/* Nothing more can come: all that we read from is closed. */
bool exec_pipes_silent(const struct exec_pipes *p);

#endif
