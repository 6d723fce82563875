/*
 * The users of etc/users.acl in a test's server. Failures end the test program.
 */
#ifndef LATER_TESTS_SUPPORT_ROLES_H
#define LATER_TESTS_SUPPORT_ROLES_H

#include "redis/client.h"

enum { TEST_ROLES = 7 };

/* Role names with different first letters. */
extern const char *const test_roles[TEST_ROLES];

/* The rights of this role in the file (after `off`), for namespace `ns`; the caller frees them. */
char *test_role_rights(const char *role, const char *ns);
/* Make the user anew, with these rights and no password. c: a connection that may do that. */
void test_role_set(struct client *c, const char *role, const char *rights);
/* From now on this connection is that of the user. */
void test_role_login(struct client *c, const char *role);

#endif
