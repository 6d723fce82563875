/* `later import QUEUE [FILE|-]`: one job per line of JSON. */
#ifndef LATER_CLI_BULK_IMPORT_LINES_H
#define LATER_CLI_BULK_IMPORT_LINES_H

#include "cli/cli.h"

/* is_once: give each job a token made of its id. Prints what became of the lines, and returns as
 * add_from does. */
int import_lines(struct cli *cli, const char *path, bool is_once, struct err *err);

#endif
