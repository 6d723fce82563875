/*
 * What the settings of a handler's process must be beyond their rows. Pure but for the names of the
 * limits. Errors are CONFIG; the caller adds the place.
 */
#ifndef LATER_CONF_CONF_ISOLATION_H
#define LATER_CONF_CONF_ISOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/conf.h"
#include "conf/conf_row.h"

/* "" is -1. */
int conf_umask_parse(const char *text, int *ret, struct err *err);

/* "nofile=1024": which RLIMIT_…, and its value: UINT64_MAX for `unlimited`. */
int conf_rlimit_parse(const char *pair, int *ret_resource, uint64_t *ret_max, struct err *err);

/* Of the first n characters: letters, digits and _, no digit first. n may be 0. */
bool conf_variable_is_name(const char *name, size_t n);
/* One that laterd has for itself or makes for each job. */
bool conf_variable_is_ours(const char *name, size_t n);
/* A name that a configuration may give a variable. */
int conf_variable_check(const char *name, size_t n, struct err *err);

/* The entries of a PAIRS row, by what the row is for. */
int conf_pairs_check(const struct conf_row *row, const char *const *items, size_t n,
                     struct err *err);

#endif
