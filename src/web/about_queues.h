/* Questions about queues and their jobs. */
#ifndef LATER_WEB_ABOUT_QUEUES_H
#define LATER_WEB_ABOUT_QUEUES_H

#include "web/call.h"

extern const struct route queue_routes[]; /* ended by a NULL pattern */

#endif
