#include "redis/reply.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "base/text.h"

static const redisReply *raw(const struct reply *r)
{
    return (const redisReply *)(const void *)r;
}

enum reply_kind reply_kind(const struct reply *r)
{
    if (r == NULL)
        return REPLY_NIL;
    switch (raw(r)->type) {
    case REDIS_REPLY_ERROR:
        return REPLY_ERROR;
    case REDIS_REPLY_INTEGER:
        return REPLY_INT;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return REPLY_STR;
    case REDIS_REPLY_ARRAY:
        return REPLY_ARRAY;
    default:
        return REPLY_NIL;
    }
}

static bool is_text(const struct reply *r)
{
    enum reply_kind kind = reply_kind(r);

    return kind == REPLY_STR || kind == REPLY_ERROR;
}

size_t reply_len(const struct reply *r)
{
    return is_text(r) ? (size_t)raw(r)->len : 0;
}

size_t reply_count(const struct reply *r)
{
    return reply_kind(r) == REPLY_ARRAY ? raw(r)->elements : 0;
}

const char *reply_str(const struct reply *r)
{
    return is_text(r) ? raw(r)->str : "";
}

static int64_t bounded(int64_t n)
{
    return n > REPLY_INT_MAX ? REPLY_INT_MAX : n < -REPLY_INT_MAX ? -REPLY_INT_MAX : n;
}

int64_t reply_sum(int64_t a, int64_t b)
{
    return bounded(bounded(a) + bounded(b));
}

int64_t reply_int(const struct reply *r)
{
    int64_t n;

    if (reply_kind(r) == REPLY_INT)
        n = raw(r)->integer;
    else if (text_parse_int(reply_str(r), INT64_MIN, INT64_MAX, &n) < 0)
        n = 0;
    return bounded(n);
}

const struct reply *reply_at(const struct reply *r, size_t i)
{
    if (i >= reply_count(r))
        return NULL;
    return (const struct reply *)(const void *)raw(r)->element[i];
}

bool reply_is(const struct reply *r, const char *text)
{
    return reply_len(r) == strlen(text) && memcmp(reply_str(r), text, strlen(text)) == 0;
}

const struct reply *reply_named(const struct reply *r, const char *name)
{
    for (size_t i = 0; i + 1 < reply_count(r); i += 2) {
        if (reply_is(reply_at(r, i), name))
            return reply_at(r, i + 1);
    }
    return NULL;
}

int64_t reply_named_int(const struct reply *r, const char *name, int64_t other)
{
    const struct reply *value = reply_named(r, name);

    return value != NULL ? reply_int(value) : other;
}

void reply_free(struct reply *r)
{
    if (r != NULL)
        freeReplyObject(r);
}
