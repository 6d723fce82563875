#include "shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

void test_says(const char *line, int status, const char *text)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(test_sh_out(line, &out), status);
    if (strstr(buf_str(&out), text) == NULL)
        fail_msg("%s says: %s", line, buf_str(&out));
}

void test_sh_start(struct proc *p, const char *line)
{
    CLEANUP_FREE char *log = mem_printf("%s/said", getenv("DIR"));
    CLEANUP_FREE char *all = mem_printf("exec %s", line);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", all, NULL};

    proc_start(p, argv, NULL, log);
}
