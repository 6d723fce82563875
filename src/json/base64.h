/* Base 64 (RFC 4648, section 4, with padding), for bytes in JSON that are no text. Pure. */
#ifndef LATER_JSON_BASE64_H
#define LATER_JSON_BASE64_H

#include <stddef.h>

#include "base/buf.h"

/* Append n bytes as text. */
void base64_put(struct buf *out, const void *p, size_t n);
/* Append the bytes that the text encodes. 0, or -1 if it is not exactly what base64_put makes; then
 * ignore what was appended. */
int base64_get(struct buf *out, const char *p, size_t n);

#endif
