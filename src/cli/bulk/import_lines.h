/* `later import QUEUE [FILE|-]`: a job for each line of JSON. */
#ifndef LATER_CLI_BULK_IMPORT_LINES_H
#define LATER_CLI_BULK_IMPORT_LINES_H

#include "cli/cli.h"

/* is_once: a token for each, made of its id. Tells what became of the lines; returns as add_from
 * does. */
int import_lines(struct cli *cli, const char *path, bool is_once, struct err *err);

#endif
