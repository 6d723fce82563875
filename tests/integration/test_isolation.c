/*
 * Handlers that run as another user: the built laterd as root, and as a service user with three
 * capabilities or none. Needs root; skipped without.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define SILENCE_MS 25000
#define LONG_MS 60000
#define EXIT_SKIPPED 77 /* tells the test driver: skipped */
#define SERVICE 1       /* a user (Debian: daemon) for laterd */
#define CAPS "+setuid,+setgid,+kill"

/* What a handler finds out about itself, a line each. */
#define TELL                                                                                       \
    "{ grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):' /proc/self/status; "    \
    "echo umask $(umask); echo cwd $(pwd); echo nice $(nice); echo files $(ulimit -n); "           \
    "echo home $HOME; echo user $USER; echo a \"$A\"; echo b \"$B\"; echo c \"$C\"; "              \
    "echo id $LATER_ID; echo end; } >>%s"

static char service_program[96]; /* laterd, where SERVICE may start it */

static void open_to_others(void)
{
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());
    CLEANUP_FREE char *socket = mem_strdup(redis.url + strlen("unix:"));

    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(chmod(socket, 0777), 0);
    *strrchr(socket, '/') = '\0';
    assert_int_equal(chmod(socket, 0755), 0);
    (void)snprintf(service_program, sizeof(service_program), "%s/laterd", dir);
    test_must("cp %s %s && chmod 755 %s && : >%s && chmod 666 %s", laterd, service_program,
              service_program, out, out);
}

static int setup(void **state)
{
    if (fx_open(state) != 0)
        return -1;
    open_to_others();
    return 0;
}

/* laterd as SERVICE, with these capabilities, given as systemd gives them. */
static void launch_as_service(struct test_laterd *d, const char *caps)
{
    CLEANUP_FREE char *inh = mem_printf("--inh-caps=%s", caps);
    CLEANUP_FREE char *amb = mem_printf("--ambient-caps=%s", caps);
    char *argv[] = {(char *)(uintptr_t) "setpriv",
                    (char *)(uintptr_t) "--reuid=1",
                    (char *)(uintptr_t) "--regid=1",
                    (char *)(uintptr_t) "--clear-groups",
                    inh,
                    amb,
                    service_program,
                    (char *)(uintptr_t) "--config",
                    d->conf,
                    NULL};
    CLEANUP_FREE char *folder = mem_printf("%s/state-%s", dir, d->name);

    (void)mkdir(folder, 0700);
    assert_int_equal(chown(folder, SERVICE, SERVICE), 0);
    (void)unlink(d->log);
    proc_start(&d->proc, argv, NULL, d->log);
    d->runs = true;
}

static void start_as_service(const char *yaml, const char *caps)
{
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    launch_as_service(&a, caps);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
}

static void run_one(const char *queue)
{
    CLEANUP_FREE char *id = test_add(&redis, queue, NULL, NULL, "x");

    assert_non_null(id);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

/* A line of `out` is exactly this. */
static void assert_told(const char *line)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_FREE char *want = mem_printf("\n%s\n", line);
    CLEANUP_BUF struct buf all = BUF_INIT;

    test_read(out, &text);
    buf_printf(&all, "\n%s", buf_str(&text));
    if (strstr(buf_str(&all), want) == NULL)
        fail_msg("no line \"%s\" in:\n%s", line, buf_str(&text));
}

static void assert_is_nobody(void)
{
    assert_told("Uid:\t65534\t65534\t65534\t65534");
    assert_told("Gid:\t65534\t65534\t65534\t65534");
    assert_told("Groups:\t65534 ");
    assert_told("CapInh:\t0000000000000000");
    assert_told("CapPrm:\t0000000000000000");
    assert_told("CapEff:\t0000000000000000");
    assert_told("CapAmb:\t0000000000000000");
}

/* ---- as root */

static void test_all_settings(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/vars", dir);
    int mine = getpriority(PRIO_PROCESS, 0);
    CLEANUP_FREE char *nice = mem_printf("nice %d", mine > 12 ? 19 : mine + 7);
    CLEANUP_FREE char *yaml = mem_printf(
        "queues:\n  work:\n    user: nobody\n    umask: \"027\"\n    cwd: /usr\n"
        "    nice: 7\n    rlimits: { nofile: 77, core: 0 }\n    no_new_privileges: true\n"
        "    env: { A: \"of the queue\", B: 'b=c d' }\n    env_file: %s\n",
        file);

    (void)state;
    test_must("printf '# vars\\n\\nA=of the file\\nC=\"quoted\"\\r\\n' >%s", file);
    test_handler(dir, "work", TELL, out);
    start_a(yaml);
    run_one("work");
    assert_is_nobody();
    assert_told("NoNewPrivs:\t1");
    assert_told("umask 0027");
    assert_told("cwd /usr");
    assert_told(nice);
    assert_told("files 77");
    assert_told("home /nonexistent");
    assert_told("user nobody");
    assert_told("a of the queue");
    assert_told("b b=c d");
    assert_told("c quoted");
    assert_told("end");
}

static void test_group_alone(void **state)
{
    (void)state;
    test_handler(dir, "work", TELL, out);
    start_a("queues:\n  work: { group: nogroup }\n");
    run_one("work");
    assert_told("Uid:\t0\t0\t0\t0");
    assert_told("Gid:\t65534\t65534\t65534\t65534");
    assert_told("Groups:\t65534 ");
}

static void test_private_tmp(void **state)
{
    CLEANUP_FREE char *left = mem_printf("/tmp/later-left-%d", (int)getpid());

    (void)state;
    /* Its own files are below /tmp: a handler elsewhere, which reports by fd 3 what it sees. */
    test_handler(dir, "work", "true");
    start_a("queues:\n  work:\n    handler: [/bin/sh, -c, 'ls -A /tmp /var/tmp >&3; "
            "echo result $(ls -A /tmp | wc -l) >&3; touch /tmp/later-left']\n"
            "    private_tmp: true\n    keep: 1h\n");
    {
        CLEANUP_FREE char *id = test_add(&redis, "work", NULL, NULL, "x");
        struct reply *r;

        assert_true(test_until_state(&redis, id, "done", LONG_MS));
        r = test_fcall(&redis, "later_result", id, NULL);
        assert_non_null(r);
        assert_string_equal(reply_str(reply_at(r, reply_count(r) - 1)), "0");
        reply_free(r);
    }
    assert_int_equal(access("/tmp/later-left", F_OK), -1);
    assert_int_equal(access(left, F_OK), -1);
}

/* Processes of stream mode are made in the same way. */
static void test_stream(void **state)
{
    CLEANUP_FREE char *yaml = mem_printf(
        "queues:\n  work: { mode: stream, user: nobody, handler: [%s/handlers/serve] }\n", dir);

    (void)state;
    test_handler(
        dir, "serve",
        "echo later-stream 1\nwhile read -r line; do\n"
        "id=${line#*id=}; id=${id%%%% *}; len=${line##*len=}; head -c $len >/dev/null\n" TELL
        "\necho ok $id\ndone",
        out);
    start_a(yaml);
    run_one("work");
    assert_is_nobody();
}

/* ---- as a service user */

static void test_service_with_rights(void **state)
{
    (void)state;
    /* The pipes belong to another user: to be opened by name they have to be opened anew. */
    test_handler(dir, "work",
                 TELL "\nfor f in stderr fd/3; do echo x >/dev/$f && echo opened $f; done "
                      ">>%s\necho got $(cat /dev/stdin) >>%s",
                 out, out, out);
    start_as_service("queues:\n  work: { user: nobody }\n", CAPS);
    run_one("work");
    assert_is_nobody();
    assert_told("opened stderr");
    assert_told("opened fd/3");
    assert_told("got x");
}

/* The daemon's rights are not passed on to its handlers. */
static void test_handler_without_rights(void **state)
{
    (void)state;
    test_handler(dir, "work", TELL, out);
    start_as_service("queues:\n  work: {}\n  other: { handler: [/bin/true], user: nobody }\n",
                     CAPS);
    run_one("work");
    assert_told("Uid:\t1\t1\t1\t1");
    assert_told("CapInh:\t0000000000000000");
    assert_told("CapPrm:\t0000000000000000");
    assert_told("CapEff:\t0000000000000000");
    assert_told("CapAmb:\t0000000000000000");
}

/* What a handler tries on the daemon, and on a file that only the daemon may read. */
#define TRY                                                                                        \
    "{ for f in environ mem maps fd/0; do head -c 1 /proc/$PPID/$f >/dev/null 2>&1 && "            \
    "echo read $f; done; ls /proc/$PPID/fd >/dev/null 2>&1 && echo read fd; "                      \
    "kill -0 $PPID 2>/dev/null && echo signalled; "                                                \
    "cat %s/secret 2>/dev/null && echo read secret; "                                              \
    "ls %s/state-a >/dev/null 2>&1 && echo read state; echo tried $PPID; } >>%s"

static void test_daemon_is_out_of_reach(void **state)
{
    CLEANUP_FREE char *tried = NULL;

    (void)state;
    test_must("cd %s && echo password >secret && chown 1:1 secret && chmod 600 secret", dir);
    test_handler(dir, "other", TRY, dir, dir, out);
    test_handler(dir, "own", TRY, dir, dir, out);
    start_as_service("queues:\n  other: { user: nobody }\n", CAPS);
    tried = mem_printf("tried %d", (int)a.proc.pid);
    run_one("other");
    assert_told(tried);
    assert_int_equal(test_lines(out, NULL), 1);
    /* A handler of the daemon's own user can reach what that user can. The daemon's memory and
     * environment, which has the password, it cannot see. */
    test_must(": >%s", out);
    run_one("own");
    assert_told(tried);
    assert_int_equal(test_lines(out, "read environ") + test_lines(out, "read mem") +
                         test_lines(out, "read maps") + test_lines(out, "read fd"),
                     0);
}

static bool has_started(void *arg)
{
    (void)arg;
    return test_lines(out, "started") > 0;
}

/* A handler of another user can be ended: at its time limit, and after its daemon was killed. */
static void test_service_ends_them(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "trap '' TERM\necho started >>%s\nexec sleep 86433", out);
    start_as_service("queues:\n  work:\n    user: nobody\n    timeout: 1s\n    kill_grace: 100ms\n"
                     "    attempts: 1\n",
                     CAPS);
    id = test_add(&redis, "work", NULL, NULL, "x");
    assert_true(test_until_state(&redis, id, "dead", LONG_MS));
    assert_true(proc_until_none("sleep 86433", LONG_MS));
}

static void test_service_finds_left_ones(void **state)
{
    CLEANUP_FREE char *id = NULL;
    /* As much environment as is allowed. */
    CLEANUP_FREE char *yaml =
        mem_printf("queues:\n  work: { user: nobody, env: { B: '%090000d' } }\n", 1);

    (void)state;
    test_handler(dir, "work", "trap '' TERM\necho started >>%s\nexec sleep 86434", out);
    start_as_service(yaml, CAPS);
    id = test_add(&redis, "work", NULL, NULL, "x");
    assert_true(test_until(has_started, NULL, LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 128 + SIGKILL);
    test_handler(dir, "work", "true");
    start_as_service(yaml, CAPS);
    assert_true(proc_until_none("sleep 86434", LONG_MS));
    /* With processes of other tests that cannot be looked into, the full silence has to pass. */
    assert_true(test_until(no_job_is_left, NULL, LONG_MS + SILENCE_MS));
}

static void must_refuse_as_service(const char *yaml, const char *caps, const char *says)
{
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    launch_as_service(&a, caps);
    assert_int_equal(proc_wait(&a.proc, LONG_MS), 78);
    if (!proc_has_logged(&a.proc, says)) {
        CLEANUP_BUF struct buf log = BUF_INIT;

        test_read(a.log, &log);
        fail_msg("not said: %s\n%s", says, buf_str(&log));
    }
    proc_done(&a.proc);
    a.runs = false;
}

static void test_service_without_rights(void **state)
{
    (void)state;
    test_handler(dir, "work", "true");
    must_refuse_as_service("queues:\n  work: { user: nobody }\n", "-all",
                           "work: user: laterd lacks the right to it (CAP_SETUID)");
    must_refuse_as_service("queues:\n  work: { group: nogroup }\n", "-all",
                           "work: group: laterd lacks the right to it (CAP_SETGID)");
    must_refuse_as_service("defaults: { nice: -5 }\n", "-all",
                           "defaults: nice: laterd lacks the right to it (CAP_SYS_NICE)");
    must_refuse_as_service("defaults: { private_tmp: true }\n", "-all",
                           "defaults: private_tmp: laterd lacks the right to it (CAP_SYS_ADMIN)");
    must_refuse_as_service("defaults: { rlimits: { nofile: 2000000000 } }\n", "-all",
                           "defaults: rlimits: ");
    /* Settings that need no rights. */
    start_as_service("queues:\n  work: { umask: \"077\", nice: 3, rlimits: { core: 0 } }\n",
                     "-all");
    run_one("work");
}

/* A handler of root would have more rights than the service has. */
static void test_service_makes_no_root(void **state)
{
    (void)state;
    test_handler(dir, "work", "true");
    must_refuse_as_service("queues:\n  work: { user: root }\n", CAPS,
                           "work: user: only a laterd that runs as root");
    must_refuse_as_service("queues:\n  work: { user: 0 }\n", CAPS,
                           "work: user: only a laterd that runs as root");
}

/* ---- what happens before the exec is out of the handler's reach */

static void test_linker_variables(void **state)
{
    (void)state;
    start_a("queues:\n  work: { handler: [/bin/true], user: nobody, env: { LD_PRELOAD: "
            "/nonexistent/x.so } }\n");
    run_one("work");
    /* Only one process saw the variable: the handler. */
    assert_true(test_until_lines(a.log, "cannot be preloaded", 1, LONG_MS));
    assert_int_equal(test_lines(a.log, "cannot be preloaded"), 1);
}

/* If this file had the setuid bit, it would run anything for anybody. */
static void test_setuid_program(void **state)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    CLEANUP_FREE char *line = NULL;

    (void)state;
    test_must("chmod u+s %s", service_program);
    line = mem_printf("setpriv --reuid=65534 --clear-groups %s --isolate uid=0 -- /usr/bin/id 2>&1",
                      service_program);
    assert_int_equal(test_sh_out(line, &said), 78);
    assert_non_null(strstr(buf_str(&said), "must not be setuid"));
}

/* A change in the handlers folder does not read again the files that the configuration names. */
static void test_folder_event(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/vars", dir);
    CLEANUP_FREE char *yaml = mem_printf("defaults: { env_file: %s }\n", file);

    (void)state;
    test_must("echo A=first >%s", file);
    test_handler(dir, "work", TELL, out);
    start_a(yaml);
    test_must("echo A=second >%s", file);
    test_handler(dir, "more", "true");
    assert_true(test_until_lines(a.log, "event=serving queues=2", 1, LONG_MS));
    run_one("work");
    assert_told("a first");
    test_must("rm %s; : >%s", file, out);
    test_handler(dir, "evenmore", "true");
    assert_true(test_until_lines(a.log, "event=serving queues=3", 1, LONG_MS));
    run_one("work");
    assert_told("a first");
}

/* ---- wrong settings are named, and change nothing */

static void test_refused(void **state)
{
    static const struct {
        const char *yaml, *says;
    } cases[] = {
        {"defaults: { user: no-such-user }\n", "defaults: user: there is no user \"no-such-user\""},
        {"defaults: { group: no-such-group }\n",
         "defaults: group: there is no group \"no-such-group\""},
        {"defaults: { env_file: /nonexistent/vars }\n",
         "defaults: env_file /nonexistent/vars: No such file"},
        {"defaults: { user: root, env_file: /dev/zero }\n",
         "env_file /dev/zero: not a file of at most"},
    };

    (void)state;
    test_handler(dir, "work", "true");
    start_a("");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_laterd bad;

        test_laterd_conf(&bad, dir, "bad", redis.url, cases[i].yaml);
        test_laterd_launch(&bad);
        assert_int_equal(proc_wait(&bad.proc, LONG_MS), 78);
        if (!proc_has_logged(&bad.proc, cases[i].says))
            fail_msg("not said: %s", cases[i].says);
        proc_done(&bad.proc);
    }
    /* A refused reload keeps what is in force. */
    test_must("printf 'defaults: { user: no-such-user }\\n' >>%s", a.conf);
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=refused", LONG_MS));
    run_one("work");
}

static void test_env_file_lines(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {{"A", "a line NAME=value is expected"},
                 {"1A=b", "is not the name of a variable"},
                 {"LATER_ID=j", "is laterd's own"},
                 {"A b=c", "is not the name of a variable"}};
    CLEANUP_FREE char *file = mem_printf("%s/vars", dir);
    CLEANUP_FREE char *yaml = mem_printf("defaults: { env_file: %s }\n", file);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CLEANUP_FREE char *at = mem_printf("%s:2: ", file);

        test_must("printf 'OK=1\\n%s\\n' >%s", cases[i].line, file);
        test_laterd_conf(&a, dir, "a", redis.url, yaml);
        test_laterd_launch(&a);
        assert_int_equal(proc_wait(&a.proc, LONG_MS), 78);
        assert_true(proc_has_logged(&a.proc, cases[i].says));
        assert_true(proc_has_logged(&a.proc, at));
        proc_done(&a.proc);
        a.runs = false;
    }
    test_must("printf 'A=1\\n' >%s; chmod 666 %s", file, file);
    test_laterd_launch(&a);
    assert_int_equal(proc_wait(&a.proc, LONG_MS), 78);
    assert_true(proc_has_logged(&a.proc, "env_file"));
    proc_done(&a.proc);
    a.runs = false;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_all_settings),
                                       T(test_group_alone),
                                       T(test_private_tmp),
                                       T(test_stream),
                                       T(test_service_with_rights),
                                       T(test_handler_without_rights),
                                       T(test_daemon_is_out_of_reach),
                                       T(test_service_ends_them),
                                       T(test_service_finds_left_ones),
                                       T(test_service_without_rights),
                                       T(test_service_makes_no_root),
                                       T(test_linker_variables),
                                       T(test_setuid_program),
                                       T(test_folder_event),
                                       T(test_refused),
                                       T(test_env_file_lines)};

    if (geteuid() != 0) {
        print_message("needs root: skipped\n");
        return EXIT_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
