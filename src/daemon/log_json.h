/*
 * Writes a line of the log as a JSON object: time, level, worker (once it has an epoch), then the
 * fields in their order. A field that the format makes of an integer alone is a number. All others
 * are text, escaped as in the other form. Any thread.
 */
#ifndef LATER_DAEMON_LOG_JSON_H
#define LATER_DAEMON_LOG_JSON_H

#include "base/log.h"

/* Append it to out, without LF. */
void log_json(const struct log_event *r, const char *when, int64_t worker, struct buf *out);

#endif
