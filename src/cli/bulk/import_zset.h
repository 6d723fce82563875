/* `later import --zset KEY QUEUE`: one job per member of a sorted set that is not ours. */
#ifndef LATER_CLI_BULK_IMPORT_ZSET_H
#define LATER_CLI_BULK_IMPORT_ZSET_H

#include "cli/cli.h"

/* Takes the verb's options from cli. Returns as a verb's run(). */
int import_zset(struct cli *cli, struct err *err);

#endif
