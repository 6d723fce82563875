/* `later import --zset KEY QUEUE`: a job for each member of a sorted set that is not ours. */
#ifndef LATER_CLI_BULK_IMPORT_ZSET_H
#define LATER_CLI_BULK_IMPORT_ZSET_H

#include "cli/cli.h"

/* Its options are those of the verb. Returns as a verb's run. */
int import_zset(struct cli *cli, struct err *err);

#endif
