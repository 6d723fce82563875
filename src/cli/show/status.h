/*
 * What a verb did to one thing: "NAME STATUS", or with --json {"WHAT": NAME, "status": STATUS}.
 */
#ifndef LATER_CLI_SHOW_STATUS_H
#define LATER_CLI_SHOW_STATUS_H

#include "base/err.h"
#include "cli/cli.h"

/* what: "queue", "name". */
void status_show(const struct cli *cli, const char *what, const char *name, const char *status);

/* The same, but people read what `repeated` means here: "is sealed already". Scripts, with --json,
 * have the word of the library. */
void status_show_again(const struct cli *cli, const char *what, const char *name,
                       const char *status, const char *again);

/* Show that a thing was deleted. If it was not there: -1 with code INPUT, and which verb (`list`)
 * lists those that are; kind: "limit". */
int status_deleted(const struct cli *cli, bool was_there, const char *kind, const char *name,
                   const char *list, struct err *err);

#endif
