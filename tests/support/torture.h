/*
 * A process in which the Nth call of one function fails (tests/support/preload/torture.c): what the
 * test tells it and learns from it.
 */
#ifndef LATER_TESTS_SUPPORT_TORTURE_H
#define LATER_TESTS_SUPPORT_TORTURE_H

#include <stdbool.h>
#include <stdint.h>

/* name, errno of the failure. tests/support/preload/torture.c has the functions behind a name. */
#define TEST_TORTURES(X)                                                                           \
    X(MALLOC, ENOMEM)                                                                              \
    X(WRITE, EIO)                                                                                  \
    X(READ, EIO)                                                                                   \
    X(PIPE, EMFILE)                                                                                \
    X(SPAWN, EAGAIN)                                                                               \
    X(THREAD, EAGAIN)                                                                              \
    X(OPEN, EMFILE)                                                                                \
    X(SOCKET, EMFILE)                                                                              \
    X(CONNECT, ECONNREFUSED)                                                                       \
    X(EPOLL, ENOMEM)                                                                               \
    X(EVENT, EMFILE)                                                                               \
    X(TIMER, EMFILE)                                                                               \
    X(PIDFD, EMFILE)                                                                               \
    X(MAP, ENOMEM)

enum test_torture_kind {
#define X(name, errnum) TORTURE_##name,
    TEST_TORTURES(X)
#undef X
        TORTURE_KINDS
};

/* In a shared mapping of a file. The test writes the first three before the start. */
struct test_torture {
    int32_t kind;
    int32_t for_ever; /* all calls after the Nth fail, too */
    int64_t nth;      /* from 1; 0: none fails */
    int64_t calls;    /* calls of this kind so far */
    int64_t failed;   /* calls that were made to fail */
    char module[64];  /* the first of these was made from this file, at this offset */
    uint64_t offset;
};

/* Make the file (zeroed) and map it; ends the test program when it cannot. */
struct test_torture *test_torture_make(const char *path);
void test_torture_free(struct test_torture *t);
/* Set what fails in the next process; the counts become 0. */
void test_torture_set(struct test_torture *t, enum test_torture_kind kind, int64_t nth,
                      bool for_ever);
const char *test_torture_name(enum test_torture_kind kind);
/*
 * Did a process that ended with this status crash inside hiredis? Its version 0.14 answers a lack
 * of memory by abort(), or not at all, and has no hook for it. Such a crash is like any other: the
 * jobs must survive it.
 */
bool test_torture_in_hiredis(const struct test_torture *t, int status);

/* "LD_PRELOAD=…" and "LATER_TORTURE=path" for a process' environment; the caller's. */
char *test_torture_preload(void);
char *test_torture_variable(const char *path);

#endif
