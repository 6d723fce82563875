/*
 * The users of etc/users.acl in a server of a test. What cannot be done ends the test program.
 */
#ifndef LATER_TESTS_SUPPORT_ROLES_H
#define LATER_TESTS_SUPPORT_ROLES_H

#include "redis/client.h"

enum { TEST_ROLES = 5 };

/* Their first letters differ. */
extern const char *const test_roles[TEST_ROLES];

/* What the file says of one behind `off`, for the namespace `ns`; the caller's to free. */
char *test_role_rights(const char *role, const char *ns);
/* Make the user anew, with these rights and no password. c: one who may. */
void test_role_set(struct client *c, const char *role, const char *rights);
/* From now on this connection is that user's. */
void test_role_login(struct client *c, const char *role);

#endif
