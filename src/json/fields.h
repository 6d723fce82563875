/*
 * The fields of a reply of names and values (later_show, later_batch_show) as members of a JSON
 * object. One table of them serves people and programs.
 */
#ifndef LATER_JSON_FIELDS_H
#define LATER_JSON_FIELDS_H

#include <jansson.h>
#include <stddef.h>

#include "redis/reply.h"

enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,
    FIELD_INSTANT, /* ms since 1970 */
    FIELD_LENGTH,  /* ms */
    FIELD_STATE    /* a text that is coloured */
};

struct field {
    const char *name;  /* in the reply and in JSON */
    const char *label; /* for people */
    enum field_kind kind;
};

/* Put those that the reply has into object, in the order of the table. */
void fields_to_json(const struct field *fields, size_t n, const struct reply *r, json_t *object);

#endif
