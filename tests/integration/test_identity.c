/*
 * Which workers are certainly gone: processes that live, that died, or that cannot be seen.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/identity.h"
#include "run/process/pidstat.h"

static struct identity me;

static struct store_peer peer_like_me(void)
{
    return (struct store_peer){
        1, "1", me.host, me.boot, me.process.pidns, me.process.pid, me.process.pstart};
}

static int setup(void **state)
{
    (void)state;
    identity_read(&me);
    return 0;
}

static void test_the_living_are_not_gone(void **state)
{
    struct store_peer p = peer_like_me();

    (void)state;
    assert_false(identity_is_gone(&me, &p));
    p.pstart = "1"; /* the pid was given to another process */
    assert_true(identity_is_gone(&me, &p));
}

static void test_other_processes_tell_nothing(void **state)
{
    struct store_peer p = peer_like_me();
    char other[64];

    (void)state;
    p.pstart = "1";
    p.boot = "another boot";
    assert_false(identity_is_gone(&me, &p));
    p = peer_like_me();
    p.pstart = "1";
    p.pidns = "4026531000";
    assert_false(identity_is_gone(&me, &p));
    /* A worker of another user, and one of a version that did not tell its user. */
    (void)snprintf(other, sizeof(other), "%.*s.12345", (int)strcspn(me.process.pidns, "."),
                   me.process.pidns);
    p.pidns = other;
    assert_false(identity_is_gone(&me, &p));
    *strchr(other, '.') = '\0';
    assert_false(identity_is_gone(&me, &p));
    p = peer_like_me();
    p.pid = "x";
    assert_false(identity_is_gone(&me, &p));
}

static void test_the_dead_are_gone_reaped_or_not(void **state)
{
    struct store_peer p = peer_like_me();
    char pid[16], start[24];
    siginfo_t info;
    pid_t child;
    int hold[2];

    (void)state;
    assert_int_equal(pipe(hold), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char c;

        (void)close(hold[1]);
        _exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
    }
    (void)snprintf(pid, sizeof(pid), "%d", (int)child);
    (void)snprintf(start, sizeof(start), "%lld", (long long)pidstat_start(child));
    p.pid = pid;
    p.pstart = start;
    assert_false(identity_is_gone(&me, &p));
    (void)close(hold[0]);
    (void)close(hold[1]);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(identity_is_gone(&me, &p)); /* a zombie */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(identity_is_gone(&me, &p));
}

/* A process that cannot be seen is not gone: /proc cannot be read without a descriptor, and a live
 * process must not count as dead. */
static void test_what_cannot_be_seen_is_not_gone(void **state)
{
    struct store_peer p = peer_like_me();
    struct rlimit was, none;
    bool gone;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){0, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    gone = identity_is_gone(&me, &p);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_false(gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_living_are_not_gone),
        cmocka_unit_test(test_other_processes_tell_nothing),
        cmocka_unit_test(test_the_dead_are_gone_reaped_or_not),
        cmocka_unit_test(test_what_cannot_be_seen_is_not_gone),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
