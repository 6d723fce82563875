/* For tests behind sentinels: the servers and sentinels, a folder, and up to two daemons. */
#ifndef LATER_TESTS_INTEGRATION_SENTINEL_FIXTURE_H
#define LATER_TESTS_INTEGRATION_SENTINEL_FIXTURE_H

#include <stdlib.h>

#include "../support/env.h"
#include "../support/sentinels.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000

static struct sentinels s;

static inline void open_sentinels(void)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    fx_make_folder();
    assert_int_equal(setenv("DIR", dir, 1), 0);
    assert_int_equal(setenv("LATER", later, 1), 0);
    sentinels_start(&s, dir);
}

static inline int close_sentinels(void **state)
{
    int status = test_laterd_stop(&a) + test_laterd_stop(&b);

    (void)state;
    sentinels_stop(&s);
    test_folder_remove(dir);
    return status;
}

#endif
