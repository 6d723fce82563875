/*
 * A reply from Redis, read without trusting it: every accessor takes any reply (NULL included) and
 * returns a harmless value when it is not of the expected kind.
 */
#ifndef LATER_REDIS_REPLY_H
#define LATER_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply;

enum reply_kind { REPLY_NIL, REPLY_ERROR, REPLY_INT, REPLY_STR, REPLY_ARRAY };

enum reply_kind reply_kind(const struct reply *r); /* a status is a STR */
/* Length of reply_str in bytes; 0 for others than STR and ERROR. */
size_t reply_len(const struct reply *r);
/* Bytes of a STR or ERROR, then a NUL; "" for others. They live as long as the reply. */
const char *reply_str(const struct reply *r);
/* Elements of an ARRAY, else 0. */
size_t reply_count(const struct reply *r);
/*
 * An INT, or the decimal text of a STR; 0 when it is neither. The library counts in doubles, so no
 * honest number is beyond REPLY_INT_MAX either way: one that is comes as that, so that two of them
 * may be added or subtracted.
 */
#define REPLY_INT_MAX INT64_C(9007199254740992)
int64_t reply_int(const struct reply *r);
/* Their sum, likewise no larger: for as many as there are. */
int64_t reply_sum(int64_t a, int64_t b);
/* Element i, or NULL. */
const struct reply *reply_at(const struct reply *r, size_t i);
/* A STR or ERROR that is exactly this text. */
bool reply_is(const struct reply *r, const char *text);
/* A flat array of name, value pairs: the value of name, or NULL. */
const struct reply *reply_named(const struct reply *r, const char *name);
/* The same as a number; `other` if there is none of this name. */
int64_t reply_named_int(const struct reply *r, const char *name, int64_t other);

void reply_free(struct reply *r);

#endif
