/*
 * The handler of a ledger: ledger_handler FILE MIN_MS MAX_MS. The payload is a number. The handler
 * appends "number id attempt fence start" to FILE, works MIN_MS to MAX_MS, and appends the same
 * with "end"; each by one write.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? value : "?";
}

static int write_line(int fd, const char *number, const char *what)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "%s %s %s %s %s\n", number, variable("LATER_ID"),
                     variable("LATER_ATTEMPT"), variable("LATER_FENCE"), what);

    return write(fd, line, (size_t)n) == n ? 0 : 1;
}

/* The duration depends on the id, so that a run can be repeated. */
static long work_ms(long min, long max)
{
    unsigned long hash = 5381;

    for (const char *p = variable("LATER_ID"); *p != '\0'; p++)
        hash = hash * 33 ^ (unsigned char)*p;
    return min + (long)(hash % (unsigned long)(max - min + 1));
}

int main(int argc, char **argv)
{
    char number[32];
    size_t len = 0;
    struct timespec work;
    ssize_t n;
    long ms;
    int fd;

    if (argc != 4)
        return 2;
    while (len < sizeof(number) - 1 && (n = read(0, number + len, sizeof(number) - 1 - len)) > 0)
        len += (size_t)n;
    number[len] = '\0';
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write_line(fd, number, "start") != 0)
        return 2;
    ms = work_ms(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
    work = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&work, NULL);
    return write_line(fd, number, "end");
}
