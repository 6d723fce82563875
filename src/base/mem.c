#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static void out_of_memory(void)
{
    static const char msg[] = "<2>out of memory: stopping; running jobs will be run again\n";

    /* A failed write cannot be reported either: end in both cases. */
    if (write(STDERR_FILENO, msg, sizeof(msg) - 1) < 0)
        _exit(EX_OSERR);
    _exit(EX_OSERR);
}

void *mem_new(size_t n)
{
    void *p = calloc(1, n > 0 ? n : 1);

    if (p == NULL)
        out_of_memory();
    return p;
}

void *mem_grow(void *p, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        out_of_memory();
    p = realloc(p, count * size > 0 ? count * size : 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

char *mem_dup(const void *p, size_t n)
{
    char *copy = mem_grow(NULL, n + 1, 1);

    if (n > 0)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s));
}

char *mem_printf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory();
    return s;
}

char **mem_dup_list(char *const *list, size_t extra, size_t *n)
{
    size_t count = 0;
    char **out;

    while (list[count] != NULL)
        count++;
    out = mem_new((count + extra + 1) * sizeof(*out));
    for (size_t i = 0; i < count; i++)
        out[i] = mem_strdup(list[i]);
    if (n != NULL)
        *n = count;
    return out;
}

void mem_list_add(char ***list, size_t *n, char *s)
{
    *list = mem_grow(*list, *n + 2, sizeof(**list));
    (*list)[(*n)++] = s;
    (*list)[*n] = NULL;
}

bool mem_is_same_list(char *const *a, char *const *b)
{
    for (; *a != NULL && *b != NULL; a++, b++) {
        if (strcmp(*a, *b) != 0)
            return false;
    }
    return *a == NULL && *b == NULL;
}

void mem_free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}
