/*
 * What a verb did to one thing: "NAME STATUS", or with --json {"WHAT": NAME, "status": STATUS}.
 */
#ifndef LATER_CLI_SHOW_STATUS_H
#define LATER_CLI_SHOW_STATUS_H

#include "cli/cli.h"

/* what: "queue", "name". */
void status_show(const struct cli *cli, const char *what, const char *name, const char *status);

#endif
