#include "shell.h"

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

int test_sh_out(const char *line, struct buf *ret)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)line,
                    NULL};

    return proc_run(argv, NULL, 0, ret, ret);
}

int test_sh(const char *line)
{
    return test_sh_out(line, NULL);
}

static char *line_of(const char *fmt, va_list ap)
{
    char *line = NULL;

    assert_true(vasprintf(&line, fmt, ap) >= 0);
    return line;
}

int test_shf(struct buf *ret, const char *fmt, ...)
{
    CLEANUP_FREE char *line = NULL;
    va_list ap;

    va_start(ap, fmt);
    line = line_of(fmt, ap);
    va_end(ap);
    return test_sh_out(line, ret);
}

void test_must(const char *fmt, ...)
{
    CLEANUP_FREE char *line = NULL;
    va_list ap;

    va_start(ap, fmt);
    line = line_of(fmt, ap);
    va_end(ap);
    test_says(line, 0, "");
}

void test_says(const char *line, int status, const char *text)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    int got = test_sh_out(line, &said);

    if (got != status || strstr(buf_str(&said), text) == NULL)
        fail_msg("%s\nexits with %d, not %d, or says no \"%s\": %s", line, got, status, text,
                 buf_str(&said));
}

void test_sh_start(struct proc *p, const char *line)
{
    CLEANUP_FREE char *log = mem_printf("%s/said", getenv("DIR"));
    CLEANUP_FREE char *all = mem_printf("exec %s", line);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", all, NULL};

    proc_start(p, argv, NULL, log);
}
