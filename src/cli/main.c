#include <signal.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    /* A server that closes the connection is an error to report, not the end of this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    return cli_main(argc, argv);
}
