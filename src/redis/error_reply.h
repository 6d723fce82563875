/*
 * Sorts an error reply of Redis by its text: which fault it is, and which cure a person is told.
 * Pure.
 */
#ifndef LATER_REDIS_ERROR_REPLY_H
#define LATER_REDIS_ERROR_REPLY_H

#include "base/err.h"
#include "base/fault.h"

enum fault error_reply_fault(const char *error_text);
/* Fill err for a person: code, and text with the cure. Returns -1. */
int error_reply_err(struct err *err, const char *error_text);

#endif
