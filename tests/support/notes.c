#include "notes.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proc.h"

static int notify_fd = -1;

void notes_open(const char *dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval wait = {0, 100000};

    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", dir);
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify_fd < 0 || bind(notify_fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        setsockopt(notify_fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0)
        test_die(at.sun_path);
    (void)setenv("NOTIFY_SOCKET", at.sun_path, 1);
    (void)setenv("WATCHDOG_USEC", "2000000", 1);
}

void notes_for_no_others(void)
{
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
}

void notes_close(void)
{
    notes_for_no_others();
    (void)close(notify_fd);
    notify_fd = -1;
}

bool notes_told(const char *text, int deadline_ms)
{
    struct mono begin = mono_now();
    char note[600];
    ssize_t n;

    while (test_ms_since(begin) < deadline_ms) {
        n = recv(notify_fd, note, sizeof(note) - 1, 0);
        note[n > 0 ? n : 0] = '\0';
        if (n > 0 && strncmp(note, text, strlen(text)) == 0)
            return true;
    }
    return false;
}

void notes_drop(void)
{
    char note[600];

    while (recv(notify_fd, note, sizeof(note), MSG_DONTWAIT) > 0)
        continue;
}
