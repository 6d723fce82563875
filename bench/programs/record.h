/*
 * How late a job was started, noted by the handlers of the benchmarks. Each start appends 16 bytes
 * to a file that any number of threads and processes share: when the job was due, or the
 * occurrence of its schedule, and when its handler began, both in microseconds since 1970.
 */
#ifndef LATER_BENCH_RECORD_H
#define LATER_BENCH_RECORD_H

#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static inline int record_open(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

static inline int record_start(int fd, int64_t due_ms)
{
    struct timespec now;
    int64_t row[2];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    row[0] = due_ms * 1000;
    row[1] = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    return write(fd, row, sizeof(row)) == (ssize_t)sizeof(row) ? 0 : -1;
}

#endif
