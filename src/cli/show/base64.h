/* Base 64 (RFC 4648, section 4, with padding): bytes that are no text, in JSON. Pure. */
#ifndef LATER_CLI_SHOW_BASE64_H
#define LATER_CLI_SHOW_BASE64_H

#include <stddef.h>

#include "base/buf.h"

/* Append n bytes as text. */
void base64_put(struct buf *out, const void *p, size_t n);
/* Append what the text stands for. 0, or -1 when it is not exactly what base64_put makes; then
 * nothing is to be made of what was appended. */
int base64_get(struct buf *out, const char *p, size_t n);

#endif
