/*
 * Turns the settings of a queue into what the process of its handler is to be: finds the numbers of
 * users and groups and checks rights, once, when the configuration is read. Main thread; asks the
 * system for users and groups, which may take a moment.
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

/* user: a name or a number. 0: free *ret with isolation_spec_user_done. -1: there is none (code
 * CONFIG), or the system could not tell. */
int isolation_spec_find_user(const char *user, struct isolation_user *ret, struct err *err);
void isolation_spec_user_done(struct isolation_user *u);

/* user: the queue's, NULL if it is the daemon's. ret->cwd belongs to the configuration. 0, or -1
 * with the setting that is wrong in *ret_path; code CONFIG, or the system could not look up a
 * group. */
int isolation_spec_of_queue(const struct conf_queue *q, const struct isolation_user *user,
                            struct isolation *ret, const char **ret_path, struct err *err);

#endif
