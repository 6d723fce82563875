/*
 * A real redis-server with the library, a clock that stands where the test says, and the users of
 * etc/users.acl for each namespace.
 */
#ifndef LATER_TESTS_CHAOS_ARENA_H
#define LATER_TESTS_CHAOS_ARENA_H

#include <stdint.h>

#include "base/err.h"
#include "redis/reply.h"
#include "call.h"

enum role { ROLE_ALL, ROLE_PRODUCER, ROLE_CALLER, ROLE_WORKER, ROLE_ADMIN, ROLES };

/* Instead of the built library, the text of this file; NULL: the built one. */
void arena_start(const char *library);
void arena_stop(void);
/* Empty, with the library as it is after a start; passes: how often a job is passed over before it
 * reserves. */
void arena_clear(int passes);
void arena_set_time(int64_t now_us);
/* One command. NULL with err for an error reply. */
struct reply *arena_ask(enum role role, int space, const struct call *c, struct err *err);
/* The same as the default user; an error reply ends the program. */
struct reply *arena_must(const struct call *c);

#endif
