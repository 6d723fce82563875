#include "cli/probe_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"

#define LISTING "/proc/net/unix"
#define ACCEPTS 0x10000 /* in the column Flags: the socket listens */

struct asking {
    struct probe_daemon *daemons;
    int fds[PROBE_HOST_MAX]; /* -1: no more answer is expected */
    char lines[PROBE_HOST_MAX][256];
    size_t lens[PROBE_HOST_MAX];
    size_t n;
};

static bool is_ours(uid_t uid)
{
    return geteuid() == 0 || uid == geteuid() || uid == 0;
}

static void add(struct asking *p, pid_t pid, uid_t uid, int fd)
{
    if (p->n == PROBE_HOST_MAX) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    p->daemons[p->n] = (struct probe_daemon){.pid = pid, .uid = uid};
    p->fds[p->n++] = fd;
}

/* name: "laterd/NAMESPACE/PID-RANDOM". Any user can bind such a name. */
static void ask(struct asking *p, const char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    CLEANUP_CLOSE int fd = -1;

    if (n >= sizeof(to.sun_path) - 1)
        return;
    memcpy(to.sun_path + 1, name, n);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
        return; /* the kernel names the owner of a connected socket only */
    /* Without a process id the peer is in another container, invisible to us. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid != 0 &&
        is_ours(peer.uid))
        add(p, peer.pid, peer.uid, TAKE_FD(fd));
}

/* A row of the listing: "Num RefCount Protocol Flags Type St Inode Path". */
static void take_line(struct asking *p, char *line, const char *ns)
{
    CLEANUP_FREE char *prefix = mem_printf("@laterd/%s/", ns);
    unsigned flags = 0;
    int at = 0, end = 0;
    const char *name;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &at) != 1 || at == 0 ||
        (flags & ACCEPTS) == 0)
        return;
    name = line + at;
    if (strncmp(name, prefix, strlen(prefix)) != 0 ||
        sscanf(name + strlen(prefix), "%*9d-%*8[0-9a-f]%n", &end) != 0 || end == 0 ||
        name[strlen(prefix) + (size_t)end] != '\0')
        return;
    ask(p, name + 1);
}

static int64_t number_in(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static void take_answer(struct probe_daemon *d, const char *line)
{
    d->has_answered = true;
    d->epoch = number_in(line, " epoch=");
    d->queues = number_in(line, " queues=");
    d->is_linked = number_in(line, " linked=") != 0;
    d->is_registered = number_in(line, " registered=") != 0;
    d->is_quiet = number_in(line, " quiet=") != 0;
    d->is_stopping = number_in(line, " stopping=") != 0;
}

/* Read from daemon i. Close its socket after a whole answer, its end, or an error. */
static void listen_to(struct asking *p, size_t i)
{
    char *line = p->lines[i];
    ssize_t n = read(p->fds[i], line + p->lens[i], sizeof(p->lines[i]) - 1 - p->lens[i]);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        p->lens[i] += (size_t)n;
    if (memchr(line, '\n', p->lens[i]) != NULL)
        take_answer(&p->daemons[i], line);
    else if (n > 0 && p->lens[i] < sizeof(p->lines[i]) - 1)
        return;
    (void)close(p->fds[i]);
    p->fds[i] = -1;
}

static void wait_for_answers(struct asking *p, int wait_ms)
{
    struct mono end = mono_add_ms(mono_now(), wait_ms);

    for (;;) {
        struct pollfd polled[PROBE_HOST_MAX];
        int64_t left_ms = mono_until_us(mono_now(), end) / 1000;
        size_t waiting = 0;

        for (size_t i = 0; i < p->n; i++) {
            polled[i] = (struct pollfd){.fd = p->fds[i], .events = POLLIN};
            waiting += p->fds[i] >= 0;
        }
        if (waiting == 0 || left_ms <= 0 || poll(polled, p->n, (int)left_ms) == 0)
            return;
        for (size_t i = 0; i < p->n; i++) {
            if (p->fds[i] >= 0 && polled[i].revents != 0)
                listen_to(p, i);
        }
    }
}

/* Drop other users' daemons if root has one itself, as in a container: a handler of that daemon,
 * which runs as another user, could have bound their sockets. */
static void prefer_own(struct asking *p)
{
    bool has_own = false;
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        has_own = has_own || p->daemons[i].uid == geteuid();
    for (size_t i = 0; has_own && i < p->n; i++) {
        if (p->daemons[i].uid != 0 && p->daemons[i].uid != geteuid()) {
            (void)close(p->fds[i]);
            continue;
        }
        p->daemons[n] = p->daemons[i];
        p->fds[n++] = p->fds[i];
    }
    p->n = has_own ? n : p->n;
}

int probe_host(const char *ns, int wait_ms, struct probe_daemon **ret, size_t *ret_n,
               struct err *err)
{
    FILE *list = fopen(LISTING, "re");
    CLEANUP_FREE struct asking *p = NULL;
    CLEANUP_FREE char *line = NULL;
    size_t cap = 0;

    if (list == NULL)
        return err_sys(err, errno, "%s", LISTING);
    p = mem_new(sizeof(*p));
    p->daemons = mem_new(PROBE_HOST_MAX * sizeof(*p->daemons));
    while (getline(&line, &cap, list) > 0)
        take_line(p, line, ns);
    (void)fclose(list);
    prefer_own(p);
    wait_for_answers(p, wait_ms);
    for (size_t i = 0; i < p->n; i++) {
        if (p->fds[i] >= 0)
            (void)close(p->fds[i]);
    }
    *ret = p->daemons;
    *ret_n = p->n;
    return 0;
}
