/*
 * Jobs that a handler adds while it runs: its children. They are added by the call that ends its
 * job well, and thrown away with any other end.
 *
 * A child is a list of words as later_add takes them: QUEUE [name value]... PAYLOAD. Redis checks
 * them; here they are only bounded. The first thing that is wrong is kept as the refusal: then the
 * attempt has failed, since a job is never done with lost children.
 *
 * Pure; one thread.
 */
#ifndef LATER_JOB_CHILDREN_H
#define LATER_JOB_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define CHILDREN_MAX 1000          /* of an attempt */
#define CHILDREN_BYTES (1UL << 20) /* of their payloads together */
#define CHILDREN_WORDS_MAX 64      /* of a child */
#define CHILDREN_HEADER_BYTES 2048 /* of what stands before a payload */

/* Empty when zeroed. Free with children_done. */
struct children {
    struct buf bytes; /* all words, one behind the other */
    size_t *lens;     /* of each word */
    size_t nwords;
    size_t *counts; /* words of each child */
    size_t n;
    size_t payloads;     /* bytes of all payloads */
    bool awaits_lf;      /* a payload of `len N` is under way: its line feed has not come */
    const char *refusal; /* a literal; NULL: none */
};

void children_done(struct children *c);
/* A deep copy; NULL: there are none. Free it with children_free. */
struct children *children_copy(const struct children *c);
void children_free(struct children *c); /* NULL is fine */

/* Nothing more is taken. Only the first text, a literal, is kept. */
void children_refuse(struct children *c, const char *text);

/* Add a child of these words. */
void children_add(struct children *c, const char *const *words, const size_t *lens, size_t n);

/*
 * Add the child of one line, QUEUE [name value]... and then `-- PAYLOAD`, or `len N`: N bytes and a
 * line feed follow the line. Words are parted by single spaces. cut: the line was longer. *ret_len:
 * N, the bytes that the caller hands to children_payload next; 0 without `len`. 0; -1: it is
 * refused, and nobody knows whether a payload follows.
 */
int children_line(struct children *c, const char *line, size_t n, bool cut, size_t *ret_len);
/* Some more bytes of the payload. */
void children_payload(struct children *c, const char *p, size_t n);
/* A line of n bytes follows the payload. -> whether it was the line feed that was awaited */
bool children_end_payload(struct children *c, size_t n);
/* The handler has ended. is_half_line: its last line was an `add` without its line feed. */
void children_end(struct children *c, bool is_half_line);

#endif
