/*
 * The times and spans among the options of a verb (their arg is TIME or D), as the library reads
 * them: what people write otherwise becomes ms, by the clock of Redis and in the zone of this
 * command (TZ).
 */
#ifndef LATER_CLI_ARGS_TIME_OPTIONS_H
#define LATER_CLI_ARGS_TIME_OPTIONS_H

#include "cli/cli.h"

/* Rewrites cli->value. A time that the clocks skip or show twice is told on stderr. 0 or -1. */
int time_options_read(struct cli *cli, struct err *err);

#endif
