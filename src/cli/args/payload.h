/* The payload of a job: an operand, or standard input. */
#ifndef LATER_CLI_ARGS_PAYLOAD_H
#define LATER_CLI_ARGS_PAYLOAD_H

#include "base/buf.h"
#include "cli/cli.h"

/* Append operand number `at`, byte for byte; where it is - or missing, standard input to its end.
 * 0, or -1 with code USAGE, DATA or SYSTEM. */
int payload_take(const struct cli *cli, int at, struct buf *payload, struct err *err);

#endif
