/* later schedule import: a crontab becomes schedules, and what cannot is told by line. */
#ifndef LATER_CLI_BULK_IMPORT_CRONTAB_H
#define LATER_CLI_BULK_IMPORT_CRONTAB_H

#include "cli/cli.h"

/* The operands: argv[1] is the file. Returns as a verb's run(): 1 if a line was left out. */
int import_crontab(struct cli *cli, struct err *err);

#endif
