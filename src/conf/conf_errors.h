/*
 * All errors of a configuration, for --check-config: loading stops at the first one.
 */
#ifndef LATER_CONF_CONF_ERRORS_H
#define LATER_CONF_CONF_ERRORS_H

#include <stddef.h>

#include "base/err.h"

#define CONF_ERRORS_MAX 20 /* more are only counted */

/* Empty when zeroed. */
struct conf_errors {
    struct conf_error {
        int line; /* of the file; 0: of no line */
        char *text;
    } at[CONF_ERRORS_MAX]; /* once sorted: by line, those without one at the end */
    size_t n, more;        /* more: left out */
};

void conf_errors_done(struct conf_errors *e);

/* Take over the text of *err, which becomes empty. */
void conf_errors_add(struct conf_errors *e, int line, struct err *err);
void conf_errors_sort(struct conf_errors *e);
/* A line for each on standard error. */
void conf_errors_print(const struct conf_errors *e);

#endif
