#include "cli/args/whoami.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

void whoami(char *out, size_t cap)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[65] = "";

    (void)gethostname(host, sizeof(host) - 1);
    if (user != NULL)
        (void)snprintf(out, cap, "%s@%s", user->pw_name, host);
    else
        (void)snprintf(out, cap, "%lu@%s", (unsigned long)geteuid(), host);
}
