/*
 * Signals as events of the loop. Blocked in every thread from signals_block on; pool threads and
 * handlers start from there (handlers get an empty mask and default dispositions).
 */
#ifndef LATER_DAEMON_SIGNALS_H
#define LATER_DAEMON_SIGNALS_H

#include "loop/loop.h"

/* Before any thread exists: blocks what we listen to, ignores SIGPIPE, undoes an inherited ignored
 * SIGCHLD (it would eat exit statuses). */
void signals_block(void);

struct signals;
typedef void signals_f(void *arg, int sig);
struct signals *signals_new(struct loop *loop, signals_f *cb, void *arg); /* NULL: no descriptor */
void signals_free(struct signals *s);

#endif
