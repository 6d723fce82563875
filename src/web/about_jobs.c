#include "web/about_jobs.h"

#include <string.h>

#include "base/text.h"
#include "json/explain.h"
#include "json/job.h"
#include "json/put.h"

#define SHOWN 4096 /* bytes of a payload that come with its job */

/* The begin of the payload, without a character that was cut at its end, if it is text. */
static void put_start(json_t *out, const struct reply *payload)
{
    size_t len = reply_len(payload), n = len > SHOWN ? SHOWN : len;
    size_t whole = text_utf8_prefix(reply_str(payload), n);

    if (whole == len || (n == SHOWN && n - whole < 4))
        json_put_text(out, "payload_start", reply_str(payload), whole);
}

static json_t *job(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_show", call->name[0], NULL), *why;
    json_t *out;

    if (r == NULL)
        return NULL;
    why = api_ask(call, "later_explain", call->name[0], NULL);
    out = api_object(why != NULL ? reply_named_int(why, "now_ms", 0) : ask_now_ms(call->server));
    json_put(out, "job", shown_job_to_json(r));
    if (why != NULL)
        json_put(out, "explain", explain_to_json(why));
    if (call->api->shows_payloads)
        put_start(out, reply_named(r, "payload"));
    reply_free(why);
    reply_free(r);
    return out;
}

static json_t *payload(struct api_call *call)
{
    struct reply *r;

    if (!call->api->shows_payloads) {
        err_fill(&call->err, ERR_DENIED, "payloads are not shown here: web.payloads is false");
        return NULL;
    }
    r = api_ask(call, "later_show", call->name[0], NULL);
    if (r == NULL)
        return NULL;
    call->owner = r;
    call->payload = reply_str(reply_named(r, "payload"));
    call->payload_len = reply_len(reply_named(r, "payload"));
    return NULL;
}

const struct route job_routes[] = {
    {false, "jobs/*", job},
    {false, "jobs/*/payload", payload},
    {false, NULL, NULL},
};
