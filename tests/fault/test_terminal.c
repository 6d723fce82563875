/*
 * The command `later` against a hostile Redis: entry W9 of the fault catalogue. Whatever is written
 * to laterd's keys, no output may move the cursor or change colours or the title of a terminal.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "watched.h"

#define EVIL "\033]0;title\007\033[2J\033[31mred\r\b\177\302\233\033"

static struct test_redis *const redis = &watched.redis;

static void set(const char *command, const char *key, const char *a, const char *b)
{
    reply_free(test_redis_call(redis, command, key, a, b, NULL));
}

/* Write evil bytes to everything that the command shows. */
static void poison(const char *id)
{
    CLEANUP_FREE char *record = mem_printf("-mail 5 K=%s T=%s\n%s", EVIL, EVIL, EVIL);
    CLEANUP_FREE char *outcome = mem_printf("failed 3 1767225600000 1 %s\n%s", EVIL, EVIL);
    CLEANUP_FREE char *worker = mem_printf("%s:worker:7", ROOT);

    set("HSET", ROOT ":jobs", id, record);
    set("HSET", ROOT ":errors", id, outcome);
    set("HSET", ROOT ":progress", id, EVIL);
    set("HSET", ROOT ":notes", EVIL, "9999999999999");
    set("HSET", ROOT ":notes", "stray-key:" EVIL, "9999999999999");
    set("HSET", ROOT ":paused", "mail", "0 1767225600000 " EVIL " " EVIL);
    set("SADD", ROOT ":names", EVIL, EVIL "2");
    set("HSET", ROOT ":workers", "7", "1");
    reply_free(test_redis_call(redis, "HSET", worker, "link", "1", "inst", EVIL, "started",
                               "1767225600000", "host", EVIL, "version", EVIL, "queues",
                               "mail," EVIL, "quiet", EVIL, "pid", EVIL, NULL));
    set("HSET", ROOT ":running", EVIL, EVIL); /* a foreign type: shown in errors, too */
}

/* What `later ARGS` writes on a terminal. */
static void on_terminal(const char *args, struct buf *text)
{
    static char plain[] = "NO_COLOR=1", term[] = "TERM=xterm";
    char *const env[] = {plain, term, NULL};
    CLEANUP_FREE char *cmd =
        mem_printf("%s/later --redis %s %s", test_build_dir(), watched.redis.url, args);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", cmd, NULL};
    CLEANUP_CLOSE int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    struct winsize size = {.ws_row = 24, .ws_col = 120};
    struct proc p;
    char part[4096];
    ssize_t n;

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    proc_start(&p, argv, env, ptsname(master));
    assert_true(proc_wait(&p, LONG_MS) >= 0);
    while ((n = read(master, part, sizeof(part))) > 0)
        buf_add(text, part, (size_t)n);
    proc_done(&p);
    assert_true(text->len > 0);
}

static void must_be_plain(const char *args)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    on_terminal(args, &text);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        /* The terminal itself adds CR before each LF. */
        if ((c < ' ' && c != '\n' && c != '\t' &&
             !(c == '\r' && (text.data[i + 1] == '\n' || text.data[i + 1] == '\r'))) ||
            c == 0x7f || (c == 0xc2 && (unsigned char)text.data[i + 1] < 0xa0))
            fail_msg("later %s: byte 0x%02x at %zu of: %.*s", args, c, i, (int)text.len, text.data);
    }
}

static void W9_hostile_redis(void **state)
{
    CLEANUP_FREE char *id = NULL;
    char args[64];

    (void)state;
    watched.unsound = "its keys are poisoned";
    test_redis_load(redis);
    id = watched_add("mail", "x");
    poison(id);
    for (int broken = 1; broken >= 0; broken--) {
        static const char *const verbs[] = {"stats",   "ls mail",  "ls mail --state dead",
                                            "workers", "resume x", "stats mail"};

        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
            must_be_plain(verbs[i]);
        (void)snprintf(args, sizeof(args), "show %s", id);
        must_be_plain(args);
        (void)snprintf(args, sizeof(args), "explain %s", id);
        must_be_plain(args);
        (void)snprintf(args, sizeof(args), "cancel %s", id);
        must_be_plain(broken ? args : "ls mail --state waiting");
        reply_free(test_redis_call(redis, "DEL", ROOT ":running", NULL));
    }
    {
        CLEANUP_BUF struct buf text = BUF_INIT;

        /* The bytes were shown escaped, not left out. */
        (void)snprintf(args, sizeof(args), "show %s", id);
        on_terminal(args, &text);
        buf_add(&text, "", 1);
        assert_non_null(strstr(text.data, "\\x1b[2J"));
    }
}

/* Error replies and a wrong library come from the server, too. */
static void W9_hostile_answers(void **state)
{
    static const char library[] =
        "#!lua name=laterd\n"
        "local function say(f) redis.register_function{function_name = f, callback = function() "
        "return {err = 'ELATER_BUG \\27]0;title\\7\\27[2J'} end, flags = {'no-writes'}} end\n"
        "say('later_stats') say('later_v1_list') say('later_v1_workers') say('later_show') "
        "say('later_explain') say('later_version')";
    struct reply *r;

    (void)state;
    watched.unsound = "its library is no library";
    r = test_redis_call(redis, "FUNCTION", "LOAD", library, NULL);
    assert_non_null(r);
    reply_free(r);
    must_be_plain("stats");
    must_be_plain("ls mail");
    must_be_plain("workers");
    must_be_plain("show j00000000000");
    must_be_plain("explain j00000000000");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, watched_setup, watched_teardown)
    const struct CMUnitTest tests[] = {
        T(W9_hostile_redis),
        T(W9_hostile_answers),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
