/*
 * What to say of a key that is no setting: where it belongs, or what it may have been meant to be.
 */
#ifndef LATER_CONF_CONF_UNKNOWN_H
#define LATER_CONF_CONF_UNKNOWN_H

#include "base/err.h"
#include "conf/conf_env.h"
#include "conf/conf_row.h"

/* path is no row of this scope, which has these rows. -1 with code CONFIG; the caller adds where it
 * was written. */
int conf_unknown_refuse(enum conf_scope kind, const struct conf_row *rows, size_t nrows,
                        const char *path, struct err *err);

#endif
