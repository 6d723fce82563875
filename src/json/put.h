/*
 * Values in a JSON object, from bytes of Redis: what is said to be text is valid UTF-8.
 */
#ifndef LATER_JSON_PUT_H
#define LATER_JSON_PUT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "redis/reply.h"

/* object[name] = the bytes as text, or object[name_base64] when they are not valid UTF-8. */
void json_put_bytes(json_t *object, const char *name, const void *p, size_t n);
/* object[name] = text meant for people; it is escaped if it is not valid UTF-8. */
void json_put_text(json_t *object, const char *name, const void *p, size_t n);
/* The same of a reply that is a text. */
void json_put_reply(json_t *object, const char *name, const struct reply *r);
/* The same, unless it is empty. */
void json_put_if(json_t *object, const char *name, const struct reply *r);
void json_put_int(json_t *object, const char *name, int64_t value);
void json_put(json_t *object, const char *name, json_t *value); /* takes value over */
/* object[name] as a number; 0 when it is none. */
int64_t json_int(const json_t *object, const char *name);

/* Append value as one line of ASCII without control characters, whatever its strings hold. */
void json_write(struct buf *to, const json_t *value);

#endif
