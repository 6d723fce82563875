/*
 * The handler of a gate proof: gate_handler FILE MIN_MS MAX_MS [REFEREE]. It appends a line to
 * FILE, works, and appends the same with "end"; each by one write. The line is
 *
 *   <monotonic us> start <id> <attempt> <key> <fence> <queue>
 *
 * REFEREE is a folder. There the handler locks a file named after its key, and the kernel frees the
 * lock however the handler ends. If another process has the lock, the handler writes "clash"
 * instead of "start".
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : "-";
}

static int write_line(int fd, const char *what)
{
    struct timespec now = {0, 0};
    char line[512];
    int n;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    n = snprintf(line, sizeof(line), "%lld %s %s %s %s %s %s\n",
                 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000, what, variable("LATER_ID"),
                 variable("LATER_ATTEMPT"), variable("LATER_KEY"), variable("LATER_FENCE"),
                 variable("LATER_QUEUE"));
    return write(fd, line, (size_t)n) == n ? 0 : 1;
}

static int hold_alone(const char *folder)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, variable("LATER_KEY"));
    (void)umask(0);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -1;
}

/* The duration depends on the id and the attempt. */
static long work_ms(long min, long max)
{
    unsigned long hash = strtoul(variable("LATER_ATTEMPT"), NULL, 10) + 5381;

    for (const char *p = variable("LATER_ID"); *p != '\0'; p++)
        hash = hash * 33 ^ (unsigned char)*p;
    return min + (long)(hash % (unsigned long)(max - min + 1));
}

int main(int argc, char **argv)
{
    struct timespec work;
    bool is_alone;
    long ms;
    int fd;

    if (argc != 4 && argc != 5)
        return 2;
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    is_alone = argc == 4 || hold_alone(argv[4]) == 0;
    if (fd < 0 || write_line(fd, is_alone ? "start" : "clash") != 0)
        return 2;
    ms = work_ms(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
    work = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&work, NULL);
    return write_line(fd, "end");
}
