/*
 * What the command does with many jobs against a real redis-server: export, import of lines and of
 * a foreign sorted set, purge. Also times as people write them.
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "command.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define DEADLINE_MS 60000
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* The output without the ids, which are new after each import. */
static char *lines_of_out(void)
{
    char *text = mem_strdup(buf_str(&out)), *at;

    while ((at = strstr(text, "\"id\":\"")) != NULL)
        memmove(at, at + 20, strlen(at + 20) + 1);
    return text;
}

/* ---- export and import */

static void test_round(void **state)
{
    char *before, *after;

    (void)state;
    assert_int_equal(run("limits", "set", "disk", "semaphore", "2"), 0);
    assert_int_equal(run("add", "mail", "a", "--at", "2030-01-31T09:00:00Z", "--priority", "2",
                         "--key", "k:1", "--attempts", "3", "--timeout", "1h30m", "--expire", "2h",
                         "--keep", "0s", "--trace", TRACE, "--lock", "l:{key}", "--sem", "disk"),
                     0);
    assert_int_equal(run("add", "mail", "b", "--in", "1h", "--unique", "u"), 0);
    assert_int_equal(run_in("\0\xff\r\n", 4, "add", "mail", "-", NULL), 0);
    assert_int_equal(run("add", "mail", "", "--key", "\xff"), 0);
    assert_int_equal(run("export", "mail"), 0);
    assert_int_equal(err.len, 0);
    assert_says(&out, "\"payload_base64\":\"AP8NCg==\"");
    assert_says(&out, "\"timeout_ms\":5400000,\"expire_ms\":7200000,\"keep_ms\":0,\"key\":\"k:1\","
                      "\"trace\":\"" TRACE "\",\"lock\":\"l:k:1\",\"sem\":\"disk\"");
    before = lines_of_out();
    assert_int_equal(run("purge", "mail", "--state", "due", "--yes"), 0);
    assert_out("4 due jobs removed\n");
    assert_int_equal(run_in(before, strlen(before), "import", "mail", NULL), 0);
    assert_out("4 jobs added\n");
    assert_int_equal(run("export", "mail"), 0);
    after = lines_of_out();
    assert_string_equal(after, before);
    assert_int_equal(count("EXISTS", ROOT ":uniq:mail:u"), 1);
    free(before);
    free(after);
}

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(run("add", "mail", "x"), 0);
    assert_int_equal(run("export", "mail", "--state", "dead"), 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(run("export", "mail", "--state", "dead,due"), 0);
    assert_says(&out, "\"state\":\"due\"");
    assert_int_equal(run("export", "mail", "--state", "due,ded"), 64);
    assert_says(&err, "did you mean dead?");
    do_redis("HSET", ROOT ":jobs", "j00000000000", "rubbish");
    do_redis("ZADD", ROOT ":q:mail:5", "5", "j00000000000");
    assert_int_equal(run("export", "mail"), 65);
    assert_says(&err, "1 of the jobs have a broken record");
    assert_says(&out, "\"payload\":\"x\"");
}

static void test_once(void **state)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;

    (void)state;
    (void)run("add", "mail", "a", "--in", "1h");
    (void)run("add", "mail", "b", "--in", "1h");
    do_redis("ZADD", ROOT ":due:mail", "1900000000000.5", "raw");
    assert_int_equal(run("export", "mail"), 0);
    assert_says(&out, "{\"raw\":true,\"queue\":\"mail\",\"state\":\"due\","
                      "\"due_ms\":1900000000001,\"payload\":\"raw\"}\n");
    buf_add(&lines, out.data, out.len);
    assert_int_equal(run_in(lines.data, lines.len, "import", "two", "--once", NULL), 0);
    assert_out("3 jobs added\n");
    assert_int_equal(run_in(lines.data, lines.len, "import", "two", "--once", "--json", NULL), 0);
    assert_out("{\"queue\":\"two\",\"added\":0,\"repeated\":3,\"dropped\":0,\"replaced\":0,"
               "\"moved\":0}\n");
    assert_int_equal(run_in(lines.data, lines.len, "import", "two", NULL), 0);
    assert_int_equal(count("ZCARD", ROOT ":q:two:5"), 6);
    assert_int_equal(feed("{\"payload\":\"x\"}\n", "import", "two", "--once"), 65);
    assert_says(&err, "--once needs an id or a token in it, at line 1");
}

/* An export is imported into its own queue again and again: the raw member becomes a job, and
 * nothing else is added. */
static void test_once_into_itself(void **state)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;
    char *edited;

    (void)state;
    (void)run("add", "mail", "a", "--in", "1h");
    (void)run("add", "mail", "b", "--in", "1h");
    do_redis("ZADD", ROOT ":due:mail", "1900000000000.5", "raw");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run("export", "mail"), 0);
        buf_clear(&lines);
        buf_add(&lines, out.data, out.len);
        assert_int_equal(run_in(lines.data, lines.len, "import", "mail", "--once", NULL), 0);
        assert_int_equal(count("ZCARD", ROOT ":q:mail:5"), 3);
    }
    /* A line with another payload is another job. */
    edited = strstr(lines.data, "\"payload\":\"a\"");
    assert_non_null(edited);
    edited[strlen("\"payload\":\"")] = 'A';
    assert_int_equal(run_in(lines.data, lines.len, "import", "mail", "--once", NULL), 0);
    assert_int_equal(count("ZCARD", ROOT ":q:mail:5"), 4);
}

/* Lines with all options that a line can have, more lines than fit into one call. */
static void test_full_lines(void **state)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;

    (void)state;
    do_redis("FLUSHALL");
    for (int i = 0; i < 200; i++)
        buf_printf(&lines,
                   "{\"payload\":\"%d\",\"due_ms\":4102444800000,\"priority\":4,\"key\":\"k\","
                   "\"attempts_max\":3,\"timeout_ms\":1000,\"expire_ms\":2000,\"keep_ms\":3000,"
                   "\"trace\":\"" TRACE "\",\"lock\":\"l\"}\n",
                   i);
    assert_int_equal(feed(buf_str(&lines), "import", "mail", "-"), 0);
    assert_out("200 jobs added\n");
    assert_int_equal(count("HLEN", ROOT ":jobs"), 200);
    assert_int_equal(
        feed("{\"payload\":\"1\",\"key\":\"a\",\"key_base64\":\"YQ==\"}\n", "import", "mail", "-"),
        65);
}

/* A raw score that is no time: the job runs now, or the member is no job and will be buried. */
static void test_raw_scores(void **state)
{
    (void)state;
    do_redis("FLUSHALL");
    do_redis("ZADD", ROOT ":due:mail", "0", "old", "1767225600", "seconds", "+inf", "never");
    do_redis("SADD", ROOT ":names", "mail");
    assert_int_equal(run("export", "mail"), 65);
    assert_says(&out, "\"payload\":\"old\"");
    assert_says(&err, "2 of the jobs");
    assert_null(strstr(buf_str(&out), "\"due_ms\":0,"));
    assert_null(strstr(buf_str(&out), "seconds"));
    assert_int_equal(run("stats", "--prometheus"), 0);
    assert_null(strstr(buf_str(&out),
                       "laterd_oldest_due_seconds{namespace=\"default\",queue=\"mail\"} 17"));
}

/* No line after the first bad one is added, and the error names its line. */
static void test_bad_lines(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *says;
        int added;
    } all[] = {
        {"{\"payload\":\"1\"}\n{\"payload\":\"2\"", 65,
         "it is no JSON: '}' expected near end of file, at line 2", 1},
        {"{\"payload\":\"1\"}\n\n{\"payload\":\"3\"}\n", 65, "at line 2", 1},
        {"{\"payload\":\"1\"}\n{\"payload\":\"2\",\"priority\":10}\n{\"payload\":\"3\"}\n", 65,
         "priority '10' is not a whole number from 0 to 9, at line 2 [ELATER_OPTION]", 0},
        {"{\"payload\":\"1\"}\n{\"payload\":\"2\",\"due_ms\":1767225600}\n", 65,
         "looks like seconds: times are in ms, at line 2", 0},
        {"{\"payload\":\"1\"}\n{\"payload\":\"2\",\"unique\":\"u\"}\n{\"payload\":\"3\",\"key\":"
         "\"\"}\n",
         65, "at line 3", 2},
        {"{\"payload\":\"1\",\"sem\":\"none\"}\n", 65, "there is no semaphore 'none'", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        do_redis("FLUSHALL");
        if (feed(all[i].text, "import", "mail", "-") != all[i].status)
            fail_msg("%s: %s", all[i].text, buf_str(&err));
        assert_says(&err, all[i].says);
        assert_int_equal(count("HLEN", ROOT ":jobs"), all[i].added);
    }
    assert_int_equal(feed("", "import", "mail", "-"), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(feed("{\"payload\":\"1\"}\nx\n", "import", "mail", "--json"), 65);
    assert_says(&out,
                "\"line\":2,\"lines_added\":[[1,1]],\"lines_unknown\":[],\"not_sent_from\":2");
    assert_int_equal(run("import", "mail", "/nonexistent"), 66);
    assert_int_equal(run("import", "mail", "x", "--remove"), 64);
    assert_says(&err, "--remove goes with --zset");
    assert_int_equal(run("import", "mail", "--zset", "s"), 64);
    assert_says(&err, "--unit s: seconds");
    assert_int_equal(run("import", "mail", "--zset", "s", "--unit", "s"), 65);
    assert_says(&err, "there is no key 's'");
}

/* ---- a foreign sorted set, as Sidekiq's schedule */

static void test_zset(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        char score[32], member[64];

        (void)snprintf(score, sizeof(score), "%d.25", 1900000000 + i / 100);
        (void)snprintf(member, sizeof(member), "{\"class\":\"Mail\",\"jid\":\"%03d\"}", i);
        do_redis("ZADD", "schedule", score, member);
    }
    assert_int_equal(run("import", "mail", "--zset", "schedule", "--unit", "s"), 0);
    assert_out("300 jobs added\n");
    assert_int_equal(count("ZCARD", "schedule"), 300);
    assert_int_equal(run("ls", "mail", "--limit", "1", "--json"), 0);
    assert_says(&out, "\"due_ms\":1900000000250");
    do_redis("ZADD", "schedule", "inf", "bad\033[2J");
    assert_int_equal(run("import", "two", "--zset", "schedule", "--unit", "s", "--remove"), 65);
    assert_out("300 jobs added\n");
    assert_says(&err, "1 member is no job and was left there; the first is 'bad\\x1b[2J'");
    assert_int_equal(count("ZCARD", "schedule"), 1);
    assert_int_equal(count("ZCARD", ROOT ":q:two:5"), 300);
    do_redis("DEL", "schedule");
    do_redis("ZADD", "delayed", "1900000000000", "id1");
    do_redis("HSET", "bodies", "id1", "body 1");
    assert_int_equal(run("import", "three", "--zset", "delayed", "--unit", "ms", "--hash", "bodies",
                         "--remove", "--json"),
                     0);
    assert_out("{\"queue\":\"three\",\"zset\":\"delayed\",\"added\":1,\"left\":0}\n");
    assert_int_equal(count("EXISTS", "delayed") + count("EXISTS", "bodies"), 0);
}

/* ---- purge */

/* Run a command on a terminal and type the answer. Everything that the terminal shows goes to
 * shown. -> its exit status */
static int on_terminal(const char *answer, struct buf *shown, char *const *argv)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status;
    char part[512];
    pid_t pid;
    ssize_t n;

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    pid = fork();
    if (pid == 0) {
        int slave = open(ptsname(master), O_RDWR);

        (void)setsid();
        for (int fd = 0; fd < 3; fd++)
            (void)dup2(slave, fd);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    assert_int_equal(write(master, answer, strlen(answer)), strlen(answer));
    buf_clear(shown);
    while ((n = read(master, part, sizeof(part))) > 0)
        buf_add(shown, part, (size_t)n);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)close(master);
    return WEXITSTATUS(status);
}

/* A dead job: of its queue, with an outcome that has an output. */
static void bury(const char *id, const char *payload)
{
    CLEANUP_FREE char *record = mem_printf("-mail\n%s", payload);

    do_redis("SADD", ROOT ":names", "mail");
    do_redis("HSET", ROOT ":jobs", id, record);
    do_redis("HSET", ROOT ":tries", id, "5 4 1 1700000000000");
    do_redis("HSET", ROOT ":errors", id, "dead 65 1700000000500 5 no such user\nout\xff");
    do_redis("ZADD", ROOT ":dead:mail", "1700000000500", id);
}

/* Dead jobs move as dead ones, with all that is known of them. */
static void test_dead_stay_dead(void **state)
{
    CLEANUP_FREE char *before = NULL, *after = NULL, *file = NULL;

    (void)state;
    bury("j00000000001", "a");
    bury("j00000000002", "b");
    assert_int_equal(run("export", "mail", "--state", "dead"), 0);
    assert_says(&out, "\"output_base64\":\"b3V0/w==\"");
    file = mem_strdup(buf_str(&out));
    before = lines_of_out();
    assert_int_equal(run_in(file, strlen(file), "import", "mail", "--keep-dead", "--once", NULL),
                     0);
    assert_out("0 jobs added, 2 repeated\n");
    assert_int_equal(run("purge", "mail", "--state", "dead", "--yes"), 0);
    assert_int_equal(run_in(file, strlen(file), "import", "mail", "--keep-dead", "--once", NULL),
                     0);
    assert_out("2 jobs added\n");
    assert_int_equal(run_in(file, strlen(file), "import", "mail", "--keep-dead", "--once", NULL),
                     0);
    assert_out("0 jobs added, 2 repeated\n");
    assert_int_equal(run("export", "mail", "--state", "all"), 0);
    after = lines_of_out();
    assert_string_equal(after, before);
    assert_int_equal(run("fsck"), 0);
    /* A time of death in seconds. */
    assert_int_equal(
        feed("{\"payload\":\"x\",\"state\":\"dead\",\"died_ms\":1700000000,\"outcome\":{"
             "\"state\":\"dead\",\"code\":1,\"when_ms\":1700000000,\"start\":1,"
             "\"text\":\"no\"}}\n",
             "import", "mail", "--keep-dead"),
        65);
    assert_says(&err, "looks like seconds");
    assert_int_equal(run("retry", "mail", "--all"), 0);
    assert_int_equal(run_in(file, strlen(file), "import", "mail", NULL), 0);
    assert_int_equal(count("ZCARD", ROOT ":q:mail:5"), 4);
    assert_int_equal(count("ZCARD", ROOT ":dead:mail"), 0);
    assert_int_equal(run("import", "mail", "--zset", "k", "--unit", "s", "--keep-dead"), 64);
}

/* `ls` has the beginning of a payload, in a pipe as well, and shows that it does. */
static void test_ls_shows_that_it_cuts(void **state)
{
    char long_one[101];

    (void)state;
    memset(long_one, 'x', 100);
    long_one[100] = '\0';
    assert_int_equal(run("add", "mail", "short"), 0);
    assert_int_equal(run("add", "mail", long_one), 0);
    assert_int_equal(run("ls", "mail"), 0);
    assert_says(&out, "short ");
    assert_says(&out, "xxx...");
    assert_null(strstr(buf_str(&out), "short..."));
}

static void test_purge(void **state)
{
    char *const argv[] = {later, (char *)"purge", (char *)"mail", (char *)"--state", (char *)"due",
                          NULL};
    CLEANUP_BUF struct buf shown = BUF_INIT;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(run("add", "mail", "x", "--in", "1h"), 0);
    assert_int_equal(run("purge", "mail"), 64);
    assert_says(&err, "--state due, parked, dead, done or all");
    assert_int_equal(run("purge", "mail", "--state", "running"), 64);
    assert_says(&err, "later cancel --running");
    assert_int_equal(run("purge", "mail", "--state", "du"), 64);
    assert_says(&err, "did you mean due?");
    assert_int_equal(run("purge", "mail", "--state", "due"), 64);
    assert_says(&err, "--yes removes 3 due jobs of queue mail");
    assert_int_equal(run("purge", "mail", "--state", "due", "--dry-run", "--json"), 0);
    assert_out("{\"queue\":\"mail\",\"state\":\"due\",\"removed\":0,\"left\":3}\n");
    assert_int_equal(on_terminal("n\n", &shown, argv), 0);
    assert_says(&shown, "Remove 3 due jobs of queue mail? [y/N] ");
    assert_int_equal(count("HLEN", ROOT ":jobs"), 3);
    assert_int_equal(on_terminal("\n", &shown, argv), 0);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 3);
    assert_int_equal(on_terminal("y\n", &shown, argv), 0);
    assert_says(&shown, "3 due jobs removed");
    assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
    assert_int_equal(run("purge", "mail", "--state", "due"), 0);
    assert_out("0 due jobs removed\n");
    assert_int_equal(run("stats", "mail", "--json"), 0);
    assert_says(&out, "\"cancelled\":3");
}

/* Several states at once, as `ls` and `export` take them. */
static void test_purge_states(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(run("add", "mail", "x", "--in", "1h"), 0);
    bury("j00000000001", "a");
    assert_int_equal(run("purge", "mail", "--state", "all"), 64);
    assert_says(&err, "--yes removes 2 due, 1 dead jobs of queue mail");
    assert_int_equal(run("purge", "mail", "--state", "due,running", "--yes"), 64);
    assert_says(&err, "later cancel --running");
    assert_int_equal(run("purge", "mail", "--state", "dead,due", "--dry-run"), 0);
    assert_out("2 due jobs would be removed\n1 dead job would be removed\n");
    assert_int_equal(run("purge", "mail", "--state", "all", "--yes", "--json"), 0);
    assert_says(&out, "\"state\":\"due\",\"removed\":2,\"left\":0}\n");
    assert_says(&out, "\"state\":\"parked\",\"removed\":0,\"left\":0}\n");
    assert_says(&out, "\"state\":\"dead\",\"removed\":1,\"left\":0}\n");
    assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
}

/* ---- rights: doc/protocol.md, "Rights" */

static void test_rights(void **state)
{
    char port[16], importer[64], auditor[64];
    CLEANUP_BUF struct buf lines = BUF_INIT;
    int64_t jobs;

    (void)state;
    (void)snprintf(port, sizeof(port), "%d", test_free_port());
    (void)snprintf(importer, sizeof(importer), "redis://importer@127.0.0.1:%s", port);
    (void)snprintf(auditor, sizeof(auditor), "redis://auditor@127.0.0.1:%s", port);
    do_redis("CONFIG", "SET", "port", port);
    do_redis("ACL", "SETUSER", "importer", "on", "nopass", "~later:{default}*",
             "&later:{default}:wake", "+ping", "+hello", "+fcall|later_v1_import", "+time", "+type",
             "+hget", "+hset", "+hdel", "+hmget", "+get", "+set", "+del", "+zscore", "+zadd",
             "+sadd", "+scard", "+sismember", "+publish");
    do_redis("ACL", "SETUSER", "auditor", "on", "nopass", "~later:*", "-@all", "+@connection",
             "+@read", "+fcall", "+time");
    assert_int_equal(run("add", "mail", "x", "--in", "1h", "--priority", "3"), 0);
    assert_int_equal(run("add", "mail", "y", "--in", "1h"), 0);
    assert_int_equal(run("--redis", auditor, "export", "mail"), 0);
    buf_add(&lines, out.data, out.len);
    assert_int_equal(run("--redis", auditor, "purge", "mail", "--state", "due", "--yes"), 77);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 2);
    assert_int_equal(run_in(lines.data, lines.len, "--redis", importer, "import", "two", NULL), 0);
    assert_out("2 jobs added\n");
    assert_int_equal(
        run_in(lines.data, lines.len, "--redis", importer, "import", "two", "--once", NULL), 0);
    do_redis("ZADD", "schedule", "1900000000", "a");
    assert_int_equal(run("--redis", importer, "import", "two", "--zset", "schedule", "--unit", "s"),
                     77);
    jobs = count("ZCARD", ROOT ":q:two:5") + 1;
    do_redis("ACL", "SETUSER", "importer", "%R~schedule", "+fcall|later_v1_adopt", "+zrank",
             "+zcount", "+zrange");
    assert_int_equal(run("--redis", importer, "import", "two", "--zset", "schedule", "--unit", "s"),
                     0);
    assert_int_equal(
        run("--redis", importer, "import", "two", "--zset", "schedule", "--unit", "s", "--remove"),
        77);
    assert_says(&err, "may not ZREM 'schedule'");
    assert_int_equal(count("ZCARD", ROOT ":q:two:5"), jobs);
    do_redis("ACL", "SETUSER", "importer", "~schedule", "+zrem");
    assert_int_equal(
        run("--redis", importer, "import", "two", "--zset", "schedule", "--unit", "s", "--remove"),
        0);
    assert_int_equal(count("EXISTS", "schedule"), 0);
    do_redis("CONFIG", "SET", "port", "0");
}

/* ---- tables */

/* No line is wider than the terminal, whatever is in names and reasons. */
static void test_tables(void **state)
{
    static const char *const widths[] = {"60", "80", "200"};
    static const char *const lists[][2] = {{"stats", NULL},
                                           {"ls", "a-queue-with-a-very-long-name-0123456789"},
                                           {"workers", NULL},
                                           {"limits", NULL},
                                           {"gates", NULL}};
    CLEANUP_BUF struct buf shown = BUF_INIT;

    (void)state;
    (void)setenv("NO_COLOR", "1", 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(run("add", lists[1][1],
                             "a payload that does not fit into a line of sixty columns, nor into "
                             "one of eighty",
                             "--in", "100d"),
                         0);
    assert_int_equal(run("pause", lists[1][1], "--reason", "the provider is down until tuesday"),
                     0);
    assert_int_equal(
        run("limits", "set", "a-limit-with-a-name-that-is-too-long-for-it", "semaphore", "1000000"),
        0);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) * 3; i++) {
        char *const argv[] = {later, (char *)(uintptr_t)lists[i / 3][0],
                              (char *)(uintptr_t)lists[i / 3][1], NULL};
        size_t width = strtoul(widths[i % 3], NULL, 10), column = 0;

        (void)setenv("COLUMNS", widths[i % 3], 1);
        assert_int_equal(on_terminal("", &shown, argv), 0);
        for (size_t k = 0; k < shown.len; k++) {
            column = shown.data[k] == '\n' || shown.data[k] == '\r' ? 0 : column + 1;
            if (column > width)
                fail_msg("%s in %zu columns: %s", argv[1], width, buf_str(&shown));
        }
    }
    (void)unsetenv("COLUMNS");
}

/* ---- times */

static int64_t due_of_json(void)
{
    const char *at = strstr(buf_str(&out), "\"due_ms\":");

    assert_non_null(at);
    return strtoll(at + 9, NULL, 10);
}

static void test_times(void **state)
{
    char id[13];

    (void)state;
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    assert_int_equal(run("add", "mail", "x", "--json", "--at", "2096-12-24 18:00"), 0);
    assert_true(due_of_json() == INT64_C(4007206800000));
    memcpy(id, strstr(out.data, "\"id\":\"") + 6, 12);
    id[12] = '\0';
    assert_int_equal(run("reschedule", id, "--at", "2096-03-25 02:30"), 0);
    assert_says(&err, "the clocks skip '2096-03-25 02:30': it is 2096-03-25 03:30:00 +0200");
    assert_says(&out, "moved, due 2096-03-25 03:30:00 +0200");
    assert_int_equal(run("reschedule", id, "--at", "2096-10-28 02:30"), 0);
    assert_says(&err, "the clocks show '2096-10-28 02:30' twice: it is 2096-10-28 02:30:00 +0200");
    assert_int_equal(run("reschedule", id, "--in", "1h30m"), 0);
    assert_int_equal(run("reschedule", id, "--at", "now"), 0);
    assert_int_equal(run("reschedule", id, "--at", "in 90m"), 0);
    assert_int_equal(run("reschedule", id, "--at", "tomorrow 09:00", "--json"), 0);
    assert_int_equal(due_of_json() / 1000 % 3600, 0);
    assert_int_equal(run("pause", "mail", "--for", "1h30m"), 0);
    assert_int_equal(run("resume", "mail", "--at", "23:59"), 0);
    assert_int_equal(run("add", "mail", "x", "--at", "next week"), 65);
    assert_says(&err, "later: 'next week' is no time: write tomorrow 09:00, today 17:30");
    assert_int_equal(run("add", "mail", "x", "--at", "tomorrow"), 65);
    assert_int_equal(run("add", "mail", "x", "--at", "2020-01-01 00:00"), 65);
    assert_says(&err, "is past");
    (void)unsetenv("TZ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, flush_all)
    const struct CMUnitTest tests[] = {
        TEST(test_round),          TEST(test_states),
        TEST(test_dead_stay_dead), TEST(test_ls_shows_that_it_cuts),
        TEST(test_once),           TEST(test_once_into_itself),
        TEST(test_full_lines),     TEST(test_raw_scores),
        TEST(test_bad_lines),      TEST(test_zset),
        TEST(test_purge),          TEST(test_purge_states),
        TEST(test_rights),         TEST(test_tables),
        TEST(test_times),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
