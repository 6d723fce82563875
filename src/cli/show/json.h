/*
 * JSON output: every line is one value. It is valid JSON in ASCII whatever bytes Redis held, so it
 * is safe on a terminal, too.
 */
#ifndef LATER_CLI_SHOW_JSON_H
#define LATER_CLI_SHOW_JSON_H

#include "json/put.h"

/* Write value on one line and free it. */
void json_print(json_t *value);
/* From now on each object that is printed has the field `shard`. */
void json_mark_shard(int shard);

#endif
