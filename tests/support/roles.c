#include "roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "env.h"

#define WORDS_MAX 128
#define ROW_MAX 4096

const char *const test_roles[TEST_ROLES] = {"producer",  "manager",  "caller", "worker",
                                            "dashboard", "operator", "admin"};

static void die(const char *role, const char *what)
{
    (void)fprintf(stderr, "user %s: %s\n", role, what);
    abort();
}

/* The rest of the line of this role in etc/users.acl, without its LF. */
static void read_row(const char *role, char row[ROW_MAX])
{
    CLEANUP_FREE char *path = mem_printf("%s/etc/users.acl", test_source_dir());
    CLEANUP_FREE char *start = mem_printf("user %s off ", role);
    FILE *f = fopen(path, "re");
    bool is_found = false;

    while (f != NULL && !is_found && fgets(row, ROW_MAX, f) != NULL)
        is_found = strncmp(row, start, strlen(start)) == 0;
    if (f != NULL)
        (void)fclose(f);
    if (!is_found)
        die(role, "not in etc/users.acl");
    memmove(row, row + strlen(start), strlen(row + strlen(start)) + 1);
    row[strcspn(row, "\n")] = '\0';
}

char *test_role_rights(const char *role, const char *ns)
{
    static const char standard[] = "{default}";
    struct buf out = BUF_INIT;
    char row[ROW_MAX], *at;

    read_row(role, row);
    for (at = row; *at != '\0'; at++) {
        if (strncmp(at, standard, strlen(standard)) == 0) {
            buf_printf(&out, "{%s}", ns);
            at += strlen(standard) - 1;
        } else {
            buf_add(&out, at, 1);
        }
    }
    buf_add(&out, NULL, 0);
    return buf_take(&out);
}

static void must(struct client *c, const char *role, int argc, const char *const *argv)
{
    struct err err = ERR_INIT;
    struct reply *r = client_call(c, argc, (const char **)(uintptr_t)argv, NULL, &err);

    if (r == NULL)
        die(role, err.text);
    reply_free(r);
}

void test_role_set(struct client *c, const char *role, const char *rights)
{
    const char *argv[WORDS_MAX] = {"ACL", "SETUSER", role, "reset", "on", "nopass"};
    CLEANUP_FREE char *words = mem_strdup(rights);
    char *rest = words, *word;
    int argc = 6;

    while ((word = strsep(&rest, " ")) != NULL) {
        if (argc == WORDS_MAX)
            die(role, "too many words");
        argv[argc++] = word;
    }
    must(c, role, argc, argv);
}

void test_role_login(struct client *c, const char *role)
{
    const char *argv[] = {"AUTH", role, "none"};

    must(c, role, 3, argv);
}
