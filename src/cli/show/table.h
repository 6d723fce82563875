/*
 * A table for people. Columns are as wide as their cells, but on a terminal the table is no wider
 * than the terminal.
 *
 * Rows are kept until table_flush, so that a long listing can be written page by page. Columns only
 * get wider from page to page. Cells are escaped here.
 */
#ifndef LATER_CLI_SHOW_TABLE_H
#define LATER_CLI_SHOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TABLE_COLUMNS_MAX 12

/* What happens to a column if the terminal is too narrow. */
enum table_fit {
    TABLE_WHOLE,
    TABLE_SOFT, /* its cells are cut */
    TABLE_SPARE /* it is left out, the rightmost first, if cutting is not enough */
};

struct table_column {
    const char *title;
    bool is_right; /* numbers */
    int fit;       /* one of enum table_fit; false and true stand for the first two */
};

struct table {
    const struct table_column *columns;
    size_t ncolumns;
    struct buf *cells; /* of the rows kept, row by row */
    size_t n, cap;
    size_t width[TABLE_COLUMNS_MAX];
    bool is_used[TABLE_COLUMNS_MAX]; /* some cell was not empty */
    bool is_left_out[TABLE_COLUMNS_MAX];
    bool has_titles;
};

/* columns: at most TABLE_COLUMNS_MAX, not copied. */
void table_init(struct table *t, const struct table_column *columns, size_t ncolumns);
void table_done(struct table *t);
/* The next cell, left to right, row after row. */
void table_add(struct table *t, const void *p, size_t n);
/* The same, at most 255 bytes. */
void table_printf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write the rows kept; the first time, the titles before them. */
void table_flush(struct table *t);

#endif
