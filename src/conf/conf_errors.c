#include "conf/conf_errors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void conf_errors_done(struct conf_errors *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->at[i].text);
    *e = (struct conf_errors){.n = 0};
}

void conf_errors_add(struct conf_errors *e, int line, struct err *err)
{
    if (e->n < CONF_ERRORS_MAX)
        e->at[e->n++] = (struct conf_error){line, mem_strdup(err->text)};
    else
        e->more++;
    *err = (struct err)ERR_INIT;
}

static int line_of(const struct conf_error *e)
{
    return e->line > 0 ? e->line : INT_MAX;
}

/* Errors are few, and those of a line keep their order. */
void conf_errors_sort(struct conf_errors *e)
{
    for (size_t i = 1; i < e->n; i++) {
        struct conf_error one = e->at[i];
        size_t k = i;

        for (; k > 0 && line_of(&e->at[k - 1]) > line_of(&one); k--)
            e->at[k] = e->at[k - 1];
        e->at[k] = one;
    }
}

void conf_errors_print(const struct conf_errors *e)
{
    for (size_t i = 0; i < e->n; i++)
        (void)fprintf(stderr, "laterd: %s\n", e->at[i].text);
    if (e->more > 0)
        (void)fprintf(stderr, "laterd: and %zu more errors\n", e->more);
}
