#include "run/pidstat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int64_t pidstat_start(pid_t pid)
{
    char path[64], stat[1024];
    CLEANUP_CLOSE int fd = -1;
    const char *at;
    unsigned long long start;
    ssize_t n;
    char state;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, stat, sizeof(stat) - 1) : -1;
    if (n <= 0)
        return -1;
    stat[n] = '\0';
    /* The name may hold anything, even ") 1 2" or a line's end: the last ) ends it. Then come the
     * state and, as field 22, the start time. */
    at = strrchr(stat, ')');
    if (at == NULL || sscanf(at + 1,
                             " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                             "%*d %*d %llu",
                             &state, &start) != 2)
        return -1;
    if (state == 'Z' || state == 'X') /* only its parent does not know yet */
        return -2;
    return (int64_t)start;
}
