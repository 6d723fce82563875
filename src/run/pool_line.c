#include "run/pool_line.h"

#include <stddef.h>

void pool_line_init(struct pool_line *l)
{
    l->first = NULL;
    l->end = &l->first;
}

void pool_line_add(struct pool_line *l, struct pool_work *w)
{
    w->next = NULL;
    *l->end = w;
    l->end = &w->next;
}

struct pool_work *pool_line_take(struct pool_line *l)
{
    struct pool_work *w = l->first;

    if (w != NULL && (l->first = w->next) == NULL)
        l->end = &l->first;
    return w;
}

void pool_line_join(struct pool_line *l, struct pool_line *from)
{
    if (from->first == NULL)
        return;
    *l->end = from->first;
    l->end = from->end;
    pool_line_init(from);
}
