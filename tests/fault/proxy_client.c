#include "proxy_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"

static void die(const char *what)
{
    (void)fprintf(stderr, "fault proxy: %s: %s\n", what, strerror(errno));
    abort();
}

struct attempt {
    struct proxy *proxy;
    const char *path;
};

static bool connects(void *arg)
{
    struct attempt *a = arg;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", a->path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
        a->proxy->control = fd;
        return true;
    }
    (void)close(fd);
    return false;
}

void proxy_start(struct proxy *p, const struct test_redis *r)
{
    CLEANUP_FREE char *program = mem_printf("%s/tests/fault/proxy", test_build_dir());
    CLEANUP_FREE char *path = mem_printf("%s/proxy.sock", r->dir);
    CLEANUP_FREE char *log = mem_printf("%s/proxy.log", r->dir);
    char *argv[] = {program, path, (char *)(uintptr_t)r->sock, NULL};
    struct attempt a = {p, path};

    memset(p, 0, sizeof(*p));
    proc_start(&p->proc, argv, NULL, log);
    if (!test_until(connects, &a, 15000))
        die("does not take orders");
    (void)snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%d", (int)proxy_tell(p, "port"));
}

void proxy_stop(struct proxy *p)
{
    if (p->proc.pid == 0)
        return;
    (void)close(p->control);
    proc_done(&p->proc);
}

int64_t proxy_tell(struct proxy *p, const char *order, ...)
{
    CLEANUP_BUF struct buf answer = BUF_INIT;
    CLEANUP_FREE char *text = NULL;
    CLEANUP_FREE char *line = NULL;
    char *end;
    int64_t number;
    va_list ap;

    va_start(ap, order);
    if (vasprintf(&text, order, ap) < 0)
        die("memory");
    va_end(ap);
    line = mem_printf("%s\n", text);
    if (send(p->control, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        die(text);
    while (answer.len == 0 || answer.data[answer.len - 1] != '\n') {
        ssize_t n = read(p->control, buf_reserve(&answer, 512), 512);

        if (n <= 0)
            die(text);
        answer.len += (size_t)n;
    }
    number = strtoll(buf_str(&answer), &end, 10);
    (void)snprintf(p->said, sizeof(p->said), "%s", *end == ' ' ? end + 1 : end);
    return number;
}

struct wanted {
    struct proxy *proxy;
    int64_t n;
};

static bool has_fired(void *arg)
{
    const struct wanted *w = arg;

    return proxy_tell(w->proxy, "fired") >= w->n;
}

bool proxy_until_fired(struct proxy *p, int64_t n, int deadline_ms)
{
    struct wanted w = {p, n};

    return test_until(has_fired, &w, deadline_ms);
}

const char *proxy_hex(const char *text)
{
    static char out[1024];
    size_t n = strlen(text);

    out[0] = '\0';
    for (size_t i = 0; i < n && 2 * i + 2 < sizeof(out); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned char)text[i]);
    return out;
}
