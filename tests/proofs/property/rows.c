#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 65536

/* the lines of the one text */
static struct row lines[ROWS_MAX];

static int by_text(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = memcmp(x->text, y->text, n);

    return c != 0 ? c : x->n < y->n ? -1 : x->n > y->n;
}

void rows_add(struct rows *rows, struct buf *text)
{
    if (rows->n == ROWS_MAX)
        abort();
    lines[rows->n].n = text->len;
    lines[rows->n++].text = buf_take(text);
}

void rows_put(struct rows *rows, const char *key, const char *type, const char *field,
              const char *value, size_t n)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "%s %s ", key, type);
    if (field != NULL)
        buf_printf(&b, "%zu:%s=", strlen(field), field);
    buf_printf(&b, "%zu:", n);
    if (n > 0)
        buf_add(&b, value, n);
    buf_puts(&b, "\n");
    rows_add(rows, &b);
}

void rows_text(struct rows *rows, const char *key, const char *type, const char *field,
               const char *value)
{
    rows_put(rows, key, type, field, value, strlen(value));
}

void rows_number(struct rows *rows, const char *key, const char *type, const char *field, int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    rows_text(rows, key, type, field, text);
}

void rows_index(struct rows *rows, const char *kind, const char *name)
{
    char member[512];

    (void)snprintf(member, sizeof(member), "%s:%s", kind, name);
    rows_number(rows, "index", "zset", member, 0);
}

void rows_take(struct rows *rows, struct buf *out)
{
    if (rows->n > 1)
        qsort(lines, rows->n, sizeof(lines[0]), by_text);
    for (size_t i = 0; i < rows->n; i++) {
        buf_add(out, lines[i].text, lines[i].n);
        free(lines[i].text);
    }
    rows->n = 0;
}
