/*
 * The answers of the last two seconds: everybody who looks at the same thing is told the same, so
 * that a hundred viewers cost Redis as much as one. Nothing is asked while nobody looks.
 */
#ifndef LATER_WEB_RECENT_H
#define LATER_WEB_RECENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"

#define RECENT_MS 1900 /* a page asks each two seconds */
#define RECENT_MAX 64
#define RECENT_BYTES_MAX 262144 /* of one answer */

struct recent;
struct recent *recent_new(void);
void recent_free(struct recent *r);

/* The body that this question had, if it is young enough; NULL: ask. It lives until the next call.
 */
const struct buf *recent_find(struct recent *r, const char *question, struct mono now);
/* Keep a copy of the answer. */
void recent_keep(struct recent *r, const char *question, const struct buf *body, struct mono now);
/* Something was changed: whoever did it looks next. */
void recent_forget(struct recent *r);

#endif
