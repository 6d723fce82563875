/*
 * `later add QUEUE --from FILE` against a real redis-server: every byte of every line is added, it
 * stops well, and it reports exactly what was added.
 */
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "command.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define WAITING ROOT ":q:bulk:5"
#define DEADLINE_MS 60000

/* Nothing is there but a worker of the queue: no add has a reason to warn. */
static int start_test(void **state)
{
    char epoch[24];

    flush_all(state);
    register_worker("bulk", epoch);
    return 0;
}

static char path[128], fifo[128], log_path[128];

/* ---- helpers */

static void write_bytes(const char *p, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* n lines of this size; each is its number, then x. */
static void put_lines(struct buf *text, int n, size_t size)
{
    for (int i = 0; i < n; i++) {
        char *at = buf_reserve(text, size + 1);

        memset(at, 'x', size);
        (void)snprintf(at, 9, "%08d", i);
        at[8] = 'x';
        at[size] = '\n';
        text->len += size + 1;
    }
}

/* Put the payload of the i-th job of the queue, as `later show` prints it, in out. */
static void show(int i)
{
    char at[16], id[16];
    struct reply *r;

    (void)snprintf(at, sizeof(at), "%d", i);
    r = test_redis_call(&redis, "ZRANGE", WAITING, at, at, NULL);
    (void)snprintf(id, sizeof(id), "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
    assert_int_equal(run("show", id, "--payload"), 0);
}

/* ---- a command that reads a named pipe, and is watched */

static struct proc fed;
static int feeding = -1;

static void feed_start(const char *option)
{
    char *const argv[] = {later,          (char *)"add", (char *)"bulk", (char *)"--from", fifo,
                          (char *)option, NULL};

    (void)unlink(log_path);
    proc_start(&fed, argv, NULL, log_path);
    feeding = open(fifo, O_WRONLY | O_CLOEXEC);
    assert_true(feeding >= 0);
}

static void feed_put(const char *p, size_t n)
{
    assert_int_equal(write(feeding, p, n), n);
}

static void feed_lines(int n, size_t size)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    put_lines(&text, n, size);
    feed_put(text.data, text.len);
}

static bool has_added(void *arg)
{
    return count("ZCARD", WAITING) == *(const int64_t *)arg;
}

static void until_added(int64_t n)
{
    assert_true(test_until(has_added, &n, DEADLINE_MS));
}

/* The command has read all that was put into the pipe. */
static bool has_read(void *arg)
{
    int left = 1;

    (void)arg;
    return ioctl(feeding, FIONREAD, &left) == 0 && left == 0;
}

/* Wait for the end of the command. -> its exit status; its output is in out */
static int feed_wait(void)
{
    int status = proc_wait(&fed, DEADLINE_MS);
    char part[4096];
    ssize_t n;

    buf_clear(&out);
    while ((n = read(fed.out, part, sizeof(part))) > 0)
        buf_add(&out, part, (size_t)n);
    proc_done(&fed);
    if (feeding >= 0)
        (void)close(feeding);
    feeding = -1;
    return status;
}

/* ---- what is added */

/* NUL, CR, UTF-8, bytes that are no text, an empty line, and a last line without an end. */
static void test_every_byte(void **state)
{
    static const char text[] =
        "a\0b\r\n\n\xc3\xa4\xe2\x82\xac\n\xff\xfe\x80\x1b[31m\n--\nkey\n last\t";
    static const struct {
        const char *p;
        size_t n;
    } want[] = {{"a\0b\r", 4},
                {"", 0},
                {"\xc3\xa4\xe2\x82\xac", 5},
                {"\xff\xfe\x80\x1b[31m", 8},
                {"--", 2},
                {"key", 3},
                {" last\t", 6}};
    static const char one[] = "key";

    (void)state;
    write_bytes(text, sizeof(text) - 1);
    assert_int_equal(run("add", "bulk", "--from", path), 0);
    assert_out("7 jobs added\n");
    assert_int_equal(err.len, 0);
    assert_int_equal(count("ZCARD", WAITING), 7);
    for (int i = 0; i < 7; i++) {
        show(i);
        assert_int_equal(out.len, want[i].n);
        if (out.len > 0)
            assert_memory_equal(out.data, want[i].p, want[i].n);
    }
    /* The first payload looks like an option. */
    start_test(NULL);
    write_bytes(one, 3);
    assert_int_equal(run("add", "bulk", "--from", path), 0);
    assert_out("1 job added\n");
    show(0);
    assert_out("key");
}

static void test_options_hold_for_all(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct reply *r;

    (void)state;
    put_lines(&text, 600, 20);
    write_bytes(text.data, text.len);
    assert_int_equal(run("add", "bulk", "--from", path, "--in", "1h", "--priority", "2", "--key",
                         "user:42", "--attempts", "3", "--timeout", "5m", "--json"),
                     0);
    assert_out("{\"queue\":\"bulk\",\"added\":600}\n");
    assert_int_equal(count("ZCARD", ROOT ":q:bulk:2"), 600);
    r = test_redis_call(&redis, "HVALS", ROOT ":jobs", NULL);
    assert_int_equal(reply_count(r), 600);
    for (size_t i = 0; i < 600; i++)
        assert_non_null(strstr(reply_str(reply_at(r, i)), "-bulk 2 a=3 t=300000 K=user:42\n"));
    reply_free(r);
    assert_int_equal(run("add", "bulk", "--from", path, "--priority", "10"), 65);
    assert_says(&err, "[ELATER_OPTION]");
    assert_says(&err, "later: not added: lines 1 to 128; not sent: from line 129 on");
    assert_out("0 jobs added\n");
}

static void test_standard_input(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    (void)state;
    put_lines(&text, 1000, 100);
    assert_int_equal(run_in(text.data, text.len, "add", "bulk", "--from", "-", NULL), 0);
    assert_out("1000 jobs added\n");
    assert_int_equal(err.len, 0);
    show(999);
    assert_memory_equal(out.data, "00000999x", 9);
}

/* A call has few long lines. Lines over 16 KiB have a key of their own. */
static void test_long_lines(void **state)
{
    static const size_t sizes[] = {300000, 10, 1048576, 20000, 240000, 16384, 16385, 262144, 1, 9};
    CLEANUP_BUF struct buf text = BUF_INIT;
    char *at;

    (void)state;
    for (size_t i = 0; i < 10; i++) {
        at = buf_reserve(&text, sizes[i] + 1);
        memset(at, 'a' + (int)i, sizes[i]);
        at[sizes[i]] = '\n';
        text.len += sizes[i] + 1;
    }
    write_bytes(text.data, text.len);
    assert_int_equal(run("add", "bulk", "--from", path), 0);
    assert_out("10 jobs added\n");
    for (int i = 0; i < 10; i++) {
        show(i);
        assert_int_equal(out.len, sizes[i]);
        assert_int_equal(out.data[0], 'a' + i);
        assert_int_equal(out.data[sizes[i] - 1], 'a' + i);
    }
}

struct screen {
    struct proc *proc;
    struct buf *text;
    int master;
};

static bool has_shown_all(void *arg)
{
    const struct screen *s = arg;
    bool has_ended = proc_wait(s->proc, 0) >= 0;
    char part[4096];
    ssize_t n;

    while ((n = read(s->master, part, sizeof(part))) > 0)
        buf_add(s->text, part, (size_t)n);
    return has_ended;
}

static void assert_jobs_are_lines(size_t n)
{
    struct reply *r = test_redis_call(&redis, "HVALS", ROOT ":jobs", NULL);
    CLEANUP_FREE char *seen = mem_new(n);

    assert_int_equal(reply_count(r), n);
    for (size_t i = 0; i < n; i++) {
        const char *payload = strchr(reply_str(reply_at(r, i)), '\n');
        unsigned long number;

        assert_non_null(payload);
        number = strtoul(payload + 1, NULL, 10);
        assert_true(number < n && seen[number] == 0);
        seen[number] = 1;
    }
    reply_free(r);
}

/* Every line is added once, in order. A terminal is shown the progress, which is not wider than the
 * terminal and has only safe bytes. */
static void test_many_on_a_terminal(void **state)
{
    char *const argv[] = {later, (char *)"add", (char *)"bulk", (char *)"--from", path, NULL};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_BUF struct buf shown = BUF_INIT;
    struct proc p;
    struct screen screen = {&p, &shown, master};
    size_t column = 0;

    (void)state;
    put_lines(&text, 100000, 100);
    write_bytes(text.data, text.len);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    proc_start(&p, argv, NULL, ptsname(master));
    assert_true(test_until(has_shown_all, &screen, DEADLINE_MS));
    assert_int_equal(p.status, 0);
    proc_done(&p);
    (void)close(master);
    assert_says(&shown, " jobs, ");
    assert_says(&shown, "/s  [#");
    assert_says(&shown, " %");
    assert_says(&shown, "\r100000 jobs added\r\n");
    for (size_t i = 0; i < shown.len; i++) {
        column = shown.data[i] == '\r' || shown.data[i] == '\n' ? 0 : column + 1;
        assert_true(column < 60 && shown.data[i] != '\033');
    }
    assert_jobs_are_lines(100000);
    show(0);
    assert_memory_equal(out.data, "00000000x", 9);
    show(99999);
    assert_memory_equal(out.data, "00099999x", 9);
}

/* A line is added as soon as it was written, not when a call is full. */
static void test_lines_that_come_slowly(void **state)
{
    (void)state;
    feed_start(NULL);
    feed_put("one\ntw", 6);
    until_added(1);
    feed_put("o\nthree", 7);
    until_added(2);
    (void)close(feeding);
    feeding = -1;
    assert_int_equal(feed_wait(), 0);
    assert_out("3 jobs added\n");
    show(1);
    assert_out("two");
    show(2);
    assert_out("three");
}

/* ---- files and lines that are refused */

static void test_files_that_are_none(void **state)
{
    (void)state;
    write_bytes("", 0);
    assert_int_equal(run("add", "bulk", "--from", path), 0);
    assert_out("0 jobs added\n");
    assert_int_equal(err.len, 0);
    assert_int_equal(run_in("", 0, "add", "bulk", "--from", "-", "--json", NULL), 0);
    assert_out("{\"queue\":\"bulk\",\"added\":0}\n");
    assert_int_equal(run("add", "bulk", "--from", "/nonexistent/file"), 66);
    assert_says(&err, "cannot read /nonexistent/file");
    assert_int_equal(out.len, 0);
    assert_int_equal(run("add", "bulk", "--from", redis.dir), 66);
    assert_says(&err, "is a folder");
    assert_int_equal(run("--redis", "unix:/nonexistent/r.sock", "add", "bulk", "--from", path), 69);
    assert_says(&err, "redis at unix:/nonexistent/r.sock (from --redis)");
    assert_int_equal(out.len, 0);
}

static void test_wrong_command_lines(void **state)
{
    (void)state;
    assert_int_equal(run("add", "bulk", "x", "--from", path), 64);
    assert_says(&err, "the payloads are its lines");
    assert_int_equal(run("add", "bulk", "-", "--from", path), 64);
    assert_int_equal(run("add", "--from", path), 64);
    assert_int_equal(run("add", "bulk", "--from"), 64);
    assert_says(&err, "--from needs a value");
    assert_int_equal(run("add", "bulk", "--from", path, "--token", "t"), 64);
    assert_says(&err, "--token is of one job");
    assert_int_equal(run("add", "bulk", "--from", path, "--unique", "u"), 64);
    assert_int_equal(run("add", "bulk", "--from", path, "--unique-for", "1h"), 64);
    assert_int_equal(run("help", "add"), 0);
    assert_says(&out, "--from FILE");
    assert_says(&out, "--from makes a job of every line");
}

/* A line that is too long is found before any line after it is sent. */
static void test_too_long_a_line(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    (void)state;
    do_redis("HSET", ROOT ":config", "max_payload:bulk", "2000");
    put_lines(&text, 599, 100);
    put_lines(&text, 1, 2001);
    put_lines(&text, 400, 2000);
    write_bytes(text.data, text.len);
    assert_int_equal(run("add", "bulk", "--from", path), 65);
    assert_says(&err, "later: line 600 has 2001 bytes, queue bulk takes 2000 (max_payload) "
                      "[ELATER_SIZE]\n");
    assert_says(&err, "later: added: lines 1 to 599; not sent: from line 600 on\n");
    assert_out("599 jobs added\n");
    assert_int_equal(count("ZCARD", WAITING), 599);
    assert_int_equal(run("add", "bulk", "--from", path, "--json"), 65);
    assert_says(&out, "\"added\":599,\"error\":\"ELATER_SIZE line 600 has");
    assert_says(&out, "\"line\":600,\"lines_added\":[[1,599]],\"lines_unknown\":[],"
                      "\"not_sent_from\":600}");
    /* A line that never ends is not read to its end. */
    assert_int_equal(run("add", "bulk", "--from", "/dev/zero"), 65);
    assert_says(&err, "line 1 has more than 2000 bytes");
    assert_out("0 jobs added\n");
}

/* The limit is lowered while the command runs: the library refuses, and the line is named. */
static void test_refused_line(void **state)
{
    (void)state;
    feed_start(NULL);
    feed_lines(300, 100);
    until_added(300);
    do_redis("HSET", ROOT ":config", "max_payload", "2000");
    feed_lines(1, 3000);
    assert_int_equal(feed_wait(), 65);
    assert_says(&out, "later: line 301 has 3000 bytes, more than queue bulk takes");
    assert_says(&out, "added: lines 1 to 300; not added: line 301; not sent: from line 302 on\n");
    assert_says(&out, "\n300 jobs added\n");
    assert_int_equal(count("ZCARD", WAITING), 300);
}

static void test_full_redis(void **state)
{
    (void)state;
    feed_start(NULL);
    feed_lines(300, 100);
    until_added(300);
    do_redis("CONFIG", "SET", "maxmemory", "1");
    feed_lines(1, 100);
    assert_int_equal(feed_wait(), 69);
    do_redis("CONFIG", "SET", "maxmemory", "0");
    assert_says(&out, "OOM");
    assert_says(&out, ", at line 301\n");
    assert_says(&out, "added: lines 1 to 300; not added: line 301; ");
    assert_says(&out, "\n300 jobs added\n");
    assert_int_equal(count("ZCARD", WAITING), 300);
}

static void test_lost_connection(void **state)
{
    (void)state;
    feed_start("--json");
    feed_lines(300, 100);
    until_added(300);
    do_redis("CLIENT", "KILL", "TYPE", "normal");
    feed_lines(2, 100);
    assert_int_equal(feed_wait(), 69);
    assert_says(&out, ", at line 301");
    assert_says(&out,
                "added: lines 1 to 300; sent, but nobody knows whether they were added: line");
    assert_says(&out, "\"added\":300,");
    assert_says(&out, "\"lines_added\":[[1,300]],\"lines_unknown\":[[301,");
    assert_int_equal(count("ZCARD", WAITING), 300);
}

/* Redis stands still with calls under way, and then dies. */
static void test_lost_redis(void **state)
{
    (void)state;
    feed_start(NULL);
    feed_lines(300, 100);
    until_added(300);
    /* Redis may have told us of the jobs before it answers the command; not so after another turn.
     * A command without that answer reads no more. */
    do_redis("PING");
    test_redis_kill(&redis, SIGSTOP);
    /* Otherwise the command may find the pipe empty between two pages, send what it has, and wait
     * for the answer. */
    proc_stop(&fed);
    feed_lines(600, 100);
    proc_signal(&fed, SIGCONT);
    assert_true(test_until(has_read, NULL, DEADLINE_MS));
    test_redis_kill(&redis, SIGKILL);
    assert_int_equal(feed_wait(), 69);
    test_redis_restart(&redis);
    assert_says(&out, "added: lines 1 to 300; sent, but nobody knows whether they were added: "
                      "line");
    assert_says(&out, "\n300 jobs added\n");
}

static void stop_by(int sig, int status)
{
    start_test(NULL);
    feed_start(NULL);
    feed_lines(300, 100);
    feed_put("half a", 6);
    until_added(300);
    proc_signal(&fed, sig);
    assert_int_equal(feed_wait(), status);
    assert_out(
        "later: stopped; added: lines 1 to 300; not sent: from line 301 on\n300 jobs added\n");
    assert_int_equal(count("ZCARD", WAITING), 300);
}

static bool has_some(void *arg)
{
    (void)arg;
    return count("ZCARD", WAITING) > 1000;
}

static void test_signals(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    char *const argv[] = {later, (char *)"add", (char *)"bulk", (char *)"--from", path, NULL};
    char says[64];

    (void)state;
    stop_by(SIGINT, 130);
    stop_by(SIGTERM, 143);
    /* In the middle of the work: the reported number is the number of jobs that are there. */
    start_test(NULL);
    put_lines(&text, 200000, 100);
    write_bytes(text.data, text.len);
    (void)unlink(log_path);
    proc_start(&fed, argv, NULL, log_path);
    assert_true(test_until(has_some, NULL, DEADLINE_MS));
    proc_signal(&fed, SIGINT);
    assert_int_equal(feed_wait(), 130);
    (void)snprintf(says, sizeof(says), "\n%lld jobs added\n", (long long)count("ZCARD", WAITING));
    assert_says(&out, says);
    assert_true(count("ZCARD", WAITING) < 200000);
}

/* A user with the rights of doc/protocol.md, "Rights". */
static void test_producer(void **state)
{
    char port[16], url[64];

    (void)state;
    (void)snprintf(port, sizeof(port), "%d", test_free_port());
    (void)snprintf(url, sizeof(url), "redis://producer@127.0.0.1:%s", port);
    do_redis("CONFIG", "SET", "port", port);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "producer", "on", "nopass",
                               "~later:{default}*", "&later:{default}:wake", "+ping", "+hello",
                               "+fcall|later_add", "+fcall|later_add_many", "+time", "+type",
                               "+hget", "+hset", "+hmget", "+get", "+set", "+zscore", "+zadd",
                               "+sadd", "+scard", "+sismember", "+hdel", "+del", "+publish", NULL));
    write_bytes("a\nb\n", 4);
    assert_int_equal(run("--redis", url, "add", "bulk", "--from", path), 0);
    assert_out("2 jobs added\n");
    do_redis("ACL", "SETUSER", "producer", "-fcall");
    assert_int_equal(run("--redis", url, "add", "bulk", "--from", path), 77);
    assert_says(&err, "NOPERM");
    assert_says(&err, "not added: lines 1 to 2\n");
    assert_out("0 jobs added\n");
    do_redis("CONFIG", "SET", "port", "0");
}

/* The first call loads the library. */
static void test_without_a_library(void **state)
{
    (void)state;
    do_redis("FUNCTION", "FLUSH", "SYNC");
    write_bytes("a\nb\n", 4);
    assert_int_equal(run("add", "bulk", "--from", path), 0);
    assert_out("2 jobs added\n");
}

static int start_with_files(void **state)
{
    (void)start_all(state);
    (void)snprintf(path, sizeof(path), "%s/lines", redis.dir);
    (void)snprintf(fifo, sizeof(fifo), "%s/fifo", redis.dir);
    (void)snprintf(log_path, sizeof(log_path), "%s/log", redis.dir);
    (void)signal(SIGPIPE, SIG_IGN); /* a command that ended early says why by its status */
    return mkfifo(fifo, 0600);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start_test)
    const struct CMUnitTest tests[] = {
        TEST(test_every_byte),
        TEST(test_options_hold_for_all),
        TEST(test_standard_input),
        TEST(test_long_lines),
        TEST(test_many_on_a_terminal),
        TEST(test_lines_that_come_slowly),
        TEST(test_files_that_are_none),
        TEST(test_wrong_command_lines),
        TEST(test_too_long_a_line),
        TEST(test_refused_line),
        TEST(test_full_redis),
        TEST(test_lost_connection),
        TEST(test_signals),
        TEST(test_producer),
        TEST(test_without_a_library),
        TEST(test_lost_redis), /* the last: the library is gone after it */
    };

    return cmocka_run_group_tests(tests, start_with_files, stop_all);
}
