/*
 * Memory that is there or the program ends cleanly (exit 71): a daemon whose jobs come back by
 * themselves gains nothing from limping on without memory. Everything is freed with free(3).
 */
#ifndef LATER_BASE_MEM_H
#define LATER_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* n zeroed bytes (n may be 0). Never NULL. */
void *mem_new(size_t n) __attribute__((malloc, returns_nonnull));

/* realloc to count * size bytes, overflow checked. Never NULL. */
void *mem_grow(void *p, size_t count, size_t size) __attribute__((returns_nonnull));

/* Copies: of a string, of n bytes with a NUL put behind them. */
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_dup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));

/* A new string, printf-style. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Copy a NULL-ended list of strings, with room for `extra` more behind them; *n (may be NULL): how
 * many there are. */
char **mem_dup_list(char *const *list, size_t extra, size_t *n) __attribute__((returns_nonnull));
/* Append s, which is the list's then. *list may be NULL and is NULL-ended afterwards; *n: how many
 * there are. */
void mem_list_add(char ***list, size_t *n, char *s);
bool mem_is_same_list(char *const *a, char *const *b);
/* Free a NULL-ended list of strings and the list; NULL is fine. */
void mem_free_list(char **list);

#endif
