/*
 * Allocation that never returns NULL: without memory the program ends cleanly (exit status 71). Its
 * jobs come back by themselves, so going on without memory gains nothing. Free with free(3).
 */
#ifndef LATER_BASE_MEM_H
#define LATER_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* n zeroed bytes (n may be 0). Never NULL. */
void *mem_new(size_t n) __attribute__((malloc, returns_nonnull));

/* realloc to count * size bytes, overflow checked. Never NULL. */
void *mem_grow(void *p, size_t count, size_t size) __attribute__((returns_nonnull));

/* Copy a string; copy n bytes and append a NUL. */
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_dup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));

/* A new string, printf-style. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Copy a NULL-ended list of strings, with space for `extra` more at its end; *n (may be NULL) gets
 * their number. */
char **mem_dup_list(char *const *list, size_t extra, size_t *n) __attribute__((returns_nonnull));
/* Append s; the list owns it then. *list may be NULL and is NULL-ended afterwards; *n: the number
 * of strings. */
void mem_list_add(char ***list, size_t *n, char *s);
bool mem_is_same_list(char *const *a, char *const *b);
/* Free a NULL-ended list of strings and the list; NULL is fine. */
void mem_free_list(char **list);

#endif
