#include "torture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "env.h"

struct test_torture *test_torture_make(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct test_torture)) == 0)
        map = mmap(NULL, sizeof(struct test_torture), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror(path);
        abort();
    }
    (void)close(fd);
    return map;
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

char *test_torture_preload(void)
{
    return mem_printf("LD_PRELOAD=%s/tests/preload/torture.so", test_build_dir());
}

char *test_torture_variable(const char *path)
{
    return mem_printf("LATER_TORTURE=%s", path);
}
