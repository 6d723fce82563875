/*
 * What `later stats --prometheus` writes: gauges and counters of one namespace in the text format
 * 0.0.4 of Prometheus. They are read with a few calls whose cost does not depend on the number of
 * jobs. Nothing is written unless everything was read.
 */
#ifndef LATER_CLI_METRICS_H
#define LATER_CLI_METRICS_H

#include "cli/cli.h"

/* Returns as a verb's run(). */
int metrics_show(struct cli *cli, struct err *err);

#endif
