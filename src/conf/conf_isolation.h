/*
 * Checks of the settings of a handler's process that their rows cannot express. Pure, except that
 * the numbers of the limits are the system's. Errors are CONFIG; the caller adds where it was
 * written.
 */
#ifndef LATER_CONF_CONF_ISOLATION_H
#define LATER_CONF_CONF_ISOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/conf.h"
#include "conf/conf_row.h"

/* Octal, as 027; "" gives -1. */
int conf_umask_parse(const char *text, int *ret, struct err *err);

/* Parse "nofile=1024" into its RLIMIT_… and its value; UINT64_MAX for `unlimited`. */
int conf_rlimit_parse(const char *pair, int *ret_resource, uint64_t *ret_max, struct err *err);

/* The first n characters are letters, digits and _, with no digit first. n may be 0. */
bool conf_variable_is_name(const char *name, size_t n);
/* A variable that laterd keeps for itself or makes for each job. */
bool conf_variable_is_ours(const char *name, size_t n);
/* Check that a configuration may set a variable of this name. */
int conf_variable_check(const char *name, size_t n, struct err *err);

/* Check the entries of a PAIRS row: rlimits or variables. */
int conf_pairs_check(const struct conf_row *row, const char *const *items, size_t n,
                     struct err *err);

#endif
