/*
 * JSON output: every line is one value. It is valid JSON in ASCII whatever bytes Redis held, so it
 * is safe on a terminal, too.
 */
#ifndef LATER_CLI_SHOW_JSON_H
#define LATER_CLI_SHOW_JSON_H

#include "json/put.h"

/* Write value on one line and free it. */
void json_print(json_t *value);

#endif
