#include "cli/hold/lock_start.h"

#include <errno.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/complain.h"
#include "cli/hold/command.h"

char **lock_start_argv(int64_t until_us, char *const *argv)
{
    size_t n = 0;
    char **all;

    while (argv[n] != NULL)
        n++;
    all = mem_new((n + 4) * sizeof(*all));
    /* The program file that is running, even if another file has its name by now. */
    all[0] = mem_strdup("/proc/self/exe");
    all[1] = mem_strdup(LOCK_START_ARG);
    all[2] = mem_printf("%lld", (long long)until_us);
    for (size_t i = 0; i < n; i++)
        all[3 + i] = mem_strdup(argv[i]);
    return all;
}

int lock_start_main(char **args)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;
    int64_t until_us = 0;
    int status = LOCK_LOST_STATUS;

    if (args[0] == NULL || args[1] == NULL ||
        text_parse_int(args[0], 0, INT64_MAX, &until_us) < 0) {
        (void)err_set(&err, ERR_USAGE, "this is for the program's own use");
        status = EX_USAGE;
    } else if (boot_now().us >= until_us) {
        (void)err_set(&err, ERR_TEMP,
                      "this program stood still for too long before the command could start: the "
                      "command was not run");
    } else {
        (void)execvp(args[1], &args[1]);
        err.errnum = errno;
        status = command_not_run(args[1], &err);
    }
    complain(&cli, &err);
    return status;
}
