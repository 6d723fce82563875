#include "web/fleet_health.h"

#include "health/namespace.h"

json_t *fleet_health_ask(struct api_call *call)
{
    struct health h;

    health_init(&h);
    if (health_namespace(&h, call->server, &call->err) < 0) {
        health_done(&h);
        health_init(&h);
        health_add(h.causes, "cause", "redis", "%s", call->err.text);
        return health_to_json(&h, "down");
    }
    if (h.live == 0)
        health_no_worker(&h);
    return health_to_json(&h, json_array_size(h.causes) > 0 ? "degraded" : "ok");
}

static json_t *make(struct api_call *call, int64_t now_ms)
{
    (void)now_ms;
    return fleet_health_ask(call);
}

json_t *fleet_health(struct api_call *call, int64_t now_ms)
{
    return kept_get(&call->api->health, make, call, now_ms);
}
