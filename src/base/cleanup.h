/*
 * Ownership of local variables. One declared with CLEANUP_x is freed or closed when it goes out of
 * scope. TAKE_PTR and TAKE_FD move its value out and clear it, so that nothing is freed or closed.
 */
#ifndef LATER_BASE_CLEANUP_H
#define LATER_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define CLEANUP_FREE __attribute__((cleanup(cleanup_free)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close)))

static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static inline void *take_ptr(void *p)
{
    void *taken = *(void **)p;

    *(void **)p = NULL;
    return taken;
}

#define TAKE_FD(fd) take_fd(&(fd))
#define TAKE_PTR(p) take_ptr(&(p))

#endif
