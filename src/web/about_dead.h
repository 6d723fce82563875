/* What jobs died of. */
#ifndef LATER_WEB_ABOUT_DEAD_H
#define LATER_WEB_ABOUT_DEAD_H

#include "web/call.h"

extern const struct route dead_routes[]; /* ended by a NULL pattern */

#endif
