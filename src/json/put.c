#include "json/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "json/base64.h"

void json_put_bytes(json_t *object, const char *name, const void *p, size_t n)
{
    CLEANUP_BUF struct buf encoded = BUF_INIT;
    char key[64];
    json_t *text = json_stringn(p, n); /* NULL when it is not valid UTF-8 */

    if (text != NULL) {
        (void)json_object_set_new(object, name, text);
        return;
    }
    base64_put(&encoded, p, n);
    (void)snprintf(key, sizeof(key), "%s_base64", name);
    (void)json_object_set_new(object, key, json_stringn(buf_str(&encoded), encoded.len));
}

void json_put_text(json_t *object, const char *name, const void *p, size_t n)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    json_t *text = json_stringn(p, n);

    if (text == NULL) {
        text_escape(&safe, p, n);
        text = json_stringn(buf_str(&safe), safe.len);
    }
    (void)json_object_set_new(object, name, text);
}

void json_put_int(json_t *object, const char *name, int64_t value)
{
    (void)json_object_set_new(object, name, json_integer(value));
}

int64_t json_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

void json_put_reply(json_t *object, const char *name, const struct reply *r)
{
    json_put_text(object, name, reply_str(r), reply_len(r));
}

void json_put_if(json_t *object, const char *name, const struct reply *r)
{
    if (reply_len(r) > 0)
        json_put_reply(object, name, r);
}

void json_put(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

void json_write(struct buf *to, const json_t *value)
{
    CLEANUP_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);
    const char *from = text != NULL ? text : "null";
    size_t n;

    /* jansson leaves DEL as it is; it can only stand inside a string. */
    for (; from[n = strcspn(from, "\177")] != '\0'; from += n + 1) {
        buf_add(to, from, n);
        buf_puts(to, "\\u007f");
    }
    buf_add(to, from, n);
}
