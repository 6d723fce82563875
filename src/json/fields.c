#include "json/fields.h"

#include "json/put.h"

void fields_to_json(const struct field *fields, size_t n, const struct reply *r, json_t *object)
{
    for (size_t i = 0; i < n; i++) {
        const struct reply *value = reply_named(r, fields[i].name);

        if (value == NULL)
            continue;
        if (fields[i].kind == FIELD_TEXT || fields[i].kind == FIELD_STATE)
            json_put_bytes(object, fields[i].name, reply_str(value), reply_len(value));
        else
            json_put_int(object, fields[i].name, reply_int(value));
    }
}
