/*
 * One question of the page to Redis, and what answers it: a function for each question asks by ask/
 * and shows what json/ makes of the reply, so that the page and `later --json` say the same.
 */
#ifndef LATER_WEB_CALL_H
#define LATER_WEB_CALL_H

#include <jansson.h>
#include <stdbool.h>

#include "ask/ask.h"
#include "base/clock.h"
#include "web/http.h"

#define ANSWER_MS 2000   /* Redis may be silent for so long, */
#define QUESTION_MS 5000 /* and all its answers to one question may take so long */

/* A part of an answer that is asked again only after a while. */
struct kept {
    json_t *value; /* NULL: it was not asked yet */
    struct mono until;
};

struct all_queues;

/* What the questions share. */
struct api {
    struct ask_server read, write; /* each with a user of its own */
    bool may_write, shows_payloads;
    int shard, shards; /* which one of how many; shards 0: the namespace is whole */
    struct kept health, history;
    struct all_queues *all_queues;
};

/* One question. */
struct api_call {
    struct api *api;
    struct ask_server *server; /* to ask: api->read, or api->write of a POST */
    const struct http_request *request;
    const char *name[2]; /* what stands for the stars of its pattern */
    const json_t *in;    /* of a POST: an object */
    const char *who;     /* who asks, for what is kept with a pause or a bulk */
    struct err err;
    const char *payload; /* not NULL: answer these bytes in place of JSON */
    size_t payload_len;
    struct reply *owner; /* of payload */
};

/* The answer; NULL with call->err. */
typedef json_t *api_f(struct api_call *call);

/* A table of them: patterns stand behind api/v1/{ns}/. A star is any one segment. */
struct route {
    bool is_post;
    const char *pattern;
    api_f *answer;
};

/* Ask a function; its arguments are the words up to the first NULL. NULL with call->err. */
struct reply *api_ask(struct api_call *call, const char *function, ...) __attribute__((sentinel));
/* What is asked of many keys, and changes slowly: asked again after ten seconds. NULL with
 * call->err; the caller drops its reference. */
json_t *kept_get(struct kept *k, json_t *(*make)(struct api_call *, int64_t now_ms),
                 struct api_call *call, int64_t now_ms);
/* An object with now_ms. */
json_t *api_object(int64_t now_ms);
/* The same, with Redis' time asked for. */
json_t *api_object_now(struct api_call *call);
/* ?name= as a number between min and max; other when it is not there or is none. */
int64_t api_number(const struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t other);
/* in[name] as a text; NULL when it is not there, no text, or has a NUL. */
const char *api_text(const struct api_call *call, const char *name);

#endif
