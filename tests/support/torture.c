#include "torture.h"

#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "env.h"
#include "shared.h"

struct test_torture *test_torture_make(const char *path)
{
    return test_shared_make(path, sizeof(struct test_torture));
}

void test_torture_free(struct test_torture *t)
{
    (void)munmap(t, sizeof(*t));
}

void test_torture_set(struct test_torture *t, enum test_torture_kind kind, int64_t nth,
                      bool for_ever)
{
    memset(t, 0, sizeof(*t));
    t->kind = kind;
    t->for_ever = for_ever;
    t->nth = nth;
}

const char *test_torture_name(enum test_torture_kind kind)
{
    static const char *const names[] = {
#define X(name, errnum) #name,
        TEST_TORTURES(X)
#undef X
    };

    return names[kind];
}

bool test_torture_in_hiredis(const struct test_torture *t, int status)
{
    return status > 128 && t->kind == TORTURE_MALLOC && strncmp(t->module, "libhiredis", 10) == 0;
}

char *test_torture_preload(void)
{
    return mem_printf("LD_PRELOAD=%s/tests/support/preload/torture.so", test_build_dir());
}

char *test_torture_variable(const char *path)
{
    return mem_printf("LATER_TORTURE=%s", path);
}
