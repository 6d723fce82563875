#include "ask/topics.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The next page. 0 or -1. */
static int read_page(struct topics *t, struct ask_server *s, const char *cursor, struct err *err)
{
    struct reply *r = ask_words(s, err, "later_topics", cursor, NULL);

    if (r == NULL)
        return -1;
    t->page = mem_grow(t->page, t->npages + 1, sizeof(struct reply *));
    t->page[t->npages++] = r;
    for (size_t i = 1; i < reply_count(r); i++) {
        t->row = mem_grow(t->row, t->n + 1, sizeof(struct reply *));
        t->row[t->n++] = reply_at(r, i);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct reply *x = *(const struct reply *const *)a, *y = *(const struct reply *const *)b;
    int c = strcmp(reply_str(reply_at(x, TOPICS_TOPIC)), reply_str(reply_at(y, TOPICS_TOPIC)));

    return c != 0
               ? c
               : strcmp(reply_str(reply_at(x, TOPICS_QUEUE)), reply_str(reply_at(y, TOPICS_QUEUE)));
}

/* Sort the rows, and drop those that a page has brought again. */
static void sort_rows(struct topics *t)
{
    size_t kept = 0;

    if (t->n > 1)
        qsort((void *)t->row, t->n, sizeof(struct reply *), by_name);
    for (size_t i = 0; i < t->n; i++) {
        if (kept == 0 || by_name(&t->row[kept - 1], &t->row[i]) != 0)
            t->row[kept++] = t->row[i];
    }
    t->n = kept;
}

int topics_read(struct topics *t, struct ask_server *s, struct err *err)
{
    const char *cursor = "0";

    *t = (struct topics){.n = 0};
    do {
        if (read_page(t, s, cursor, err) < 0)
            return -1;
        cursor = reply_str(reply_at(t->page[t->npages - 1], 0));
    } while (strcmp(cursor, "0") != 0);
    sort_rows(t);
    return 0;
}

void topics_done(struct topics *t)
{
    for (size_t i = 0; i < t->npages; i++)
        reply_free(t->page[i]);
    free((void *)t->page);
    free((void *)t->row);
    *t = (struct topics){.n = 0};
}
