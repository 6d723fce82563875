#include "run/process/pidstat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* From the kernel's own linux/sched.h; both values are as old as its git history. */
#define PF_FORKNOEXEC 0x00000040U
#define PF_KTHREAD 0x00200000U

static int parse(char *stat, struct pidstat *ret)
{
    unsigned flags;
    int parent;
    long long threads;
    unsigned long long start;
    char *name = strchr(stat, '('), *at = strrchr(stat, ')');

    /* The name may hold any bytes, even ") 1 2" or LF: the last ) ends it. After it comes the
     * state; field 9 has the flags, field 22 the start time. */
    if (name == NULL || at == NULL || at < name ||
        sscanf(at + 1,
               " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lld %*d %llu",
               &ret->state, &parent, &flags, &threads, &start) != 5) {
        errno = EIO;
        return -1;
    }
    *at = '\0';
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
    ret->parent = (pid_t)parent;
    ret->is_kernels = (flags & PF_KTHREAD) != 0;
    ret->is_fork = (flags & PF_FORKNOEXEC) != 0;
    ret->threads = threads;
    ret->start = (int64_t)start;
    return 0;
}

int pidstat_read(pid_t pid, struct pidstat *ret)
{
    char path[64], stat[1024];
    CLEANUP_CLOSE int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, stat, sizeof(stat) - 1) : -1;
    if (n <= 0)
        return -1;
    stat[n] = '\0';
    return parse(stat, ret);
}

bool pidstat_is_dead(const struct pidstat *p)
{
    return p->state == 'Z' || p->state == 'X';
}

int64_t pidstat_start(pid_t pid)
{
    struct pidstat p;

    if (pidstat_read(pid, &p) < 0)
        return -1;
    return pidstat_is_dead(&p) ? -2 : p.start;
}

int64_t pidstat_memory(pid_t pid)
{
    char path[32];
    long long pages = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*d %lld", &pages) != 1)
        pages = 0;
    (void)fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}
