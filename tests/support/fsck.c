#include "fsck.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "env.h"

/* The number after "name": in this JSON; -1: not there. */
static long number(const char *line, const char *name)
{
    CLEANUP_FREE char *key = mem_printf("\"%s\":", name);
    const char *at = strstr(line, key);

    return at != NULL ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* -> findings that are left */
static int run(struct test_redis *r, const char *option)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    CLEANUP_BUF struct buf out = BUF_INIT, err = BUF_INIT;
    const char *argv[] = {program, "--redis", r->url, "fsck", "--json", option, NULL};
    int status = proc_run((char *const *)(uintptr_t)argv, NULL, 0, &out, &err);
    const char *sum = strstr(buf_str(&out), "{\"jobs\":");
    long findings = sum != NULL ? number(sum, "findings") : -1;
    long repaired = sum != NULL ? number(sum, "repaired") : -1;

    if (findings > 0)
        (void)printf("%s", buf_str(&out));
    if (findings < 0 || repaired < 0 || status != (findings > repaired)) {
        (void)fprintf(stderr, "later fsck ended with %d:\n%s%s\n", status, buf_str(&out),
                      buf_str(&err));
        abort();
    }
    return (int)(findings - repaired);
}

int test_fsck(struct test_redis *r)
{
    return run(r, NULL);
}

int test_fsck_repair(struct test_redis *r)
{
    return run(r, "--repair");
}
