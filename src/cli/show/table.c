#include "cli/show/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/show/out.h"

#define GAP 2
#define SOFT_MIN 4 /* a soft column is not cut below this: one letter and "..." */

void table_init(struct table *t, const struct table_column *columns, size_t ncolumns)
{
    memset(t, 0, sizeof(*t));
    t->columns = columns;
    t->ncolumns = ncolumns;
    for (size_t i = 0; i < ncolumns; i++)
        t->width[i] = strlen(columns[i].title);
}

static void forget_rows(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        buf_done(&t->cells[i]);
    t->n = 0;
}

void table_done(struct table *t)
{
    forget_rows(t);
    free(t->cells);
    t->cells = NULL;
    t->cap = 0;
}

/* Columns that escaped text takes. Each UTF-8 sequence counts as one, as nearly all take. */
static size_t columns_of(const struct buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += ((unsigned char)b->data[i] & 0xc0) != 0x80;
    return n;
}

void table_add(struct table *t, const void *p, size_t n)
{
    size_t column = t->n % t->ncolumns;
    struct buf *cell;
    size_t width;

    if (t->n == t->cap) {
        t->cap = t->cap == 0 ? 64 : t->cap * 2;
        t->cells = mem_grow(t->cells, t->cap, sizeof(*t->cells));
    }
    cell = &t->cells[t->n++];
    *cell = (struct buf)BUF_INIT;
    text_escape(cell, p, n);
    width = columns_of(cell);
    t->is_used[column] = t->is_used[column] || width > 0;
    if (width > t->width[column])
        t->width[column] = width;
}

void table_printf(struct table *t, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    table_add(t, text, strlen(text));
}

/* Whether to narrow column a before b: an empty column first, then the wider one. */
static bool gives_first(const struct table *t, const size_t *width, size_t a, size_t b)
{
    if (t->is_used[a] != t->is_used[b])
        return !t->is_used[a];
    return width[a] > width[b];
}

/* The soft column to narrow by one, or ncolumns if there is none. */
static size_t next_to_give(const struct table *t, const size_t *width)
{
    size_t found = t->ncolumns;

    for (size_t i = 0; i < t->ncolumns; i++)
        if (t->columns[i].fit == TABLE_SOFT && width[i] > SOFT_MIN &&
            (found == t->ncolumns || gives_first(t, width, i, found)))
            found = i;
    return found;
}

/* Columns of the terminal with all soft ones cut as far as they may be. */
static size_t narrowest(const struct table *t)
{
    size_t total = 0;

    for (size_t i = 0; i < t->ncolumns; i++) {
        bool is_cut = t->columns[i].fit == TABLE_SOFT && t->width[i] > SOFT_MIN;

        if (!t->is_left_out[i])
            total += (is_cut ? SOFT_MIN : t->width[i]) + (total > 0 ? GAP : 0);
    }
    return total;
}

/* Leave out spare columns, before the titles are written: then the columns are fixed. */
static void leave_out(struct table *t)
{
    for (size_t i = t->ncolumns; i-- > 0 && out_width() > 0 && narrowest(t) > out_width();)
        t->is_left_out[i] = t->columns[i].fit == TABLE_SPARE;
}

static void fit(const struct table *t, size_t *width)
{
    size_t total = 0, i;

    for (i = 0; i < t->ncolumns; i++) {
        width[i] = t->is_left_out[i] ? 0 : t->width[i];
        if (!t->is_left_out[i])
            total += width[i] + (total > 0 ? GAP : 0);
    }
    for (; out_width() > 0 && total > out_width(); total--) {
        i = next_to_give(t, width);
        if (i == t->ncolumns)
            return;
        width[i]--;
    }
}

/* Bytes of the first `columns` columns of the text. */
static size_t prefix_of(const char *s, size_t n, size_t columns)
{
    size_t i = 0;

    for (; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return i;
}

static void put(const struct table *t, size_t column, const struct buf *cell, size_t width)
{
    size_t have = columns_of(cell), next = column + 1;
    bool is_last;

    if (t->is_left_out[column])
        return;
    while (next < t->ncolumns && t->is_left_out[next])
        next++;
    is_last = next == t->ncolumns;
    if (have > width) {
        out_bytes(cell->data, prefix_of(cell->data, cell->len, width - 3));
        out_printf("...");
        have = width;
    } else {
        if (t->columns[column].is_right)
            out_printf("%*s", (int)(width - have), "");
        out_bytes(cell->data, cell->len);
    }
    if (!is_last)
        out_printf("%*s", (int)(GAP + (t->columns[column].is_right ? 0 : width - have)), "");
}

static void put_titles(const struct table *t, const size_t *width)
{
    out_printf("%s", out_style(OUT_BOLD));
    for (size_t i = 0; i < t->ncolumns; i++) {
        CLEANUP_BUF struct buf title = BUF_INIT;

        buf_puts(&title, t->columns[i].title);
        put(t, i, &title, width[i]);
    }
    out_printf("%s\n", out_style(OUT_PLAIN));
}

void table_flush(struct table *t)
{
    size_t width[TABLE_COLUMNS_MAX];

    if (!t->has_titles)
        leave_out(t);
    fit(t, width);
    if (!t->has_titles)
        put_titles(t, width);
    t->has_titles = true;
    for (size_t i = 0; i < t->n; i++) {
        put(t, i % t->ncolumns, &t->cells[i], width[i % t->ncolumns]);
        if ((i + 1) % t->ncolumns == 0)
            out_printf("\n");
    }
    forget_rows(t);
}
