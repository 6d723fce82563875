/*
 * A traceparent of W3C Trace Context: VERSION-TRACE-PARENT-FLAGS, of 2, 32, 16 and 2 digits. A
 * version above 00 may have more behind a dash. Pure. (src/lua/public/add.lua checks the same.)
 */
#ifndef LATER_JOB_TRACEPARENT_H
#define LATER_JOB_TRACEPARENT_H

#include <stdbool.h>

#define TRACE_ID_LEN 32

/* Is it one? If so, put its trace id into ret, else "". */
bool traceparent_trace_id(const char *text, char ret[TRACE_ID_LEN + 1]);

#endif
