/* What `later health` says of the server. */
#ifndef LATER_HEALTH_SERVER_H
#define LATER_HEALTH_SERVER_H

#include "ask/ask.h"
#include "health/health.h"

/* Add a cause if the server refuses every add, and warnings for its settings that may lose jobs. */
void health_server_judge(struct health *h, struct ask_server *s);

#endif
