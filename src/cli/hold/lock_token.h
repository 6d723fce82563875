/*
 * The lock token: a command under `later lock` or `later sem` has it in its environment, so that
 * asking for the same gate inside the command succeeds at once.
 *
 * A lock token names the holding program by its instance, the random number that this process made
 * and registered with. This also tells which Redis and namespace are meant, because the program is
 * a worker only there. Addresses would not tell: a host has several, and a server may move. Neither
 * would what Redis says of itself, because it changes at a restart.
 */
#ifndef LATER_CLI_HOLD_LOCK_TOKEN_H
#define LATER_CLI_HOLD_LOCK_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

/* Lock tokens separated by spaces, the innermost first: @EPOCH:INSTANCE:kind:NAME. */
#define LOCK_TOKENS "LATER_LOCK_TOKEN"

/* NAME=VALUE for the environment of a command at this gate (kind:NAME): its lock token, then those
 * that we have ourselves. The caller frees it. */
char *lock_token_env(int64_t epoch, const char *instance, const char *gate);

enum lock_token {
    LOCK_TOKEN_NONE, /* no ancestor that asked for this gate is a worker here */
    LOCK_TOKEN_HELD, /* an ancestor holds it */
    LOCK_TOKEN_LOST, /* an ancestor is a worker here, but does not hold it any more */
};

/* Set *ret to what our lock tokens say of this gate at cli's server. Connects if there are any. 0,
 * or -1 with err. */
int lock_token_query(struct cli *cli, const char *gate, enum lock_token *ret, struct err *err);

#endif
