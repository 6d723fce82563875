/* Which files may serve a queue: each refusal with its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "run/handler/handler.h"

#define SCRIPT "#!/bin/sh\nexit 0\n"

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][600];
    static unsigned turn;
    char *p = path[turn++ % 4];

    (void)snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
    return p;
}

static int setup(void **state)
{
    (void)state;
    (void)umask(022);
    (void)strcpy(dir, "/tmp/later-handler-XXXXXX");
    return mkdtemp(dir) != NULL && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    char command[96];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static void make(const char *name, const char *content, mode_t mode)
{
    FILE *f = fopen(in_dir(name), "w");

    assert_non_null(f);
    (void)fputs(content, f);
    (void)fclose(f);
    assert_int_equal(chmod(in_dir(name), mode), 0);
}

static void make_folder(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(in_dir(name), 0755), 0);
    assert_int_equal(chmod(in_dir(name), mode), 0);
}

static void link_to(const char *target, const char *name)
{
    assert_int_equal(symlink(target, in_dir(name)), 0);
}

static void fine_path(const char *path)
{
    struct err err = ERR_INIT;

    if (handler_check(path, HANDLER_CHECK_STRICT, &err) != 0)
        fail_msg("%s: refused: %s", path, err.text);
    assert_int_equal(err.code, ERR_NONE);
}

static void fine(const char *name)
{
    fine_path(in_dir(name));
}

/* The path is refused for this reason, however strictly permissions are checked. */
static void broken_path(const char *path, const char *why)
{
    for (int how = HANDLER_CHECK_STRICT; how <= HANDLER_CHECK_OFF; how++) {
        struct err err = ERR_INIT;

        assert_int_equal(handler_check(path, (enum handler_check)how, &err), -1);
        assert_int_equal(err.code, ERR_CONFIG);
        if (strstr(err.text, why) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", path, err.text, why);
    }
}

static void broken(const char *name, const char *why)
{
    broken_path(in_dir(name), why);
}

/* Only a strict check refuses it; `warn` gives the same reason and accepts, `off` says nothing. */
static void unsafe(const char *name, const char *why)
{
    struct err err = ERR_INIT;

    assert_int_equal(handler_check(in_dir(name), HANDLER_CHECK_STRICT, &err), -1);
    assert_int_equal(err.code, ERR_CONFIG);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", name, err.text, why);
    assert_int_equal(handler_check(in_dir(name), HANDLER_CHECK_WARN, &err), 0);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, why));
    assert_int_equal(handler_check(in_dir(name), HANDLER_CHECK_OFF, &err), 0);
    assert_int_equal(err.code, ERR_NONE);
}

/* ---- one file ---- */

static void test_good_ones(void **state)
{
    (void)state;
    make("mail", SCRIPT, 0755);
    make("mine", SCRIPT, 0700);
    make("spaced", "#! \t/bin/sh -e\n", 0755);
    make("env", "#!/usr/bin/env sh\n", 0755);
    fine("mail");
    fine("mine");
    fine("spaced");
    fine("env");
    fine_path("/bin/cat");
}

static void test_what_cannot_start(void **state)
{
    char self[128], cure[128];

    (void)state;
    make_folder("folder", 0755);
    make("notx", SCRIPT, 0644);
    make("empty", "", 0755);
    make("plain", "echo hello\n", 0755);
    make("bom", "\xef\xbb\xbf#!/bin/sh\n", 0755);
    make("crlf", "#!/bin/sh\r\n", 0755);
    make("nameless", "#! \n", 0755);
    make("lost", "#!/no/such/thing -x\n", 0755);
    make("relative", "#!python3\n", 0755);
    make("notsh", "#!/etc/passwd\n", 0755);
    (void)snprintf(self, sizeof(self), "#!%s\n", in_dir("self"));
    make("self", self, 0755);
    assert_int_equal(mkfifo(in_dir("fifo"), 0755), 0);
    broken_path("mail", "absolute path");
    broken("missing", "missing does not exist");
    broken("folder", "is a folder, not a program");
    broken("fifo", "is not a regular file");
    (void)snprintf(cure, sizeof(cure), "is not executable: chmod +x %s", in_dir("notx"));
    broken("notx", cure);
    broken("empty", "is empty");
    broken("plain", "has no interpreter line: make its first line #!/bin/sh");
    broken("bom", "byte order mark");
    (void)snprintf(cure, sizeof(cure), "(CRLF): sed -i 's/\\r$//' %s", in_dir("crlf"));
    broken("crlf", cure);
    broken("nameless", "names no interpreter behind its #!");
    broken("lost", "interpreter /no/such/thing does not exist: install it or correct");
    broken("relative", "write #!/usr/bin/env python3");
    broken("notsh", "its interpreter: /etc/passwd is not executable");
    broken("self", "a script of a script");
    broken("notx/x", "Not a directory");
}

static void test_interpreter_that_is_a_script(void **state)
{
    char line[128];

    (void)state;
    make("inner", SCRIPT, 0755);
    (void)snprintf(line, sizeof(line), "#!%s\n", in_dir("inner"));
    make("outer", line, 0755);
    fine("outer");
    make("inner", "#!/bin/sh\r\n", 0755);
    broken("outer", "its interpreter: ");
    broken("outer", "inner has Windows line ends");
}

static void test_modes(void **state)
{
    char cure[128];

    (void)state;
    make("group", SCRIPT, 0775);
    make("others", SCRIPT, 0757);
    (void)snprintf(cure, sizeof(cure), "can be written by others (mode 0775): chmod go-w %s",
                   in_dir("group"));
    unsafe("group", cure);
    unsafe("others", "can be written by others (mode 0757)");
}

static void test_folders_above(void **state)
{
    (void)state;
    make_folder("open", 0777);
    make_folder("open/closed", 0755);
    make("open/closed/mail", SCRIPT, 0755);
    unsafe("open/closed/mail", "open can be written by others (mode 0777): chmod go-w ");
    assert_int_equal(chmod(in_dir("open"), 01777), 0);
    /* The sticky bit makes a folder safe only if root owns it. */
    if (geteuid() == 0)
        fine("open/closed/mail");
    else
        unsafe("open/closed/mail", "open can be written by others (mode 1777)");
    assert_int_equal(chmod(in_dir("open"), 0755), 0);
    fine("open/closed/mail");
}

static void test_owners(void **state)
{
    char cure[160];

    (void)state;
    if (geteuid() != 0)
        skip();
    make_folder("home", 0755);
    make("home/mail", SCRIPT, 0755);
    assert_int_equal(chown(in_dir("home"), 65534, 65534), 0);
    (void)snprintf(cure, sizeof(cure), "belongs to uid 65534, not to root or uid 0: chown 0 %s",
                   in_dir("home"));
    unsafe("home/mail", cure);
    assert_int_equal(chown(in_dir("home"), 0, 0), 0);
    assert_int_equal(chown(in_dir("home/mail"), 65534, 65534), 0);
    unsafe("home/mail", "home/mail belongs to uid 65534");
    /* For that user the folder is its own. */
    assert_int_equal(seteuid(65534), 0);
    fine("home/mail");
    assert_int_equal(seteuid(0), 0);
}

static void test_symlinks(void **state)
{
    (void)state;
    make_folder("safe", 0755);
    make_folder("writable", 0755);
    make("safe/real", SCRIPT, 0755);
    link_to("safe/real", "near");
    link_to(in_dir("safe/real"), "far");
    link_to("../safe/../safe/./real", "writable/back");
    link_to("writable/back", "chain");
    link_to("safe", "folder");
    link_to("nowhere", "dangling");
    link_to("loop", "loop");
    fine("near");
    fine("far");
    fine("chain");
    fine("folder/real");
    broken("dangling", "dangling is a symlink to something that does not exist");
    broken("loop", "Too many levels of symbolic links");
    /* A folder in the middle of the chain of links. */
    assert_int_equal(chmod(in_dir("writable"), 0777), 0);
    unsafe("chain", "writable can be written by others");
    fine("near");
    /* The folder of the target. */
    assert_int_equal(chmod(in_dir("safe/real"), 0777), 0);
    unsafe("near", "safe/real can be written by others");
    unsafe("folder/real", "safe/real can be written by others");
    assert_int_equal(chmod(in_dir("safe/real"), 0755), 0);
    assert_int_equal(chmod(in_dir("safe"), 0775), 0);
    unsafe("far", "safe can be written by others");
}

static void test_symlink_of_somebody_else(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    make_folder("sticky", 01777);
    make("real", SCRIPT, 0755);
    link_to("../real", "sticky/mail");
    fine("sticky/mail");
    assert_int_equal(lchown(in_dir("sticky/mail"), 65534, 65534), 0);
    unsafe("sticky/mail", "sticky/mail belongs to uid 65534");
}

static void test_long_paths_keep_their_reason(void **state)
{
    char name[300];

    (void)state;
    (void)memset(name, 'x', 250);
    (void)strcpy(name + 250, "-end");
    make(name, SCRIPT, 0777);
    unsafe(name, "-end can be written by others (mode 0777): chmod go-w ");
}

/* ---- a folder of handlers ---- */

static void on_refused(void *arg, const char *file, const char *reason)
{
    buf_printf(arg, "%s: %s\n", file, reason);
}

/* Scan the folder: the queues found, as "a b c", and what was refused. */
static void scan(enum handler_check how, struct buf *queues, struct buf *refused)
{
    struct err err = ERR_INIT;
    struct handler_dir found;

    buf_clear(queues);
    buf_clear(refused);
    assert_int_equal(handler_scan(in_dir("h"), how, on_refused, refused, &found, &err), 0);
    for (size_t i = 0; i < found.n; i++) {
        assert_true(found.at[i].path[0] == '/' && access(found.at[i].path, X_OK) == 0);
        buf_printf(queues, "%s%s", i > 0 ? " " : "", found.at[i].queue);
    }
    handler_dir_done(&found);
}

static void test_scan(void **state)
{
    static const char *const skipped[] = {
        ".hidden",      "mail~",         "#mail#",        "mail.bak",    "mail.orig",   "mail.rej",
        ".mail.sh.swp", "mail.dpkg-old", "mail.ucf-dist", "mail.rpmnew", "mail.rpmsave"};
    struct buf queues = BUF_INIT, refused = BUF_INIT;
    char name[64];

    (void)state;
    make_folder("h", 0755);
    make("h/zebra", SCRIPT, 0755);
    make("h/mail.sh", SCRIPT, 0755);
    make("h/a_b-1.py", SCRIPT, 0755);
    make("h/README", "read me\n", 0644);
    make("h/lib.sh", "# to be read by others\n", 0644);
    make("h/not-a-queue.tar.gz", SCRIPT, 0644);
    make_folder("h/lib", 0755);
    make("real", SCRIPT, 0755);
    link_to("../real", "h/linked");
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
        (void)snprintf(name, sizeof(name), "h/%s", skipped[i]);
        make(name, SCRIPT, 0755);
    }
    scan(HANDLER_CHECK_STRICT, &queues, &refused);
    assert_string_equal(buf_str(&queues), "a_b-1 linked mail zebra");
    assert_string_equal(buf_str(&refused), "");
    buf_done(&queues);
    buf_done(&refused);
}

/* A handler that came without its x bit is told, with the cure. */
static void test_scan_tells_of_a_forgotten_bit(void **state)
{
    struct buf queues = BUF_INIT, refused = BUF_INIT;
    char cure[160];

    (void)state;
    make_folder("h", 0755);
    make("h/mail.sh", SCRIPT, 0644);
    scan(HANDLER_CHECK_STRICT, &queues, &refused);
    assert_string_equal(buf_str(&queues), "");
    (void)snprintf(cure, sizeof(cure), "chmod +x %s", in_dir("h/mail.sh"));
    assert_non_null(strstr(buf_str(&refused), "warning: not served, since it is not executable"));
    assert_non_null(strstr(buf_str(&refused), cure));
    buf_done(&queues);
    buf_done(&refused);
}

static void test_scan_refuses(void **state)
{
    struct buf queues = BUF_INIT, refused = BUF_INIT;

    (void)state;
    make_folder("h", 0755);
    make("h/ok", SCRIPT, 0755);
    make("h/two.sh", SCRIPT, 0755);
    make("h/two.py", SCRIPT, 0755);
    make("h/two", "not even a script", 0755);
    make("h/bad name", SCRIPT, 0755);
    make("h/a.b.sh", SCRIPT, 0755);
    make("h/-x", SCRIPT, 0755);
    make("h/crlf", "#!/bin/sh\r\n", 0755);
    make("h/loose", SCRIPT, 0777);
    link_to("nowhere", "h/dangling");
    scan(HANDLER_CHECK_STRICT, &queues, &refused);
    assert_string_equal(buf_str(&queues), "ok");
    assert_non_null(strstr(buf_str(&refused), "two.sh: two.py would serve queue two too"));
    assert_non_null(strstr(buf_str(&refused), "two.py: two would serve queue two too"));
    assert_non_null(strstr(buf_str(&refused), "two: two.py would serve queue two too"));
    assert_non_null(strstr(buf_str(&refused), "bad name: its name without extension is no queue"));
    assert_non_null(strstr(buf_str(&refused), "a.b.sh: its name without extension is no queue"));
    assert_non_null(strstr(buf_str(&refused), "-x: its name without extension is no queue"));
    assert_non_null(strstr(buf_str(&refused), "crlf: /tmp/"));
    assert_non_null(strstr(buf_str(&refused), "loose: /tmp/"));
    assert_non_null(strstr(buf_str(&refused), "dangling: /tmp/"));
    scan(HANDLER_CHECK_WARN, &queues, &refused);
    assert_string_equal(buf_str(&queues), "loose ok");
    assert_non_null(strstr(buf_str(&refused), "loose: warning: /tmp/"));
    scan(HANDLER_CHECK_OFF, &queues, &refused);
    assert_string_equal(buf_str(&queues), "loose ok");
    assert_null(strstr(buf_str(&refused), "loose"));
    buf_done(&queues);
    buf_done(&refused);
}

static void test_scan_of_a_bad_folder(void **state)
{
    struct handler_dir found;
    struct err err = ERR_INIT;

    (void)state;
    make_folder("h", 0777);
    assert_int_equal(handler_scan(in_dir("none"), HANDLER_CHECK_OFF, NULL, NULL, &found, &err), -1);
    assert_string_equal(err.text, "handlers_dir cannot be read: No such file or directory");
    assert_int_equal(handler_scan("h", HANDLER_CHECK_OFF, NULL, NULL, &found, &err), -1);
    assert_int_equal(handler_scan(in_dir("h"), HANDLER_CHECK_STRICT, NULL, NULL, &found, &err), -1);
    assert_non_null(strstr(err.text, "h can be written by others (mode 0777)"));
    assert_int_equal(handler_scan(in_dir("h"), HANDLER_CHECK_WARN, NULL, NULL, &found, &err), 0);
    assert_int_equal(err.code, ERR_CONFIG);
    handler_dir_done(&found);
    assert_int_equal(handler_scan(in_dir("h"), HANDLER_CHECK_OFF, NULL, NULL, &found, &err), 0);
    assert_int_equal(err.code, ERR_NONE);
    handler_dir_done(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interpreter_that_is_a_script, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folders_above, setup, teardown),
        cmocka_unit_test_setup_teardown(test_owners, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symlinks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symlink_of_somebody_else, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_paths_keep_their_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan_tells_of_a_forgotten_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan_of_a_bad_folder, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
