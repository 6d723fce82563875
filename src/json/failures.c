#include "json/failures.h"

#include <string.h>

#include "base/text.h"
#include "json/put.h"

bool failures_next(const char **at, struct failure *ret)
{
    const char *p = *at, *end = p + strcspn(p, "\n");
    size_t n = (size_t)(end - p);

    if (!text_take_int(&p, &n, &ret->when_ms) || !text_take_int(&p, &n, &ret->epoch) ||
        !text_take_word(&p, &n, ret->host, sizeof(ret->host)) || !text_take_int(&p, &n, &ret->code))
        return false;
    ret->text = p;
    ret->len = n;
    *at = end + (*end == '\n');
    return true;
}

json_t *failures_to_json(const struct reply *value)
{
    const char *at = reply_str(value);
    json_t *list = NULL;
    struct failure f;

    while (value != NULL && failures_next(&at, &f)) {
        json_t *object = json_object();

        json_put_int(object, "when_ms", f.when_ms);
        json_put_int(object, "worker", f.epoch);
        json_put_text(object, "host", f.host, strlen(f.host));
        json_put_int(object, "code", f.code);
        json_put_text(object, "reason", f.text, f.len);
        list = list != NULL ? list : json_array();
        (void)json_array_append_new(list, object);
    }
    return list;
}
