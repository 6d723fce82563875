/*
 * A reply from Redis, read without trusting it: every accessor takes any reply (NULL included) and
 * answers something harmless when it is not what was expected.
 */
#ifndef LATER_REDIS_REPLY_H
#define LATER_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply;

enum reply_kind { REPLY_NIL, REPLY_ERROR, REPLY_INT, REPLY_STR, REPLY_ARRAY };

enum reply_kind reply_kind(const struct reply *r); /* a status is a STR */
/* Bytes of a STR or ERROR, else 0: as many as reply_str has. */
size_t reply_len(const struct reply *r);
/* Bytes of a STR or ERROR with a NUL behind; "" for others. They live as long as the reply. */
const char *reply_str(const struct reply *r);
/* Elements of an ARRAY, else 0. */
size_t reply_count(const struct reply *r);
/* An INT, or the decimal text of a STR; 0 when it is neither. */
int64_t reply_int(const struct reply *r);
/* Element i, or NULL. */
const struct reply *reply_at(const struct reply *r, size_t i);
bool reply_is(const struct reply *r, const char *text);
/* A flat array of name, value pairs: the value of name, or NULL. */
const struct reply *reply_named(const struct reply *r, const char *name);

void reply_free(struct reply *r);

#endif
