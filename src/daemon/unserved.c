#include "daemon/unserved.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool was_told(const struct unserved *u, const char *name)
{
    return u->n > 0 && bsearch(&name, u->names, u->n, sizeof(*u->names), by_name) != NULL;
}

void unserved_take(struct unserved *u, const char *const *names, size_t n, struct mono now,
                   void (*tell)(void *arg, const char *queue), void *arg)
{
    bool all = u->n == 0 || !mono_before(now, u->again_at);
    char **next = mem_new((n + 1) * sizeof(*next));

    for (size_t i = 0; i < n; i++) {
        if (all || !was_told(u, names[i]))
            tell(arg, names[i]);
        next[i] = mem_strdup(names[i]);
    }
    qsort(next, n, sizeof(*next), by_name);
    unserved_done(u);
    u->names = next;
    u->n = n;
    if (all)
        u->again_at = mono_add_ms(now, UNSERVED_AGAIN_MS);
}

void unserved_done(struct unserved *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->names[i]);
    free(u->names);
    u->names = NULL;
    u->n = 0;
}
