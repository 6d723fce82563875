/*
 * What waits for something in Redis outlives a lost link: it tries again until its own time is
 * over.
 */
#ifndef LATER_CLI_AGAIN_H
#define LATER_CLI_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "cli/cli.h"

struct again {
    bool has_begun;   /* the server has answered: before that, an error ends the command */
    int64_t pause_ms; /* 0 while all is well */
};

/*
 * After an error: whether to ask again. Then the connection is closed, the reason was told (once
 * until again_well), and a pause is over. False: there was no answer yet, the error is no trouble
 * of the link or server, or the deadline (MONO_NEVER: none) is over.
 */
bool again_after(struct again *a, struct cli *cli, struct mono deadline, const struct err *err);
/* There was an answer. */
void again_well(struct again *a);

#endif
