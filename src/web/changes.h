/* What the page may change. Each is the function that the command calls; who asked is kept. */
#ifndef LATER_WEB_CHANGES_H
#define LATER_WEB_CHANGES_H

#include "web/call.h"

extern const struct route write_routes[]; /* ended by a NULL pattern */

#endif
