/* The settings that isolate a handler's process, as the configuration has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/conf_isolation.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char file[] = "/tmp/later-conf-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    return close(mkstemp(file));
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

static struct conf *load(const char *text, char *const *env, struct err *err)
{
    FILE *f = fopen(file, "we");

    *err = (struct err)ERR_INIT;
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return conf_load(file, env, err);
}

static struct conf *must_load(const char *text, char *const *env)
{
    struct err err;
    struct conf *conf = load(text, env, &err);

    if (conf == NULL)
        fail_msg("%s", err.text);
    return conf;
}

static void must_refuse(const char *text, int line, const char *says)
{
    CLEANUP_FREE char *where = mem_printf("%s:%d: ", file, line);
    struct err err;

    assert_null(load(text, NULL, &err));
    if (strncmp(err.text, where, strlen(where)) != 0 || strstr(err.text, says) == NULL)
        fail_msg("%s\n wants %s … %s\n and says %s", text, where, says, err.text);
}

static void assert_pairs(const struct conf_strs *got, const char *const *want, size_t n)
{
    assert_int_equal(got->n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(got->at[i], want[i]);
}

static void test_pairs(void **state)
{
    static const char *const want[] = {"A=b", "B=c=d, e", "EMPTY="};
    static char *const env[] = {(char *)(uintptr_t) "LATERD_DEFAULTS_ENV=A=1, B=2",
                                (char *)(uintptr_t) "LATERD_QUEUES_MAIL_RLIMITS=[nofile=10]", NULL};
    static const char *const of_env[] = {"A=1", "B=2"}, *const limit[] = {"nofile=10"};
    struct conf *conf = must_load("queues:\n  mail:\n    env:\n      A: b\n      B: 'c=d, e'\n"
                                  "      EMPTY: ''\n  sms: { env: ['A=b', 'B=c=d, e', EMPTY=] }\n",
                                  NULL);

    (void)state;
    assert_pairs(&conf_queue(conf, "mail")->env, want, COUNT(want));
    assert_pairs(&conf_queue(conf, "sms")->env, want, COUNT(want));
    assert_int_equal(conf->defaults.env.n, 0);
    conf_free(conf);
    conf = must_load("queues: { mail: {} }\n", env);
    assert_pairs(&conf->defaults.env, of_env, COUNT(of_env));
    assert_pairs(&conf_queue(conf, "mail")->env, of_env, COUNT(of_env));
    assert_pairs(&conf_queue(conf, "mail")->rlimits, limit, COUNT(limit));
    conf_free(conf);
}

/* The printed configuration can be loaded again and means the same. */
static void test_printed(void **state)
{
    struct conf *conf = must_load(
        "defaults:\n  user: '0'\n  group: \"a b\"\n  umask: '0077'\n  cwd: /\n  nice: -3\n"
        "  env: { A: \"b: \\\"c\\\" # d\", _B9: 'é' }\n  env_file: /x y\n"
        "  rlimits: { core: unlimited, cpu: 1500ms, as: 1GiB }\n"
        "  no_new_privileges: true\n  private_tmp: true\n",
        NULL);
    CLEANUP_BUF struct buf first = BUF_INIT, second = BUF_INIT;

    (void)state;
    conf_print(conf, &first);
    conf_free(conf);
    conf = must_load(buf_str(&first), NULL);
    conf_print(conf, &second);
    assert_string_equal(buf_str(&first), buf_str(&second));
    assert_string_equal(conf->defaults.env.at[0], "A=b: \"c\" # d");
    assert_string_equal(conf->defaults.env.at[1], "_B9=é");
    assert_int_equal(conf->defaults.nice, -3);
    assert_string_equal(conf->defaults.umask, "0077");
    conf_free(conf);
}

static void test_limits(void **state)
{
    static const struct {
        const char *pair;
        int resource;
        uint64_t max;
    } cases[] = {{"as=1GiB", RLIMIT_AS, UINT64_C(1073741824)},
                 {"core=0", RLIMIT_CORE, 0},
                 {"cpu=1500ms", RLIMIT_CPU, 2},
                 {"data=1", RLIMIT_DATA, 1},
                 {"fsize=64KiB", RLIMIT_FSIZE, 65536},
                 {"memlock=unlimited", RLIMIT_MEMLOCK, UINT64_MAX},
                 {"nofile=1024", RLIMIT_NOFILE, 1024},
                 {"nproc=7", RLIMIT_NPROC, 7},
                 {"stack=8MiB", RLIMIT_STACK, 8388608}};
    static const char *const bad[] = {
        "",         "nofile",    "nofile=",      "nofile=-1", "nofile=1k",
        "nofil=1",  "cpu=5",     "core=much",    "=1",        "as=99999999999999999999",
        "NOFILE=1", "nofile =1", "core=unlimite"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err = ERR_INIT;
        uint64_t max = 0;
        int resource = -1;

        assert_int_equal(conf_rlimit_parse(cases[i].pair, &resource, &max, &err), 0);
        assert_int_equal(resource, cases[i].resource);
        assert_true(max == cases[i].max);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = ERR_INIT;
        uint64_t max;
        int resource;

        if (conf_rlimit_parse(bad[i], &resource, &max, &err) == 0)
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(err.code, ERR_CONFIG);
    }
}

static void test_umask(void **state)
{
    static const char *const bad[] = {"27", "00027", "089", "1027", "u=rwx", "-27", " 27"};
    struct err err = ERR_INIT;
    int mask;

    (void)state;
    assert_int_equal(conf_umask_parse("", &mask, &err), 0);
    assert_int_equal(mask, -1);
    assert_int_equal(conf_umask_parse("027", &mask, &err), 0);
    assert_int_equal(mask, 027);
    assert_int_equal(conf_umask_parse("0777", &mask, &err), 0);
    assert_int_equal(mask, 0777);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (conf_umask_parse(bad[i], &mask, &err) == 0)
            fail_msg("taken: %s", bad[i]);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"defaults:\n  umask: 27\n", 2, "umask: \"27\" is not three octal digits"},
        {"defaults:\n  cwd: tmp\n", 2, "cwd: \"tmp\" is not an absolute path"},
        {"defaults:\n  env_file: vars\n", 2, "env_file: \"vars\" is not an absolute path"},
        {"defaults:\n  nice: 20\n", 2, "nice: out of range: from -20 to 19"},
        {"defaults:\n  nice: low\n", 2, "nice: \"low\" is not a whole number"},
        {"defaults:\n  private_tmp: 1\n", 2, "private_tmp: \"1\" is not one of: false, true"},
        {"defaults:\n  rlimits: { nofil: 3 }\n", 2, "rlimits: \"nofil=3\" is no limit: as, core"},
        {"defaults:\n  rlimits: { nofile: many }\n", 2,
         "rlimits: nofile: \"many\" is not a whole number such as 1024, or unlimited"},
        {"defaults:\n  rlimits: { cpu: 5 }\n", 2, "rlimits: cpu: \"5\" is not a duration"},
        {"defaults:\n  rlimits: [core=0, core=1]\n", 2, "rlimits: \"core=1\" is there twice"},
        {"defaults:\n  rlimits: 5\n", 2, "rlimits: \"5\" is not a mapping such as"},
        {"defaults:\n  env: { 1A: b }\n", 2, "env: \"1A\" is not the name of a variable"},
        {"defaults:\n  env: { LATER_ID: b }\n", 2, "is laterd's own"},
        {"defaults:\n  env: { TRACEPARENT: b }\n", 2, "is laterd's own"},
        {"defaults:\n  env: { A: [b] }\n", 2, "env: A: a text is expected"},
        {"defaults:\n  env: [A]\n", 2, "env: \"A\" has no value"},
        {"defaults:\n  env: A\n", 2, "env: \"A\" is not a mapping such as"},
        {"queues:\n  a:\n    mode: plugin\n    handler: /a.so\n    user: nobody\n", 5,
         "a: user: a plug-in has no process of its own"},
        {"queues:\n  a:\n    rlimits: { core: 0 }\n    handler: /a.so\n    mode: plugin\n", 3,
         "a: rlimits: a plug-in has no process of its own"},
        {"defaults:\n  env: { \"A=B\": c }\n", 2, "env: \"A=B\": a name must not have = in it"},
        {"queues:\n  a:\n    mode: plugin\n    handler: /a.so\n    env: { A: b }\n", 5,
         "a: env: a plug-in has no process of its own"},
        {"user: nobody\n", 1, "user: belongs under defaults: or under a queue"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        must_refuse(cases[i].text, cases[i].line, cases[i].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_printed),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_umask),
                                       cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
