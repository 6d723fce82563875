/*
 * Checks of texts that their type cannot express: addresses, paths, names.
 */
#ifndef LATER_CONF_CONF_TEXT_H
#define LATER_CONF_CONF_TEXT_H

#include "conf/conf_row.h"

/* Check a STR, or the entries of a STRS or PAIRS, as the row requires. Errors are CONFIG. */
int conf_text_check(const struct conf_row *row, const char *text, struct err *err);
int conf_text_check_list(const struct conf_row *row, const char *const *items, size_t n,
                         struct err *err);

#endif
