/*
 * One setting's value, read, written, copied and compared by its row.
 *
 * A value is what a field of struct conf or struct conf_queue holds; `value` points to the field of
 * the row's type. Errors are CONFIG and start with the row's path; the caller adds the place.
 */
#ifndef LATER_CONF_CONF_VALUE_H
#define LATER_CONF_CONF_VALUE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf_row.h"
#include "conf/yaml.h"

/* Read a value from the file. On failure it is as it was. */
int conf_value_read(const struct conf_row *row, const struct yaml_node *node, void *value,
                    struct err *err);

/* From one text (the environment, a default): lists are separated by commas, brackets are optional.
 */
int conf_value_parse(const struct conf_row *row, const char *text, void *value, struct err *err);

/* Append it as YAML that conf_value_read takes. */
void conf_value_print(const struct conf_row *row, const void *value, struct buf *out);
/*
 * One text, as a value or a key: quoted unless it is plain; beyond ASCII by number, so that nothing
 * in it can be a line break or a direction mark.
 */
void conf_value_print_text(const char *text, struct buf *out);

bool conf_value_is_equal(const struct conf_row *row, const void *a, const void *b);
/* to must be zeroed or a value; what it had is freed. */
void conf_value_copy(const struct conf_row *row, const void *from, void *to);
void conf_value_done(const struct conf_row *row, void *value);

#endif
