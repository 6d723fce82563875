/* The API of the page: a path names a question, its answer is one JSON object. */
#ifndef LATER_WEB_API_H
#define LATER_WEB_API_H

#include "web/call.h"

/* Answer a request about the namespace of api: what stands behind api/v1/NS. who: as in struct
 * api_call. False: Redis did not answer. */
bool api_answer(struct api *api, const struct http_request *r, const char *who,
                struct http_answer *a);

#endif
