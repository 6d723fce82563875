/*
 * later lock and later sem with real processes and a real Redis, and without any laterd: they watch
 * each other.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/fsck.h"
#include "base/clock.h"
#include "lock_fixture.h"

static void until_said(const char *text, int deadline_ms)
{
    CLEANUP_FREE char *path = mem_printf("%s/said", dir);
    CLEANUP_BUF struct buf said = BUF_INIT;

    if (test_until_lines(path, text, 1, deadline_ms))
        return;
    test_read(path, &said);
    fail_msg("not '%s', but: %s", text, buf_str(&said));
}

/* The command whose pid is in $DIR/pid has ended, or is a zombie. */
static bool has_ended(void *arg)
{
    (void)arg;
    return test_sh("grep -q '^State:\t[^ZX]' /proc/$(cat $DIR/pid)/status 2>/dev/null") != 0;
}

/* Nobody holds the lock or waits for it, and no worker is left. */
static bool is_empty(void *arg)
{
    (void)arg;
    return test_int(&redis, "HLEN", ROOT ":workers") == 0 &&
           test_int(&redis, "EXISTS", ROOT ":lock:x") == 0 &&
           test_int(&redis, "EXISTS", ROOT ":wait:lock:x") == 0;
}

static void expect_empty(void)
{
    assert_true(test_until(is_empty, NULL, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
}

static int64_t now_ms(void)
{
    return mono_now().us / 1000;
}

#define HOLD "$LATER lock x -- sh -c 'echo $$ >>$DIR/pid; exec sleep 1000'"

/* Start one command that holds the lock, and one that waits for it. */
static void hold_and_wait(const char *waiter)
{
    test_sh_start(&procs[0], HOLD);
    until_lines("pid", 1, LONG_MS);
    test_sh_start(&procs[1], waiter);
    while (test_int(&redis, "ZCARD", ROOT ":wait:lock:x") == 0)
        continue;
}

static void test_the_command_is_as_if_alone(void **state)
{
    (void)state;
    assert_int_equal(test_sh("$LATER lock x true"), 0);
    assert_int_equal(test_sh("$LATER lock x -- sh -c 'exit 7'"), 7);
    assert_int_equal(test_sh("$LATER lock x -- sh -c 'kill -9 $$'"), 137);
    assert_int_equal(test_sh("$LATER lock x -- sh -c 'kill -TERM $$'"), 143);
    test_says("$LATER lock x /no/such/program", 127, "cannot run /no/such/program");
    test_says("$LATER lock x /etc/passwd", 126, "cannot run /etc/passwd: Permission denied");
    test_says("cd /usr && echo word | $LATER lock x -- sh -c 'pwd; cat; echo error >&2'", 0,
              "/usr\nword\nerror\n");
    test_says("A=1 $LATER lock x -- sh -c 'echo $A $LATER_LOCK $LATER_LOCK_TOKEN'", 0, "1 x @");
    test_says("exec 7>$DIR/seven; $LATER lock x -- sh -c 'echo 7 >&7'; cat $DIR/seven", 0, "7\n");
    test_says("printf 'echo by shell' >$DIR/bare; chmod 755 $DIR/bare; $LATER lock x $DIR/bare", 0,
              "by shell\n");
    test_says("$LATER lock x -n -- echo -n --wait", 0, "--wait");
    test_says("trap '' HUP; $LATER lock x -- sh -c 'kill -HUP $$; echo goes on'", 0, "goes on");
    expect_empty();
}

static void test_bad_usage_is_told(void **state)
{
    (void)state;
    test_says("$LATER lock x", 64, "something is missing");
    test_says("$LATER lock -n -w 1 x true", 64, "give one of them");
    test_says("$LATER lock -w soon x true", 64, "--wait takes seconds");
    test_says("$LATER lock -E 256 x true", 64, "0 to 255");
    test_says("$LATER lock --ttl 5 x true", 64, "no duration");
    test_says("$LATER lock 'two words' true", 64, "no spaces");
    test_says("$LATER lock --nonblok x true", 64, "did you mean --nonblock");
    test_says("$LATER sem nobody true", 65, "later limits set");
    test_says("$LATER --redis unix:$DIR/none lock x true", 69, "start that server");
    test_says("$LATER lock --help", 0, "-w, --wait SECONDS");
}

static void test_who_does_not_wait_is_told(void **state)
{
    int64_t began;

    (void)state;
    test_sh_start(&procs[0], HOLD);
    until_lines("pid", 1, LONG_MS);
    assert_int_equal(test_sh("$LATER lock -n x true"), 1);
    assert_int_equal(test_sh("$LATER lock x -n -E 9 -- true"), 9);
    began = now_ms();
    assert_int_equal(test_sh("$LATER lock -w 0.4 x true"), 1);
    assert_int_equal(test_sh("$LATER lock -w 400ms x true"), 1);
    assert_true(now_ms() - began >= 400);
    assert_int_equal(test_sh("$LATER lock -n other true"), 0);
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":wait:lock:x"), 0);
    /* A signal is passed on to the command, and what the command makes of it is the exit status. */
    test_sh_start(&procs[1], "$LATER lock -w 60 x -- sh -c 'echo next >>$DIR/next'");
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 143);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 0);
    until_lines("next", 1, 0);
    expect_empty();
}

static void test_who_waits_can_be_ended(void **state)
{
    (void)state;
    hold_and_wait("$LATER lock x true");
    proc_signal(&procs[1], SIGINT);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 130);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":wait:lock:x"), 0);
    proc_signal(&procs[0], SIGINT);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 130);
    expect_empty();
}

static void test_a_lock_is_entered_again(void **state)
{
    (void)state;
    test_says("$LATER lock a -- $LATER lock b -- $LATER lock a -- echo inside", 0, "inside");
    test_says("$LATER lock a -- sh -c '$LATER lock -n a -- sh -c \"exit 5\"; echo $?'", 0, "5");
    test_says("$LATER lock a -- sh -c '$LATER lock -n b true; echo $?'", 0, "0");
    /* A lost lock is not entered again as if it were held. One that has ended is taken anew. */
    test_says("$LATER lock a -- sh -c 'redis-cli -s $SOCK del \"" ROOT
              ":lock:a\" >/dev/null; $LATER lock a true'",
              75, "unset that variable");
    test_says("$LATER lock a -- sh -c 'echo $LATER_LOCK_TOKEN' >$DIR/token; "
              "LATER_LOCK_TOKEN=$(cat $DIR/token) $LATER lock -n a -- sh -c "
              "'test \"$LATER_LOCK_TOKEN\" != \"$(cat $DIR/token)\" && echo anew'",
              0, "anew");
    test_says("LATER_LOCK_TOKEN='nonsense @1:lock:a @:x:lock:a @1::lock:a' $LATER lock a -- echo "
              "fine",
              0, "fine");
}

/* The same name is another lock in another namespace or on another server. */
static void test_a_lock_elsewhere_is_another(void **state)
{
    struct test_redis second;
    CLEANUP_FREE char *away = NULL, *back = NULL;

    (void)state;
    test_says("$LATER lock a -- $LATER --namespace other lock a -- sh -c 'redis-cli -s "
              "$SOCK exists \"later:{other}:lock:a\"; $LATER lock -n a -- echo both'",
              0, "1\nboth");
    test_redis_start(&second, NULL);
    away = mem_printf("$LATER lock a -- $LATER --redis %s lock a -- redis-cli -s %s exists '" ROOT
                      ":lock:a'",
                      second.url, second.sock);
    back = mem_printf("$LATER lock a -- $LATER --redis %s lock a -- $LATER lock -n a -- echo both",
                      second.url);
    test_says(away, 0, "1\n");
    test_says(back, 0, "both");
    test_redis_stop(&second);
}

static void test_it_may_be_held_for_so_long(void **state)
{
    (void)state;
    test_says("$LATER lock --ttl 300ms x sleep 1000", 124, "--ttl is over");
    assert_int_equal(test_sh("$LATER lock --ttl 1m x -- sh -c 'exit 3'"), 3);
    /* Inside the same lock --ttl limits that command alone. */
    test_says("$LATER lock x -- sh -c '$LATER lock --ttl 300ms x -- sleep 1000; echo $?'", 0,
              "--ttl is over");
    test_says("$LATER lock x -- sh -c '$LATER lock --ttl 300ms x -- sleep 1000; echo $?'", 0,
              "124\n");
    test_says("$LATER lock x -- $LATER lock --ttl 1m x -- sh -c 'exit 3'", 3, "");
    test_says("$LATER lock x -- $LATER lock --ttl 1m x -- /no/such/program", 127, "cannot run");
    /* A signal to the outer command ends the inner one. */
    test_sh_start(&procs[0], "$LATER lock x -- $LATER lock --ttl 1h x -- sh -c "
                             "'echo $$ >>$DIR/pid; exec sleep 1000'");
    until_lines("pid", 1, LONG_MS);
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 143);
    assert_true(test_until(has_ended, NULL, LONG_MS));
    expect_empty();
}

static void test_a_fence_is_good_while_it_is_held(void **state)
{
    CLEANUP_FREE char *inside =
        mem_printf("$LATER lock x -- sh -c 'echo $LATER_FENCE >>$DIR/fences; redis-cli -s %s FCALL "
                   "later_fence_check 1 \"%s\" x $LATER_FENCE >>$DIR/checks'",
                   redis.sock, ROOT);
    CLEANUP_FREE char *after = mem_printf(
        "redis-cli -s %s FCALL later_fence_check 1 '%s' x $(head -1 $DIR/fences) >>$DIR/checks",
        redis.sock, ROOT);

    (void)state;
    assert_int_equal(test_sh(inside), 0);
    assert_int_equal(test_sh(inside), 0);
    assert_int_equal(test_sh(after), 0);
    test_says("tr '\\n' ' ' <$DIR/checks", 0, "1 1 0 ");
    assert_int_equal(test_sh("sort -n -c $DIR/fences && test $(sort -u $DIR/fences | wc -l) = 2"),
                     0);
}

/* 20 commands take the lock 5 times each; in the long form 50 take it 20 times. */
static void test_many_count_together(void **state)
{
    const size_t n = test_is_long() ? 50 : 20;
    const int times = test_is_long() ? 20 : 5;
    CLEANUP_FREE char *counts =
        mem_printf("sh -c 'i=0; while [ $i -lt %d ]; do i=$((i+1)); $LATER lock x -- sh -c "
                   "\"n=\\$(cat $DIR/f); echo \\$((n+1)) >$DIR/f\" || exit; done'",
                   times);
    CLEANUP_FREE char *sum = mem_printf("%d\n", (int)n * times);
    int64_t began = now_ms();

    (void)state;
    assert_int_equal(test_sh("echo 0 >$DIR/f"), 0);
    for (size_t i = 0; i < n; i++)
        test_sh_start(&procs[i], counts);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(proc_wait(&procs[i], 4 * LONG_MS), 0);
    test_says("cat $DIR/f", 0, sum);
    print_message("%d turns in %lld ms\n", (int)n * times, (long long)(now_ms() - began));
    expect_empty();
}

/* The first ones stay until three are in, so a slow machine sees the three, too. */
static void test_a_semaphore_lets_in_so_many(void **state)
{
    (void)state;
    assert_int_equal(test_sh("$LATER limits set three semaphore 3 --on-lost kill"), 0);
    assert_int_equal(test_sh("mkdir $DIR/in"), 0);
    for (size_t i = 0; i < 10; i++)
        test_sh_start(&procs[i],
                      "sh -c 'for i in 1 2 3; do $LATER sem three -- sh -c \"mkdir $DIR/in/\\$\\$; "
                      "ls $DIR/in | wc -l | tee -a $DIR/counts | grep -q 3 && touch $DIR/three; "
                      "until [ -e $DIR/three ]; do sleep 0.05; done; "
                      "sleep 0.05; rmdir $DIR/in/\\$\\$\" || exit; done'");
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(proc_wait(&procs[i], LONG_MS), 0);
    test_says("sort -n $DIR/counts | tail -1", 0, "3\n");
    test_says("wc -l <$DIR/counts", 0, "30\n");
    test_says("$LATER sem three -- sh -c '$LATER sem -n three -- echo again $LATER_SEM'", 0,
              "again three");
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":sem:three"), 0);
    expect_empty();
}

static void test_gates_are_shown(void **state)
{
    CLEANUP_FREE char *call =
        mem_printf("redis-cli -s %s FCALL later_lock 1 '%s' y me ttl 1h", redis.sock, ROOT);

    (void)state;
    test_says("$LATER gates", 0, "");
    test_says("$LATER gates nobody", 66, "nobody holds such a gate");
    test_says("$LATER gates sem:nobody", 66, "nobody holds such a gate");
    test_says("$LATER gates rate:nobody --json", 66, "nobody holds such a gate");
    test_says("$LATER gates lock:nobody", 0, "nobody");
    test_says("$LATER gates nobody 2>/dev/null | wc -c", 0, "0\n");
    test_says("$LATER gates lock:nobody", 0, "nobody");
    hold_and_wait("$LATER lock x true");
    assert_int_equal(test_sh("$LATER limits set three semaphore 3 --on-lost kill"), 0);
    assert_int_equal(test_sh("$LATER limits set slow rate 5/1m"), 0);
    assert_int_equal(test_sh(call), 0);
    test_sh_start(&procs[2], "$LATER sem three -- sh -c 'echo in >>$DIR/sem; exec sleep 1000'");
    until_lines("sem", 1, LONG_MS);
    test_says("$LATER gates | tr -s ' ' | cut -d' ' -f1-4", 0,
              "KIND NAME LIMIT HELD\nlock x 1 1\nlock y 1 1\nsem three 3 1\n");
    test_says("$LATER gates x", 0, "(pid ");
    test_says("$LATER gates --json x three slow | wc -l", 0, "3\n");
    test_says("$LATER gates --json lock:x", 0, "\"kind\":\"lock\",\"name\":\"x\",\"held\":1");
    test_says("$LATER gates --json lock:x", 0, "\"waiting\":1,\"waiters\":[{\"program\":\"");
    test_says("$LATER gates --json y", 0, "{\"caller\":\"me\",\"since_ms\":");
    test_says("$LATER health", 1, "no worker is running");
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 0);
}

/* Run the line on a terminal and type once `ready` is seen; *ret: the output. -> exit status */
static int on_terminal(const char *line, const char *typed, struct buf *ret)
{
    char bytes[512];
    int fd, status = 0;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);
    ssize_t n;

    assert_true(pid >= 0);
    if (pid == 0) {
        proc_default_signals();
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};

        if (poll(&p, 1, LONG_MS) == 0)
            fail_msg("it hangs, having said: %s", buf_str(ret));
        n = read(fd, bytes, sizeof(bytes));
        if (n <= 0)
            break;
        buf_add(ret, bytes, (size_t)n);
        if (typed != NULL && strstr(buf_str(ret), "ready") != NULL) {
            assert_int_equal(write(fd, typed, strlen(typed)), (ssize_t)strlen(typed));
            typed = NULL;
        }
    }
    (void)close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_the_command_has_the_terminal(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT, piped = BUF_INIT, stopped = BUF_INIT, ended = BUF_INIT;

    (void)state;
    assert_int_equal(on_terminal("$LATER lock x -- sh -c 'echo ready; read w; echo got-$w; exit 4'",
                                 "word\n", &out),
                     4);
    assert_non_null(strstr(buf_str(&out), "got-word"));
    /* In a pipeline the command gets the terminal when it reads. */
    assert_int_equal(on_terminal("$LATER lock x -- sh -c 'echo ready; read w; echo got-$w' | cat",
                                 "word\n", &piped),
                     0);
    assert_non_null(strstr(buf_str(&piped), "got-word"));
    /* Ctrl-Z does not stop a command that holds a permit. */
    assert_int_equal(
        on_terminal("$LATER lock x -- sh -c 'echo ready; sleep 1; echo went-on'", "\x1a", &stopped),
        0);
    assert_non_null(strstr(buf_str(&stopped), "went-on"));
    /* Ctrl-C ends the script as well, as it would without `later lock`. */
    assert_int_equal(
        on_terminal("$LATER lock x -- sh -c 'echo ready; exec sleep 1000'; echo not-me", "\x03",
                    &ended),
        130);
    assert_null(strstr(buf_str(&ended), "not-me"));
    expect_empty();
}

/* ---- what can go wrong */

static void test_a_dead_holder_is_found(void **state)
{
    int64_t began, ms;

    (void)state;
    hold_and_wait("$LATER lock x -- sh -c 'echo next >>$DIR/next'");
    began = now_ms();
    proc_signal(&procs[0], SIGKILL);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 137);
    assert_true(test_until(has_ended, NULL, LONG_MS));
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 0);
    ms = now_ms() - began;
    print_message("the next one came in %lld ms after the kill\n", (long long)ms);
    assert_in_range(ms, 0, 30000);
    expect_empty();
}

/* Nobody else finds the dead holder: commands that do not wait must get the lock in the end. */
static void test_a_dead_holder_does_not_keep_cron_out_for_ever(void **state)
{
    int64_t began = now_ms();
    int status = 1;

    (void)state;
    test_sh_start(&procs[0], HOLD);
    until_lines("pid", 1, LONG_MS);
    proc_signal(&procs[0], SIGKILL);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 137);
    while (status == 1 && now_ms() - began < LONG_MS) {
        status = test_sh("$LATER lock -n x true");
        assert_int_equal(test_sh("sleep 1"), 0);
    }
    assert_int_equal(status, 0);
    expect_empty();
}

static void test_without_redis_the_command_ends(void **state)
{
    int64_t began;

    (void)state;
    test_sh_start(&procs[0],
                  "$LATER lock x -- sh -c 'echo $$ >>$DIR/pid; trap \"echo term >>$DIR/term; exit "
                  "0\" TERM; while :; do sleep 0.1; done'");
    until_lines("pid", 1, LONG_MS);
    test_sh_start(&procs[1],
                  "$LATER lock stubborn -- sh -c 'echo $$ >>$DIR/pid2; trap \"\" TERM; while :; "
                  "do sleep 0.1; done'");
    until_lines("pid2", 1, LONG_MS);
    began = now_ms();
    test_redis_kill(&redis, SIGSTOP);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 75);
    until_lines("term", 1, 0);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 75);
    assert_in_range(now_ms() - began, 0, 19000);
    until_said("lock:x: Redis did not answer", 0);
    test_redis_kill(&redis, SIGCONT);
}

/* Redis loses everything, the lock too. Nobody else has taken it, so the command holds it again. */
static void test_a_lock_that_redis_lost_is_held_again(void **state)
{
    (void)state;
    test_sh_start(&procs[0], HOLD);
    until_lines("pid", 1, LONG_MS);
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    until_said("it is held again", LONG_MS);
    assert_int_equal(test_sh("$LATER lock -n x true"), 1);
    /* A token from before that still counts as inside. */
    test_says("LATER_LOCK_TOKEN=$(tr '\\0' '\\n' </proc/$(cat $DIR/pid)/environ | sed -n "
              "s/^LATER_LOCK_TOKEN=//p) $LATER lock -n x -- echo inside",
              0, "inside");
    /* Now another command takes it. */
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    test_sh_start(&procs[1], "$LATER lock x -- sh -c 'echo next >>$DIR/next; exec sleep 1000'");
    until_lines("next", 1, LONG_MS);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 75);
    assert_true(test_until(has_ended, NULL, 0));
    until_said("another has it now", 0);
}

/* Each writes its fence and checks whether another is inside; every few seconds one is killed. */
static void test_holders_die_at_random(void **state)
{
    CLEANUP_BUF struct buf sum = BUF_INIT;
    bool runs = true;

    (void)state;
    if (!test_is_long())
        skip();
    assert_int_equal(
        test_sh("mkdir $DIR/in; cat >$DIR/inside <<'X'\n"
                "echo $LATER_FENCE >>$DIR/ledger\n"
                "echo $PPID >$DIR/keeper\n"
                "for p in $(ls $DIR/in); do\n"
                "  grep -q '^State:.[^ZX]' /proc/$p/status 2>/dev/null && echo $p >>$DIR/two\n"
                "  rm -f $DIR/in/$p\n"
                "done\n"
                ": >$DIR/in/$$\n"
                "sleep 0.0$((LATER_FENCE % 9))\n"
                "rm -f $DIR/in/$$\n"
                "X\n"),
        0);
    for (size_t i = 0; i < 50; i++)
        test_sh_start(&procs[i],
                      "sh -c 'i=0; while [ $i -lt 20 ]; do i=$((i+1)); $LATER lock x -- sh "
                      "$DIR/inside; done; true'");
    while (runs) {
        assert_int_equal(test_sh("sleep 3; kill -9 $(cat $DIR/keeper) 2>/dev/null; true"), 0);
        runs = false;
        for (size_t i = 0; i < 50; i++)
            runs = proc_wait(&procs[i], 0) < 0 || runs;
    }
    /* sort: the fences are in the order in which they were written, and none occurs twice. */
    assert_int_equal(test_sh("sort -n -u -c $DIR/ledger"), 0);
    assert_int_equal(test_sh("test ! -e $DIR/two"), 0);
    (void)test_sh_out("echo $(wc -l <$DIR/ledger) starts, $(grep -c guard-kill $DIR/said) killed",
                      &sum);
    print_message("%s", buf_str(&sum));
    expect_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_command_is_as_if_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_usage_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_does_not_wait_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_waits_can_be_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_is_entered_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_elsewhere_is_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_may_be_held_for_so_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fence_is_good_while_it_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_count_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_semaphore_lets_in_so_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gates_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_command_has_the_terminal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_holder_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_holder_does_not_keep_cron_out_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_without_redis_the_command_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_that_redis_lost_is_held_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holders_die_at_random, setup, teardown),
    };

    if (getenv("LATER_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
