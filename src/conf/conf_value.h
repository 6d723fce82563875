/*
 * Reads, prints, copies and compares the value of one setting, as its row says.
 *
 * A value is what a field of struct conf, conf_queue or conf_limit holds; `value` points to the
 * field, which has the row's type. Errors are CONFIG and start with the row's path; the caller adds
 * where it was written.
 */
#ifndef LATER_CONF_CONF_VALUE_H
#define LATER_CONF_CONF_VALUE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf_row.h"
#include "conf/yaml.h"

/* Read a value from the file. On failure *value is unchanged. */
int conf_value_read(const struct conf_row *row, const struct yaml_node *node, void *value,
                    struct err *err);

/* Read it from one text (the environment, a default): commas separate the entries of a list, and
 * brackets are optional. */
int conf_value_parse(const struct conf_row *row, const char *text, void *value, struct err *err);

/* Append it as YAML that conf_value_read takes. */
void conf_value_print(const struct conf_row *row, const void *value, struct buf *out);
/*
 * Append one text, as a value or a key: quoted unless it is plain. Characters beyond ASCII are
 * written as numbers, so that none acts as a line break or changes the direction of text.
 */
void conf_value_print_text(const char *text, struct buf *out);

bool conf_value_is_equal(const struct conf_row *row, const void *a, const void *b);
/* *to must be zeroed or a value, which is freed. */
void conf_value_copy(const struct conf_row *row, const void *from, void *to);
void conf_value_done(const struct conf_row *row, void *value);

#endif
