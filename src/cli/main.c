#include <signal.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hold/lock_start.h"
#include "run/guard/guard.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], GUARD_ARG) == 0)
        return guard_main(NULL);
    if (argc > 1 && strcmp(argv[1], LOCK_START_ARG) == 0)
        return lock_start_main(argv + 2);
    /* A server that closes the connection is an error to report, not the end of this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit is an error like others */
    return cli_main(argc, argv);
}
