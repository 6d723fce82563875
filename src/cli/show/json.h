/*
 * JSON output: every line is one value. It is valid JSON in ASCII whatever bytes Redis held, so it
 * is safe on a terminal, too.
 */
#ifndef LATER_CLI_SHOW_JSON_H
#define LATER_CLI_SHOW_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* object[name] = the bytes as text, or object[name_base64] when they are not valid UTF-8. */
void json_put_bytes(json_t *object, const char *name, const void *p, size_t n);
/* object[name] = text meant for people; it is escaped if it is not valid UTF-8. */
void json_put_text(json_t *object, const char *name, const void *p, size_t n);
void json_put_int(json_t *object, const char *name, int64_t value);
/* Write value on one line and free it. */
void json_print(json_t *value);

#endif
