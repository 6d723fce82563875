#include "cli/bulk/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64UL << 10)

/* Refuse a folder, which open() accepts. Set size to what is left of a file: standard input may
 * start in its middle. */
static int check_file(struct feed *f, const char *name, struct err *err)
{
    struct stat st;
    off_t at;

    if (fstat(f->fd, &st) < 0)
        return err_sys(err, errno, "cannot read %.100s", name);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%.100s is a folder: name a file", name);
    at = S_ISREG(st.st_mode) ? lseek(f->fd, 0, SEEK_CUR) : -1;
    if (at >= 0 && st.st_size > at)
        f->size = (uint64_t)(st.st_size - at);
    return 0;
}

static int cannot_read(const char *path, int errnum, struct err *err)
{
    err_fill_sys(err, errnum, "cannot read %.100s", path);
    if (errnum == ENOENT || errnum == ENOTDIR)
        err->code = ERR_INPUT;
    if (errnum == EACCES)
        err->code = ERR_DENIED;
    return -1;
}

int feed_check(const char *path, struct err *err)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return 0;
    if (stat(path, &st) < 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
        return cannot_read(path, errno, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%.100s is a folder: name a file", path);
    return 0;
}

int feed_open(struct feed *f, const char *path, struct err *err)
{
    *f = (struct feed){.fd = STDIN_FILENO, .bytes = BUF_INIT};
    if (strcmp(path, "-") == 0)
        return check_file(f, "standard input", err);
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (f->fd >= 0)
        return check_file(f, path, err);
    return cannot_read(path, errno, err);
}

void feed_done(struct feed *f)
{
    if (f->fd > STDIN_FILENO)
        (void)close(f->fd);
    f->fd = -1;
    buf_done(&f->bytes);
}

enum feed_got feed_next(struct feed *f, size_t max, struct feed_line *line)
{
    size_t unseen = f->bytes.len - f->seen;
    const char *lf = unseen > 0 ? memchr(f->bytes.data + f->seen, '\n', unseen) : NULL;
    size_t end = lf != NULL ? (size_t)(lf - f->bytes.data) : f->bytes.len;
    bool is_whole = lf != NULL || f->is_over;

    f->seen = end;
    line->offset = f->at - f->base;
    line->size = is_whole ? end - f->at : 0;
    if (end - f->at > max)
        return FEED_LONG;
    if (!is_whole)
        return FEED_NONE;
    if (lf == NULL && end == f->at)
        return FEED_END;
    f->seen = end + (lf != NULL ? 1 : 0);
    f->passed += f->seen - f->at;
    f->at = f->seen;
    line->next = f->at - f->base;
    return FEED_LINE;
}

const char *feed_at(const struct feed *f, size_t offset)
{
    return f->bytes.data + f->base + offset;
}

bool feed_is_empty(const struct feed *f)
{
    return f->is_over && f->at == f->bytes.len;
}

void feed_drop(struct feed *f, size_t offset)
{
    f->base += offset;
}

/* Move what is kept to the front: lines of the next call, part of a line; seldom over a piece. */
static void close_up(struct feed *f)
{
    buf_drop(&f->bytes, f->base);
    f->at -= f->base;
    f->seen -= f->base;
    f->base = 0;
}

/* Whether there is something to read (or the end), and stop_fd is not readable. */
static bool is_ready(int fd, int stop_fd, bool may_wait)
{
    struct pollfd fds[] = {{fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
    int n;

    do {
        n = poll(fds, 2, may_wait ? -1 : 0);
    } while (n < 0 && errno == EINTR);
    /* If poll fails, read reports the reason. */
    return fds[1].revents == 0 && (n < 0 || fds[0].revents != 0);
}

int feed_read(struct feed *f, int stop_fd, bool may_wait, struct err *err)
{
    char *end;
    ssize_t n;

    if (f->is_over)
        return 1;
    if (!is_ready(f->fd, stop_fd, may_wait))
        return 0;
    close_up(f);
    end = buf_reserve(&f->bytes, PIECE);
    n = read(f->fd, end, PIECE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        return err_sys(err, errno, "cannot read on");
    f->bytes.len += (size_t)n;
    f->is_over = n == 0;
    return 1;
}
