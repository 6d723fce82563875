#include "daemon/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

static struct sockaddr_un address; /* valid if address_len is not 0 */
static socklen_t address_len;
static long watchdog_ms;

void notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    int64_t us;

    if (path != NULL && (path[0] == '/' || path[0] == '@') &&
        strlen(path) < sizeof(address.sun_path)) {
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path, path, strlen(path));
        if (path[0] == '@')
            address.sun_path[0] = '\0';
        address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    }
    /* Half of what is allowed, as sd_watchdog_enabled(3) advises. */
    if (usec != NULL && text_parse_int(usec, 1, INT64_MAX, &us) == 0 &&
        (pid == NULL || strtol(pid, NULL, 10) == getpid()))
        watchdog_ms = (long)(us / 2000);
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

static void tell(const char *text)
{
    CLEANUP_CLOSE int fd = -1;

    if (address_len == 0)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* If this fails there is nobody to report it to. */
    if (fd >= 0)
        (void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                      address_len);
}

void notify_ready(void)
{
    tell("READY=1");
}

void notify_reloading(void)
{
    char text[80];

    /* One message with both, as Type=notify-reload of newer systemd versions asks. */
    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)mono_now().us);
    tell(text);
}

void notify_stopping(int64_t at_most_ms)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
                   (long long)at_most_ms * 1000);
    tell(text);
}

void notify_status(const char *fmt, ...)
{
    char text[512] = "STATUS=";
    va_list ap;

    if (address_len == 0)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text + 7, sizeof(text) - 7, fmt, ap);
    va_end(ap);
    tell(text);
}

long notify_watchdog_ms(void)
{
    return watchdog_ms;
}

void notify_watchdog(void)
{
    tell("WATCHDOG=1");
}
