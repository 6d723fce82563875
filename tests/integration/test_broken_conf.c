/*
 * Configurations that an operator breaks. Each is refused with file and line, the key and what to
 * write instead, before anything is done. A reload of it leaves the old one in force. Long, since
 * it is one table.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000

static const struct broken {
    const char *text;
    int line;
    const char *says; /* after the line: what is wrong, and the cure */
} broken[] = {
    {"redis: http://x\n", 1,
     "redis: not a known address: redis://HOST:PORT, rediss://HOST:PORT, "
     "sentinel://HOST,HOST/MASTER, cluster://HOST,HOST, unix:PATH or embedded"},
    {"redis: rediss://\n", 1,
     "redis: not a known address: redis://HOST:PORT, rediss://HOST:PORT, "
     "sentinel://HOST,HOST/MASTER, cluster://HOST,HOST, unix:PATH or embedded"},
    {"redis_tls_ca: ca.pem\n", 1,
     "redis_tls_ca: \"ca.pem\" is not an absolute path such as /etc/laterd/redis.pass"},
    {"redis_password_command: [print-it]\n", 1,
     "redis_password_command: \"print-it\" is not an absolute path: write [/path/to/program, "
     "argument, ...]"},
    {"redis: \n", 1, "redis: empty: give a value, or leave the line out"},
    {"redis: redis://\n", 1,
     "redis: not a known address: redis://HOST:PORT, rediss://HOST:PORT, "
     "sentinel://HOST,HOST/MASTER, cluster://HOST,HOST, unix:PATH or embedded"},
    {"redis: redis://h:99999\n", 1,
     "redis address 'redis://h:99999': its port is not a number from 1 to 65535"},
    {"redis: redis://h/x\n", 1,
     "redis address 'redis://h/x': its database is not a number from 0 to 1000000"},
    {"redis: [a]\n", 1, "redis: a list where a text is expected"},
    {"redis_password_file: relative\n", 1,
     "redis_password_file: \"relative\" is not an absolute path such as /etc/laterd/redis.pass"},
    {"redis_timeout: 5\n", 1, "redis_timeout: 5 has no unit: write 5s, or another of ms s m h d"},
    {"redis_timeout: 5x\n", 1,
     "redis_timeout: \"5x\" is not a duration such as 10s or 5m (units: ms s m h d)"},
    {"redis_timeout: 1ms\n", 1, "redis_timeout: out of range: from 100ms to 10m"},
    {"namespace: a b\n", 1,
     "namespace: \"a b\" is not a name of letters, digits, _ . and -, with a letter or digit "
     "first"},
    {"namespace: -x\n", 1,
     "namespace: \"-x\" is not a name of letters, digits, _ . and -, with a letter or digit first"},
    {"strict: yes\n", 1, "strict: \"yes\" is not one of: false, true"},
    {"state_dir: here\n", 1, "state_dir: \"here\" is not an absolute path such as /var/lib/laterd"},
    {"state_dir: none\nredis: embedded\n", 2,
     "state_dir: none does not go with redis: embedded, whose data it would hold: give a folder"},
    {"handlers_dir: ./h\n", 1,
     "handlers_dir: \"./h\" is not an absolute path such as /etc/laterd/handlers"},
    {"check_permissions: on\n", 1, "check_permissions: \"on\" is not one of: strict, warn, off"},
    {"concurrency: 0\n", 1, "concurrency: out of range: from 1 to 1024"},
    {"concurrency: 9999\n", 1, "concurrency: out of range: from 1 to 1024"},
    {"concurrency: ten\n", 1, "concurrency: \"ten\" is not a whole number such as 10"},
    {"concurrency: 010\n", 1, "concurrency: 010: a number without leading zeros"},
    {"stop_timeout: none\n", 1,
     "stop_timeout: \"none\" is not a duration such as 10s or 5m (units: ms s m h d)"},
    {"log_level: verbose\n", 1,
     "log_level: \"verbose\" is not one of: error, warn, notice, info, debug"},
    {"concurency: 3\n", 1,
     "unknown key \"concurency\" at the top level: did you mean \"concurrency\"?"},
    {"default: {}\n", 1, "unknown key \"default\" at the top level: did you mean \"defaults\"?"},
    {"queue: {}\n", 1, "unknown key \"queue\" at the top level: did you mean \"queues\"?"},
    {"timeout: 5m\n", 1, "timeout: belongs under defaults: or under a queue"},
    {"limits: []\n", 1,
     "limits: a mapping of NAME: { semaphore: N } or NAME: { rate: N/D } is expected"},
    {"queues: []\n", 1, "queues: a mapping of NAME: { settings } is expected"},
    {"queues:\n- mail\n", 1, "queues: a mapping of NAME: { settings } is expected"},
    {"limits:\n- mail: {}\n", 1,
     "limits: a mapping of NAME: { semaphore: N } or NAME: { rate: N/D } is expected"},
    {"defaults: 3\n", 1, "defaults: settings are expected, as lines of KEY: VALUE"},
    {"defaults:\n  timeout: 5\n", 2, "timeout: 5 has no unit: write 5s, or another of ms s m h d"},
    {"defaults:\n  timout: 5m\n", 2,
     "unknown key \"timout\" in defaults: did you mean \"timeout\"?"},
    {"defaults:\n  backoff: 5s\n", 2, "backoff: settings are expected, as lines of KEY: VALUE"},
    {"defaults:\n  backoff: { first: 2h, max: 1h }\n", 2,
     "defaults: backoff.max (1h) is under backoff.first (2h)"},
    {"defaults:\n  backoff: { factor: 0.5 }\n", 2, "backoff.factor: out of range: from 1 to 100"},
    {"defaults:\n  backoff: { jitter: 15 }\n", 2,
     "backoff.jitter: \"15\" is not a percentage such as 15%"},
    {"defaults:\n  backoff.first: 1s\n", 2,
     "unknown key \"backoff.first\" in defaults: did you mean \"backoff.first\" (the dot is a "
     "nested mapping)?"},
    {"defaults:\n  attempts: -1\n", 2, "attempts: out of range: from 1 to 1000000"},
    {"defaults:\n  max_payload: 1MB\n", 2,
     "max_payload: \"1MB\" is not a size such as 64KiB or 1MiB"},
    {"defaults:\n  max_payload: 1KiBs\n", 2,
     "max_payload: \"1KiBs\" is not a size such as 64KiB or 1MiB"},
    {"defaults:\n  exit_retry: [75, 300]\n", 2, "exit_retry: out of range: from 1 to 255"},
    {"defaults:\n  exit_retry: [65]\n", 2,
     "defaults: exit status 65 is in exit_dead and in exit_retry"},
    {"defaults:\n  lock: x\n", 2, "lock: belongs under a queue"},
    {"defaults:\n  user: no-such-user\n", 2,
     "defaults: user: there is no user \"no-such-user\" here"},
    {"defaults:\n  group: no-such-group\n", 2,
     "defaults: group: there is no group \"no-such-group\" here"},
    {"defaults:\n  umask: 27\n", 2, "umask: \"27\" is not three octal digits such as 027"},
    {"defaults:\n  nice: 30\n", 2, "nice: out of range: from -20 to 19"},
    {"defaults:\n  rlimits: { files: 3 }\n", 2,
     "rlimits: \"files=3\" is no limit: as, core, cpu, data, fsize, memlock, nofile, nproc, stack"},
    {"defaults:\n  memory: 64KiB\n", 2,
     "memory: 64KiB is less than any program needs: give 1MiB or more"},
    {"defaults:\n  memory: 50%\n", 2, "memory: \"50%\""},
    {"defaults:\n  cpu: 2\n", 2, "cpu: \"2\""},
    {"defaults:\n  pids: -1\n", 2, "pids: "},
    {"defaults:\n  rlimits: { nofile: 1k }\n", 2,
     "rlimits: nofile: \"1k\" is not a whole number such as 1024, or unlimited"},
    {"defaults:\n  env: { 1A: b }\n", 2,
     "env: \"1A\" is not the name of a variable (letters, digits and _, no digit first)"},
    {"defaults:\n  env_file: /nonexistent\n", 2,
     "defaults: env_file /nonexistent: No such file or directory"},
    {"defaults:\n  unique: x\n", 2, "unique: is not in this version"},
    {"queues:\n  a/b: {}\n", 2,
     "\"a/b\" is no queue name: up to 64 letters, digits, _ and -, with a letter or digit first"},
    {"queues:\n  mail: { handler: send }\n", 2,
     "handler: \"send\" is not an absolute path: write [/path/to/program, argument, ...]"},
    {"queues:\n  mail: { mode: fork }\n", 2, "mode: \"fork\" is not one of: exec, stream, plugin"},
    {"queues:\n  mail: { mode: plugin }\n", 2,
     "mail: mode: plugin needs a handler: [/path/to/it.so, argument, ...]"},
    {"queues:\n  mail: { mode: plugin, handler: /x.so, nice: 3 }\n", 2,
     "mail: nice: a plug-in has no process of its own: that needs mode exec or stream"},
    {"queues:\n  mail: { env_pass: [A=b] }\n", 2,
     "env_pass: \"A=b\" is not the name of a variable: write [NAME, \"PREFIX_*\"]"},
    {"queues:\n  mail: { semaphore: smtp }\nlimits:\n  smtp: { rate: 1/1s }\n", 2,
     "mail: semaphore: \"smtp\" is a rate in limits: write rate: smtp"},
    {"queues:\n  mail: {}\n  mail: {}\n", 3, "duplicate key \"mail\": first given in line 2"},
    {"queues:\n\tmail: {}\n", 2, "a tab in the indentation: indent with spaces"},
    {"queues: {mail: {}\n", 2,
     "not YAML: while parsing a flow mapping, did not find expected ',' or '}'"},
    {"a: &x 1\n", 1, "anchors (&) are not taken: write the value out"},
    {"a: *x\n", 1, "aliases (*) are not taken: write the value out, or quote it"},
    {"a: !!int 1\n", 1, "tags (!) are not taken: write the value alone"},
    {"%YAML 1.1\n---\na: 1\n", 1, "% at the start of a line: directives are not taken"},
    {"---\na: 1\n---\nb: 2\n", 3, "a second document (---) is not taken"},
    {"limits:\n  smtp: {}\n", 2,
     "smtp: neither a semaphore nor a rate: write { semaphore: 20 } or { rate: 100/1m }"},
    {"limits:\n  smtp: { semaphore: 1, rate: 1/1s }\n", 2,
     "smtp: both a semaphore and a rate: make it two limits, and name both in the queue"},
    {"limits:\n  r: { rate: 100 }\n", 2,
     "rate: \"100\" is not a rate such as 100/1m: so many in a time (units: ms s m h d)"},
    {"limits:\n  r: { rate: 1/1s, algorithm: fast }\n", 2,
     "algorithm: \"fast\" is not one of: gcra, sliding, fixed, funnel"},
    {"limits:\n  r: { rate: 1/1s, algorithm: sliding, burst: 5 }\n", 2,
     "r: burst belongs to algorithm: gcra"},
    {"- a\n", 1, "the file: settings are expected, as lines of KEY: VALUE"},
    {"just text\n", 1, "the file: settings are expected, as lines of KEY: VALUE"},
};

#define NBROKEN (sizeof(broken) / sizeof(broken[0]))

static void write_conf(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* ExecReload= of the unit runs this first: its exit status is that of `systemctl reload`. */
static int check_config(const char *path, struct buf *said)
{
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());
    char *argv[] = {laterd, (char *)(uintptr_t) "--check-config", (char *)(uintptr_t) "--config",
                    (char *)(uintptr_t)path, NULL};

    return proc_run(argv, NULL, 0, NULL, said);
}

static int count_of(struct buf *said, const char *what)
{
    const char *at = buf_str(said);
    int n = 0;

    while ((at = strstr(at, what)) != NULL) {
        n++;
        at += strlen(what);
    }
    return n;
}

static void test_checked(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/bad.yaml", dir);

    (void)state;
    for (size_t i = 0; i < NBROKEN; i++) {
        CLEANUP_FREE char *where = mem_printf("laterd: %s:%d:", path, broken[i].line);
        CLEANUP_BUF struct buf said = BUF_INIT;
        int status;

        write_conf(path, broken[i].text);
        status = check_config(path, &said);
        if (status != 78 || strncmp(buf_str(&said), where, strlen(where)) != 0 ||
            strstr(buf_str(&said), broken[i].says) == NULL)
            fail_msg("%s\nwants 78, %s %s\nand gives %d, %s", broken[i].text, where, broken[i].says,
                     status, buf_str(&said));
        /* One error makes one line. A host without a folder of handlers makes another. */
        assert_int_equal(count_of(&said, "\n") - count_of(&said, "laterd: /etc/laterd/handlers: "),
                         1);
    }
}

static void test_reloaded(void **state)
{
    CLEANUP_BUF struct buf good = BUF_INIT;
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "work", "true");
    start_a("log_level: notice\n");
    test_read(a.conf, &good);
    for (size_t i = 0; i < NBROKEN; i++) {
        write_conf(a.conf, broken[i].text);
        test_laterd_kill(&a, SIGHUP);
        if (!test_until_lines(a.log, "event=reload result=refused", (int)i + 1, LONG_MS))
            fail_msg("not refused: %s", broken[i].text);
    }
    assert_int_equal(test_lines(a.log, "event=reload result=done"), 0);
    id = test_add(&redis, "work", NULL, NULL, "x");
    assert_non_null(id);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    write_conf(a.conf, buf_str(&good));
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_checked, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_reloaded, fx_open, fx_close)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
