/*
 * The four pipes between the daemon and a handler process. One thread at a time.
 */
#ifndef LATER_RUN_EXEC_EXEC_PIPES_H
#define LATER_RUN_EXEC_EXEC_PIPES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The values are the descriptor numbers in the process. */
enum exec_pipe { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_CTL, PIPES };

struct exec_pipes {
    int ours[PIPES];   /* non-blocking; -1: closed */
    int theirs[PIPES]; /* -1: closed */
    size_t sent;       /* payload bytes written */
    int errnum;        /* why the rest of the payload could not be written; 0: no error */
};

/* 0, or -1 with err->errnum (no descriptor or memory); then nothing is left open. */
int exec_pipes_open(struct exec_pipes *p, struct err *err);
void exec_pipes_close(struct exec_pipes *p);
void exec_pipes_close_theirs(struct exec_pipes *p);
void exec_pipes_close_one(struct exec_pipes *p, enum exec_pipe which);
/* Write what fits. Closes PIPE_IN when all is written, the reader is gone or the write failed. */
void exec_pipes_feed(struct exec_pipes *p, const char *payload, size_t len);
/* True if all pipes that we read from are closed. */
bool exec_pipes_are_over(const struct exec_pipes *p);

#endif
