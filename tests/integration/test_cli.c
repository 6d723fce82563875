/*
 * The built command `later` ($LATER_BUILD_DIR/later) against a real redis-server: every verb, what
 * it prints, how it exits; bad input; no Redis. The test plays the worker by calling the library.
 *
 * One long file, since all cases share one server, the played worker and the reading of output.
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
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "command.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define DEADLINE_MS 60000

static char epoch[32]; /* of the played worker */

/* ---- helpers */

/* No byte of the output controls a terminal. */
static void assert_no_controls(const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++) {
        unsigned char c = (unsigned char)b->data[i];

        if ((c < 0x20 && c != '\n') || c == 0x7f)
            fail_msg("control byte 0x%02x at %zu: %s", c, i, b->data);
    }
}

/* The only line of output, as JSON; the caller frees it. */
static json_t *out_json(void)
{
    json_error_t e;
    json_t *value = json_loadb(buf_str(&out), out.len, 0, &e);

    if (value == NULL)
        fail_msg("not JSON (%s): %s", e.text, buf_str(&out));
    return value;
}

static const char *field(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (text == NULL)
        fail_msg("no text '%s' in: %s", name, buf_str(&out));
    return text;
}

static json_int_t number(const json_t *object, const char *name)
{
    if (!json_is_integer(json_object_get(object, name)))
        fail_msg("no number '%s' in: %s", name, buf_str(&out));
    return json_integer_value(json_object_get(object, name));
}

static size_t lines_of(const struct buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

/* Add a job with one more option; puts its id in id. */
static void add(char id[13], const char *queue, const char *payload, const char *option,
                const char *value)
{
    assert_int_equal(run("add", queue, payload, option, value, NULL), 0);
    assert_int_equal(out.len, 13);
    assert_int_equal(out.data[0], 'j');
    memcpy(id, out.data, 12);
    id[12] = '\0';
}

static void register_odd_worker(void)
{
    struct reply *r = test_redis_call(&redis, "FCALL", "later_v1_register", "1", ROOT, "0", "me",
                                      "1", "0", "4", "host", "box\033[2J", "pid", "4711", "version",
                                      "0.1", "queues", "mail,work", "0", "0", NULL);

    (void)snprintf(epoch, sizeof(epoch), "%s", reply_str(reply_at(r, 1)));
    assert_true(epoch[0] != '\0');
    reply_free(r);
}

/* Claim one job of the queue; puts its start number in start. */
static void claim(const char *queue, char start[24])
{
    struct reply *r = test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0",
                                      "1", "0", "1", queue, "1", "1048576", "0", NULL);
    const struct reply *one = reply_at(reply_at(r, 3), 0);

    (void)snprintf(start, 24, "%lld", (long long)reply_int(reply_at(one, 2)));
    assert_int_equal(reply_len(reply_at(one, 6)), 12);
    reply_free(r);
}

/* End the job with this verb: done or dead. It is kept for 60 s, or as one of 60,000 dead jobs. */
static void finish(const char *id, const char *start, const char *verb, const char *queue,
                   const char *code, const char *tail)
{
    struct reply *r = test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0",
                                      "1", "1", id, start, verb, queue, "60000", code,
                                      "what\033happened", tail, "0", "0", NULL);

    assert_true(reply_is(reply_at(reply_at(r, 2), 0), "ok"));
    reply_free(r);
}

/* Make a job that has died with this exit status; puts its id in id. */
static void make_dead(char id[13], const char *queue, const char *code)
{
    char start[24];

    add(id, queue, "x", NULL, NULL);
    claim(queue, start);
    finish(id, start, "dead", queue, code, "bye\n");
}

static int begin(void **state)
{
    (void)flush_all(state);
    register_odd_worker();
    return 0;
}

static char *write_file(const char *name, const char *text, mode_t mode)
{
    static char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", redis.dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    (void)chmod(path, mode);
    return path;
}

/* ---- the command line */

static void test_help_and_version(void **state)
{
    CLEANUP_FREE char *all = NULL;
    const char *line;
    char verb[32];
    int verbs = 0;

    (void)state;
    assert_int_equal(run("help", NULL), 0);
    assert_says(&out, "usage: later");
    all = mem_strdup(buf_str(&out));
    for (line = strstr(all, "\n  "); line[1] == ' '; line = strchr(line + 1, '\n')) {
        if (line[3] == ' ' || sscanf(line, " %31s", verb) != 1 || strcmp(verb, "help") == 0)
            continue;
        assert_int_equal(run(verb, "--help", NULL), 0);
        assert_says(&out, "usage: later ");
        assert_says(&out, verb);
        assert_int_equal(run("help", verb, NULL), 0);
        assert_says(&out, verb);
        verbs++;
    }
    assert_true(verbs > 25);
    assert_int_equal(run("help", "help", NULL), 0);
    assert_says(&out, "Options of every verb");
    assert_int_equal(run("--version", NULL), 0);
    assert_says(&out, "later ");
}

static void test_wrong_command_lines(void **state)
{
    (void)state;
    assert_int_equal(run(NULL), 64);
    assert_int_equal(run("canel", "x", NULL), 64);
    assert_says(&err, "did you mean cancel?");
    assert_int_equal(run("add", "mail", "x", "--prority", "3", NULL), 64);
    assert_says(&err, "did you mean --priority?");
    assert_int_equal(run("add", "mail", "x", "--in", NULL), 64);
    assert_says(&err, "--in needs a value");
    assert_int_equal(run("add", "mail", "x", "--json=1", NULL), 64);
    assert_says(&err, "takes no value");
    assert_int_equal(run("add", NULL), 64);
    assert_int_equal(run("add", "a", "b", "c", NULL), 64);
    assert_int_equal(run("add", "mail", "-x", NULL), 64);
    assert_says(&err, "behind --");
    assert_int_equal(run("ad\033[2Jd", NULL), 64);
    assert_no_controls(&err);
    assert_int_equal(run("ls", "mail", "--state", "praked", NULL), 64);
    assert_says(&err, "did you mean parked?");
    assert_int_equal(run("ls", "mail", "--state", "ded", NULL), 64);
    assert_says(&err, "did you mean dead?");
    assert_int_equal(run("ls", "mail", "--state", "sleeping", NULL), 64);
    assert_says(&err, "there are due, parked, running, dead, done, all (");
    assert_int_equal(run("ls", "mail", "--state=", NULL), 64);
    assert_int_equal(run("ls", "mail", "--state", "due|dead", NULL), 64);
    assert_int_equal(run("ls", "mail", "--state", "\033[2J", NULL), 64);
    assert_no_controls(&err);
    assert_int_equal(run("add", "mail", "x", "--unique", "k", "--unique-mode", "mvoe", NULL), 64);
    assert_says(&err, "--unique-mode 'mvoe': did you mean move?");
    assert_int_equal(run("limits", "set", "a", "rate", "5/2h", "--algorithm", "slidng", NULL), 64);
    assert_says(&err, "did you mean sliding?");
    assert_int_equal(run("limits", "set", "a", "semaphore", "1", "--on-lost", "kil", NULL), 64);
    assert_says(&err, "did you mean kill?");
    assert_int_equal(run("help", "canel", NULL), 64);
    assert_says(&err, "did you mean cancel?");
    assert_int_equal(run("--jsno", "stats", NULL), 64);
    assert_says(&err, "did you mean --json?");
    assert_int_equal(run("reschedule", "jabc", NULL), 64);
    assert_int_equal(run("retry", "jabc", "--spread", "5m", NULL), 64);
    assert_int_equal(run("retry", "work", NULL), 66);
    assert_says(&err, "of a queue write --all, --reason TEXT or --key KEY");
    assert_int_equal(run("retry", "j00000000000", "work", NULL), 66);
    assert_int_equal(run("schedule", NULL), 64);
    assert_says(&err, "something is missing (later schedule --help tells what it takes)\n");
    assert_int_equal(run("stats", "mail", "cron", NULL), 64);
    assert_says(&err, "there is no place for 'cron'; a value with spaces needs quotes: write later "
                      "stats ");
    assert_int_equal(run("workers", "x", NULL), 64);
    assert_says(&err, "write later workers (later workers --help tells more)\n");
    assert_int_equal(run("quiet", NULL), 64);
    assert_int_equal(run("--namespace", "a b", "stats", NULL), 64);
    assert_int_equal(run("limits", "sett", "smtp", "semaphore", "1", NULL), 64);
    assert_says(&err, "did you mean set?");
    assert_int_equal(run("limits", "set", "smtp", NULL), 64);
    assert_says(&err, "later limits set NAME semaphore N");
    assert_int_equal(run("limits", "delete", NULL), 64);
    assert_int_equal(run("limits", "--burst", "2", NULL), 64);
    assert_int_equal(run("throttle", NULL), 64);
}

/* ---- which server */

static void test_no_redis(void **state)
{
    (void)state;
    assert_int_equal(run("--redis", "unix:/nonexistent/r.sock", "add", "mail", "x", NULL), 69);
    assert_says(&err, "redis at unix:/nonexistent/r.sock (from --redis)");
    assert_says(&err, "start that server");
    assert_int_equal(out.len, 0);
    assert_int_equal(run("--redis", "redis://h", "--tls-ca", "/x", "stats", NULL), 78);
    assert_says(&err, "write rediss://");
    assert_int_equal(run("--redis", "redis://u:secret@h", "stats", NULL), 78);
    assert_int_equal(run("--redis", "redis://h", "--config", "x", "stats", NULL), 64);
    assert_int_equal(run("--config", "/nonexistent/x.yaml", "stats", NULL), 66);
    (void)unsetenv("LATER_REDIS_URL");
    (void)setenv("LATERD_REDIS", "unix:/nonexistent/d.sock", 1);
    assert_int_equal(run("stats", NULL), 69);
    assert_says(&err, "unix:/nonexistent/d.sock (from LATERD_REDIS)");
    (void)setenv("LATERD_CONFIG", "/nonexistent/laterd.yaml", 1);
    assert_int_equal(run("stats", NULL), 66);
    (void)unsetenv("LATERD_CONFIG");
    (void)unsetenv("LATERD_REDIS");
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
}

static void test_configuration_and_password(void **state)
{
    struct test_redis locked;
    char text[512], *path;

    (void)state;
    (void)setenv("REDISCLI_AUTH", "s3cret", 1);
    /* Not by an argument of the server: the helper's own connections bring no password. */
    test_redis_start(&locked, NULL);
    reply_free(test_redis_call(&locked, "CONFIG", "SET", "requirepass", "s3cret", NULL));
    assert_int_equal(run("--redis", locked.url, "stats", NULL), 0);
    (void)unsetenv("REDISCLI_AUTH");
    assert_int_equal(run("--redis", locked.url, "stats", NULL), 77);
    assert_says(&err, "NOAUTH");
    path = write_file("pass", "s3cret\n", 0600);
    (void)snprintf(text, sizeof(text), "redis: %s\nnamespace: other\nredis_password_file: %s\n",
                   locked.url, path);
    path = write_file("conf.yaml", text, 0600);
    assert_int_equal(run("--config", path, "add", "mail", "x", NULL), 0);
    /* The file that --config names wins over LATER_REDIS_URL, for the server and the namespace. */
    assert_int_equal(run("--config", path, "--json", "stats", NULL), 0);
    assert_says(&out, "\"jobs\":1");
    assert_int_equal(run("--config", path, "--namespace", "third", "--json", "stats", NULL), 0);
    assert_says(&out, "\"jobs\":0");
    assert_int_equal(run("--config", path, "show", "j00000000000", NULL), 66);
    assert_says(&err, "namespace other");
    assert_says(&err, "conf.yaml");
    test_redis_stop(&locked);
}

/* A daemon whose reload was refused runs on, and so do the commands. */
static void test_a_broken_file_takes_no_command_away(void **state)
{
    static const char *const broken[] = {
        "redis_timeout: 5\n",
        "colour: red\n",
        "concurrency: many\n",
        "stop_timeout: -1s\n",
        "queues:\n  mail: { mode: steam }\n",
        "queues:\n  'a b': {}\n",
        "queues: [mail]\n",
        "limits:\n  smtp: 20\n",
        "defaults:\n  attempts: 0\n",
        "queues:\n  mail: { lock: \"x\n",
        "queues:\n\tmail: {}\n",
        "a: &x 1\n",
        "handlers_dir: [\n",
    };
    static const char *const lost[] = {"redsi: x\n", "a: [\nredis: redis://h\n"};
    char text[512], *path;

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        (void)snprintf(text, sizeof(text), "redis: %s\nnamespace: other\n%s", redis.url, broken[i]);
        path = write_file("broken.yaml", text, 0600);
        if (run("--config", path, "add", "mail", "x", NULL) != 0)
            fail_msg("%s: %s", broken[i], buf_str(&err));
        assert_says(&err, "later: warning: ");
        assert_says(&err, "broken.yaml:");
        assert_int_equal(run("--config", path, "show", "j00000000000", NULL), 66);
        assert_says(&err, "namespace other");
    }
    /* It does not say which server is meant. */
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        path = write_file("broken.yaml", lost[i], 0600);
        assert_int_equal(run("--config", path, "stats", NULL), 78);
        assert_says(&err, "broken.yaml:");
    }
}

static void test_user_file(void **state)
{
    char dir[96], text[160];

    (void)state;
    (void)snprintf(dir, sizeof(dir), "%s/.config", redis.dir);
    (void)mkdir(dir, 0700);
    (void)snprintf(text, sizeof(text), "redis: %s\nnamespace: mine\n", redis.url);
    (void)write_file(".config/later.yaml", text, 0600);
    (void)unsetenv("LATER_REDIS_URL");
    assert_int_equal(run("add", "mail", "x", NULL), 0);
    assert_int_equal(run("--namespace", "mine", "--json", "stats", NULL), 0);
    assert_says(&out, "\"jobs\":1");
    (void)write_file(".config/later.yaml", "redsi: x\n", 0600);
    assert_int_equal(run("stats", NULL), 78);
    assert_says(&err, "later.yaml:1");
    (void)snprintf(text, sizeof(text), "%s/later.yaml", dir);
    (void)unlink(text);
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
}

/* Be a server that takes the first call and hangs up, then answers the second. */
static int lose_one_reply(int listener)
{
    static const char answer[] =
        "*3\r\n$12\r\nj0123456789a\r\n$8\r\nrepeated\r\n:1767225600000\r\n";
    char calls[2][4096];
    ssize_t n[2];

    for (int i = 0; i < 2; i++) {
        int fd = accept(listener, NULL, NULL);

        n[i] = recv(fd, calls[i], sizeof(calls[i]), 0);
        if (i == 1)
            (void)send(fd, answer, sizeof(answer) - 1, 0);
        (void)close(fd);
    }
    return n[0] > 0 && n[0] == n[1] && memcmp(calls[0], calls[1], (size_t)n[0]) == 0 ? 0 : 1;
}

static void test_add_survives_a_lost_reply(void **state)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    CLEANUP_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[128];
    int status;
    pid_t pid;

    (void)state;
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/fake.sock", redis.dir);
    (void)snprintf(url, sizeof(url), "unix:%s", addr.sun_path);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(listener, 4), 0);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(lose_one_reply(listener));
    }
    assert_int_equal(run("--redis", url, "--json", "add", "mail", "x", NULL), 0);
    assert_says(&out, "\"id\":\"j0123456789a\",\"status\":\"added\"");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- add and show */

static void test_an_add(void **state)
{
    char *const from_stdin[] = {later, (char *)"add", (char *)"mail", (char *)"-", NULL};
    char *const no_payload[] = {later, (char *)"add", (char *)"mail", NULL};
    static const char bytes[] = "a\0b\n\xff\033[31m";
    char id[13];
    json_t *j;

    (void)state;
    assert_int_equal(run("--json", "add", "mail", "hello", "--in", "1h", "--priority", "2", "--key",
                         "user:42", "--attempts", "3", "--timeout", "5m", "--expire", "2h",
                         "--keep", "1d", "--trace",
                         "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", NULL),
                     0);
    j = out_json();
    assert_string_equal(field(j, "status"), "added");
    assert_true(number(j, "due_ms") > 3600000);
    assert_int_equal(run("show", field(j, "id"), "--json", NULL), 0);
    json_decref(j);
    j = out_json();
    assert_string_equal(field(j, "queue"), "mail");
    assert_string_equal(field(j, "state"), "waiting");
    assert_string_equal(field(j, "payload"), "hello");
    assert_string_equal(field(j, "key"), "user:42");
    assert_int_equal(number(j, "priority"), 2);
    assert_int_equal(number(j, "attempts_max"), 3);
    assert_int_equal(number(j, "timeout_ms"), 300000);
    assert_int_equal(number(j, "expire_ms"), 7200000);
    assert_int_equal(number(j, "keep_ms"), 86400000);
    json_decref(j);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_argv(i == 0 ? from_stdin : no_payload, bytes, sizeof(bytes) - 1), 0);
        memcpy(id, out.data, 12);
        id[12] = '\0';
        assert_int_equal(run("show", id, "--payload", NULL), 0);
        assert_int_equal(out.len, sizeof(bytes) - 1);
        assert_memory_equal(out.data, bytes, sizeof(bytes) - 1);
    }
    assert_int_equal(run("show", id, NULL), 0);
    assert_no_controls(&out);
    assert_says(&out, "\\x1b[31m");
    assert_says(&out, "10 bytes");
    assert_int_equal(run("show", "--json", id, NULL), 0);
    j = out_json();
    assert_string_equal(field(j, "payload_base64"), "YQBiCv8bWzMxbQ==");
    json_decref(j);
    assert_int_equal(run("add", "mail", "--", "-x", NULL), 0);
}

static void test_add_with_token_and_large(void **state)
{
    size_t n = 700 * 1000;
    CLEANUP_FREE char *big = malloc(n);
    char *const argv[] = {later, (char *)"add", (char *)"mail", NULL};
    char first[13], again[13];

    (void)state;
    memset(big, 0xfe, n);
    add(first, "mail", "x", "--token", "t1");
    add(again, "mail", "x", "--token", "t1");
    assert_string_equal(first, again);
    assert_int_equal(run("add", "mail", "y", "--token", "t1", NULL), 65);
    assert_int_equal(run_argv(argv, big, n), 0);
    memcpy(first, out.data, 12);
    assert_int_equal(run("show", first, "--payload", NULL), 0);
    assert_int_equal(out.len, n);
    assert_memory_equal(out.data, big, n);
    assert_int_equal(run("show", first, NULL), 0);
    assert_says(&out, "--payload has them all");
}

/* Explain prints the sentence and the facts. Text of a host or a reason controls no terminal. */
/* A queue is explained by what would start next. */
static void test_explain_queue(void **state)
{
    char id[13], start[24];
    json_t *j;

    (void)state;
    make_dead(id, "mail", "9");
    assert_int_equal(run("explain", "mail", NULL), 0);
    assert_says(&out, "mail: 0 waiting, 0 of them parked, 0 running, 1 dead; no job waits\n");
    for (int i = 0; i < 30; i++)
        add(id, "mail", "x", "--in=1h", "--priority=0");
    assert_int_equal(run("explain", "mail", NULL), 0);
    assert_says(&out, "mail: 30 waiting, 0 of them parked, 0 running, 1 dead; the next one:\n");
    assert_says(&out, "it is not due for ");
    add(id, "mail", "x", "--lock", "door");
    claim("mail", start);
    add(id, "mail", "x", "--lock", "door");
    reply_free(test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "1", "8",
                               "0", "1", "mail", "8", "1048576", "0", NULL));
    assert_int_equal(run("explain", "mail", NULL), 0);
    assert_says(&out, "mail: 31 waiting, 1 of them parked, 1 running, 1 dead; the next one:\n");
    assert_says(&out, "lock door");
    add(id, "mail", "x", NULL, NULL);
    reply_free(
        test_redis_call(&redis, "FCALL", "later_pause", "1", ROOT, "mail", "by", "eve", NULL));
    assert_int_equal(run("explain", "mail", "--json", NULL), 0);
    j = out_json();
    assert_int_equal(number(j, "parked"), 1);
    assert_string_equal(field(json_object_get(j, "next"), "id"), id);
    assert_string_equal(field(json_object_get(j, "next"), "waits_for"), "pause");
    json_decref(j);
    reply_free(test_redis_call(&redis, "FCALL", "later_resume", "1", ROOT, "mail", NULL));
    assert_int_equal(run("explain", "mial", NULL), 66);
    assert_says(&err, "did you mean mail?");
}

static void test_explain(void **state)
{
    char id[13], start[24];
    json_t *j;

    (void)state;
    add(id, "mail", "x", "--in", "1h");
    assert_int_equal(run("explain", id, NULL), 0);
    assert_says(&out, "(mail, waiting): it is not due for ");
    assert_says(&out, "due               20");
    assert_int_equal(run("explain", id, "--json", NULL), 0);
    j = out_json();
    assert_string_equal(field(j, "id"), id);
    assert_string_equal(field(j, "waits_for"), "time");
    assert_true(number(j, "due_ms") > number(j, "now_ms"));
    json_decref(j);
    assert_int_equal(run("run-now", id, NULL), 0);
    claim("mail", start);
    assert_int_equal(run("explain", id, NULL), 0);
    assert_says(&out, "(mail, running): it runs on box");
    assert_no_controls(&out);
    assert_int_equal(run("explain", id, "--json", NULL), 0);
    j = out_json();
    assert_int_equal(number(j, "pid"), 4711);
    json_decref(j);
    finish(id, start, "dead", "mail", "7", "bye\n");
    assert_int_equal(run("explain", id, NULL), 0);
    assert_says(&out, "(exit status 7): what happened; later retry runs it again at once");
    assert_int_equal(run("explain", "j00000000000", NULL), 66);
    assert_int_equal(run("explain", "mail@nobody", NULL), 66);
    assert_int_equal(run("explain", NULL), 64);
    /* A name that means something to a shell is not printed in a command that one could copy. */
    assert_int_equal(run("limits", "set", "$(id)", "semaphore", "1", NULL), 0);
    add(id, "mail", "x", "--sem", "$(id)");
    assert_int_equal(run("limits", "delete", "$(id)", NULL), 0);
    reply_free(test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "1",
                               "0", "1", "mail", "1", "1048576", "0", NULL));
    assert_int_equal(run("explain", id, NULL), 0);
    assert_says(
        &out,
        "no semaphore $(id) is defined (later limits set defines one); nobody waits before it");
}

static void test_add_refusals(void **state)
{
    (void)state;
    assert_int_equal(run("add", "no queue", "x", NULL), 65);
    assert_says(&err, "[ELATER_QUEUE]");
    assert_int_equal(run("add", "mail", "x", "--in", "5", NULL), 65);
    assert_int_equal(run("add", "mail", "x", "--at", "tomorrow", NULL), 65);
    assert_int_equal(run("add", "mail", "x", "--priority", "10", NULL), 65);
    assert_int_equal(run("add", "mail", "x", "--key", "a b", NULL), 65);
    assert_int_equal(run("show", "nonsense", NULL), 66);
    assert_int_equal(run("show", "j00000000000", NULL), 66);
    assert_says(&err, "namespace default, redis at unix:");
    assert_int_equal(run("--json", "stats", NULL), 0);
    assert_says(&out, "\"jobs\":0");
}

/* ---- gates */

static void test_limits(void **state)
{
    json_t *j;

    (void)state;
    assert_int_equal(run("limits", NULL), 0);
    assert_int_equal(run("limits", "set", "smtp", "semaphore", "20", NULL), 0);
    assert_string_equal(buf_str(&out), "smtp set\n");
    assert_int_equal(
        run("limits", "set", "gateway", "rate", "100/1m", "--burst", "20", "--json", NULL), 0);
    assert_string_equal(buf_str(&out), "{\"name\":\"gateway\",\"status\":\"set\"}\n");
    assert_int_equal(run("limits", "set", "a:{key}", "rate", "5/2h", "--algorithm", "fixed", NULL),
                     0);
    assert_int_equal(run("limits", "set", "disk", "rate", "3/1s", NULL), 0);
    assert_int_equal(run("limits", "set", "disk", "rate", "4/1s", NULL), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(run("limits", "set", "disk", "semaphore", "1", "--on-lost", "kill", NULL), 0);
    assert_string_equal(buf_str(&out), "disk set\n");
    assert_string_equal(buf_str(&err), "later: disk was a rate until now (rate gcra 4 1000 1): who "
                                       "needs it as one waits for ever\n");
    assert_int_equal(run("limits", NULL), 0);
    assert_int_equal(lines_of(&out), 5);
    assert_says(&out, "ON LOST");
    assert_says(&out, "a:{key}  rate           5   2h         fixed");
    assert_says(&out, "disk     semaphore      1                         kill");
    assert_says(&out, "gateway  rate         100   1m     20  gcra");
    assert_int_equal(run("limits", "delete", "disk", NULL), 0);
    assert_string_equal(buf_str(&out), "disk deleted\n");
    assert_int_equal(run("limits", "delete", "disk", NULL), 66);
    assert_says(&err, "there is no limit disk");
    assert_int_equal(run("limits", "delete", "a:{key}", NULL), 0);
    assert_int_equal(run("limits", "delete", "gateway", NULL), 0);
    assert_int_equal(run("--json", "limits", NULL), 0);
    j = out_json();
    assert_string_equal(field(j, "name"), "smtp");
    assert_string_equal(field(j, "kind"), "semaphore");
    assert_string_equal(field(j, "on_lost"), "keep");
    assert_int_equal(number(j, "limit"), 20);
    json_decref(j);
    /* An unreadable definition is shown, and breaks nothing. */
    reply_free(test_redis_call(&redis, "HSET", ROOT ":limits", "odd", "\033[2Jx", NULL));
    assert_int_equal(run("limits", NULL), 0);
    assert_says(&out, "\\x1b[2Jx");
    assert_no_controls(&out);
    assert_int_equal(run("limits", "set", "a b", "semaphore", "1", NULL), 65);
    assert_says(&err, "[ELATER_GATE]");
    assert_int_equal(run("limits", "set", "a", "semaphore", "x", NULL), 65);
    assert_int_equal(run("limits", "set", "a", "mutex", "1", NULL), 65);
}

static void test_throttle(void **state)
{
    json_t *j;

    (void)state;
    assert_int_equal(run("throttle", "gateway", NULL), 65);
    assert_says(&err, "[ELATER_LIMIT]");
    assert_int_equal(run("limits", "set", "gateway", "rate", "2/1h", "--burst", "2", NULL), 0);
    assert_int_equal(run("throttle", "gateway", NULL), 0);
    assert_string_equal(buf_str(&out), "0 2 1 -1 1800000\n");
    assert_int_equal(run("throttle", "gateway", "--quota", "x", NULL), 65);
    assert_int_equal(run("throttle", "gateway", "--quota", "2", NULL), 1);
    assert_says(&out, "1 2 1 ");
    assert_int_equal(err.len, 0);
    assert_int_equal(run("throttle", "gateway", "--json", NULL), 0);
    assert_int_equal(run("throttle", "gateway", "--json", NULL), 1);
    j = out_json();
    assert_true(json_is_true(json_object_get(j, "limited")));
    assert_int_equal(number(j, "limit"), 2);
    assert_int_equal(number(j, "left"), 0);
    assert_true(number(j, "retry_after_ms") > 1700000);
    assert_true(number(j, "reset_after_ms") > 3500000);
    json_decref(j);
}

static void test_add_with_gates(void **state)
{
    char first[13], second[13], start[24];
    CLEANUP_FREE char *worker = NULL;
    json_t *j;

    (void)state;
    assert_int_equal(run("add", "mail", "x", "--sem", "smtp", NULL), 65);
    assert_says(&err, "[ELATER_LIMIT]");
    assert_int_equal(run("add", "mail", "x", "--lock", "a b", NULL), 65);
    assert_int_equal(run("add", "mail", "x", "--lock", "u:{key}", NULL), 65);
    assert_int_equal(run("limits", "set", "smtp", "semaphore", "5", NULL), 0);
    assert_int_equal(run("limits", "set", "gateway", "rate", "5/1s", NULL), 0);
    /* All options at once. */
    assert_int_equal(run("add", "mail", "x", "--lock", "u:{key}", "--key", "7", "--sem", "smtp",
                         "--rate", "gateway", "--unique", "o:1", "--unique-mode", "drop",
                         "--unique-for", "1h", "--in", "0s", "--priority", "5", NULL),
                     0);
    memcpy(first, out.data, 12);
    first[12] = '\0';
    assert_int_equal(run("add", "mail", "y", "--unique", "o:1", "--json", NULL), 0);
    assert_says(&out, "\"status\":\"dropped\"");
    assert_says(&out, first);
    assert_int_equal(run("show", "mail@o:1", "--json", NULL), 0);
    j = out_json();
    assert_string_equal(field(j, "id"), first);
    assert_string_equal(field(j, "lock"), "u:7");
    assert_string_equal(field(j, "sem"), "smtp");
    assert_string_equal(field(j, "rate"), "gateway");
    assert_string_equal(field(j, "unique"), "o:1");
    assert_true(number(j, "unique_until_ms") > 0);
    json_decref(j);
    claim("mail", start);
    add(second, "mail", "z", "--lock", "u:7");
    reply_free(test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "1",
                               "0", "1", "mail", "1", "1048576", "0", NULL));
    assert_int_equal(run("show", second, NULL), 0);
    assert_says(&out, "parked");
    assert_says(&out, "lock:u:7");
    assert_int_equal(run("ls", "mail", "--state", "parked", NULL), 0);
    assert_int_equal(lines_of(&out), 2);
    assert_says(&out, second);
    assert_says(&out, "lock:u:7");
    assert_says(&out, " ago");
    assert_int_equal(run("ls", "mail", "--state", "parked", "--json", NULL), 0);
    j = out_json();
    assert_string_equal(field(j, "gate"), "lock:u:7");
    assert_string_equal(field(j, "state"), "parked");
    assert_true(number(j, "ticket") > 0);
    json_decref(j);
    /* The parked job has not ended, so `wait` runs into its timeout. */
    assert_int_equal(run("wait", second, "--timeout", "50ms", NULL), 75);
    /* Granted, and not claimed yet, although its worker has room. */
    worker = mem_printf("%s:worker:%s", ROOT, epoch);
    reply_free(test_redis_call(&redis, "HSET", worker, "places", "9", NULL));
    finish(first, start, "done", "mail", "0", "");
    assert_int_equal(run("ls", "mail", "--state", "parked", NULL), 0);
    assert_says(&out, "(let in)");
}

/* The unique key of a dead job has gone to another job. */
static void test_unique_refusal(void **state)
{
    char id[13], start[24];

    (void)state;
    add(id, "mail", "x", "--unique", "o:1");
    claim("mail", start);
    finish(id, start, "dead", "mail", "10", "no");
    assert_int_equal(run("add", "mail", "y", "--unique", "o:1", NULL), 0);
    assert_int_equal(run("retry", id, NULL), 1);
    assert_says(&err, "[ELATER_UNIQUE]");
}

/* ---- jobs by id */

static void test_cancel(void **state)
{
    char one[13], two[13], start[24];

    (void)state;
    add(one, "work", "1", NULL, NULL);
    add(two, "work", "2", "--in", "1h");
    assert_int_equal(run("cancel", "j00000000000", two, NULL), 66);
    assert_says(&out, "cancelled");
    claim("work", start);
    assert_int_equal(run("cancel", one, NULL), 1);
    assert_says(&err, "--running");
    assert_int_equal(run("cancel", "--running", one, "--json", NULL), 0);
    assert_says(&out, "\"status\":\"cancelling\"");
    assert_int_equal(run("show", one, NULL), 0);
    assert_says(&out, "cancelling since");
    finish(one, start, "dead", "work", "143", "");
    assert_int_equal(run("show", one, NULL), 66);
}

static void test_move(void **state)
{
    char id[13];
    json_t *j;

    (void)state;
    add(id, "work", "1", "--in", "1h");
    assert_int_equal(run("reschedule", id, "--at", "2040-01-01T00:00:00Z", "--json", NULL), 0);
    j = out_json();
    assert_true(number(j, "due_ms") == 2208988800000);
    json_decref(j);
    assert_int_equal(run("reschedule", id, "--in", "2h", NULL), 0);
    assert_says(&out, "moved, due ");
    assert_int_equal(run("reschedule", id, "--in", "soon", NULL), 65);
    assert_int_equal(run("run-now", id, NULL), 0);
    assert_says(&out, "moved");
    assert_int_equal(run("retry", id, NULL), 1);
    assert_says(&err, "[ELATER_STATE]");
}

static void test_retry(void **state)
{
    char ids[3][13];
    int64_t last_ms, now_ms;
    struct reply *r;

    (void)state;
    for (int i = 0; i < 3; i++)
        make_dead(ids[i], "work", "3");
    assert_int_equal(run("retry", ids[0], "--json", NULL), 0);
    assert_says(&out, "\"status\":\"retried\"");
    assert_int_equal(run("retry", "--all", "work", "--spread", "1h", NULL), 0);
    assert_says(&out, "2 jobs retried");
    r = test_redis_call(&redis, "ZCARD", ROOT ":q:work:5", NULL);
    assert_int_equal(reply_int(r), 3);
    reply_free(r);
    /* Two jobs are spread over an hour: the second is half an hour later. */
    r = test_redis_call(&redis, "ZRANGE", ROOT ":q:work:5", "-1", "-1", "WITHSCORES", NULL);
    last_ms = reply_int(reply_at(r, 1));
    reply_free(r);
    r = test_redis_call(&redis, "TIME", NULL);
    now_ms = reply_int(reply_at(r, 0)) * 1000;
    reply_free(r);
    assert_in_range(last_ms - now_ms, 1700000, 1900000);
    assert_int_equal(run("retry", "work", "--all", NULL), 0);
    assert_says(&out, "0 jobs retried");
}

/* ---- wait */

static bool is_awaited(void *arg)
{
    struct reply *r = test_redis_call(&redis, "HEXISTS", ROOT ":await", arg, NULL);
    bool is = reply_int(r) == 1;

    reply_free(r);
    return is;
}

/* Run later wait, and let the job end while it waits. -> its exit status */
static int wait_for(char *id, const char *verb, const char *code)
{
    char *const argv[] = {later, (char *)"wait", id, NULL};
    char log[128], start[24];
    struct proc p;
    int status;

    (void)snprintf(log, sizeof(log), "%s/%s.wait", redis.dir, id);
    proc_start(&p, argv, NULL, log);
    assert_true(test_until(is_awaited, id, DEADLINE_MS));
    claim("work", start);
    finish(id, start, verb, "work", code, "the output\n");
    status = proc_wait(&p, DEADLINE_MS);
    assert_true(proc_has_logged(&p, "the output\n"));
    proc_done(&p);
    return status;
}

static void test_wait(void **state)
{
    char id[13];

    (void)state;
    add(id, "work", "1", NULL, NULL);
    assert_int_equal(run("wait", id, "--timeout", "50ms", NULL), 75);
    assert_int_equal(wait_for(id, "done", "0"), 0);
    assert_int_equal(run("wait", id, "--json", NULL), 0);
    assert_says(&out, "\"output\":\"the output\\n\"");
    add(id, "work", "2", NULL, NULL);
    assert_int_equal(wait_for(id, "dead", "3"), 3);
    assert_int_equal(run("wait", id, NULL), 3);
    assert_says(&out, "the output\n");
    assert_says(&err, "is dead: what");
    assert_no_controls(&err);
    assert_int_equal(run("show", id, NULL), 0);
    assert_says(&out, "output            11 bytes\nthe output\n");
    add(id, "work", "3", NULL, NULL);
    assert_int_equal(wait_for(id, "dead", "0"), 1);
    add(id, "work", "4", "--keep", "1h");
    assert_int_equal(run("cancel", id, NULL), 0);
    assert_int_equal(run("wait", id, NULL), 130);
    assert_int_equal(run("wait", "j00000000000", NULL), 66);
    assert_int_equal(run("wait", id, "--timeout", "5", NULL), 64);
}

/* ---- ls */

static void test_ls(void **state)
{
    char id[13], start[24];

    (void)state;
    reply_free(
        test_redis_call(&redis, "ZADD", ROOT ":due:work", "1767225600000", "raw\033[2J\xff", NULL));
    for (int i = 0; i < 450; i++)
        reply_free(test_redis_call(&redis, "FCALL", "later_add", "1", ROOT, "work", "in", "1h", "p",
                                   NULL));
    assert_int_equal(run("ls", "work", "--json", NULL), 0);
    assert_int_equal(lines_of(&out), 451);
    assert_no_controls(&out);
    assert_int_equal(run("ls", "work", "--limit", "7", NULL), 0);
    assert_int_equal(lines_of(&out), 8);
    assert_int_equal(run("ls", "work", "--limit", "0", NULL), 64);
    assert_int_equal(run("ls", "work", NULL), 0);
    assert_no_controls(&out);
    assert_says(&out, "(raw)");
    make_dead(id, "mail", "9");
    assert_int_equal(run("ls", "mail", "--state", "dead", NULL), 0);
    assert_says(&out, id);
    assert_says(&out, "what happened");
    add(id, "mail", "done soon", NULL, NULL);
    claim("mail", start);
    assert_int_equal(run("--json", "ls", "mail", "--state=running", NULL), 0);
    assert_says(&out, epoch);
    finish(id, start, "done", "mail", "0", "");
    assert_int_equal(run("ls", "mail", "--state", "done", "--json", NULL), 0);
    assert_says(&out, "\"outcome\":{\"state\":\"done\"");
    assert_int_equal(run("ls", "mail", "--state", "dead,done", NULL), 0);
    assert_says(&out, "dead:\n");
    assert_says(&out, "done:\n");
    assert_says(&out, id);
    assert_int_equal(run("ls", "mail", "--state", "all", "--json", NULL), 0);
    assert_says(&out, "\"state\":\"dead\"");
    assert_says(&out, "\"state\":\"done\"");
    assert_int_equal(run("ls", "work", "--state", "all", "--limit", "5", "--json", NULL), 0);
    assert_int_equal(lines_of(&out), 5);
    assert_int_equal(run("ls", "nothing-here", "--json", NULL), 66);
    assert_int_equal(out.len, 0);
}

/* A queue whose jobs are all elsewhere is not shown as an empty one. */
static void test_ls_elsewhere(void **state)
{
    char id[13], start[24];

    (void)state;
    add(id, "park", "x", "--lock", "door");
    claim("park", start);
    for (int i = 0; i < 2; i++)
        add(id, "park", "x", "--lock", "door");
    reply_free(test_redis_call(&redis, "FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "1", "8",
                               "0", "1", "park", "8", "1048576", "0", NULL));
    assert_int_equal(run("ls", "park", NULL), 0);
    assert_says(&err, "later: queue park has no job in state due; it has 2 parked (--state "
                      "parked), 1 running (--state running)\n");
    assert_int_equal(run("ls", "park", "--json", NULL), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(run("ls", "park", "--state", "parked", NULL), 0);
    assert_int_equal(err.len, 0);
}

/* What runs, where, and since when: of one queue, or of all. */
static void test_ls_running(void **state)
{
    char id[13], other[13], start[24], runs[64], key[80];
    json_t *line;

    (void)state;
    add(other, "work", "x", "--key", "k\xff");
    claim("work", start);
    add(id, "mail", "x", NULL, NULL);
    claim("mail", start);
    (void)snprintf(runs, sizeof(runs), "%s 1767225600000,", id);
    (void)snprintf(key, sizeof(key), ROOT ":worker:%s", epoch);
    reply_free(test_redis_call(&redis, "HSET", key, "runs", runs, NULL));
    (void)snprintf(runs, sizeof(runs), "%s 60000,", id);
    reply_free(test_redis_call(&redis, "HSET", key, "timeouts", runs, NULL));
    assert_int_equal(run("ls", "--running", NULL), 0);
    assert_int_equal(lines_of(&out), 3);
    assert_no_controls(&out);
    assert_says(&out, "HOST");
    assert_says(&out, "box\\x1b[2J");
    assert_says(&out, "mail");
    assert_says(&out, "ago");
    assert_says(&out, other);
    assert_int_equal(run("--json", "ls", "mail", "--running", NULL), 0);
    line = out_json();
    assert_string_equal(field(line, "queue"), "mail");
    assert_string_equal(field(line, "host"), "box\033[2J");
    assert_int_equal(json_integer_value(json_object_get(line, "since_ms")), 1767225600000);
    assert_int_equal(json_integer_value(json_object_get(line, "timeout_ms")), 60000);
    json_decref(line);
    assert_int_equal(run("--json", "ls", "work", "--state", "running", NULL), 0);
    line = out_json();
    assert_string_equal(field(line, "key_base64"), "a/8=");
    assert_null(json_object_get(line, "since_ms"));
    assert_null(json_object_get(line, "timeout_ms"));
    json_decref(line);
    assert_int_equal(run("--json", "show", other, NULL), 0);
    line = out_json();
    assert_string_equal(field(line, "key_base64"), "a/8=");
    json_decref(line);
    assert_int_equal(run("ls", NULL), 64);
    assert_says(&err, "later ls --running");
    assert_int_equal(run("ls", "mail", "--running", "--state", "dead", NULL), 64);
}

/* Run the command on a terminal of 60 columns. The output is put in text. -> its length */
static size_t on_terminal(char *const *argv, char *const *env, char *text, size_t cap)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    struct proc p;
    size_t len = 0;
    ssize_t n;

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    proc_start(&p, argv, env, ptsname(master));
    assert_int_equal(proc_wait(&p, DEADLINE_MS), 0);
    proc_done(&p); /* with it the last descriptor of the terminal is closed: it ends with EIO */
    while ((n = read(master, text + len, cap - 1 - len)) > 0 || (n < 0 && errno == EAGAIN))
        len += n > 0 ? (size_t)n : 0;
    assert_true(len > 0);
    text[len] = '\0';
    (void)close(master);
    return len;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;

    for (; *text != '\0'; text += strspn(text, "\r\n")) {
        size_t n = strcspn(text, "\r\n");

        longest = n > longest ? n : longest;
        text += n;
    }
    return longest;
}

/* A worker claims more short jobs than it has places, and an end is on the way for a moment:
 * neither runs. */
static void test_workers_run_no_more_than_they_can(void **state)
{
    (void)state;
    reply_free(test_redis_call(&redis, "HSET", ROOT ":workers", "77", "1", NULL));
    reply_free(
        test_redis_call(&redis, "HSET", ROOT ":worker:77", "host", "h", "places", "2", NULL));
    reply_free(
        test_redis_call(&redis, "ZADD", ROOT ":running", "77", "a", "77", "b", "77", "c", NULL));
    assert_int_equal(run("workers", "--json", NULL), 0);
    assert_says(&out, "\"held\":3,");
    assert_says(&out, "\"running\":2,\"places\":2,");
    assert_int_equal(run("workers", NULL), 0);
    assert_says(&out, "RUNNING  CLAIMED  PLACES");
    assert_says(&out, "       2        1       2  live");
    reply_free(test_redis_call(&redis, "HDEL", ROOT ":worker:77", "places", NULL));
    assert_int_equal(run("workers", "--json", NULL), 0);
    assert_says(&out, "\"running\":3,");
    reply_free(
        test_redis_call(&redis, "DEL", ROOT ":workers", ROOT ":worker:77", ROOT ":running", NULL));
}

/* The help is wrapped to the width of the terminal, and no word is lost. */
static void test_help_on_terminals(void **state)
{
    static const struct {
        const char *columns, *verb;
        size_t width;
    } cases[] = {{"COLUMNS=60", "limits", 60},    {"COLUMNS=60", "pause", 60},
                 {"COLUMNS=60", "health", 60},    {"COLUMNS=80", "limits", 80},
                 {"COLUMNS=80", "pause", 80},     {"COLUMNS=120", "limits", 100},
                 {"COLUMNS=120", "pause", 100},   {"COLUMNS=40", "pause", 40},
                 {"COLUMNS=9999", "health", 100}, {"COLUMNS=60", "help", 60}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *const argv[] = {later, (char *)"help", (char *)cases[i].verb, NULL};
        char *const env[] = {(char *)"TERM=xterm", (char *)"NO_COLOR=1", (char *)cases[i].columns,
                             NULL};
        char text[8192];

        (void)on_terminal(argv, env, text, sizeof(text));
        if (longest_line(text) > cases[i].width)
            fail_msg("%s, %s: a line of %zu columns: %s", cases[i].columns, cases[i].verb,
                     longest_line(text), text);
        assert_non_null(strstr(text, "Options of every verb"));
        assert_non_null(strstr(text, "--version"));
    }
    /* Without a terminal, lines have at most 80 columns. */
    assert_int_equal(run("help", NULL), 0);
    assert_true(longest_line(buf_str(&out)) <= 80);
}

/* Output on a terminal fits its width, has colours without NO_COLOR, and only safe bytes. */
static void test_on_a_terminal(void **state)
{
    char *const ls[] = {later, (char *)"ls", (char *)"work", NULL};
    char *const add_one[] = {later, (char *)"add", (char *)"work", (char *)"x", NULL};
    char *const colour[] = {(char *)"TERM=xterm", (char *)"NO_COLOR", (char *)"COLUMNS", NULL};
    char *const plain[] = {(char *)"TERM=xterm", (char *)"NO_COLOR=1", (char *)"COLUMNS", NULL};
    char text[4096], id[13];
    size_t column = 0;

    (void)state;
    add(id, "work", "\033]0;title\007 and a long text that does not fit on the line at all", NULL,
        NULL);
    (void)on_terminal(ls, colour, text, sizeof(text));
    assert_non_null(strstr(text, "\033[1mID"));
    assert_null(strstr(text, "\033]0;"));
    (void)on_terminal(ls, plain, text, sizeof(text));
    assert_null(strchr(text, '\033'));
    for (const char *p = text; *p != '\0'; p++) {
        column = *p == '\n' || *p == '\r' ? 0 : column + 1;
        assert_true(column <= 60);
    }
    (void)on_terminal(add_one, plain, text, sizeof(text));
    assert_non_null(strstr(text, "added, due "));
}

/* ---- queues, workers, the library, redis-cli */

static void test_pause_and_quiet(void **state)
{
    (void)state;
    assert_int_equal(run("pause", "mail", "--reason", "bad\033[1m day", "--for", "1h", NULL), 0);
    assert_says(&out, "mail paused");
    assert_int_equal(run("stats", "mail", NULL), 0);
    assert_says(&out, "@");
    assert_says(&out, "day");
    assert_no_controls(&out);
    assert_int_equal(run("--json", "stats", NULL), 0);
    assert_says(&out, "\"paused\":{\"until_ms\":");
    assert_int_equal(run("resume", "mail", "--at", "+5m", NULL), 0);
    assert_says(&out, "resuming");
    assert_int_equal(run("resume", "mail", "--json", NULL), 0);
    assert_says(&out, "\"status\":\"resumed\"");
    assert_int_equal(run("resume", "mail", NULL), 0);
    assert_says(&out, "not paused");

    assert_int_equal(run("quiet", "--all", NULL), 0);
    assert_says(&out, "1 worker told");
    assert_int_equal(run("workers", NULL), 0);
    assert_says(&out, "quiet");
    assert_says(&out, "mail,work");
    assert_no_controls(&out);
    assert_int_equal(run("quiet", "--off", epoch, "--json", NULL), 0);
    assert_says(&out, "\"quiet\":false");
    assert_int_equal(run("workers", "--json", NULL), 0);
    assert_says(&out, "\"state\":\"live\"");
    assert_says(&out, "\"pid\":4711");
    assert_int_equal(run("quiet", "12345", NULL), 66);
    /* It never beats, and nobody else would find that out: --wait says so, and ends. */
    assert_int_equal(run("quiet", epoch, "--wait", NULL), 75);
    assert_says(&err, "has been silent for 25 s");
}

/* The library as an older program with the hash `x` pins it. */
static void pin_an_older_one(void)
{
    static const char end[] = "local pinned = 1\nmodule('library').number = 0\n"
                              "register('later_version', {'no-writes'}, function()\n"
                              "  return {1, 'x', PROTOCOL, pinned}\nend)\n";
    char *at;

    assert_int_equal(run("setup", "--print", NULL), 0);
    at = strstr(out.data, "local pinned = 0\n");
    assert_non_null(at);
    assert_true(strlen(at) > strlen(end));
    (void)strcpy(at, end);
    reply_free(test_redis_call(&redis, "FUNCTION", "LOAD", "REPLACE", out.data, NULL));
}

static void test_setup(void **state)
{
    (void)state;
    pin_an_older_one();
    assert_int_equal(run("setup", NULL), 0);
    assert_says(&out, "was there already, pinned\nthis program has library ");
    assert_says(&out, "): --force loads it and ends the pin\n");
    assert_int_equal(run("setup", "--force", NULL), 0);
    assert_int_equal(run("setup", "--print", NULL), 0);
    assert_memory_equal(out.data, "#!lua name=laterd\n", 18);
    assert_int_equal(run("setup", NULL), 0);
    assert_says(&out, "was there already");
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    assert_int_equal(run("setup", "--json", NULL), 0);
    assert_says(&out, "\"loaded\":true");
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    assert_int_equal(run("add", "mail", "x", NULL), 0);
    assert_int_equal(run("setup", "--force", "--downgrade", NULL), 64);
}

static void test_denied(void **state)
{
    char url[160];

    (void)state;
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "-fcall", NULL));
    assert_int_equal(run("stats", NULL), 77);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "+@all", NULL));
    (void)snprintf(url, sizeof(url), "%s?db=3", redis.url);
    assert_int_equal(run("--redis", url, "stats", NULL), 0);
}

/* The user that the URL names is used, even if it needs no password. */
static void test_user_without_a_password(void **state)
{
    char port[16], url[64];

    (void)state;
    (void)snprintf(port, sizeof(port), "%d", test_free_port());
    (void)snprintf(url, sizeof(url), "redis://ann@127.0.0.1:%s", port);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "port", port, NULL));
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "ann", "on", "nopass", "~*", "&*", "+@all",
                               NULL));
    assert_int_equal(run("--redis", url, "stats", NULL), 0);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "ann", "-fcall", NULL));
    assert_int_equal(run("--redis", url, "stats", NULL), 77);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "port", "0", NULL));
}

static void test_cli(void **state)
{
    char path[512];
    char *fake;

    (void)state;
    assert_int_equal(run("cli", "PING", NULL), 0);
    assert_string_equal(buf_str(&out), "PONG\n");
    fake = write_file("redis-cli", "#!/bin/sh\necho \"$@\"\necho \"auth=$REDISCLI_AUTH\"\nexit 9\n",
                      0700);
    (void)snprintf(path, sizeof(path), "%.*s:%s", (int)(strrchr(fake, '/') - fake), fake,
                   getenv("PATH"));
    (void)setenv("PATH", path, 1);
    (void)setenv("REDISCLI_AUTH", "s3cret", 1);
    assert_int_equal(run("--redis", "redis://ann@[::1]:7000/2", "cli", "-h", "--json", NULL), 9);
    assert_string_equal(buf_str(&out), "-h ::1 -p 7000 -n 2 --user ann -h --json\nauth=s3cret\n");
    (void)unsetenv("REDISCLI_AUTH");
    (void)setenv("PATH", strchr(path, ':') + 1, 1);
}

static void test_full_disk(void **state)
{
    char command[4200];
    char *const argv[] = {(char *)"sh", (char *)"-c", command, NULL};

    (void)state;
    (void)snprintf(command, sizeof(command), "exec '%s' stats >/dev/full", later);
    assert_int_equal(run_argv(argv, NULL, 0), 74);
    assert_says(&err, "cannot write the output");
    /* A reader that closes the pipe early is no error. */
    (void)snprintf(command, sizeof(command), "'%s' help | :", later);
    assert_int_equal(run_argv(argv, NULL, 0), 0);
    assert_int_equal(err.len, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(test_help_and_version),
        TEST(test_help_on_terminals),
        TEST(test_workers_run_no_more_than_they_can),
        TEST(test_wrong_command_lines),
        TEST(test_no_redis),
        TEST(test_configuration_and_password),
        TEST(test_a_broken_file_takes_no_command_away),
        TEST(test_user_file),
        TEST(test_add_survives_a_lost_reply),
        TEST(test_an_add),
        TEST(test_add_with_token_and_large),
        TEST(test_explain),
        TEST(test_explain_queue),
        TEST(test_add_refusals),
        TEST(test_limits),
        TEST(test_throttle),
        TEST(test_add_with_gates),
        TEST(test_unique_refusal),
        TEST(test_cancel),
        TEST(test_move),
        TEST(test_retry),
        TEST(test_wait),
        TEST(test_ls),
        TEST(test_ls_elsewhere),
        TEST(test_ls_running),
        TEST(test_on_a_terminal),
        TEST(test_pause_and_quiet),
        TEST(test_setup),
        TEST(test_denied),
        TEST(test_user_without_a_password),
        TEST(test_cli),
        TEST(test_full_disk),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
