/*
 * Runs each target on all files of its corpus, in every build and with sanitizers. So an input that
 * a fuzzer once found is tested for ever; a new one only needs a file tests/fuzz/corpus/<target>/….
 */
#include <stddef.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"

#include "../support/laterd.h"
#include "fuzz.h"

/* Use a heap copy of the exact size, so that a sanitizer sees every access beyond it. */
static void replay(int (*target)(const uint8_t *, size_t), const char *path)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    uint8_t *copy;

    test_read(path, &text);
    copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(copy);
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    assert_int_equal(target(copy, text.len), 0);
    free(copy);
}

static void replay_all(const char *name, int (*target)(const uint8_t *, size_t))
{
    const char *source = getenv("LATER_SOURCE_DIR");
    CLEANUP_FREE char *dir =
        mem_printf("%s/tests/fuzz/corpus/%s", source != NULL ? source : ".", name);
    DIR *d = opendir(dir);
    int n = 0;

    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        CLEANUP_FREE char *path = mem_printf("%s/%s", dir, e->d_name);

        if (e->d_name[0] == '.')
            continue;
        /* If it crashes, the last of these lines names the file. */
        print_message("%s/%s\n", name, e->d_name);
        replay(target, path);
        n++;
    }
    (void)closedir(d);
    assert_true(n >= 10);
}

#define X(name)                                                                                    \
    static void corpus_of_##name(void **state)                                                     \
    {                                                                                              \
        (void)state;                                                                               \
        replay_all(#name, fuzz_##name);                                                            \
    }
FUZZ_TARGETS(X)
#undef X

int main(void)
{
    const struct CMUnitTest tests[] = {
#define X(name) cmocka_unit_test(corpus_of_##name),
        FUZZ_TARGETS(X)
#undef X
    };

    log_set_level((enum log_level)(LOG_LEVEL_ERR - 1));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
