#include "clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "env.h"

struct test_clock *test_clock_make(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct test_clock)) == 0)
        map = mmap(NULL, sizeof(struct test_clock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror(path);
        abort();
    }
    (void)close(fd);
    return map;
}

void test_clock_free(struct test_clock *clock)
{
    (void)munmap(clock, sizeof(*clock));
}

char *test_clock_preload(void)
{
    return mem_printf("LD_PRELOAD=%s/tests/preload/clock.so", test_build_dir());
}

char *test_clock_variable(const char *path)
{
    return mem_printf("LATER_TEST_CLOCK=%s", path);
}
