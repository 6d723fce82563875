/*
 * What a preloaded library shares with the test: a file whose path is in its environment.
 */
#ifndef LATER_TESTS_PRELOAD_SHARED_H
#define LATER_TESTS_PRELOAD_SHARED_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first n bytes of the file that the variable names; NULL without the variable or the file. */
static inline void *shared_map(const char *variable, size_t n)
{
    const char *path = getenv(variable);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map;

    if (fd < 0)
        return NULL;
    map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return map != MAP_FAILED ? map : NULL;
}

#endif
