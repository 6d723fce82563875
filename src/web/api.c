#include "web/api.h"

#include <string.h>

#include "json/put.h"
#include "web/about_dead.h"
#include "web/about_fleet.h"
#include "web/about_jobs.h"
#include "web/about_named.h"
#include "web/about_queues.h"
#include "web/changes.h"
#include "web/refusal.h"

static const struct route *const all_routes[] = {fleet_routes, queue_routes, dead_routes,
                                                 job_routes,   named_routes, write_routes};

/* ---- routes */

/* Does the path from segment `from` on have this pattern? Then its names are in ret. */
static bool matches(const char *pattern, const struct http_request *r, size_t from,
                    const char *ret[2])
{
    size_t names = 0;

    for (;; from++) {
        size_t n = strcspn(pattern, "/");

        if (from >= r->n)
            return false;
        if (n == 1 && pattern[0] == '*')
            ret[names++] = r->segment[from];
        else if (strlen(r->segment[from]) != n || strncmp(r->segment[from], pattern, n) != 0)
            return false;
        if (pattern[n] == '\0')
            return from + 1 == r->n;
        pattern += n + 1;
    }
}

static const struct route *find(const struct http_request *r, size_t from, const char *name[2])
{
    if (r->n > HTTP_SEGMENTS_MAX)
        return NULL;
    for (size_t i = 0; i < sizeof(all_routes) / sizeof(all_routes[0]); i++)
        for (const struct route *route = all_routes[i]; route->pattern != NULL; route++)
            if (route->is_post == r->is_post && matches(route->pattern, r, from, name))
                return route;
    return NULL;
}

static void give(struct api_call *call, json_t *out, struct http_answer *a)
{
    if (out == NULL && call->payload == NULL) {
        refuse_err(a, &call->err);
        return;
    }
    a->status = 200;
    if (call->payload != NULL) {
        /* Whatever it is, a browser saves it and shows none of it. */
        a->type = "text/plain; charset=utf-8";
        a->attachment = "payload.txt";
        buf_add(&a->body, call->payload, call->payload_len);
        return;
    }
    a->type = "application/json";
    json_write(&a->body, out);
}

/* Did Redis answer? A connection that broke fails each call of this question at once, and is made
 * anew by the next question. */
static bool was_answered(struct api_call *call)
{
    struct ask_server *s = call->server;

    if (s->client == NULL)
        return call->err.code != ERR_UNAVAILABLE;
    if (!client_is_broken(s->client))
        return !ask_is_late(s);
    ask_disconnect(s);
    return false;
}

/* A connection that nobody used may have ended without a sign: the first call meets it. What only
 * looks may be asked again then, but not when Redis was silent for as long as it may. */
static bool may_ask_again(const struct api_call *call, bool was_connected, struct mono begin)
{
    const struct ask_server *s = call->server;

    return was_connected && !call->request->is_post && ask_is_broken(s) &&
           mono_before(mono_now(), mono_add_ms(begin, s->target.timeout_ms));
}

static json_t *ask_route(const struct route *route, struct api_call *call)
{
    struct mono begin = mono_now();
    bool was_connected;
    json_t *out;

    ask_within(call->server, QUESTION_MS);
    was_connected = call->server->client != NULL;
    out = route->answer(call);
    if (may_ask_again(call, was_connected, begin)) {
        ask_disconnect(call->server);
        json_decref(out);
        reply_free(call->owner);
        call->owner = NULL;
        call->payload = NULL;
        call->err = (struct err)ERR_INIT;
        out = route->answer(call);
    }
    /* Parts of it may be missing. What was changed was changed, and is told. */
    if (!call->request->is_post && ask_is_late(call->server)) {
        json_decref(out);
        out = NULL;
        call->payload = NULL;
        err_fill(&call->err, ERR_UNAVAILABLE,
                 "Redis answers too slowly: this question took longer than %d s",
                 QUESTION_MS / 1000);
    }
    return out;
}

/* False: Redis did not answer. */
static bool call_route(const struct route *route, struct api_call *call, struct http_answer *a)
{
    json_t *in = NULL, *out;

    if (route->is_post && !call->api->may_write) {
        refuse(a, 403, NULL, "this page only looks: web.write is false");
        return true;
    }
    if (route->is_post)
        in = json_loadb(call->request->body->data, call->request->body->len, JSON_REJECT_DUPLICATES,
                        NULL);
    if (route->is_post && !json_is_object(in)) {
        json_decref(in);
        refuse(a, 400, NULL, "the body is no JSON object");
        return true;
    }
    call->in = in;
    call->server = route->is_post ? &call->api->write : &call->api->read;
    out = ask_route(route, call);
    give(call, out, a);
    json_decref(out);
    json_decref(in);
    reply_free(call->owner);
    return was_answered(call);
}

bool api_answer(struct api *api, const struct http_request *r, const char *who,
                struct http_answer *a)
{
    struct api_call call = {.api = api, .request = r, .who = who, .err = ERR_INIT};
    const struct route *route;

    route = find(r, 3, call.name);
    if (route != NULL)
        return call_route(route, &call, a);
    refuse(a, 404, NULL, "there is nothing at this address");
    return true;
}
