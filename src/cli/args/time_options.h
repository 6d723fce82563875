/*
 * Rewrites the times and spans among the options of a verb (their arg is TIME or D) for the
 * library. Forms that the library does not read itself become ms, by Redis' clock and in this
 * command's time zone (TZ).
 */
#ifndef LATER_CLI_ARGS_TIME_OPTIONS_H
#define LATER_CLI_ARGS_TIME_OPTIONS_H

#include "cli/cli.h"

/* Rewrites cli->value. Reports a time that the clocks skip or show twice on stderr. 0 or -1. */
int time_options_read(struct cli *cli, struct err *err);

#endif
