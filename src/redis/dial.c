#include "redis/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

#define FULL_MS 5

bool dial_wait(int fd, short events, struct mono deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t us = mono_until_us(mono_now(), deadline);
        int64_t ms = us <= 0 ? 0 : us / 1000 + 1;
        int n = poll(&p, 1, ms < 3600000 ? (int)ms : 3600000);

        if (n > 0)
            return true;
        if (us <= 0)
            return false;
        if (n < 0 && errno != EINTR)
            return true; /* the next read or write says what is wrong */
    }
}

/* As connect(2). A unix socket has EAGAIN while the queue of those who connect is full, and no
 * event that tells when it is not. */
static int connect_queued(int fd, const struct sockaddr *to, socklen_t len, struct mono deadline)
{
    int result;

    while ((result = connect(fd, to, len)) < 0 && errno == EAGAIN && to->sa_family == AF_UNIX &&
           mono_before(mono_now(), deadline))
        (void)poll(NULL, 0, FULL_MS);
    return result;
}

/* 0, or an errno. */
static int connect_until(int fd, const struct sockaddr *to, socklen_t len, struct mono deadline)
{
    socklen_t size = sizeof(int);
    int errnum;

    if (connect_queued(fd, to, len, deadline) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return errno;
    if (!dial_wait(fd, POLLOUT, deadline))
        return ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) == 0 ? errnum : errno;
}

/* A connected socket, or -1 with errno. */
static int try_address(const struct sockaddr *to, socklen_t len, struct mono deadline)
{
    CLEANUP_CLOSE int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    static const int yes = 1;
    int errnum;

    if (fd < 0)
        return -1;
    errnum = connect_until(fd, to, len, deadline);
    if (errnum != 0) {
        errno = errnum;
        return -1;
    }
    /* Commands are written whole, so waiting for more of them gains nothing. */
    if (to->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return TAKE_FD(fd);
}

static int dial_unix(const struct url *url, struct mono deadline)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%.107s", url->host);
    return try_address((const struct sockaddr *)&to, sizeof(to), deadline);
}

static int dial_list(const struct addrinfo *list, struct mono deadline, char *peer)
{
    int left = 0, fd = -1;

    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
        left++;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next, left--) {
        int64_t us = mono_until_us(mono_now(), deadline);

        fd = try_address(a->ai_addr, a->ai_addrlen, mono_add_us(mono_now(), us / left));
        if (fd >= 0 && getnameinfo(a->ai_addr, a->ai_addrlen, peer, DIAL_PEER_MAX, NULL, 0,
                                   NI_NUMERICHOST) != 0)
            peer[0] = '\0';
    }
    return fd;
}

int dial(const struct url *url, struct mono deadline, char peer[DIAL_PEER_MAX], struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[8];
    int fd, failed;

    peer[0] = '\0';
    if (url->is_unix) {
        fd = dial_unix(url, deadline);
    } else {
        (void)snprintf(port, sizeof(port), "%d", url->port);
        failed = getaddrinfo(url->host, port, &hints, &list);
        if (failed != 0)
            return err_set(err, ERR_UNAVAILABLE, "no address of this name: %s",
                           gai_strerror(failed));
        fd = dial_list(list, deadline, peer);
        failed = errno;
        freeaddrinfo(list);
        errno = failed;
    }
    return fd >= 0 ? fd : err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno));
}
