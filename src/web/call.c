#include "web/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/put.h"

#define KEPT_MS 10000

struct reply *api_ask(struct api_call *call, const char *function, ...)
{
    struct ask_call words = {.n = 0};
    const char *word;
    va_list ap;

    va_start(ap, function);
    while ((word = va_arg(ap, const char *)) != NULL)
        ask_call_puts(&words, word);
    va_end(ap);
    return ask_fcall(call->server, function, &words, &call->err);
}

json_t *api_object(int64_t now_ms)
{
    json_t *object = json_object();

    json_put_int(object, "now_ms", now_ms);
    return object;
}

json_t *api_object_now(struct api_call *call)
{
    return api_object(ask_now_ms(call->server));
}

int64_t api_number(const struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t other)
{
    int64_t value;

    return text_parse_int(http_query(call->request, name), min, max, &value) == 0 ? value : other;
}

const char *api_text(const struct api_call *call, const char *name)
{
    const json_t *value = json_object_get(call->in, name);

    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
               ? json_string_value(value)
               : NULL;
}

json_t *kept_get(struct kept *k, json_t *(*make)(struct api_call *, int64_t), struct api_call *call,
                 int64_t now_ms)
{
    struct mono now = mono_now();

    if (k->value == NULL || !mono_before(now, k->until)) {
        json_t *made = make(call, now_ms);

        if (made == NULL)
            return NULL;
        json_decref(k->value);
        k->value = made;
        k->until = mono_add_ms(mono_now(), KEPT_MS);
    }
    return json_incref(k->value);
}
