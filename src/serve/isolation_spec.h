/*
 * From what the configuration says of a queue to what the process of its handler is to be: names
 * become numbers, and rights are looked at, once, when the configuration is read. Main thread; asks
 * the system for users and groups, which may take a moment.
 */
#ifndef LATER_SERVE_ISOLATION_SPEC_H
#define LATER_SERVE_ISOLATION_SPEC_H

#include <sys/types.h>

#include "conf/conf.h"
#include "run/isolation/isolation.h"

struct isolation_user {
    uid_t uid;
    gid_t gid;
    char *name, *home, *shell; /* owned */
};

/* By name or number. 0, or -1 with code CONFIG: there is none. */
int isolation_spec_find_user(const char *user, struct isolation_user *ret, struct err *err);
void isolation_spec_user_done(struct isolation_user *u);

/* user: the queue's, NULL where it is the daemon's. cwd is that of the queue's configuration. 0, or
 * -1 with code CONFIG, and in *ret_path the row that is to blame. */
int isolation_spec_of_queue(const struct conf_queue *q, const struct isolation_user *user,
                            struct isolation *ret, const char **ret_path, struct err *err);

#endif
