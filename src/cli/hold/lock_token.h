/*
 * The token of a place: what a command under `later lock` and `later sem` carries in its
 * environment, so that the same place inside it is no obstacle.
 *
 * A token names the program that holds the place by the random number which that process made for
 * itself and registered under. So it says which Redis and which namespace are meant without naming
 * them: a program is a worker only there. Their addresses do not say it (a host has several, a
 * server moves), and what Redis says of itself changes when it starts again.
 */
#ifndef LATER_CLI_HOLD_LOCK_TOKEN_H
#define LATER_CLI_HOLD_LOCK_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

/* Tokens separated by spaces, the innermost first: @EPOCH:INSTANCE:kind:NAME. */
#define LOCK_TOKENS "LATER_LOCK_TOKEN"

/* NAME=VALUE for the environment of a command at this gate (kind:NAME), with the tokens that we
 * have ourselves. The caller's. */
char *lock_token_env(int64_t epoch, const char *instance, const char *gate);

enum lock_token {
    LOCK_TOKEN_NONE, /* no ancestor of ours came in here */
    LOCK_TOKEN_HELD, /* one holds it */
    LOCK_TOKEN_LOST, /* one is here and does not hold it any more */
};

/* What our tokens say of this gate where cli is connected to: *ret. 0, or -1 with err. */
int lock_token_look(struct cli *cli, const char *gate, enum lock_token *ret, struct err *err);

#endif
