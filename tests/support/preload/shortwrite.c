/*
 * A network that takes few bytes at a time; to be preloaded. Of three writes to a non-blocking
 * socket, one fails with EAGAIN, one takes one byte and one takes at most three.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_slow(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_NONBLOCK) != 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    static atomic_uint calls;
    size_t most = n;

    if (n > 0 && is_slow(fd)) {
        unsigned turn = atomic_fetch_add(&calls, 1) % 3;

        if (turn == 0) {
            errno = EAGAIN;
            return -1;
        }
        most = turn == 1 || n < 3 ? 1 : 3;
    }
    return syscall(SYS_write, fd, data, most);
}
