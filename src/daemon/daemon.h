/*
 * The daemon: joins loop, link, store, scheduler and pool, and takes signals. Main thread.
 */
#ifndef LATER_DAEMON_DAEMON_H
#define LATER_DAEMON_DAEMON_H

#include "base/err.h"
#include "conf/conf.h"

/*
 * Run until a signal ends it. Takes over conf. env: the environment that conf was loaded with, for
 * reloads and for the handlers. 0 after an orderly stop; -1 when it could not start, or `strict`
 * refused the server.
 */
int daemon_run(struct conf *conf, char *const *env, struct err *err);

/* What --check-config checks besides the content of the file: who may change the file, the server's
 * address, the password, users and handlers. Prints each error on stderr. 0, or -1 if there was
 * one. */
int daemon_check(const struct conf *conf, char *const *env);

#endif
