/*
 * The keys of a namespace as text, in the form of server_read: one line for every string, field and
 * member, sorted. There is only one text at a time.
 */
#ifndef LATER_TESTS_PROPERTY_ROWS_H
#define LATER_TESTS_PROPERTY_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct row {
    char *text;
    size_t n;
};

struct rows {
    size_t n;
};

#define ROWS_INIT                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

/* Add a finished line; rows take ownership of the text. */
void rows_add(struct rows *rows, struct buf *text);
/* "<key> <type> [<n>:<field>=]<n>:<value>\n" */
void rows_put(struct rows *rows, const char *key, const char *type, const char *field,
              const char *value, size_t n);
void rows_text(struct rows *rows, const char *key, const char *type, const char *field,
               const char *value);
void rows_number(struct rows *rows, const char *key, const char *type, const char *field,
                 int64_t n);
/* A name of the index: kind and name are put together. */
void rows_index(struct rows *rows, const char *kind, const char *name);
/* Append all lines, sorted; then the rows are empty. */
void rows_take(struct rows *rows, struct buf *out);

#endif
