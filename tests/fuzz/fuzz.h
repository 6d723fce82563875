/*
 * The fuzz targets. Each takes any bytes and must neither crash nor fail an assertion. They are
 * built twice: by scripts/fuzz for libFuzzer, one program each (entry.c), and by make as
 * test_corpus, which runs each target on all files of tests/fuzz/corpus/<target>/.
 */
#ifndef LATER_TESTS_FUZZ_FUZZ_H
#define LATER_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A name stands for the folder of its corpus, fuzz_<name>.c and the function fuzz_<name>. */
#define FUZZ_TARGETS(X)                                                                            \
    X(conf) X(control) X(env) X(head) X(job) X(output) X(replies) X(step) X(text)

#define X(name) int fuzz_##name(const uint8_t *data, size_t n);
FUZZ_TARGETS(X)
#undef X

/* An assertion that is active in every build. */
#define FUZZ_MUST(cond)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
