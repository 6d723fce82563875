/* base/buf, base/mem, base/err and the sums of base/clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

static void test_buf_empty(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_clear(&b);
    buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_str(&b), "");
    buf_done(&b);
    assert_null(b.data);
    buf_done(&b);
}

static void test_buf_grows(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%03d", i);
    assert_int_equal(b.len, 3000);
    assert_memory_equal(b.data, "000001002", 9);
    assert_memory_equal(b.data + 2997, "999", 4);
    assert_true(b.cap > b.len);
}

static void test_buf_bytes(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_add(&b, "a\0b", 3);
    buf_puts(&b, "c");
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "a\0bc", 5);
}

static void test_buf_drop(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_puts(&b, "hello world");
    buf_drop(&b, 0);
    buf_drop(&b, 6);
    assert_string_equal(buf_str(&b), "world");
    buf_drop(&b, 100);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_str(&b), "");
}

static void test_buf_reserve(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_puts(&b, "ab");
    memcpy(buf_reserve(&b, 500), "cd", 2);
    assert_int_equal(b.len, 2);
    b.len += 2; /* as after a read(2) into it: the NUL comes with the next buf_add */
    buf_add(&b, NULL, 0);
    assert_string_equal(buf_str(&b), "abcd");
}

static void test_buf_take(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    CLEANUP_FREE char *nothing = NULL;
    CLEANUP_FREE char *text = NULL;

    (void)state;
    nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    buf_printf(&b, "%s", "");
    buf_puts(&b, "mine");
    text = buf_take(&b);
    assert_string_equal(text, "mine");
    assert_null(b.data);
    assert_int_equal(b.len, 0);
}

static void test_mem(void **state)
{
    CLEANUP_FREE char *zeroed = mem_new(16);
    CLEANUP_FREE char *none = mem_new(0);
    CLEANUP_FREE char *dup = mem_dup("a\0b", 3);
    CLEANUP_FREE char *text = mem_printf("%s-%d", "x", 7);
    CLEANUP_FREE char *grown = mem_grow(mem_strdup("abc"), 100, 10);
    CLEANUP_FREE char *taken = NULL;

    (void)state;
    for (int i = 0; i < 16; i++)
        assert_int_equal(zeroed[i], 0);
    assert_non_null(none);
    assert_memory_equal(dup, "a\0b", 4);
    assert_string_equal(text, "x-7");
    assert_string_equal(grown, "abc");
    taken = TAKE_PTR(text);
    assert_null(text);
    assert_string_equal(taken, "x-7");
}

/* In a child: without memory the program ends with status 71. */
static void test_mem_overflow(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        (void)close(STDERR_FILENO);
        free(mem_grow(NULL, SIZE_MAX / 2, 3));
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 71);
}

static void test_err_set(void **state)
{
    struct err err = ERR_INIT;
    char big[400];

    (void)state;
    assert_int_equal(err_exit_status(&err), 0);
    assert_int_equal(err_set(&err, ERR_CONFIG, "line %d", 3), -1);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_int_equal(err.errnum, 0);
    assert_string_equal(err.text, "line 3");
    assert_int_equal(err_exit_status(&err), 78);
    assert_int_equal(err_set(NULL, ERR_DATA, "x"), -1);
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    (void)err_set(&err, ERR_REFUSED, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(err_exit_status(&err), 1);
}

static void test_err_sys(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(err_sys(&err, ENOENT, "open %s", "x"), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_int_equal(err.errnum, ENOENT);
    assert_string_equal(err.text, "open x: No such file or directory");
    assert_int_equal(err_exit_status(&err), 71);
    assert_int_equal(err_sys(NULL, ENOENT, "x"), -1);
}

static void test_err_wrap(void **state)
{
    struct err err = ERR_INIT;
    char big[400];

    (void)state;
    (void)err_sys(&err, EACCES, "open");
    err.code = ERR_DENIED;
    assert_int_equal(err_wrap(&err, "state of %s", "w1"), -1);
    assert_string_equal(err.text, "state of w1: open: Permission denied");
    assert_int_equal(err.code, ERR_DENIED);
    assert_int_equal(err.errnum, EACCES);
    memset(big, 'y', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    for (int i = 0; i < 5; i++)
        assert_int_equal(err_wrap(&err, "%s", big), -1);
    assert_true(strlen(err.text) < sizeof(err.text));
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void test_clock_sums(void **state)
{
    struct mono t = {1000}, end = {INT64_MAX - 1}, start = {INT64_MIN + 1};

    (void)state;
    assert_true(mono_add_us(t, 5).us == 1005);
    assert_true(mono_add_us(t, -2000).us == -1000);
    assert_true(mono_add_ms(t, 5).us == 6000);
    assert_true(mono_add_us(end, 10).us == INT64_MAX);
    assert_true(mono_add_us(start, -10).us == INT64_MIN);
    assert_true(mono_add_ms(t, INT64_MAX).us == INT64_MAX);
    assert_true(mono_add_ms(t, INT64_MIN).us == INT64_MIN);
    assert_true(mono_add_us(MONO_NEVER, -5).us == INT64_MAX);
    assert_true(mono_add_ms(MONO_NEVER, -5).us == INT64_MAX);
}

static void test_clock_order(void **state)
{
    struct mono a = {1}, b = {2}, low = {INT64_MIN}, high = {INT64_MAX - 1};

    (void)state;
    assert_true(mono_before(a, b));
    assert_false(mono_before(b, a));
    assert_false(mono_before(a, a));
    assert_true(mono_before(b, MONO_NEVER));
    assert_true(mono_min(a, b).us == 1);
    assert_true(mono_min(MONO_NEVER, b).us == 2);
    assert_true(mono_until_us(a, b) == 1);
    assert_true(mono_until_us(b, a) == -1);
    assert_true(mono_until_us(a, MONO_NEVER) == INT64_MAX);
    assert_true(mono_until_us(low, high) == INT64_MAX);
    assert_true(mono_until_us(high, low) == INT64_MIN);
}

static void test_clock_rises(void **state)
{
    struct mono a = mono_now(), b = mono_now();

    (void)state;
    assert_true(a.us > 0);
    assert_false(mono_before(b, a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_empty),   cmocka_unit_test(test_buf_grows),
        cmocka_unit_test(test_buf_bytes),   cmocka_unit_test(test_buf_drop),
        cmocka_unit_test(test_buf_reserve), cmocka_unit_test(test_buf_take),
        cmocka_unit_test(test_mem),         cmocka_unit_test(test_mem_overflow),
        cmocka_unit_test(test_err_set),     cmocka_unit_test(test_err_sys),
        cmocka_unit_test(test_err_wrap),    cmocka_unit_test(test_clock_sums),
        cmocka_unit_test(test_clock_order), cmocka_unit_test(test_clock_rises),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
