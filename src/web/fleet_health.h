/* The health of the namespace, as `later health` judges it. */
#ifndef LATER_WEB_FLEET_HEALTH_H
#define LATER_WEB_FLEET_HEALTH_H

#include "web/call.h"

/* Asked now. That Redis cannot be asked is an answer, too. */
json_t *fleet_health_ask(struct api_call *call);
/* Ten seconds old at most. The caller drops its reference. */
json_t *fleet_health(struct api_call *call, int64_t now_ms);

#endif
