/* The last hour of a queue, or of all of them, by the minute. */
#ifndef LATER_WEB_HISTORY_H
#define LATER_WEB_HISTORY_H

#include "web/call.h"

/* {from_ms, by_ms, buckets: [...]}; NULL with call->err. */
json_t *history_of_queue(struct api_call *call, const char *queue, int64_t now_ms);
/* Of all queues that are counted, 257 at most, a call each. */
json_t *history_of_all(struct api_call *call, int64_t now_ms);

#endif
