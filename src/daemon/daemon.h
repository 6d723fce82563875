/*
 * The daemon: joins loop, link, store, scheduler and pool, and takes signals. Main thread.
 */
#ifndef LATER_DAEMON_DAEMON_H
#define LATER_DAEMON_DAEMON_H

#include "base/err.h"
#include "conf/conf.h"

/*
 * Run until a signal ends it. Takes over conf. env: the environment it was loaded with, for
 * reloads and for the handlers. 0 after an orderly stop, -1 when it could not start.
 */
int daemon_run(struct conf *conf, char *const *env, struct err *err);

/* What --check-config checks beside the file: the server's address, the handlers. Each fault is
 * reported on stderr; -1 when there was one. */
int daemon_check(const struct conf *conf, char *const *env);

#endif
