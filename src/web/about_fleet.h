/* Questions about the whole: health, workers, gates. */
#ifndef LATER_WEB_ABOUT_FLEET_H
#define LATER_WEB_ABOUT_FLEET_H

#include "web/call.h"

/* The health of the namespace, ten seconds old at most. The caller drops its reference. */
json_t *fleet_health(struct api_call *call, int64_t now_ms);

extern const struct route fleet_routes[]; /* ended by a NULL pattern */

#endif
