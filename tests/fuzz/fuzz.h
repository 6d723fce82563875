/*
 * The fuzz targets: each takes any bytes and must neither crash nor break what it asserts. Built
 * twice: by scripts/fuzz for libFuzzer, one program a target (entry.c), and by make as test_corpus,
 * which runs every target over the files of tests/fuzz/corpus/<target>/.
 */
#ifndef LATER_TESTS_FUZZ_FUZZ_H
#define LATER_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* name: the folder of its corpus, the file fuzz_<name>.c and the function fuzz_<name>. */
#define FUZZ_TARGETS(X) X(conf) X(control) X(env) X(job) X(output) X(replies) X(text)

#define X(name) int fuzz_##name(const uint8_t *data, size_t n);
FUZZ_TARGETS(X)
#undef X

/* An assertion that no build takes out. */
#define FUZZ_MUST(cond)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
