/*
 * What happens to jobs, as it happens (src/lua/calls/tail.lua), for all who look: one subscription,
 * while there is somebody, and a stream of events for each.
 */
#ifndef LATER_WEB_TAIL_H
#define LATER_WEB_TAIL_H

#include "ask/ask.h"
#include "loop/loop.h"
#include "web/http.h"

#define TAIL_MAX 24 /* streams */

struct tail;

struct tail *tail_new(struct loop *loop, struct ask_server *server);
/* No stream may be open any more. */
void tail_free(struct tail *t);

/* Answer with a stream of server-sent events, or with why not; HEAD takes no place. False: Redis
 * did not answer. */
bool tail_answer(struct tail *t, const struct http_request *r, struct http_answer *a);

#endif
