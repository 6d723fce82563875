#include "daemon/abstract_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Callers that wait while the daemon hangs; the default limit of the kernel. */
#define BACKLOG 4096

/* The process id alone is not unique: containers may share the names of sockets, but not process
 * ids. */
int abstract_socket_listen(const char *ns, const char *behind, const char *what,
                           char name[ABSTRACT_SOCKET_NAME], struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    uint32_t random = 0;
    size_t n;

    (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
    (void)snprintf(name, ABSTRACT_SOCKET_NAME - 1, "laterd/%s/%d-%08x%s", ns, (int)getpid(), random,
                   behind);
    n = strlen(name);
    memcpy(address.sun_path + 1, name, n);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return err_sys(err, errno, "%s", what);
    return TAKE_FD(fd);
}
