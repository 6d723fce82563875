/*
 * append: writes each job as a line to a file: the time, its id, its payload.
 *
 *   queues:
 *     events:
 *       mode: plugin
 *       handler: [/usr/local/lib/laterd/plugins/append.so, /var/log/events, fsync]
 *
 * With `fsync` a job is done when its line is on the disk, without it when the system has the line.
 * A line is one write, so lines of several daemons do not mix. LF, CR and backslash in a payload
 * become \n, \r and \\. The file is opened for each line, so it may be moved away at any time
 * (logrotate).
 *
 * If a worker dies after the write, the job runs again and adds another line with the same id.
 */
#include <errno.h>
#include <fcntl.h>
#include <later_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ERROR_BYTES 256 /* the longest error text of init */
#define HEAD_BYTES 64   /* time and id */

struct append {
    const char *path; /* in the configuration, which lives as long as we do */
    int is_synced;
};

static int open_file(const struct append *a)
{
    return open(a->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static int refuse(char *error, const char *what, const char *why)
{
    (void)snprintf(error, ERROR_BYTES, "%s: %s", what, why);
    return -1;
}

static int init(const char *queue, const char *const *args, void **state, char *error)
{
    struct append *a;
    int fd;

    (void)queue;
    if (args[0] == NULL || args[0][0] != '/')
        return refuse(error, "append", "name the file by its absolute path: [append.so, /FILE]");
    if (args[1] != NULL && (strcmp(args[1], "fsync") != 0 || args[2] != NULL))
        return refuse(error, args[1], "behind the file there may be `fsync`, nothing else");
    a = malloc(sizeof(*a));
    if (a == NULL)
        return refuse(error, "append", strerror(ENOMEM));
    a->path = args[0];
    a->is_synced = args[1] != NULL;
    /* Fail now rather than with the first job. */
    fd = open_file(a);
    if (fd < 0) {
        free(a);
        return refuse(error, args[0], strerrordesc_np(errno));
    }
    (void)close(fd);
    *state = a;
    return 0;
}

/* "2026-11-22T10:50:42.123Z j1k0peb8vg8x " */
static size_t put_head(char *line, const char *id)
{
    struct timespec now;
    struct tm tm;
    size_t n;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    n = strftime(line, HEAD_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    return n +
           (size_t)snprintf(line + n, HEAD_BYTES - n, ".%03ldZ %.16s ", now.tv_nsec / 1000000, id);
}

static size_t put_payload(char *line, const char *payload, size_t n)
{
    char *at = line;

    for (size_t i = 0; i < n; i++) {
        const char *hit = memchr("\n\r\\", payload[i], 3);

        if (hit != NULL) {
            *at++ = '\\';
            *at++ = hit[0] == '\n' ? 'n' : hit[0] == '\r' ? 'r' : '\\';
        } else {
            *at++ = payload[i];
        }
    }
    *at++ = '\n';
    return (size_t)(at - line);
}

/* 0 or an errno. */
static int write_line(const struct append *a, const char *line, size_t n)
{
    int fd = open_file(a), e = 0;
    ssize_t done;

    if (fd < 0)
        return errno;
    done = write(fd, line, n);
    if (done < 0)
        e = errno;
    else if ((size_t)done < n)
        e = ENOSPC; /* only a part fits on the disk */
    else if (a->is_synced && fdatasync(fd) < 0)
        e = errno;
    (void)close(fd);
    return e;
}

static int run(void *state, const struct later_job *job, const struct later_host *host)
{
    const struct append *a = state;
    char *line = malloc(HEAD_BYTES + 2 * job->payload_len + 1);
    int e = ENOMEM;
    size_t n;

    if (line != NULL) {
        n = put_head(line, job->id);
        n += put_payload(line + n, job->payload, job->payload_len);
        e = write_line(a, line, n);
    }
    free(line);
    if (e == 0)
        return LATER_OK;
    host->result(host, strerrordesc_np(e), strlen(strerrordesc_np(e)));
    return LATER_FAIL;
}

static void done(void *state)
{
    free(state);
}

const struct later_plugin later_plugin = {LATER_PLUGIN_ABI, sizeof(later_plugin), init, run, done};
