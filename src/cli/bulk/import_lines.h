/* `later import QUEUE [FILE|-]`: one job per line of JSON. */
#ifndef LATER_CLI_BULK_IMPORT_LINES_H
#define LATER_CLI_BULK_IMPORT_LINES_H

#include "cli/bulk/job_json.h"
#include "cli/cli.h"

/* Prints what became of the lines, and returns as add_from does. */
int import_lines(struct cli *cli, const char *path, const struct import_how *how, struct err *err);

#endif
