/* A verb, or a part of one, that is about a whole namespace: where that is cut into shards, it is
 * run for each. */
#ifndef LATER_CLI_EACH_SHARD_H
#define LATER_CLI_EACH_SHARD_H

#include "cli/cli.h"

/*
 * Call run once, or for each shard in turn. What it prints tells the shard: a heading, in JSON a
 * field `shard` of each object. Returns the largest status; an error ends it, -1. What is missing
 * (code INPUT, or the refusal ELATER_WORKER) is an error only where all shards miss it.
 */
int each_shard(struct cli *cli, int (*run)(struct cli *cli, struct err *err), struct err *err);
/* The same, where the output names no shard. */
int each_shard_plain(struct cli *cli, int (*run)(struct cli *cli, struct err *err),
                     struct err *err);

#endif
