/* `later seen`: what it prints, refuses and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "command.h"

static void test_ask(void **state)
{
    (void)state;
    assert_int_equal(run("seen", "orders", "42", "--for", "2h", "--capacity", "1000"), 0);
    assert_out("new\n");
    assert_int_equal(run("seen", "orders", "42", "--for", "1h60m"), 1);
    assert_out("seen\n");
    assert_int_equal(run("--json", "seen", "orders", "43"), 0);
    assert_out("{\"name\":\"orders\",\"key\":\"43\",\"status\":\"new\"}\n");
    assert_int_equal(run("--json", "seen", "orders", "43"), 1);
    assert_out("{\"name\":\"orders\",\"key\":\"43\",\"status\":\"seen\"}\n");
    assert_int_equal(run("--json", "seen", "orders", "\xff", "--error", "1e-4"), 0);
    assert_out("{\"name\":\"orders\",\"key_base64\":\"/w==\",\"status\":\"new\"}\n");
}

/* 1 says that a key was seen, and nothing else. */
static void test_errors(void **state)
{
    (void)state;
    assert_int_equal(run("seen", "orders", "a", "--for", "1h", "--capacity", "1000"), 0);
    assert_int_equal(run("seen", "orders", "b", "--for", "2h"), 65);
    assert_says(&err, "Bloom filter 'orders' has for 1h, not 2h");
    assert_int_equal(run("seen", "orders", "b", "--error", "0"), 65);
    assert_says(&err, "error '0' is not a number from 1e-9 to 0.1");
    assert_int_equal(run("seen", "a/b", "b"), 65);
    assert_int_equal(run("seen", "orders", ""), 65);
    assert_int_equal(run("seen", "orders", "b", "--for", "soon"), 65);
    assert_int_equal(run("seen", "orders"), 64);
    assert_says(&err, "write later seen NAME KEY");
    assert_int_equal(run("seen", "orders", "b", "--lines"), 64);
    assert_int_equal(run("seen", "ls", "b"), 64);
    assert_int_equal(run("seen", "ls", "--for", "1h"), 64);
    assert_int_equal(run("seen", "rm"), 64);
    do_redis("DEL", ROOT ":seen");
    do_redis("RPUSH", ROOT ":seen", "x");
    assert_int_equal(run("seen", "orders", "a"), 65);
    assert_says(&err, "[ELATER_TYPE]");
    assert_int_equal(feed("a\n", "seen", "orders", "--lines"), 65);
    assert_says(&err, "at line 1");
}

static void test_each_line(void **state)
{
    CLEANUP_BUF struct buf in = BUF_INIT, want = BUF_INIT;

    (void)state;
    assert_int_equal(feed("a\nb\n\na\r\nb\nc", "seen", "urls", "--lines", "--capacity", "1000"), 0);
    assert_out("a\nb\na\r\nc\n");
    assert_int_equal(feed("c\na\n", "seen", "urls", "--lines"), 1);
    assert_out("");
    assert_int_equal(feed("", "seen", "urls", "--lines"), 1);
    assert_int_equal(feed("c\nd\n", "--json", "seen", "urls", "--lines"), 0);
    assert_out("{\"name\":\"urls\",\"key\":\"d\",\"status\":\"new\"}\n");
    /* More than are under way at once; the same twice among them. */
    for (int i = 0; i < 1000; i++) {
        buf_printf(&in, "key %d\nkey %d\n", i, i / 2);
        buf_printf(&want, "key %d\n", i);
    }
    assert_int_equal(feed(buf_str(&in), "seen", "urls", "--lines"), 0);
    assert_out(buf_str(&want));
    /* What stands before a bad line is asked and printed. */
    buf_clear(&in);
    buf_printf(&in, "x\n%01025d\ny\n", 1);
    assert_int_equal(feed(buf_str(&in), "seen", "urls", "--lines"), 65);
    assert_out("x\n");
    assert_says(&err, "more than 1024 bytes, at line 2");
    assert_int_equal(run("seen", "urls", "y"), 0);
}

static void test_ls_and_rm(void **state)
{
    (void)state;
    assert_int_equal(run("seen", "ls", "--json"), 0);
    assert_out("");
    assert_int_equal(run("seen", "urls", "a", "--for", "1h", "--capacity", "1000"), 0);
    assert_int_equal(run("seen", "ls"), 0);
    assert_says(&out, "NAME");
    assert_says(&out, "urls");
    assert_says(&out, "1h");
    assert_int_equal(run("--json", "seen", "ls"), 0);
    assert_says(&out, "{\"name\":\"urls\",\"keys\":1,\"bytes\":");
    assert_says(&out, "\"for_ms\":3600000,\"error\":0.0001,\"capacity\":1000,\"until_ms\":");
    assert_says(&out, "\"early\":0}\n");
    assert_int_equal(run("fsck"), 0);
    assert_int_equal(run("seen", "rm", "urls"), 0);
    assert_out("urls deleted\n");
    assert_int_equal(run("seen", "rm", "urls"), 66);
    assert_says(&err, "there is no Bloom filter urls");
    assert_int_equal(run("seen", "urls", "a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ask, flush_all),
        cmocka_unit_test_setup(test_errors, flush_all),
        cmocka_unit_test_setup(test_each_line, flush_all),
        cmocka_unit_test_setup(test_ls_and_rm, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
