/* The verbs. */
#ifndef LATER_CLI_VERBS_VERBS_H
#define LATER_CLI_VERBS_VERBS_H

#include "cli/cli.h"

/* All in the order of the help; NULL-ended. */
extern const struct cli_verb *const cli_verbs[];
const struct cli_verb *cli_verb(const char *name); /* NULL: no such verb */

#endif
