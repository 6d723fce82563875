/*
 * The surroundings of a run: a real redis-server with the library, a clock that shows what the test
 * sets, and the users of etc/users.acl for each namespace.
 */
#ifndef LATER_TESTS_CHAOS_ARENA_H
#define LATER_TESTS_CHAOS_ARENA_H

#include <stdint.h>

#include "base/err.h"
#include "redis/reply.h"
#include "call.h"

enum role { ROLE_ALL, ROLE_PRODUCER, ROLE_CALLER, ROLE_WORKER, ROLE_ADMIN, ROLES };

/* Start the server. library: a file with the text to load instead of the built library; NULL: the
 * built one. */
void arena_start(const char *library);
void arena_stop(void);
/* Empty the server and load the library. passes: how often a job is passed over before it takes its
 * gates one by one (PASSED_OVER_MAX). */
void arena_clear(int passes);
void arena_set_time(int64_t now_us);
/* Send one command as this role. Returns the reply, owned by the caller; NULL with err for an error
 * reply. */
struct reply *arena_ask(enum role role, int space, const struct call *c, struct err *err);
/* The same as the default user; an error reply ends the program. */
struct reply *arena_must(const struct call *c);

#endif
