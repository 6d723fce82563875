/* conf: the file, the environment, what is refused and with which message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/conf_errors.h"
#include "conf/yaml.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char dir[] = "/tmp/later-conf-XXXXXX";
static char file[64];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(file, sizeof(file), "%s/laterd.yaml", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    (void)unlink(file);
    return rmdir(dir);
}

static void write_file(const void *bytes, size_t n)
{
    int fd;

    (void)unlink(file);
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0644), 0);
    assert_int_equal(write(fd, bytes, n), n);
    (void)close(fd);
}

static struct conf *must_load(const char *text, char *const *env)
{
    struct err err = ERR_INIT;
    struct conf *conf;

    write_file(text, strlen(text));
    conf = conf_load(file, env, &err);
    if (conf == NULL)
        fail_msg("%s", err.text);
    return conf;
}

/* The present file is refused. The error names this line (0: none) and has this text. */
static void must_refuse_file(char *const *env, enum err_code code, int line, const char *says)
{
    struct err err = ERR_INIT;
    struct conf *conf = conf_load(file, env, &err);
    char where[96];

    if (conf != NULL) {
        conf_free(conf);
        fail_msg("taken, but should say: %s", says);
    }
    if (line > 0)
        (void)snprintf(where, sizeof(where), "%s:%d:", file, line);
    if (line > 0 && strncmp(err.text, where, strlen(where)) != 0)
        fail_msg("line %d expected: %s", line, err.text);
    if (strstr(err.text, says) == NULL)
        fail_msg("\"%s\" expected: %s", says, err.text);
    assert_int_equal(err.code, code);
}

static void must_refuse(const char *text, int line, const char *says)
{
    write_file(text, strlen(text));
    must_refuse_file(NULL, ERR_CONFIG, line, says);
}

struct refusal {
    const char *text;
    int line;
    const char *says;
};

static void must_refuse_all(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must_refuse(cases[i].text, cases[i].line, cases[i].says);
}

static void test_defaults(void **state)
{
    struct conf *conf = conf_load(NULL, NULL, NULL);

    (void)state;
    assert_non_null(conf);
    assert_string_equal(conf->redis, "redis://127.0.0.1:6379");
    assert_string_equal(conf->redis_password_file, "");
    assert_true(conf->redis_timeout == 5000);
    assert_true(conf->concurrency == 16);
    assert_true(conf->check_permissions == CONF_PERMISSIONS_STRICT);
    assert_int_equal(CONF_LOG_LEVEL(conf->log_level), 6);
    assert_null(conf->path);
    assert_string_equal(conf->root, "default");
    assert_true(conf->defaults.timeout == 3600000);
    assert_true(conf->defaults.backoff_factor == 2000);
    assert_true(conf->defaults.backoff_jitter == 15);
    assert_true(conf->defaults.max_payload == 1048576);
    assert_true(conf->defaults.dead_keep == INT64_C(90) * 86400000);
    assert_int_equal(conf->defaults.exit_retry.n, 1);
    assert_int_equal(conf->defaults.exit_retry.at[0], 75);
    assert_null(conf->defaults.handler.at);
    assert_int_equal(conf->defaults.env_pass.n, 0);
    assert_string_equal(conf->defaults.name, "");
    assert_ptr_equal(conf_queue(conf, "any"), &conf->defaults);
    conf_free(conf);
    conf_free(NULL);
}

static const char full[] = "redis: unix:/run/redis.sock\n"
                           "namespace: shop.eu\n"
                           "state_dir: none\n"
                           "handlers_dir:\n"
                           "check_permissions: warn\n"
                           "concurrency: 4\n"
                           "log_level: debug\n"
                           "defaults:\n"
                           "  timeout: none\n"
                           "  backoff: { first: 1s, factor: 1.5, jitter: 0% }\n"
                           "  env_pass: [TZ, \"APP_*\"]\n"
                           "queues:\n"
                           "  mail:\n"
                           "    handler: [/usr/lib/laterd/send-mail, --batch, '']\n"
                           "    timeout: 5m\n"
                           "    max_payload: 64KiB\n"
                           "    exit_dead: [65, 78]\n"
                           "    exit_retry: []\n"
                           "    env_pass: DATABASE_URL\n"
                           "  Zoo: {}\n"
                           "  9-a_b:\n"
                           "  image:\n"
                           "    handler: /srv/image\n"
                           "    backoff:\n"
                           "      max: 1m\n";

static void test_file(void **state)
{
    struct conf *conf = must_load(full, NULL);
    const struct conf_queue *mail = conf_queue(conf, "mail"), *image = conf_queue(conf, "image");

    (void)state;
    assert_string_equal(conf->path, file);
    assert_string_equal(conf->redis, "unix:/run/redis.sock");
    assert_string_equal(conf->namespace, "shop.eu");
    assert_string_equal(conf->handlers_dir, "");
    assert_true(conf->check_permissions == CONF_PERMISSIONS_WARN);
    assert_true(conf->defaults.timeout == CONF_NEVER);
    assert_true(conf->defaults.backoff_factor == 1500);
    assert_int_equal(conf->nqueues, 4);
    assert_string_equal(conf->queues[0].name, "9-a_b");
    assert_string_equal(conf->queues[3].name, "mail");
    assert_int_equal(mail->handler.n, 3);
    assert_string_equal(mail->handler.at[1], "--batch");
    assert_string_equal(mail->handler.at[2], "");
    assert_null(mail->handler.at[3]);
    assert_true(mail->timeout == 300000);
    assert_true(mail->max_payload == 65536);
    assert_int_equal(mail->exit_dead.n, 2);
    assert_int_equal(mail->exit_retry.n, 0);
    assert_int_equal(mail->env_pass.n, 1);
    assert_true(mail->backoff_first == 1000);
    assert_string_equal(image->handler.at[0], "/srv/image");
    assert_int_equal(image->env_pass.n, 2);
    assert_true(image->backoff_max == 60000);
    assert_string_equal(conf_queue(conf, "Zoo")->name, "Zoo");
    assert_string_equal(conf_queue(conf, "zoo")->name, "");
    conf_free(conf);
}

static void test_empty_files(void **state)
{
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "# nothing\n",
                                        "---\n",
                                        "\xef\xbb\xbf# BOM\n",
                                        "defaults:\nqueues:\n",
                                        "--- {}\n...\n",
                                        "{}\n",
                                        "queues:\n  mail:\n"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        conf_free(must_load(texts[i], NULL));
}

/* Each scalar is taken as its text. The types of YAML 1.1 (yes, null, 0x10) do not count. */
static void test_scalar_rule(void **state)
{
    struct conf *conf = must_load("namespace: yes\nqueues:\n  on: { handler: [/x, no, ~, 0x10, "
                                  "1e3, null, 010] }\n  'null': {}\n",
                                  NULL);
    const struct conf_strs *handler = &conf_queue(conf, "on")->handler;

    (void)state;
    assert_string_equal(conf->namespace, "yes");
    assert_string_equal(handler->at[1], "no");
    assert_string_equal(handler->at[2], "~");
    assert_string_equal(handler->at[3], "0x10");
    assert_string_equal(handler->at[6], "010");
    assert_string_equal(conf_queue(conf, "null")->name, "null");
    conf_free(conf);
}

static void test_syntax(void **state)
{
    static const struct refusal cases[] = {
        {"redis: [\n", 2, "not YAML"},
        {"a: b: c\n", 1, "not YAML"},
        {": x\n", 1, "not YAML"},
        {"concurrency: 1\n}\n", 2, "not YAML"},
        {"defaults:\n\ttimeout: 1s\n", 2, "a tab in the indentation"},
        {"defaults:\n  timeout: \"1s\n", 3, "not YAML"},
        {"- redis\n", 1, "settings are expected"},
        {"redis\n", 1, "settings are expected"},
        {"defaults: 5\n", 1, "defaults: settings are expected"},
        {"queues: [mail]\n", 1, "queues: a mapping"},
        {"queues:\n  mail: /usr/bin/mail\n", 2, "mail: settings are expected"},
        {"defaults:\n  backoff: 15s\n", 2, "backoff: settings are expected"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_yaml_features(void **state)
{
    static const struct refusal cases[] = {
        {"namespace: &a x\n", 1, "anchors"},
        {"defaults: &d\n  attempts: 3\n", 1, "anchors"},
        {"queues:\n  a:\n    exit_dead: &l [1]\n", 3, "anchors"},
        {"\nnamespace: *a\n", 2, "aliases"},
        {"concurrency: !!int 5\n", 1, "tags"},
        {"namespace: ! x\n", 1, "tags"},
        {"defaults: !x {}\n", 1, "tags"},
        {"defaults:\n  exit_dead: !!seq [1]\n", 2, "tags"},
        {"namespace: x\n---\nnamespace: y\n", 2, "second document"},
        {"namespace: x\n...\n---\n", 3, "second document"},
        {"%YAML 1.1\n---\nnamespace: x\n", 1, "directives"},
        {"namespace: x\nredis: embedded\nnamespace: y\n", 3, "duplicate key \"namespace\""},
        {"queues:\n  a: {}\n  b: {}\n  \"a\": {}\n", 4,
         "duplicate key \"a\": first given in line 2"},
        {"defaults: { backoff: { max: 1h, max: 2h } }\n", 1, "duplicate key \"max\""},
        {"defaults:\n  <<: {}\n", 2, "merge keys"},
        {"? [a]\n: b\n", 1, "a key must be a single word"},
        {"? {a: b}\n: b\n", 1, "a key must be a single word"},
        {"'': x\n", 1, "an empty key"},
        {"namespace: \"a\\0b\"\n", 1, "NUL"},
        {"namespace: x\nredis: \"\x01\"\n", 2, "control byte"},
        {"namespace: x\n\nredis: \xff\n", 3, "not UTF-8"},
        {"namespace: x\nredis: \xe2\x80\xa8\n", 2, "a Unicode line break"},
        {"\xc2\x85%TAG !a! x\n", 1, "a Unicode line break"},
        {"namespace: \xc2\x9b\n", 1, "control characters are not allowed"},
        {"a: {b: {c: {d: {e: {f: {g: {h: {i: j}}}}}}}}\n", 1, "nested too deeply"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_encodings(void **state)
{
    static const char nul[] = "namespace: x\nredis: \0\n";
    static const char utf16le[] = "\xff\xfen\0s\0";
    static const char utf16be[] = "\xfe\xff\0n\0s";
    static const char utf16[] = "n\0s\0:\0";

    (void)state;
    write_file(nul, sizeof(nul) - 1);
    must_refuse_file(NULL, ERR_CONFIG, 2, "NUL");
    write_file(utf16le, sizeof(utf16le) - 1);
    must_refuse_file(NULL, ERR_CONFIG, 1, "UTF-16");
    write_file(utf16be, sizeof(utf16be) - 1);
    must_refuse_file(NULL, ERR_CONFIG, 1, "UTF-16");
    write_file(utf16, sizeof(utf16) - 1);
    must_refuse_file(NULL, ERR_CONFIG, 1, "UTF-16");
}

static void test_unknown_keys(void **state)
{
    static const struct refusal cases[] = {
        {"\nconcurency: 3\n", 2, "did you mean \"concurrency\"?"},
        {"default: {}\n", 1, "did you mean \"defaults\"?"},
        {"defaults:\n  timeot: 5m\n", 2, "unknown key \"timeot\" in defaults"},
        {"queues:\n  mail:\n    max-payload: 5m\n", 3, "did you mean \"max_payload\"?"},
        {"defaults:\n  backoff:\n    frist: 1s\n", 3, "did you mean \"backoff.first\""},
        {"defaults:\n  backoff.first: 1s\n", 2, "the dot is a nested mapping"},
        {"defaults:\n  backoff_first: 1s\n", 2, "the dot is a nested mapping"},
        {"defaults:\n  backof: 1s\n", 2, "did you mean \"backoff\"? (It is a nested mapping.)"},
        {"queues:\n  mail:\n    recyle: 5m\n", 3, "did you mean \"recycle\"?"},
        {"zzzzzzzzzz: 1\n", 1, "unknown key \"zzzzzzzzzz\" at the top level"},
        {"\"a\\e[2Jb\": 1\n", 1, "unknown key \"a\\x1b[2Jb\""},
        {"timeout: 5m\n", 1, "belongs under defaults: or under a queue"},
        {"defaults:\n  redis: embedded\n", 2, "belongs at the top level"},
        {"defaults:\n  defaults: {}\n", 2, "unknown key \"defaults\""},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_later_words(void **state)
{
    static const char *const words[] = {"unique", "ionice"};
    static const struct refusal cases[] = {
        {"queues:\n  a:\n    mode: plugin\n", 3, "mode: plugin needs a handler"},
        {"defaults:\n  mode: exce\n", 2, "mode: \"exce\" is not one of: exec, stream, plugin"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
    for (size_t i = 0; i < COUNT(words); i++) {
        char text[96], says[64];

        (void)snprintf(says, sizeof(says), "%s: is not in this version", words[i]);
        (void)snprintf(text, sizeof(text), "queues:\n  mail:\n    %s: x\n", words[i]);
        must_refuse(text, 3, says);
        (void)snprintf(text, sizeof(text), "defaults:\n  %s: { a: b }\n", words[i]);
        must_refuse(text, 2, says);
    }
}

static void test_wrong_types(void **state)
{
    static const struct refusal cases[] = {
        {"concurrency: many\n", 1, "\"many\" is not a whole number such as"},
        {"concurrency: 0x10\n", 1, "\"0x10\" is not a whole number"},
        {"concurrency: 1e3\n", 1, "\"1e3\" is not a whole number"},
        {"concurrency: 010\n", 1, "without leading zeros"},
        {"concurrency: null\n", 1, "\"null\" is not a whole number"},
        {"concurrency:\n", 1, "\"\" is not a whole number"},
        {"concurrency: [1]\n", 1, "a list where a whole number"},
        {"concurrency: {a: 1}\n", 1, "a mapping where a whole number"},
        {"stop_timeout: 30\n", 1, "30 has no unit: write 30s"},
        {"stop_timeout: 0\n", 1, "has no unit"},
        {"stop_timeout: 5 minutes\n", 1, "a duration such as 10s"},
        {"stop_timeout: none\n", 1, "a duration such as 10s"},
        {"defaults:\n  timeout: never\n", 2, "or none"},
        {"defaults:\n  max_payload: big\n", 2, "a size such as 64KiB"},
        {"defaults:\n  backoff: { jitter: 15 }\n", 2, "a percentage such as 15%"},
        {"defaults:\n  backoff: { factor: x2 }\n", 2, "a factor such as 2 or 1.5"},
        {"defaults:\n  backoff: { factor: 1.2345 }\n", 2, "a factor such as 2 or 1.5"},
        {"defaults:\n  backoff: { factor: 1. }\n", 2, "a factor such as 2 or 1.5"},
        {"check_permissions: yes\n", 1, "\"yes\" is not one of: strict, warn, off"},
        {"log_level: verbose\n", 1, "not one of: error, warn, notice, info, debug"},
        {"defaults:\n  exit_retry: 75\n", 2, "a list of numbers such as [75, 76]"},
        {"defaults:\n  exit_retry: [x]\n", 2, "not a list of numbers"},
        {"defaults:\n  exit_retry: [[1]]\n", 2, "a list within the list"},
        {"defaults:\n  exit_dead: {a: 1}\n", 2, "a mapping where a list of numbers"},
        {"queues:\n  a:\n    handler: { path: /x }\n", 3, "a mapping where a list"},
        {"redis: [a]\n", 1, "a list where a text"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_limits(void **state)
{
    static const struct refusal cases[] = {
        {"concurrency: 0\n", 1, "out of range: from 1 to 1024"},
        {"concurrency: 1000000\n", 1, "out of range"},
        {"concurrency: -1\n", 1, "out of range"},
        {"concurrency: 99999999999999999999\n", 1, "not a whole number"},
        {"redis_timeout: 1ms\n", 1, "out of range: from 100ms to 10m"},
        {"stop_timeout: 2d\n", 1, "out of range: from 0s to 1d"},
        {"defaults:\n  timeout: 0s\n", 2, "out of range: from 1ms to"},
        {"defaults:\n  max_payload: 1GiB\n", 2, "out of range: from 1KiB to 256MiB"},
        {"defaults:\n  backoff: { factor: 0.5 }\n", 2, "out of range: from 1 to 100"},
        {"defaults:\n  backoff: { jitter: 101% }\n", 2, "out of range: from 0% to 100%"},
        {"defaults:\n  exit_dead: [0]\n", 2, "out of range: from 1 to 255"},
        {"defaults:\n  exit_dead: [256]\n", 2, "out of range: from 1 to 255"},
        {"defaults:\n  exit_dead: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]\n", 2,
         "more than 16"},
        {"namespace:\n", 1, "namespace: empty"},
    };
    char text[6000];

    (void)state;
    must_refuse_all(cases, COUNT(cases));
    memset(text, 'n', sizeof(text));
    memcpy(text, "namespace: ", 11);
    text[11 + 65] = '\0';
    must_refuse(text, 1, "longer than 64 bytes");
}

static void test_addresses(void **state)
{
    static const struct refusal cases[] = {
        {"redis: rediss://\n", 1, "not a known address"},
        {"redis: http://h\n", 1,
         "redis://HOST:PORT, rediss://HOST:PORT, sentinel://HOST,HOST/MASTER, "
         "cluster://HOST,HOST, unix:PATH or "
         "embedded"},
        {"redis: localhost:6379\n", 1, "redis://HOST:PORT"},
        {"redis: 'redis://'\n", 1, "redis://HOST:PORT"},
        {"redis: ''\n", 1, "redis: empty"},
        {"redis: \"unix:/x\\n\"\n", 1, "control character"},
        {"state_dir: var\n", 1, "not an absolute path such as /var/lib/laterd"},
        {"handlers_dir: ~/handlers\n", 1, "not an absolute path"},
        {"redis_password_file: secret\n", 1, "not an absolute path"},
        {"namespace: 'a}b'\n", 1, "is not a name of letters"},
        {"namespace: .a\n", 1, "is not a name of letters"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
    conf_free(must_load("redis: embedded\n", NULL));
    conf_free(must_load("redis: redis://u@[::1]:6380/3\n", NULL));
}

/* A password in a wrong address does not appear in the error. */
static void test_secret_unsaid(void **state)
{
    static const char text[] = "redis: reddis://:hunter2@h\n";
    struct err err = ERR_INIT;

    (void)state;
    write_file(text, sizeof(text) - 1);
    assert_null(conf_load(file, NULL, &err));
    assert_null(strstr(err.text, "hunter2"));
}

static void test_queues(void **state)
{
    static const struct refusal cases[] = {
        {"queues:\n  a b: {}\n", 2, "\"a b\" is no queue name"},
        {"queues:\n  -a: {}\n", 2, "is no queue name"},
        {"queues:\n  a.b: {}\n", 2, "is no queue name"},
        {"queues:\n  'a\n\n    b': {}\n", 4, "not YAML"},
        {"queues:\n  mail:\n    handler: send-mail\n", 3, "not an absolute path"},
        {"queues:\n  mail:\n    handler: [bin/x, -a]\n", 3, "not an absolute path"},
        {"queues:\n  mail:\n    handler: [\"\"]\n", 3, "not an absolute path"},
        {"queues:\n  mail:\n    handler: /bin/x --batch\n", 3, "write a list"},
        {"queues:\n  mail:\n    handler:\n", 3, "a list such as"},
        {"queues:\n  mail:\n    env_pass: [A=b]\n", 3, "not the name of a variable"},
        {"queues:\n  mail:\n    env_pass: [\"A*B\"]\n", 3, "not the name of a variable"},
        {"queues:\n  mail:\n    env_pass: [1A]\n", 3, "not the name of a variable"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_combinations(void **state)
{
    static const struct refusal cases[] = {
        {"state_dir: none\nredis: embedded\n", 2, "state_dir: none does not go with"},
        {"defaults:\n  backoff:\n    first: 1h\n    max: 30m\n", 4,
         "defaults: backoff.max (30m) is under backoff.first (1h)"},
        {"defaults:\n  backoff: { first: 13h }\n", 2, "backoff.max (12h) is under"},
        {"defaults:\n  backoff: { max: 1h }\nqueues:\n  a: {}\n  b:\n    backoff:\n      first: "
         "2h\n",
         7, "b: backoff.max (1h) is under backoff.first (2h)"},
        {"queues:\n  a:\n    exit_dead: [75]\n", 3, "a: exit status 75 is in exit_dead and in"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
    conf_free(must_load("state_dir: none\n", NULL));
    conf_free(must_load("defaults:\n  backoff: { first: 1h, max: 1h }\n", NULL));
}

static void test_adopt(void **state)
{
    static const struct refusal cases[] = {
        {"queues:\n  a:\n    adopt: x\n", 3, "adopt: settings are expected"},
        {"queues:\n  a:\n    adopt: { zset: x }\n", 3, "a: adopt.unit is missing"},
        {"queues:\n  a:\n    adopt: { unit: s }\n", 3, "a: adopt.zset is missing"},
        {"queues:\n  a:\n    adopt: { bodies: h }\n", 3, "a: adopt.zset is missing"},
        {"queues:\n  a:\n    adopt: { zset: x, unit: h }\n", 3, "is not one of: none, s, ms"},
        {"queues:\n  a:\n    adopt:\n      zset: x\n      unit: s\n      bodies: x\n", 6,
         "a: adopt.bodies: x is the sorted set: name the hash"},
        {"queues:\n  a:\n    adopt: { zset: \"later:{default}:due:a\", unit: ms }\n", 3,
         "belongs to this namespace"},
        {"queues:\n  b:\n    adopt: { zset: x, unit: s }\n  a:\n    adopt: { zset: x, unit: ms }\n",
         5, "a: adopt.zset: queue b adopts x already"},
        {"defaults:\n  adopt: { zset: x, unit: s }\n", 2, "\"adopt\""},
    };
    CLEANUP_BUF struct buf many = BUF_INIT;
    struct conf *conf =
        must_load("queues: { a: { adopt: { zset: z, unit: s, bodies: h } } }", NULL);

    (void)state;
    assert_string_equal(conf->queues[0].adopt_zset, "z");
    assert_int_equal(conf->queues[0].adopt_unit, CONF_ADOPT_S);
    assert_string_equal(conf->queues[0].adopt_bodies, "h");
    conf_free(conf);
    must_refuse_all(cases, COUNT(cases));
    buf_puts(&many, "queues:\n");
    for (int i = 0; i < 65; i++)
        buf_printf(&many, "  q%d: { adopt: { zset: z%d, unit: s } }\n", i, i);
    must_refuse_all(&(struct refusal){buf_str(&many), 66, "a daemon adopts at most 64 queues"}, 1);
}

static const char gates[] = "queues:\n"
                            "  mail:\n"
                            "    lock: \"user:{key}\"\n"
                            "    semaphore: smtp\n"
                            "    rate: gateway\n"
                            "  web: { semaphore: elsewhere }\n"
                            "  plain: {}\n"
                            "limits:\n"
                            "  smtp: { semaphore: 20, on_lost: kill }\n"
                            "  gateway: { rate: 100/1m, burst: 20, algorithm: funnel }\n"
                            "  slow: { rate: 1/1d, algorithm: sliding }\n"
                            "  shut: { semaphore: 0 }\n"
                            "  \"user:{key}:x\": { rate: 5/250ms }\n";

static void assert_limit(const struct conf *conf, const char *name, const char *want)
{
    const struct conf_limit *limit = conf_limit(conf, name);
    CLEANUP_BUF struct buf b = BUF_INIT;

    assert_non_null(limit);
    assert_string_equal(limit->name, name);
    conf_limit_text(limit, &b);
    assert_string_equal(buf_str(&b), want);
}

static void assert_gates(const struct conf *conf, const char *queue, const char *want)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    conf_queue_gates(conf_queue(conf, queue), &b);
    assert_string_equal(buf_str(&b), want);
}

static void test_gates(void **state)
{
    struct conf *conf = must_load(gates, NULL);

    (void)state;
    assert_int_equal(conf->nlimits, 5);
    assert_limit(conf, "smtp", "semaphore 20 kill");
    assert_limit(conf, "shut", "semaphore 0 keep");
    assert_limit(conf, "gateway", "rate gcra 100 60000 20");
    assert_limit(conf, "slow", "rate sliding 1 86400000 1");
    assert_limit(conf, "user:{key}:x", "rate gcra 5 250 1");
    assert_null(conf_limit(conf, "elsewhere"));
    assert_null(conf_limit(conf, ""));
    assert_gates(conf, "mail", "lock=user:{key} sem=smtp rate=gateway");
    assert_gates(conf, "web", "sem=elsewhere");
    assert_gates(conf, "plain", "");
    assert_gates(conf, "unnamed", "");
    conf_free(conf);
    conf = must_load("limits:\n", NULL);
    assert_int_equal(conf->nlimits, 0);
    assert_null(conf_limit(conf, "smtp"));
    conf_free(conf);
}

static void test_limits_refused(void **state)
{
    static const struct refusal cases[] = {
        {"limits: [smtp]\n", 1, "limits: a mapping of NAME: { semaphore: N }"},
        {"limits:\n  smtp: 20\n", 2, "smtp: { semaphore: 20 } or { rate: 100/1m }"},
        {"limits:\n  smtp:\n", 2, "smtp: neither a semaphore nor a rate: write"},
        {"limits:\n  smtp: { burst: 2 }\n", 2, "smtp: neither a semaphore nor a rate"},
        {"limits:\n  smtp:\n    semaphore: 2\n    rate: 1/1s\n", 4,
         "smtp: both a semaphore and a rate: make it two limits"},
        {"limits:\n  smtp:\n    semaphore: 2\n    burst: 2\n", 4, "smtp: burst belongs to a rate"},
        {"limits:\n  smtp:\n    semaphore: 2\n    algorithm: gcra\n", 4,
         "smtp: algorithm belongs to a rate"},
        {"limits:\n  smtp:\n    rate: 2/1s\n    on_lost: kill\n", 4,
         "smtp: on_lost belongs to a semaphore"},
        {"limits:\n  g:\n    rate: 2/1s\n    algorithm: fixed\n    burst: 1\n", 5,
         "g: burst belongs to algorithm: gcra"},
        {"limits:\n  g:\n    algorithm: sliding\n    rate: 10001/1s\n", 4,
         "g: rate: sliding keeps every start"},
        {"limits:\n  smtp: { semaphor: 2 }\n", 2,
         "unknown key \"semaphor\" in a limit: did you mean \"semaphore\"?"},
        {"limits:\n  smtp: { concurrency: 2 }\n", 2, "concurrency: belongs under a queue"},
        {"limits:\n  smtp: { semaphore: 1000001 }\n", 2, "out of range: from 0 to 1000000"},
        {"limits:\n  smtp: { semaphore: -1 }\n", 2, "out of range"},
        {"limits:\n  smtp: { semaphore: 1, on_lost: die }\n", 2, "is not one of: keep, kill"},
        {"limits:\n  g: { rate: 1/1s, algorithm: leaky }\n", 2,
         "is not one of: gcra, sliding, fixed, funnel"},
        {"limits:\n  g: { rate: 1/1s, burst: 0 }\n", 2, "burst: out of range: from 1"},
        {"limits:\n  g: { rate: 100 }\n", 2, "\"100\" is not a rate such as 100/1m"},
        {"limits:\n  g: { rate: 100/60 }\n", 2, "100/60 has no unit: write 100/60s"},
        {"limits:\n  g: { rate: 100/m }\n", 2, "is not a rate such as 100/1m"},
        {"limits:\n  g: { rate: /1m }\n", 2, "is not a rate such as 100/1m"},
        {"limits:\n  g: { rate: -1/1m }\n", 2, "is not a rate such as 100/1m"},
        {"limits:\n  g: { rate: 1/1m/1m }\n", 2, "is not a rate such as 100/1m"},
        {"limits:\n  g: { rate: 010/1m }\n", 2, "a number without leading zeros"},
        {"limits:\n  g: { rate: 1/0s }\n", 2, "out of range: from 1ms"},
        {"limits:\n  g: { rate: 1/40000d }\n", 2, "out of range: from 1ms"},
        {"limits:\n  g: { rate: 1000001/1s }\n", 2, "out of range: from 0 to 1000000"},
        {"limits:\n  a b: { semaphore: 1 }\n", 2, "\"a b\" is no name of a gate"},
        {"limits:\n  \"a\\x07\": { semaphore: 1 }\n", 2, "is no name of a gate"},
        {"limits:\n  \"{key}\": { semaphore: 1 }\n", 2, "put something beside it"},
        {"limits:\n  \"a{key}{key}\": { semaphore: 1 }\n", 2, "in a name once"},
        {"limits:\n  \"a{kye}\": { semaphore: 1 }\n", 2, "nothing but {key} may stand in braces"},
        {"limits:\n  a: { semaphore: 1 }\n  a: { semaphore: 2 }\n", 3, "duplicate key"},
        {"limit:\n  a: { semaphore: 1 }\n", 1, "did you mean \"limits\"?"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_schedules(void **state)
{
    struct conf *conf =
        must_load("schedules:\n"
                  "  nightly: { cron: \"30 2 * * *\", tz: Europe/Berlin, queue: q,\n"
                  "             payload: pay, overlap: skip, semaphore: x,\n"
                  "             then: [a, b], timeout: 90s }\n"
                  "  a: { every: 90s, key: k }\n",
                  NULL);
    static const char *const want[] = {"nightly", "cron", "30 2 * * *", "tz",   "Europe/Berlin",
                                       "queue",   "q",    "overlap",    "skip", "timeout",
                                       "90000ms", "sem",  "x",          "then", "a",
                                       "then",    "b",    "pay",        NULL};
    char **words;
    size_t n;

    (void)state;
    assert_true(conf->has_schedules);
    assert_int_equal(conf->nschedules, 2);
    assert_string_equal(conf->schedules[0].name, "a");
    words = conf_schedule_words(&conf->schedules[1], &n);
    assert_int_equal(n, COUNT(want) - 1);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(words[i], want[i]);
    mem_free_list(words);
    words = conf_schedule_words(&conf->schedules[0], &n);
    assert_int_equal(n, 6);
    assert_string_equal(words[1], "every");
    assert_string_equal(words[2], "90000ms");
    assert_string_equal(words[5], "");
    mem_free_list(words);
    conf_free(conf);
    conf = must_load("schedules: {}\n", NULL);
    assert_true(conf->has_schedules);
    conf_free(conf);
    conf = must_load("queues: {}\n", NULL);
    assert_false(conf->has_schedules);
    conf_free(conf);
}

static void test_schedules_refused(void **state)
{
    static const struct refusal cases[] = {
        {"schedules: [a]\n", 1, "schedules: a mapping of at most 10000 NAME: { settings }"},
        {"schedules:\n  a: 5\n", 2, "a: settings are expected"},
        {"schedules:\n  a: {}\n", 2, "a: neither cron nor every: write { cron:"},
        {"schedules:\n  a:\n    cron: \"@daily\"\n    every: 5s\n", 4, "a: both cron and every"},
        {"schedules:\n  a:\n    cron: \"61 * * * *\"\n", 3,
         "a: cron: column 1: '61' is no minute: write 0 to 59"},
        {"schedules:\n  a: { cron: \"0 0 30 2 *\" }\n", 2, "has no occurrence in nine years"},
        {"schedules:\n  a:\n    cron: \"@daily\"\n    tz: Europe/Berln\n", 4,
         "a: tz: there is no time zone 'Europe/Berln' in /"},
        {"schedules:\n  a: { cron: \"@daily\", tz: \"a\\u202eb\" }\n", 2,
         "'a\\xe2\\x80\\xaeb' in /"},
        {"schedules:\n  a: { every: 0s }\n", 2, "every: out of range: from 1s"},
        {"schedules:\n  a: { every: 5s, tz: UTC }\n", 2, "tz belongs to cron"},
        {"schedules:\n  a: { every: 5s, lock: l, overlap: queue }\n", 2, "take lock out"},
        {"schedules:\n  a: { every: 5s, overlap: never }\n", 2, "is not one of: allow, skip"},
        {"schedules:\n  a.b: { every: 5s }\n", 2, "\"a.b\" is no queue name"},
        {"schedules:\n  -a: { every: 5s }\n", 2, "is no name of a schedule"},
        {"schedules:\n  a:\n    every: 5s\n    until: +7d\n", 4,
         "a: until: \"+7d\" is counted from now"},
        {"schedules:\n  a: { evry: 5s }\n", 2,
         "unknown key \"evry\" in a schedule: did you mean \"every\"?"},
        {"schedules:\n  a: { concurrency: 5 }\n", 2, "concurrency: belongs under a queue"},
        {"schedule: {}\n", 1, "did you mean \"schedules\"?"},
    };

    (void)state;
    must_refuse_all(cases, COUNT(cases));
}

static void test_gates_refused(void **state)
{
    static const struct refusal cases[] = {
        {"queues:\n  mail:\n    lock: a b\n", 3, "lock: \"a b\" is no name of a gate"},
        {"queues:\n  mail:\n    lock:\n", 3, "lock: empty: give a value, or leave the line out"},
        {"queues:\n  mail:\n    semaphore: 20\n    lock: \"user:{id}\"\n", 4,
         "nothing but {key} may stand in braces"},
        {"queues:\n  mail:\n    rate: [a, b]\n", 3, "rate: a list where a text is expected"},
        {"queues:\n  mail:\n    lokc: a\n", 3, "did you mean \"lock\"?"},
        {"queues:\n  mail:\n    on_lost: kill\n", 3, "belongs under the name of a gate in limits:"},
        {"defaults:\n  lock: a\n", 2, "lock: belongs under a queue"},
        {"semaphore: a\n", 1, "semaphore: belongs under a queue"},
        {"queues:\n  mail:\n    timeout: 5s\n    semaphore: gateway\nlimits:\n"
         "  gateway: { rate: 1/1s }\n",
         4, "mail: semaphore: \"gateway\" is a rate in limits: write rate: gateway"},
        {"limits:\n  smtp: { semaphore: 1 }\nqueues:\n  mail:\n    rate: smtp\n", 5,
         "mail: rate: \"smtp\" is a semaphore in limits: write semaphore: smtp"},
    };
    char name[300], text[400];

    (void)state;
    must_refuse_all(cases, COUNT(cases));
    for (size_t n = 256; n <= 257; n++) {
        memset(name, 'x', n);
        name[n] = '\0';
        (void)snprintf(text, sizeof(text), "queues: { mail: { lock: %s } }\n", name);
        if (n == 256)
            conf_free(must_load(text, NULL));
        else
            must_refuse(text, 1, "lock: longer than 256 bytes");
        (void)snprintf(text, sizeof(text), "limits: { %s: { semaphore: 1 } }\n", name);
        if (n == 256)
            conf_free(must_load(text, NULL));
        else
            must_refuse(text, 1, "is no name of a gate: 1 to 256 bytes");
    }
}

static void test_too_many_limits(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_puts(&b, "limits:\n");
    for (int i = 0; i < CONF_LIMITS_MAX; i++)
        buf_printf(&b, "  l%d: { semaphore: 1 }\n", i);
    conf_free(must_load(buf_str(&b), NULL));
    buf_puts(&b, "  more: { semaphore: 1 }\n");
    must_refuse(buf_str(&b), 1, "limits: more than 1000");
}

static void test_gates_in_env(void **state)
{
    static const char *const env[] = {"LATERD_LIMITS_SMTP_SEMAPHORE=7",
                                      "LATERD_LIMITS_USER__KEY__X_RATE=9/1s",
                                      "LATERD_QUEUES_MAIL_LOCK=one", NULL};
    static const struct {
        const char *entry, *says;
    } cases[] = {
        {"LATERD_LIMITS_SMTP_RATE=1/1s", "LATERD_LIMITS_SMTP_RATE: smtp: both a semaphore and"},
        {"LATERD_LIMITS_SMTP_SEMAPHOR=1", "did you mean LATERD_LIMITS_SMTP_SEMAPHORE?"},
        {"LATERD_LIMITS_OTHER_SEMAPHORE=1", "no such setting"},
        {"LATERD_DEFAULTS_LOCK=x", "no such setting"},
        {"LATERD_QUEUES_MAIL_LOCK=", "lock: empty"},
        {"LATERD_QUEUES_MAIL_SEMAPHORE=gateway", "LATERD_QUEUES_MAIL_SEMAPHORE: mail: semaphore:"},
    };
    struct conf *conf = must_load(gates, (char *const *)env);

    (void)state;
    assert_limit(conf, "smtp", "semaphore 7 kill");
    assert_limit(conf, "user:{key}:x", "rate gcra 9 1000 1");
    assert_gates(conf, "mail", "lock=one sem=smtp rate=gateway");
    conf_free(conf);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *entry = mem_strdup(cases[i].entry);
        char *const one[] = {entry, NULL};

        write_file(gates, sizeof(gates) - 1);
        must_refuse_file(one, ERR_CONFIG, 0, cases[i].says);
        free(entry);
    }
}

static void test_env(void **state)
{
    static const char *const env[] = {"PATH=/bin",
                                      "LATERD_CONFIG=/etc/x",
                                      "LATER_REDIS_URL=x",
                                      "LATERD_REDIS=embedded",
                                      "LATERD_NAMESPACE=two",
                                      "LATERD_DEFAULTS_TIMEOUT=2m",
                                      "LATERD_DEFAULTS_BACKOFF_FIRST=3s",
                                      "LATERD_DEFAULTS_EXIT_RETRY=[75, 71]",
                                      "LATERD_DEFAULTS_ENV_PASS=A, B_*",
                                      "LATERD_QUEUES_SEND_MAIL_ATTEMPTS=7",
                                      "LATERD_QUEUES_SEND_MAIL_HANDLER=/bin/true,--x",
                                      "LATERD_QUEUES_B_EXIT_DEAD=",
                                      NULL};
    struct conf *conf = must_load("redis: redis://a\nqueues:\n  send-mail: { timeout: 9s }\n  b:\n",
                                  (char *const *)env);
    const struct conf_queue *mail = conf_queue(conf, "send-mail"), *b = conf_queue(conf, "b");

    (void)state;
    assert_string_equal(conf->redis, "embedded");
    assert_string_equal(conf->namespace, "two");
    assert_string_equal(conf->root, "two");
    assert_true(conf->defaults.timeout == 120000);
    assert_int_equal(conf->defaults.exit_retry.at[1], 71);
    assert_true(mail->timeout == 9000);
    assert_true(mail->backoff_first == 3000);
    assert_true(mail->attempts == 7);
    assert_string_equal(mail->handler.at[1], "--x");
    assert_true(b->timeout == 120000);
    assert_true(b->attempts == 25);
    assert_int_equal(b->exit_dead.n, 0);
    assert_int_equal(b->env_pass.n, 2);
    assert_string_equal(b->env_pass.at[1], "B_*");
    conf_free(conf);
}

static void test_env_refused(void **state)
{
    static const struct {
        const char *entry;
        const char *says;
    } cases[] = {
        {"LATERD_REDDIS=x", "LATERD_REDDIS: no such setting in the environment: did you mean "
                            "LATERD_REDIS?"},
        {"LATERD_DEFAULTS_TIMEOT=5m", "did you mean LATERD_DEFAULTS_TIMEOUT?"},
        {"LATERD_QUEUES_MAIL_TIMEOT=5m", "did you mean LATERD_QUEUES_MAIL_TIMEOUT?"},
        {"LATERD_QUEUES_UNNAMED_THING_ATTEMPTS=5", "for a queue that the file names"},
        {"LATERD_SERVICE_PORT_HTTP=80", "no such setting"},
        {"LATERD_=1", "no such setting"},
        {"LATERD_CONFIGS=1", "no such setting"},
        {"LATERD_CONCURRENCY=x", "LATERD_CONCURRENCY: concurrency: \"x\" is not a whole number"},
        {"LATERD_CONCURRENCY=", "is not a whole number"},
        {"LATERD_STOP_TIMEOUT=30", "LATERD_STOP_TIMEOUT: stop_timeout: 30 has no unit"},
        {"LATERD_STATE_DIR=/a\xff", "not UTF-8"},
        {"LATERD_REDIS=rediss:h", "LATERD_REDIS: redis: not a known address"},
        {"LATERD_QUEUES_MAIL_DEAD_KEEP=5d", "may mean more than one setting"},
        {"LATERD_DEFAULTS_BACKOFF_MAX=1s",
         "LATERD_DEFAULTS_BACKOFF_MAX: defaults: backoff.max (1s)"},
        {"LATERD_DEFAULTS_EXIT_DEAD=1,,2", "not a list of numbers"},
        {"LATERD_A\x1b[2J=1", "LATERD_A\\x1b[2J: no such setting"},
    };
    static const char text[] = "queues:\n  mail:\n  mail-dead:\n";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *entry = mem_strdup(cases[i].entry);
        char *const env[] = {entry, NULL};

        write_file(text, sizeof(text) - 1);
        must_refuse_file(env, ERR_CONFIG, 0, cases[i].says);
        free(entry);
    }
}

static void test_file_kinds(void **state)
{
    char target[96];

    (void)state;
    (void)unlink(file);
    must_refuse_file(NULL, ERR_INPUT, 0, "No such file");
    assert_int_equal(mkdir(file, 0755), 0);
    must_refuse_file(NULL, ERR_CONFIG, 0, "not a regular file");
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(mkfifo(file, 0644), 0);
    must_refuse_file(NULL, ERR_CONFIG, 0, "not a regular file");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(symlink("/dev/null", file), 0);
    must_refuse_file(NULL, ERR_CONFIG, 0, "not a regular file");
    (void)snprintf(target, sizeof(target), "%s.real", file);
    write_file("concurrency: 3\n", 15);
    assert_int_equal(rename(file, target), 0);
    assert_int_equal(symlink(target, file), 0);
    conf_free(conf_load(file, NULL, NULL));
    assert_int_equal(chmod(target, 0666), 0);
    must_refuse_file(NULL, ERR_DENIED, 0, "chmod go-w ");
    assert_int_equal(unlink(target), 0);
    must_refuse_file(NULL, ERR_INPUT, 0, "No such file");
}

static void test_file_rights(void **state)
{
    char cure[96];

    (void)state;
    (void)snprintf(cure, sizeof(cure), "chmod go-w %s", file);
    write_file("concurrency: 3\n", 15);
    assert_int_equal(chmod(file, 0664), 0);
    must_refuse_file(NULL, ERR_DENIED, 0, cure);
    assert_int_equal(chmod(file, 0602), 0);
    must_refuse_file(NULL, ERR_DENIED, 0, cure);
    assert_int_equal(chmod(file, 0600), 0);
    conf_free(conf_load(file, NULL, NULL));
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 12345, 12345), 0);
        must_refuse_file(NULL, ERR_DENIED, 0, "belongs to user 12345");
    } else {
        assert_int_equal(chmod(file, 0), 0);
        must_refuse_file(NULL, ERR_DENIED, 0, "Permission denied");
    }
}

static int64_t cpu_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* What reading a file of the largest size costs that has nothing but a comment: the cheapest of
 * three. A bomb that goes off costs thousands of it. */
static int64_t plain_us(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    int64_t best = INT64_MAX;

    while (b.len < YAML_FILE_BYTES_MAX - 64)
        buf_puts(&b, "# nothing\n");
    write_file(b.data, b.len);
    for (int i = 0; i < 3; i++) {
        int64_t before = cpu_us(), spent;

        conf_free(conf_load(file, NULL, NULL));
        spent = cpu_us() - before;
        best = spent < best ? spent : best;
    }
    return best;
}

#define PLAIN_TIMES 20 /* the dearest takes five */

static void assert_fast(int64_t spent_us, const char *what)
{
    int64_t most_us = PLAIN_TIMES * plain_us();

    if (spent_us > most_us)
        fail_msg("%lld us, more than %lld: %s", (long long)spent_us, (long long)most_us, what);
}

/* `start`, then `text` up to `bytes`, is refused fast, by our processor time. */
static void must_refuse_fast(const char *start, const char *text, size_t bytes, const char *says)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    int64_t before;

    buf_puts(&b, start);
    for (int i = 0; b.len < bytes; i++)
        buf_printf(&b, "%s%d%s", text, i, strcmp(text, "[") == 0 ? "" : "\n");
    if (strcmp(text, "[") == 0)
        memset(b.data, '[', b.len);
    write_file(b.data, b.len);
    before = cpu_us();
    must_refuse_file(NULL, ERR_CONFIG, 0, says);
    assert_fast(cpu_us() - before, says);
}

static void test_bombs(void **state)
{
    static const size_t most = YAML_FILE_BYTES_MAX - 64;

    (void)state;
    must_refuse_fast("", "[", 200000, "nested too deeply");
    must_refuse_fast("", "- &a", YAML_FILE_BYTES_MAX + 1, "1 MiB");
    must_refuse_fast("", "- &a", most, "anchors");
    must_refuse_fast("x: [a", ",&a", most, "anchors");
    must_refuse_fast("x:\n", "- ", most, "too many values");
    must_refuse_fast("", "a", most, "settings are expected");
    must_refuse_fast("x: {a", ",a", most, "too many values");
    must_refuse_fast("", "%TAG !a! tag:x,", most, "directives");
    must_refuse_fast("", "---\n#", most, "second document");
}

/* 60,000 anchors on empty values, all in one line and within the size limit. */
static void test_anchors(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    int64_t before;

    (void)state;
    buf_puts(&b, "[");
    for (int i = 0; i < 60000; i++)
        buf_puts(&b, "&a ,");
    write_file(b.data, b.len);
    before = cpu_us();
    must_refuse_file(NULL, ERR_CONFIG, 1, "anchors");
    assert_fast(cpu_us() - before, "anchors in one line");
}

static void test_duplicates_fast(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    int64_t before;

    (void)state;
    for (int i = 0; i < 9900; i++)
        buf_printf(&b, "k%d: v\n", i);
    buf_puts(&b, "k4: v\n");
    write_file(b.data, b.len);
    before = cpu_us();
    must_refuse_file(NULL, ERR_CONFIG, 9901, "first given in line 5");
    assert_fast(cpu_us() - before, "duplicates");
}

static void test_huge_file(void **state)
{
    (void)state;
    write_file("#", 1);
    assert_int_equal(truncate(file, 1L << 30), 0);
    must_refuse_file(NULL, ERR_CONFIG, 1, "larger than 1 MiB");
}

/* The printed configuration can be loaded again and means the same. */
static void must_round_trip(const struct conf *conf)
{
    CLEANUP_BUF struct buf first = BUF_INIT;
    CLEANUP_BUF struct buf second = BUF_INIT;
    CLEANUP_BUF struct buf diff = BUF_INIT;
    struct conf *again;

    conf_print(conf, &first);
    again = must_load(buf_str(&first), NULL);
    conf_print(again, &second);
    assert_string_equal(buf_str(&first), buf_str(&second));
    conf_needs_restart(conf, again, &diff);
    assert_string_equal(buf_str(&diff), "");
    assert_int_equal(conf->nqueues, again->nqueues);
    for (size_t i = 0; i < conf->nqueues; i++) {
        const struct conf_strs *was = &conf->queues[i].handler, *is = &again->queues[i].handler;

        assert_int_equal(was->n, is->n);
        for (size_t k = 0; k < was->n; k++)
            assert_string_equal(was->at[k], is->at[k]);
        buf_clear(&diff);
        conf_queue_gates(&conf->queues[i], &diff);
        assert_gates(again, conf->queues[i].name, buf_str(&diff));
    }
    assert_int_equal(conf->nlimits, again->nlimits);
    for (size_t i = 0; i < conf->nlimits; i++) {
        buf_clear(&diff);
        conf_limit_text(&conf->limits[i], &diff);
        assert_limit(again, conf->limits[i].name, buf_str(&diff));
    }
    conf_free(again);
}

static void test_round_trip(void **state)
{
    static const char *const texts[] = {
        "",
        full,
        "defaults:\n  handler: [/x, y]\n  timeout: 90s\n  backoff: { factor: 1.234, max: 36h }\n"
        "queues:\n  a: { handler: [], timeout: none, backoff: { factor: 10.01 } }\n  b: {}\n",
        "handlers_dir: \"/a b#c: d\"\nstate_dir: '/it''s \"x\" \\'\nredis: 'unix:/x: y'\n",
        "queues:\n  a: { handler: [\"/gr\\u00f6\\u00dfe\", \"\\n\\t\\x01\\x7f\", "
        "\"\\u2028\\ufeff\", "
        "\"\\U0001f600\", '', ' x ', '- a', '#', 'a: b', '@', '[', ',', '*', '&', '!', '%', '|', "
        "'<<', '~', \"it's\", '---', '...', '?', ':', 'x:', '\\'] }\n",
        "queues: { on: {attempts: 2}, 'null': {attempts: 3}, 'y': {exit_retry: []} }\n",
        gates,
        "limits: { '<': {semaphore: 1}, 'a:': {semaphore: 2}, \"\\u00e4'\\\"\": {rate: 1/1d}, "
        "'#': {semaphore: 0}, '-': {rate: 0/1ms, burst: 3}, '[,]}': {semaphore: 4} }\n",
    };
    char text[400] = "limits: { \"";

    (void)state;
    for (int i = 0; i < 128; i++) /* the longest name that is allowed */
        (void)strcat(text, "\xc3\xa4");
    (void)strcat(text, "\": { semaphore: 1 } }\n");
    {
        struct conf *conf = must_load(text, NULL);

        must_round_trip(conf);
        conf_free(conf);
    }
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct conf *conf = must_load(texts[i], NULL);

        must_round_trip(conf);
        conf_free(conf);
    }
}

static void test_print_differs_only(void **state)
{
    struct conf *conf =
        must_load("queues: { b: { timeout: 1h, weight: 9, backoff: {max: 1d} }, a: {} }\n", NULL);
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    conf_print(conf, &b);
    assert_non_null(strstr(buf_str(&b), "\nqueues:\n  a: {}\n  b:\n    weight: 9\n    backoff:\n"
                                        "      max: 1d\n"));
    assert_non_null(strstr(buf_str(&b), "\n  # handler: ["));
    conf_free(conf);
    conf = must_load(gates, NULL);
    buf_clear(&b);
    conf_print(conf, &b);
    assert_non_null(strstr(buf_str(&b), "\nlimits:\n  gateway:\n    rate: 100/1m\n    burst: 20\n"
                                        "  shut:\n    semaphore: 0\n"));
    assert_non_null(strstr(buf_str(&b), "\n  mail:\n    lock: \"user:{key}\"\n    semaphore: smtp\n"
                                        "    rate: gateway\n"));
    conf_free(conf);
}

static void test_needs_restart(void **state)
{
    struct conf *was = must_load("redis: embedded\nlog_level: info\n", NULL);
    struct conf *is = must_load("concurrency: 3\nlog_level: warn\ndefaults: {attempts: 1}\n", NULL);
    struct conf *same = must_load("redis: embedded\nstop_timeout: 1s\n", NULL);
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    conf_needs_restart(was, is, &b);
    assert_string_equal(buf_str(&b), "redis, concurrency");
    buf_clear(&b);
    conf_needs_restart(was, same, &b);
    assert_string_equal(buf_str(&b), "");
    conf_free(was);
    conf_free(is);
    conf_free(same);
}

/* A reload is compared with the settings in force, not with the last file. */
static void test_keep_fixed(void **state)
{
    struct conf *was = must_load("redis: embedded\nconcurrency: 3\nlog_level: info\n", NULL);
    struct conf *is = must_load("concurrency: 5\nlog_level: warn\nstop_timeout: 7s\n", NULL);
    struct conf *next = must_load("concurrency: 5\n", NULL);
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    conf_keep_fixed(was, is);
    conf_free(was);
    assert_string_equal(is->redis, "embedded");
    assert_int_equal(is->concurrency, 3);
    assert_int_equal(is->stop_timeout, 7000);
    conf_needs_restart(is, next, &b);
    assert_string_equal(buf_str(&b), "redis, concurrency");
    conf_free(is);
    conf_free(next);
}

/* A long path leaves bytes for the message. */
static void test_long_path(void **state)
{
    struct err err = ERR_INIT;
    char path[600];

    (void)state;
    memset(path, 'x', sizeof(path));
    for (size_t i = 0; i < sizeof(path); i += 100)
        path[i] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_null(conf_load(path, NULL, &err));
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "No such file"));
}

/* All errors at once, by line; what only follows from another one is not among them. */
static void test_all_errors(void **state)
{
    static const struct {
        int line;
        const char *says;
    } wanted[] = {
        {1, "did you mean \"handlers_dir\"?"},
        {2, "concurrency: \"many\""},
        {5, "timeout: 5 has no unit"},
        {6, "defaults: backoff.max (1m) is under"},
        {8, "smtp: settings are expected"},
        {9, "semaphore: \"x\""},
        {11, "mode: \"strem\""},
        {12, "\"a b\" is no queue name"},
        {13, "unknown key \"foo\""},
        {13, "pids: out of range"},
        {0, "LATERD_CONCURENCY"},
        {0, "LATERD_FOO"},
    };
    char *env[] = {(char *)(uintptr_t) "LATERD_FOO=1", (char *)(uintptr_t) "LATERD_CONCURENCY=1",
                   NULL};
    const char *text = "handler_dir: /x\n"
                       "concurrency: many\n"
                       "defaults:\n"
                       "  keep: 1s\n"
                       "  timeout: 5\n"
                       "  backoff: { first: 1h, max: 1m }\n"
                       "limits:\n"
                       "  smtp: 20\n"
                       "  disk: { semaphore: x }\n"
                       "queues:\n"
                       "  mail: { mode: strem, semaphore: disk }\n"
                       "  a b: { timeout: 1s }\n"
                       "  web: { foo: 1, pids: -3 }\n";
    struct conf_errors e = {.n = 0};

    (void)state;
    write_file(text, strlen(text));
    assert_int_equal(conf_find_errors(file, env, &e), -1);
    for (size_t i = 0; i < e.n; i++)
        if (i >= COUNT(wanted) || e.at[i].line != wanted[i].line ||
            (wanted[i].line > 0 && strstr(e.at[i].text, wanted[i].says) == NULL))
            fail_msg("error %zu, line %d: %s", i, e.at[i].line, e.at[i].text);
    assert_int_equal(e.n, COUNT(wanted));
    conf_errors_done(&e);
    write_file("concurrency: 3\n", 15);
    assert_int_equal(conf_find_errors(file, NULL, &e), 0);
    write_file("a: [\n", 5);
    assert_int_equal(conf_find_errors(file, NULL, &e), -1);
    assert_int_equal(e.n, 1);
    conf_errors_done(&e);
}

/* Only so many are told; the others are counted. */
static void test_very_many_errors(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct conf_errors e = {.n = 0};

    (void)state;
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "wrong%d: 1\n", i);
    write_file(text.data, text.len);
    assert_int_equal(conf_find_errors(file, NULL, &e), -1);
    assert_int_equal(e.n, CONF_ERRORS_MAX);
    assert_int_equal(e.more, 100 - CONF_ERRORS_MAX);
    assert_int_equal(e.at[0].line, 1);
    conf_errors_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_scalar_rule),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_yaml_features),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_later_words),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_secret_unsaid),
        cmocka_unit_test(test_queues),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_limits_refused),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_schedules_refused),
        cmocka_unit_test(test_gates_refused),
        cmocka_unit_test(test_too_many_limits),
        cmocka_unit_test(test_gates_in_env),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_env_refused),
        cmocka_unit_test(test_file_kinds),
        cmocka_unit_test(test_file_rights),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_duplicates_fast),
        cmocka_unit_test(test_huge_file),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_print_differs_only),
        cmocka_unit_test(test_needs_restart),
        cmocka_unit_test(test_keep_fixed),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_all_errors),
        cmocka_unit_test(test_very_many_errors),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
