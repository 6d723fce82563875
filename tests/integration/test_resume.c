/*
 * Jobs that go on where they stopped, with a real daemon and the command `later step`: checkpoints
 * of exec handlers, streams and plug-ins; steps that run once; what is refused; what outlives a
 * restart of Redis and the death of a worker; the examples.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "../support/shell.h"
#include "fixture.h"

#define LONG_MS 60000
#define QUICK "defaults: { attempts: 20, backoff: { first: 20ms, max: 20ms } }\n"

static char *add_to(const char *queue, const char *payload)
{
    return test_add(&redis, queue, NULL, NULL, payload);
}

static int64_t calls_of_the_library(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_fcall:calls=");
    int64_t n = at != NULL ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;

    reply_free(r);
    return n;
}

/* The folder of `later` goes first in the PATH of handlers. */
static void start_quick(const char *yaml)
{
    CLEANUP_FREE char *all = mem_printf(
        QUICK "queues: { q: { env: { PATH: '%s:/usr/bin:/bin' }%s } }\n", test_build_dir(), yaml);

    start_a(all);
}

static bool wrote(void *line)
{
    return access(out, R_OK) == 0 && test_lines(out, line) > 0;
}

static void assert_written(const char *want)
{
    CLEANUP_BUF struct buf got = BUF_INIT;

    test_read(out, &got);
    assert_string_equal(buf_str(&got), want);
}

static void assert_nothing_kept(void)
{
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":resume"), 0);
}

/* ---- checkpoints */

static void test_an_attempt_goes_on(void **state)
{
    (void)state;
    test_handler(
        dir, "q",
        "echo \"$LATER_ATTEMPT ${LATER_CHECKPOINT-none}\" >> %s\n"
        "printf 'checkpoint first\\ncheckpoint at %%s: 100%%%% = x\\n' $LATER_ATTEMPT >&3\n"
        "[ $LATER_ATTEMPT = 3 ] || exit 1\n",
        out);
    start_quick("");
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("1 none\n2 at 1: 100% = x\n3 at 2: 100% = x\n");
    assert_nothing_kept();
}

static bool has_checkpoint(void *id)
{
    CLEANUP_FREE char *text = test_shown(&redis, id, "checkpoint");

    return strcmp(text, "early") == 0;
}

/* It is in Redis while the job runs; what is refused replaces nothing; an empty one takes it back.
 */
static void test_it_is_kept_while_the_job_runs(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(
        dir, "q",
        "[ -z \"$LATER_CHECKPOINT\" ] || { echo \"$LATER_CHECKPOINT\" >> %s; echo checkpoint "
        ">&3; exit 75; }\n"
        "[ $LATER_ATTEMPT = 1 ] || { echo none >> %s; exit 0; }\n"
        "echo checkpoint early >&3\n"
        "until [ -e %s/go ]; do sleep 0.02; done\n"
        "printf 'checkpoint %%05000d\\n' 1 >&3\n"
        "printf 'checkpoint a\\0b\\n' >&3\n"
        "exit 1\n",
        out, out, dir);
    start_quick("");
    id = add_to("q", "x");
    assert_true(test_until(has_checkpoint, id, LONG_MS));
    test_must("touch %s/go", dir);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("early\nnone\n");
    assert_int_equal(test_lines(a.log, "event=checkpoint-refused"), 2);
    assert_nothing_kept();
}

/* However often it is told, Redis is asked for little. */
static void test_many_checkpoints_cost_few_calls(void **state)
{
    int64_t calls;

    (void)state;
    test_handler(dir, "q",
                 "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo checkpoint $i >&3; done\n"
                 "[ $LATER_ATTEMPT = 1 ] || { echo $LATER_CHECKPOINT >> %s; exit 0; }\n"
                 "sleep 1; exit 1\n",
                 out);
    start_quick("");
    assert_true(test_until_int(&redis, "HLEN", ROOT ":workers", 1, LONG_MS));
    calls = calls_of_the_library();
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("2000\n");
    assert_in_range(calls_of_the_library() - calls, 4, 60);
}

/* ---- streams and plug-ins */

static void test_a_stream_goes_on(void **state)
{
    CLEANUP_FREE char *yaml = NULL;

    (void)state;
    test_must(
        "cat > %s/s.py <<'END'\n"
        "#!/usr/bin/python3\n"
        "import os, subprocess, sys\n"
        "print('later-stream 1', flush=True)\n"
        "while head := sys.stdin.readline():\n"
        "    job = dict(w.split('=', 1) for w in head.split()[1:])\n"
        "    sys.stdin.read(int(job['len']) + 1)\n"
        "    kept = subprocess.run(['later', 'step', 's', '--', 'sh', '-c', 'echo ran >> %s; echo "
        "out'], env=dict(os.environ, LATER_STEP=job['step']), capture_output=True, text=True)\n"
        "    with open('%s', 'a') as f:\n"
        "        f.write(job['attempt'] + ' ' + job.get('checkpoint', 'none') + ' ' + "
        "kept.stdout)\n"
        "    print('checkpoint', job['id'], 'row 7%%', flush=True)\n"
        "    print('ok' if job['attempt'] == '3' else 'fail', job['id'], flush=True)\n"
        "END\nchmod 755 %s/s.py",
        dir, out, out, dir);
    yaml = mem_printf(", mode: stream, handler: [%s/s.py]", dir);
    start_quick(yaml);
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("ran\n1 none out\n2 row%207%25 out\n3 row%207%25 out\n");
    assert_nothing_kept();
}

static void test_a_plugin_goes_on(void **state)
{
    CLEANUP_FREE char *yaml = NULL;

    (void)state;
    test_must(
        "cat > %s/p.c <<'END'\n"
        "#include \"later_plugin.h\"\n"
        "#include <stdio.h>\n"
        "static int run(void *state, const struct later_job *job, const struct later_host *host)\n"
        "{\n"
        "    FILE *f = fopen(\"%s\", \"a\");\n"
        "    (void)state;\n"
        "    fprintf(f, \"%%s %%d\\n\", job->checkpoint ? job->checkpoint : \"none\", "
        "job->step != NULL);\n"
        "    fclose(f);\n"
        "    host->checkpoint(host, job->attempt == 1 ? \"one\" : \"two\");\n"
        "    return job->attempt < 3 ? LATER_FAIL : LATER_OK;\n"
        "}\n"
        "const struct later_plugin later_plugin = {LATER_PLUGIN_ABI, sizeof(later_plugin), 0, "
        "run, 0};\n"
        "END\n"
        "cc -shared -fPIC -I'%s/src/run/plugin' -o %s/p.so %s/p.c",
        dir, out, test_source_dir(), dir, dir);
    yaml = mem_printf(QUICK "queues: { q: { mode: plugin, handler: [%s/p.so] } }\n", dir);
    start_a(yaml);
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("none 1\none 1\ntwo 1\n");
}

/* ---- steps */

static void test_a_step_runs_once(void **state)
{
    (void)state;
    test_handler(
        dir, "q",
        "set -e\n"
        "x=$(later step one -- sh -c 'echo one >> %s; printf \"a  b\\n\\n\"; echo no >&2')\n"
        "[ \"$x\" = 'a  b' ]\n"
        "later step two -- sh -c 'echo two >> %s; head -c 16384 /dev/urandom | tee %s/bytes'"
        " > %s/got\n"
        "cmp %s/bytes %s/got\n"
        "later step three sh -c '[ $LATER_ATTEMPT = 3 ] || exit 9' || { echo \"ends $?\" >> %s; "
        "exit 1; }\n"
        "later step empty -- true\n"
        "later step left -- sh -c 'sleep 30 & echo x'\n",
        out, out, dir, dir, dir, dir, out);
    start_quick("");
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("one\ntwo\nends 9\nends 9\n");
    assert_nothing_kept();
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":steps:x"), 0);
}

/* Each refusal has its status, and says what is wrong. */
static void test_what_a_step_refuses(void **state)
{
    CLEANUP_FREE char *id = NULL, *steps = NULL;

    (void)state;
    test_handler(
        dir, "q",
        "try() { want=$1; shift; \"$@\" > /dev/null 2> %s/err; got=$?; [ $got = $want ] || "
        "echo \"$* ends with $got: $(cat %s/err)\" >> %s; }\n"
        "try 64 later step '.x' -- true\n"
        "try 64 later step x\n"
        "try 64 env -u LATER_STEP later step x -- true\n"
        "try 64 env LATER_STEP=x later step x -- true\n"
        "try 75 env LATER_STEP=${LATER_STEP%%?}. later step x -- true\n"
        "try 75 env LATER_STEP=${LATER_STEP%%:*}:0-00 later step x -- true\n"
        "try 75 env LATER_STEP=laterd/no/such:0-00 later step x -- true\n"
        "try 127 later step none -- /no/such/command\n"
        "try 126 later step none -- %s\n"
        "try 143 later step none -- sh -c 'kill $$'\n"
        "try 65 later step large -- head -c 16385 /dev/zero\n"
        "try 0 later step large -- head -c 16384 /dev/zero\n"
        "i=0; while [ $i -lt 14 ]; do i=$((i+1)); try 0 later step l$i -- head -c 16384 "
        "/dev/zero; done\n"
        "try 65 later step last -- head -c 16384 /dev/zero\n"
        "grep -q 'more than the 262144' %s/err || cat %s/err >> %s\n"
        "i=15; while [ $i -lt 100 ]; do i=$((i+1)); try 0 later step s$i -- true; done\n"
        "try 65 later step more -- sh -c 'echo ran >> %s'\n"
        "grep -q 'has kept 100 steps' %s/err || cat %s/err >> %s\n"
        "try 0 later step large -- false\n"
        "echo end >> %s; exit 65\n",
        dir, dir, out, dir, dir, dir, out, out, dir, dir, out, out);
    start_quick("");
    id = add_to("q", "x");
    assert_true(test_until(wrote, (char *)"end", LONG_MS));
    assert_written("end\n");
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 1, LONG_MS));
    steps = mem_printf(ROOT ":steps:%s", id);
    assert_int_equal(test_int(&redis, "HLEN", steps), 100);
}

/* A dead job goes on from what it kept, or from the start; `later` shows, exports and imports it.
 */
static void test_the_command_line(void **state)
{
    CLEANUP_FREE char *id = NULL, *line = NULL;

    (void)state;
    test_handler(dir, "q",
                 "set -e\n"
                 "echo \"${LATER_CHECKPOINT-none} $(later step s -- sh -c 'echo ran >> %s; printf "
                 "\"\\377\\0z\" | base64')\" >> %s\n"
                 "echo checkpoint cp >&3\n"
                 "exit 65\n",
                 out, out);
    start_quick("");
    id = add_to("q", "x");
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 1, LONG_MS));
    line = mem_printf("'%s/later' --redis %s", test_build_dir(), redis.url);
    test_must("%s show %s | grep -q '^ *checkpoint *cp$'", line, id);
    test_must("%s show %s | grep -q '^ *steps kept *s, 5 bytes$'", line, id);
    test_must("%s show --json %s | grep -q '\"checkpoint\":\"cp\"'", line, id);
    test_must("%s show --json %s > %s/shown", line, id, dir);
    test_must("%s retry %s", line, id);
    assert_true(test_until(wrote, (char *)"cp /wB6", LONG_MS));
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 1, LONG_MS));
    test_must("%s export q --state dead > %s/jobs", line, dir);
    test_must("%s purge q --state dead --yes", line);
    assert_nothing_kept();
    assert_written("ran\nnone /wB6\ncp /wB6\n");
    test_must("%s import q %s/jobs && %s --namespace other import q %s/shown", line, dir, line,
              dir);
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 1, LONG_MS));
    assert_written("ran\nnone /wB6\ncp /wB6\ncp /wB6\n");
    test_must("%s retry q --all --from-start", line);
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:q", 1, LONG_MS));
    assert_true(test_until(wrote, (char *)"none", LONG_MS));
    assert_written("ran\nnone /wB6\ncp /wB6\ncp /wB6\nran\nnone /wB6\n");
}

/* A handler of another user reaches the daemon. */
static void test_a_handler_of_another_user(void **state)
{
    CLEANUP_FREE char *yaml = NULL;
    char later[96];

    (void)state;
    if (geteuid() != 0)
        skip();
    test_handler(dir, "q",
                 "set -e\n"
                 "x=$(later step who -- id -un)\n"
                 "echo $x >> %s\n"
                 "echo checkpoint $x >&3\n"
                 "[ $LATER_ATTEMPT = 2 ]\n",
                 out);
    test_must("touch %s; chmod 666 %s; chmod 755 %s", out, out, dir);
    test_install(dir, "later", later);
    test_must("chmod 755 %s", later);
    yaml = mem_printf(QUICK "queues: { q: { env: { PATH: '%s:/usr/bin:/bin' }, user: nobody } }\n",
                      dir);
    start_a(yaml);
    free(add_to("q", "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("nobody\nnobody\n");
}

/* ---- trouble */

/* While Redis is away, a step waits, and so does the end of the attempt with its checkpoint. */
static void test_redis_goes_away(void **state)
{
    (void)state;
    test_handler(dir, "q",
                 "set -e\n"
                 "[ $LATER_ATTEMPT = 1 ] || { echo \"$LATER_CHECKPOINT\" >> %s; exit 0; }\n"
                 "touch %s/begun\n"
                 "until [ -e %s/go ]; do sleep 0.02; done\n"
                 "later step s -- echo kept >> %s\n"
                 "echo checkpoint behind >&3\n"
                 "exit 1\n",
                 out, dir, dir, out);
    start_quick("");
    free(add_to("q", "x"));
    test_must("until [ -e %s/begun ]; do sleep 0.02; done", dir);
    test_redis_kill(&redis, SIGKILL);
    test_must("touch %s/go", dir);
    (void)usleep(300000);
    test_redis_restart(&redis);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_written("kept\nbehind\n");
    assert_nothing_kept();
}

/* ---- the examples */

static void test_the_examples(void **state)
{
    CLEANUP_FREE char *db = mem_printf("%s/rows.csv.db", dir);

    (void)state;
    test_must("install -m 755 '%s'/handlers/examples/resume/* %s/handlers/; "
              "seq 1 250 > %s/lines; seq 1 250 | sed 's/.*/&,v&/' > %s/rows.csv",
              test_source_dir(), dir, dir, dir);
    /* It is killed at line 100 for the first time. */
    test_must(
        "cat > %s/one <<'END'\n#!/bin/sh\necho $1 >> %s\n[ $1 != 100 ] || [ -e %s/killed ] || { "
        "touch %s/killed; sleep 1; kill -9 $PPID; }\nEND\nchmod 755 %s/one",
        dir, out, dir, dir, dir);
    {
        CLEANUP_FREE char *yaml = mem_printf(
            QUICK
            "queues: { import: { handler: [%s/handlers/import.sh], env: { IMPORT: %s/one } },\n"
            "  rows: { handler: [%s/handlers/import.py] },\n"
            "  order: { handler: [%s/handlers/order.sh], env: { PATH: '%s:/usr/bin:/bin' } } }\n",
            dir, dir, dir, dir, test_build_dir());
        CLEANUP_FREE char *lines = mem_printf("%s/lines", dir);
        CLEANUP_FREE char *rows = mem_printf("%s/rows.csv", dir);

        start_a(yaml);
        free(add_to("import", lines));
        free(add_to("rows", rows));
        free(add_to("order", "17"));
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    test_must("[ \"$(sort -n %s | uniq | tr '\\n' ' ')\" = \"$(seq 1 250 | tr '\\n' ' ')\" ]", out);
    test_must("[ $(grep -c . %s) -le 252 ]", out);
    test_must(
        "python3 -c \"import sqlite3; assert sqlite3.connect('%s').execute('SELECT COUNT(*) FROM "
        "rows').fetchone()[0] == 250\"",
        db);
    assert_nothing_kept();
}

#define T(f) cmocka_unit_test_setup_teardown(f, fx_open, fx_close)
#define T_AOF(f) cmocka_unit_test_setup_teardown(f, fx_open_aof, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_an_attempt_goes_on),
        T(test_it_is_kept_while_the_job_runs),
        T(test_many_checkpoints_cost_few_calls),
        T(test_a_stream_goes_on),
        T(test_a_plugin_goes_on),
        T(test_a_step_runs_once),
        T(test_what_a_step_refuses),
        T(test_the_command_line),
        T(test_a_handler_of_another_user),
        T_AOF(test_redis_goes_away),
        T(test_the_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
