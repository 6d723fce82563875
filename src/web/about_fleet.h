/* Questions about the whole: health, workers, gates. */
#ifndef LATER_WEB_ABOUT_FLEET_H
#define LATER_WEB_ABOUT_FLEET_H

#include "web/call.h"

extern const struct route fleet_routes[]; /* ended by a NULL pattern */

#endif
