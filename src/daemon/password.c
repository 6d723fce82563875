#include "daemon/password.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define CREDENTIAL "redis-password"

static char *credential; /* its path, never freed; NULL: the service manager gave none */

void password_init(void)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    if (folder != NULL && folder[0] == '/')
        credential = mem_printf("%s/" CREDENTIAL, folder);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
}

int password_read(const char *file, struct url *url, struct err *err)
{
    if (file[0] != '\0')
        return url_read_password(file, url, err) < 0 ? -1 : 1;
    /* It may be out of sight: the --check-config of ExecReload= does not run in the service's own
     * view of the file system. */
    if (credential == NULL || access(credential, F_OK) < 0)
        return 0;
    return url_read_credential(credential, url, err) < 0 ? -1 : 1;
}
