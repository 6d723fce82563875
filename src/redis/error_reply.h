/*
 * Sorts an error reply of Redis by its text: of which class it is, and which cure a person is told.
 * Pure.
 */
#ifndef LATER_REDIS_ERROR_REPLY_H
#define LATER_REDIS_ERROR_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/error_class.h"
#include "redis/reply.h"

enum error_class error_reply_class(const char *error_text);
/* Fill err for a person: code, and text with the cure. Returns -1. */
int error_reply_err(struct err *err, const char *error_text);
/* True when the answer of a function is an error, or no array of at least so many elements; failed
 * has been called then. */
bool error_reply_is_bad(const struct reply *r, size_t elements,
                        void (*failed)(void *arg, enum error_class class, const char *text),
                        void *arg);

/* Was a call refused since the slot of its key is on another node, moves, or has no owner now? Then
 * nothing was done. */
bool error_reply_is_between_nodes(const char *error_text);

#endif
