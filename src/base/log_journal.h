/*
 * The journal's own protocol (systemd, "Native Journal Protocol"): an event is one datagram of
 * NAME=value lines. Values are escaped, so none holds a line feed. Any thread once it is open.
 *
 * Names: MESSAGE (the line as other outputs have it), PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID (of
 * an event that an operator alerts on, log_alerts.def), LATERD_WORKER, and each field of the line
 * as LATERD_<KEY>: LATERD_EVENT, LATERD_JOB, LATERD_QUEUE …
 */
#ifndef LATER_BASE_LOG_JOURNAL_H
#define LATER_BASE_LOG_JOURNAL_H

#include <stdint.h>

#include "base/buf.h"
#include "base/log_event.h"

/* The MESSAGE_ID of the event (static), or NULL if it has none. Pure. */
const char *log_journal_id(const struct log_event *r);
/* Append the datagram. worker: 0 for none. Pure. */
void log_journal_write(const struct log_event *r, int64_t worker, struct buf *out);

/* Call once, before threads exist. */
void log_journal_open(void);
/* 0, or -1 when it is not open or the journal does not take the event now: write it elsewhere. */
int log_journal_send(const struct log_event *r, int64_t worker);

#endif
