/* What a failure means to who ran the command: a line on stderr, and the exit status. */
#ifndef LATER_CLI_COMPLAIN_H
#define LATER_CLI_COMPLAIN_H

#include "cli/cli.h"

/* Print the error on stderr, with the server's name where that helps. */
void complain(const struct cli *cli, const struct err *err);
/* The exit status for this error. */
int complain_status(const struct err *err);

#endif
