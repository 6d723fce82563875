#include "web/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

#define UNIX "unix:"
#define BACKLOG 256
#define MODE 0660 /* of the socket file: a proxy of its group may connect */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

static socklen_t parse_unix(const char *path, union address *ret)
{
    if (path[0] != '/' || strlen(path) >= sizeof(ret->path.sun_path))
        return 0;
    ret->path.sun_family = AF_UNIX;
    text_copy(ret->path.sun_path, sizeof(ret->path.sun_path), path);
    return sizeof(ret->path);
}

/* Its length; 0: it is no address. */
static socklen_t parse(const char *text, union address *ret)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    int64_t port;

    memset(ret, 0, sizeof(*ret));
    if (listen_is_unix(text))
        return parse_unix(text + strlen(UNIX), ret);
    if (n == 0 || n >= sizeof(host) || text_parse_int(colon + 1, 1, 65535, &port) < 0)
        return 0;
    memcpy(host, text, n);
    host[n] = '\0';
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return sizeof(ret->v4);
    }
    if (host[0] != '[' || host[n - 1] != ']')
        return 0;
    host[n - 1] = '\0';
    if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1)
        return 0;
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = htons((uint16_t)port);
    return sizeof(ret->v6);
}

bool listen_is_unix(const char *address)
{
    return strncmp(address, UNIX, strlen(UNIX)) == 0;
}

bool listen_is_local(const char *address)
{
    union address a;

    return parse(address, &a) > 0 &&
           (a.any.sa_family == AF_UNIX ||
            (a.any.sa_family == AF_INET && ntohl(a.v4.sin_addr.s_addr) >> 24 == 127) ||
            (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)));
}

/* The file of a server that has gone is in the way of bind; that of a living one stays. */
static void unlink_stale(const union address *a, socklen_t n)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, &a->any, n) < 0 && errno == ECONNREFUSED)
        (void)unlink(a->path.sun_path);
    if (fd >= 0)
        (void)close(fd);
}

int listen_at(const char *address, struct err *err)
{
    union address a;
    socklen_t n = parse(address, &a);
    int fd, on = 1;

    if (n == 0)
        return err_set(err, ERR_CONFIG,
                       "web.listen '%.200s' is not ADDRESS:PORT, [ADDRESS]:PORT or unix:/PATH "
                       "(an address, no name)",
                       address);
    if (a.any.sa_family == AF_UNIX)
        unlink_stale(&a, n);
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && a.any.sa_family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && bind(fd, &a.any, n) == 0 &&
        (a.any.sa_family != AF_UNIX || chmod(a.path.sun_path, MODE) == 0) &&
        listen(fd, BACKLOG) == 0)
        return fd;
    err_fill(err, ERR_UNAVAILABLE, "cannot listen at %.200s: %s", address, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}
