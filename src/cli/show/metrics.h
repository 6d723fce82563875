/*
 * What `later stats --prometheus` writes: gauges and counters of one namespace in the text format
 * 0.0.4 of Prometheus, read with a few calls of constant cost in jobs. Nothing is written unless
 * all of it was read.
 */
#ifndef LATER_CLI_SHOW_METRICS_H
#define LATER_CLI_SHOW_METRICS_H

#include "cli/cli.h"

/* As the run() of a verb. */
int metrics_show(struct cli *cli, struct err *err);

#endif
