/*
 * A busy disk; to be preloaded into redis-server. Each fdatasync takes LATER_TEST_FSYNC_MS longer.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int fd)
{
    const char *text = getenv("LATER_TEST_FSYNC_MS");
    long ms = text != NULL ? atol(text) : 0;
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&rest, &rest) < 0)
        continue;
    return (int)syscall(SYS_fdatasync, fd);
}
