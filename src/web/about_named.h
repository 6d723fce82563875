/* Questions about schedules and batches, and the search for names. */
#ifndef LATER_WEB_ABOUT_NAMED_H
#define LATER_WEB_ABOUT_NAMED_H

#include "web/call.h"

extern const struct route named_routes[]; /* ended by a NULL pattern */

#endif
