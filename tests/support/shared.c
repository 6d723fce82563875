#include "shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc.h"

void *test_shared_make(const char *path, size_t n)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)n) == 0)
        map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        test_die(path);
    (void)close(fd);
    return map;
}
