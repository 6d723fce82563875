#include "daemon/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/process/spawn.h"

#define STOP_MS 30000
#define RESTART_FIRST_MS 200
#define RESTART_MAX_MS 5000
#define LOG_MAX_BYTES (1024 * 1024)

struct embedded {
    struct loop *loop;
    char *dir, *conf, *sock, *log;
    pid_t pid;
    int pidfd; /* -1: it does not run */
    struct loop_fd *watch;
    struct loop_timer *restart;
    int64_t restart_ms;
    struct mono started;
    bool is_child; /* our child process, which we must wait for; false: it was taken over */
};

static const char *find_server(void)
{
    static const char *const paths[] = {"/usr/bin/redis-server", "/usr/local/bin/redis-server",
                                        "/bin/redis-server", "/opt/bin/redis-server"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    }
    return NULL;
}

static int write_conf(const struct embedded *e, struct err *err)
{
    CLEANUP_CLOSE int fd =
        open(e->conf, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    CLEANUP_FREE char *text = mem_printf("# Written by laterd at each start: do not edit.\n"
                                         "port 0\n"
                                         "unixsocket \"%s\"\n"
                                         "unixsocketperm 660\n"
                                         "dir \"%s\"\n"
                                         "logfile \"%s\"\n"
                                         "loglevel notice\n"
                                         "daemonize no\n"
                                         "supervised no\n"
                                         "save \"\"\n"
                                         "appendonly yes\n"
                                         "appendfsync everysec\n"
                                         "maxmemory-policy noeviction\n"
                                         "notify-keyspace-events Kz\n"
                                         "set-proc-title yes\n",
                                         e->sock, e->dir, e->log);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys(err, errno, "%s", e->conf);
    return 0;
}

static void trim_log(const struct embedded *e)
{
    struct stat st;

    if (stat(e->log, &st) == 0 && st.st_size > LOG_MAX_BYTES)
        (void)!truncate(e->log, 0);
}

static int launch(struct embedded *e, struct err *err)
{
    const char *server = find_server();
    char *argv[] = {(char *)(uintptr_t)server, e->conf, NULL};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", (char *)(uintptr_t) "LC_ALL=C", NULL};
    struct spawn_fds fds = {-1, -1, -1, -1};
    struct spawned child;

    if (server == NULL)
        return err_set(err, ERR_CONFIG,
                       "redis: embedded needs redis-server: apt-get install redis-server");
    trim_log(e);
    if (spawn(argv, envp, &fds, e->dir, &child, err) < 0)
        return err_wrap(err, "%s", server);
    e->pid = child.pid;
    e->pidfd = child.pidfd;
    e->is_child = true;
    e->started = mono_now();
    return 0;
}

static void on_exit_seen(void *arg, int events);

static void watch_it(struct embedded *e)
{
    e->watch = loop_fd_new(e->loop, e->pidfd, LOOP_READ, on_exit_seen, e);
}

static void unwatch(struct embedded *e)
{
    loop_fd_free(e->watch);
    e->watch = NULL;
    if (e->pidfd >= 0)
        (void)close(e->pidfd);
    e->pidfd = -1;
}

static void on_restart(void *arg)
{
    struct embedded *e = arg;
    struct err err = ERR_INIT;

    /* This blocks the loop: a server rarely dies, and nothing runs without it anyway. */
    if (launch(e, &err) < 0) {
        log_err("event=embedded-redis reason=\"%s\"", err.text);
        loop_timer_set(e->restart, RESTART_MAX_MS);
        return;
    }
    watch_it(e);
    log_notice("event=embedded-redis state=restarted pid=%d", (int)e->pid);
}

static void on_exit_seen(void *arg, int events)
{
    struct embedded *e = arg;
    siginfo_t info = {0};

    (void)events;
    if (e->is_child)
        (void)waitid(P_PID, (id_t)e->pid, &info, WEXITED);
    log_err("event=embedded-redis state=died pid=%d code=%d log=%s", (int)e->pid, info.si_status,
            e->log);
    unwatch(e);
    if (mono_until_us(e->started, mono_now()) > 10000000)
        e->restart_ms = 0;
    e->restart_ms = wait_next_ms(e->restart_ms, RESTART_FIRST_MS, RESTART_MAX_MS);
    loop_timer_set(e->restart, e->restart_ms);
}

/*
 * Take over a server that still listens on our socket; the kernel tells its pid, no file is
 * trusted. 1: taken over. 0: there is none. -1: there is one that cannot be watched; a second one
 * on the same files would ruin them.
 */
static int take_over(struct embedded *e, struct err *err)
{
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t len = sizeof(peer);

    text_copy(addr.sun_path, sizeof(addr.sun_path), e->sock);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
        e->pidfd = pidfd_open(peer.pid, 0);
    if (e->pidfd < 0)
        return err_sys(err, errno, "a redis-server that cannot be watched listens on %s: stop it",
                       e->sock);
    e->pid = peer.pid;
    e->is_child = false;
    e->started = mono_now();
    return 1;
}

struct embedded *embedded_start(struct loop *loop, const char *state_dir, struct err *err)
{
    struct embedded *e = mem_new(sizeof(*e));
    int taken;

    e->loop = loop;
    e->pidfd = -1;
    e->dir = mem_strdup(state_dir);
    e->conf = mem_printf("%s/redis.conf", state_dir);
    e->sock = mem_printf("%s/redis.sock", state_dir);
    e->log = mem_printf("%s/redis.log", state_dir);
    e->restart = loop_timer_new(loop, on_restart, e);
    if (strlen(e->sock) > 107) {
        (void)err_set(err, ERR_CONFIG,
                      "state_dir is too long for a socket in it: %s has over 107 bytes", e->sock);
        goto fail;
    }
    if (strpbrk(state_dir, "\"\\\n") != NULL) {
        (void)err_set(err, ERR_CONFIG,
                      "state_dir may not hold quotes or backslashes with redis: embedded");
        goto fail;
    }
    taken = take_over(e, err);
    if (taken < 0 || (taken == 0 && (write_conf(e, err) < 0 || launch(e, err) < 0)))
        goto fail;
    watch_it(e);
    log_notice("event=embedded-redis state=%s pid=%d socket=%s",
               e->is_child ? "started" : "taken-over", (int)e->pid, e->sock);
    return e;
fail:
    embedded_stop(e);
    return NULL;
}

static bool wait_end(const struct embedded *e, int ms)
{
    struct pollfd p = {e->pidfd, POLLIN, 0};
    int rc;

    do
        rc = poll(&p, 1, ms);
    while (rc < 0 && errno == EINTR);
    return rc > 0;
}

/* The pidfd of our process may be a mere pipe (pidwatch.h), so the signal goes to its pid. That pid
 * is safe: no other process gets it until we have waited for ours. */
static void tell(const struct embedded *e, int sig)
{
    if (e->is_child)
        (void)kill(e->pid, sig);
    else
        (void)pidfd_send_signal(e->pidfd, sig, NULL, 0);
}

void embedded_stop(struct embedded *e)
{
    if (e == NULL)
        return;
    if (e->pidfd >= 0) {
        tell(e, SIGTERM);
        if (!wait_end(e, STOP_MS)) {
            tell(e, SIGKILL);
            (void)wait_end(e, STOP_MS);
        }
        if (e->is_child) {
            siginfo_t info;

            (void)waitid(P_PID, (id_t)e->pid, &info, WEXITED | WNOHANG);
        }
        log_notice("event=embedded-redis state=stopped pid=%d", (int)e->pid);
    }
    unwatch(e);
    loop_timer_free(e->restart);
    free(e->dir);
    free(e->conf);
    free(e->sock);
    free(e->log);
    free(e);
}

const char *embedded_socket(const struct embedded *e)
{
    return e->sock;
}
