/*
 * A handler cannot look into the daemon. As the daemon's own user and as another user it tries
 * ptrace, and what follows the same rule, on the real laterd that runs as a service user. This
 * program is also the handler: `test_ptrace --try NAME` tries its parent. Needs root; skipped
 * without.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define EXIT_SKIPPED 77
#define SERVICE 1 /* a user (Debian: daemon) for laterd */
#define CAPS "+setuid,+setgid,+kill"

/* ---- the handler */

static void tell(const char *who, const char *what, bool is_got)
{
    (void)printf("%s %s %s\n", who, is_got ? "got" : "tried", what);
}

static void try_ptrace(const char *who, pid_t pid)
{
    bool is_on = ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0;

    tell(who, "attach", is_on);
    if (is_on) {
        (void)waitpid(pid, NULL, __WALL);
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    is_on = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
    tell(who, "seize", is_on);
    if (is_on && ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0) {
        (void)waitpid(pid, NULL, __WALL);
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
}

static void try_file(const char *who, pid_t pid, const char *name, int flags)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/%s", (int)pid, name);
    CLEANUP_CLOSE int fd = open(path, flags | O_CLOEXEC);

    tell(who, name, fd >= 0);
}

/* If `pid` is a copy of this program, the address is mapped there, too. In laterd any answer but
 * EFAULT would do: it shows that access was allowed. */
static void try_memory(const char *who, pid_t pid)
{
    static char mine[16];
    struct iovec here = {mine, sizeof(mine)}, there = {mine, sizeof(mine)};

    tell(who, "vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT);
}

static void try_descriptor(const char *who, pid_t pid)
{
    CLEANUP_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CLEANUP_CLOSE int got = pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0) : -1;

    tell(who, "pidfd_getfd", got >= 0);
}

static void try_all(const char *who, pid_t pid)
{
    try_ptrace(who, pid);
    try_file(who, pid, "mem", O_RDWR);
    try_file(who, pid, "environ", O_RDONLY);
    try_file(who, pid, "maps", O_RDONLY);
    try_file(who, pid, "fd/0", O_RDONLY);
    try_memory(who, pid);
    try_descriptor(who, pid);
}

/* Also try a process of the same user that hides nothing, to see what is allowed here at all. */
static int handler(const char *who)
{
    pid_t open_one = fork();

    if (open_one == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    try_all("control", open_one);
    (void)kill(open_one, SIGKILL);
    try_all(who, getppid());
    (void)printf("%s was here %d\n", who, (int)getppid());
    return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- the tests */

static void start_as_service(void)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", dir);
    CLEANUP_FREE char *folder = mem_printf("%s/state-a", dir);
    char *argv[] = {(char *)(uintptr_t) "setpriv",
                    (char *)(uintptr_t) "--reuid=1",
                    (char *)(uintptr_t) "--regid=1",
                    (char *)(uintptr_t) "--clear-groups",
                    (char *)(uintptr_t) "--inh-caps=" CAPS,
                    (char *)(uintptr_t) "--ambient-caps=" CAPS,
                    program,
                    (char *)(uintptr_t) "--config",
                    a.conf,
                    NULL};

    test_laterd_conf(&a, dir, "a", redis.url,
                     "queues:\n  own: { keep: 1h }\n  other: { user: nobody, keep: 1h }\n");
    (void)mkdir(folder, 0700);
    assert_int_equal(chown(folder, SERVICE, SERVICE), 0);
    proc_start(&a.proc, argv, NULL, a.log);
    a.runs = true;
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
}

static void must_get_nothing(const char *queue)
{
    CLEANUP_FREE char *id = test_add(&redis, queue, NULL, NULL, "x");
    CLEANUP_FREE char *got = mem_printf("%s got ", queue);
    CLEANUP_FREE char *tried = mem_printf("%s tried ", queue);
    CLEANUP_FREE char *here = mem_printf("%s was here %d", queue, (int)a.proc.pid);

    assert_true(test_until_state(&redis, id, "done", LONG_MS));
    if (test_lines(out, got) != 0)
        test_says("cat $OUT", 99, "");
    assert_int_equal(test_lines(out, tried), 8);
    assert_int_equal(test_lines(out, here), 1);
    /* The tries mean something: a process that hides nothing gives everything away. */
    assert_true(test_lines(out, "control got") >= 8);
}

static void test_own_user(void **state)
{
    (void)state;
    start_as_service();
    must_get_nothing("own");
}

static void test_other_user(void **state)
{
    (void)state;
    start_as_service();
    must_get_nothing("other");
}

static int setup(void **state)
{
    CLEANUP_FREE char *line = NULL;
    CLEANUP_FREE char *socket = NULL;

    if (fx_open(state) != 0)
        return -1;
    socket = mem_strdup(redis.url + strlen("unix:"));
    *strrchr(socket, '/') = '\0';
    line = mem_printf("chmod 755 %s %s && chmod 777 %s && cp %s/laterd %s/laterd && "
                      "cp /proc/%d/exe %s/try && chmod 755 %s/laterd %s/try && : >%s && "
                      "chmod 666 %s",
                      dir, socket, redis.url + strlen("unix:"), test_build_dir(), dir,
                      (int)getpid(), dir, dir, dir, out, out);
    assert_int_equal(test_sh(line), 0);
    test_handler(dir, "own", "exec %s/try --try own >>%s", dir, out);
    test_handler(dir, "other", "exec %s/try --try other >>%s", dir, out);
    (void)setenv("OUT", out, 1);
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {T(test_own_user), T(test_other_user)};

    if (argc == 3 && strcmp(argv[1], "--try") == 0)
        return handler(argv[2]);
    if (geteuid() != 0) {
        print_message("needs root: skipped\n");
        return EXIT_SKIPPED;
    }
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
