/*
 * Whether a queue that a user named is there. A name that was misspelt must not pass for an empty
 * queue.
 */
#ifndef LATER_CLI_ARGS_QUEUE_NAME_H
#define LATER_CLI_ARGS_QUEUE_NAME_H

#include "cli/cli.h"

/*
 * 0 if the queue has a name, jobs or a worker, or if that cannot be asked. Else -1 with code INPUT
 * and a near name if there is one.
 */
int queue_name_check(struct cli *cli, const char *queue, struct err *err);

/* Print a line on stderr if no live worker serves the queue, and what comes of it: "the job waits"
 * until one does. A caller who may not ask is told nothing. */
void queue_name_warn(struct cli *cli, const char *queue, const char *what);

#endif
