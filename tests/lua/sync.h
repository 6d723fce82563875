/* The sync of a worker, for tests that look at its results and ends. */
#ifndef LATER_TESTS_LUA_SYNC_H
#define LATER_TESTS_LUA_SYNC_H

#include "fixture.h"

/* A sync. results: words behind their number; ends: groups behind their number. */
static inline const char *do_sync(const char *w, const char *results, const char *queue,
                                  const char *ends)
{
    const char *got =
        fcall("later_v1_sync %s 1 0 50 %s 1 %s 50 1048576 %s", w, results, queue, ends);

    assert_starts(got, "[");
    assert_string_equal(at(1, -1), "ok");
    return got;
}

#endif
