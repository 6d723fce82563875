#include "occurrences.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "laterd.h"

#define LINE_BYTES 16 /* no line is shorter */

void test_occurrences_handler(const char *dir, const char *name, const char *path)
{
    test_handler(dir, name,
                 "echo \"$LATER_OCCURRENCE_MS $LATER_ID $(date +%%s%%N) $LATER_SCHEDULE $(cat)\" "
                 ">> %s\n",
                 path);
}

static int by_time(const void *a, const void *b)
{
    long long x = ((const struct test_occurrence *)a)->at_ms;
    long long y = ((const struct test_occurrence *)b)->at_ms;

    return (x > y) - (x < y);
}

struct test_occurrence *test_occurrences_read(const char *path, size_t *ret_n)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct test_occurrence *runs;
    char *rest, *line;
    size_t n = 0;

    test_read(path, &text);
    runs = mem_new((text.len / LINE_BYTES + 1) * sizeof(*runs));
    rest = text.data;
    while ((line = strsep(&rest, "\n")) != NULL) {
        struct test_occurrence one;

        if (sscanf(line, "%lld %15s %lld", &one.at_ms, one.id, &one.started_ns) == 3)
            runs[n++] = one;
    }
    if (n > 0)
        qsort(runs, n, sizeof(*runs), by_time);
    *ret_n = n;
    return runs;
}

size_t test_occurrences_each_once(const char *path, long long every_ms, bool may_repeat)
{
    size_t n, occurrences;
    CLEANUP_FREE struct test_occurrence *runs = test_occurrences_read(path, &n);

    assert_true(n > 1);
    occurrences = 1;
    for (size_t i = 1; i < n; i++) {
        const struct test_occurrence *before = &runs[i - 1], *one = &runs[i];
        bool is_again =
            may_repeat && one->at_ms == before->at_ms && strcmp(one->id, before->id) == 0;

        if (!is_again && one->at_ms - before->at_ms != every_ms)
            fail_msg("%lld (%s) comes after %lld (%s)", one->at_ms, one->id, before->at_ms,
                     before->id);
        occurrences += !is_again;
    }
    return occurrences;
}
