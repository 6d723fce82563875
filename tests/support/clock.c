#include "clock.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "env.h"
#include "shared.h"

struct test_clock *test_clock_make(const char *path)
{
    return test_shared_make(path, sizeof(struct test_clock));
}

void test_clock_free(struct test_clock *clock)
{
    (void)munmap(clock, sizeof(*clock));
}

char *test_clock_preload(void)
{
    return mem_printf("LD_PRELOAD=%s/tests/support/preload/clock.so", test_build_dir());
}

char *test_clock_variable(const char *path)
{
    return mem_printf("LATER_TEST_CLOCK=%s", path);
}

char *test_clock_sanitizer(void)
{
    const char *ours = getenv("ASAN_OPTIONS");

    return mem_printf("ASAN_OPTIONS=%s:verify_asan_link_order=0", ours != NULL ? ours : "");
}
