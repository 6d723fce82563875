/*
 * Signals as events of the loop. They are blocked in every thread from signals_block on. Handlers
 * get an empty mask and default dispositions.
 */
#ifndef LATER_DAEMON_SIGNALS_H
#define LATER_DAEMON_SIGNALS_H

#include "loop/loop.h"

/* Call it before any thread exists. Blocks what we listen to, ignores SIGPIPE and SIGXFSZ, and
 * undoes an inherited SIG_IGN of SIGCHLD, which would lose exit statuses. */
void signals_block(void);

struct signals;
typedef void signals_f(void *arg, int sig);
struct signals *signals_new(struct loop *loop, signals_f *cb, void *arg); /* NULL: no descriptor */
void signals_free(struct signals *s);

#endif
