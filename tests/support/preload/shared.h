/*
 * A file that a preloaded library shares with the test. An environment variable has its path.
 */
#ifndef LATER_TESTS_PRELOAD_SHARED_H
#define LATER_TESTS_PRELOAD_SHARED_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Map the first n bytes of the file that the variable names; NULL without variable or file. */
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
