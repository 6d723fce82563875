#include "health/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ask/replies.h"
#include "json/put.h"

void health_init(struct health *h)
{
    *h = (struct health){json_array(), json_array(), 0};
}

void health_done(struct health *h)
{
    json_decref(h->causes);
    json_decref(h->warnings);
    *h = (struct health){NULL, NULL, 0};
}

static __attribute__((format(printf, 4, 0))) json_t *
add(json_t *list, const char *kind, const char *name, const char *fmt, va_list ap)
{
    json_t *one = json_object();
    char text[512];

    (void)vsnprintf(text, sizeof(text), fmt, ap);
    json_put_text(one, kind, name, strlen(name));
    json_put_text(one, "text", text, strlen(text));
    (void)json_array_append_new(list, one);
    return one;
}

json_t *health_add(json_t *list, const char *kind, const char *name, const char *fmt, ...)
{
    json_t *one;
    va_list ap;

    va_start(ap, fmt);
    one = add(list, kind, name, fmt, ap);
    va_end(ap);
    return one;
}

void health_add_queue(json_t *list, const char *kind, const char *name, const char *queue,
                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    json_put_text(add(list, kind, name, fmt, ap), "queue", queue, strlen(queue));
    va_end(ap);
}

void health_worker_name(const struct reply *w, char out[160])
{
    (void)snprintf(out, 160, "worker %.20s on %.64s (pid %.10s)",
                   reply_str(reply_at(w, WORKER_EPOCH)), reply_str(reply_at(w, WORKER_HOST)),
                   reply_str(reply_at(w, WORKER_PID)));
}

json_t *health_to_json(struct health *h, const char *status)
{
    json_t *object = json_object();

    json_put_text(object, "status", status, strlen(status));
    json_put_int(object, "workers", (int64_t)h->live);
    json_put(object, "causes", h->causes);
    json_put(object, "warnings", h->warnings);
    *h = (struct health){NULL, NULL, 0};
    return object;
}
