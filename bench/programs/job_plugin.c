/*
 * The handler of the benchmarks as a plug-in. Without an argument it does nothing. With one it
 * notes each start in that file (record.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run/plugin/later_plugin.h"
#include "record.h"

static int job_init(const char *queue, const char *const *args, void **state, char *error)
{
    int fd = -1;

    (void)queue;
    if (args != NULL && args[0] != NULL) {
        fd = record_open(args[0]);
        if (fd < 0) {
            (void)snprintf(error, 256, "%s: %s", args[0], strerror(errno));
            return -1;
        }
    }
    *state = (void *)(intptr_t)fd;
    return 0;
}

static int job_run(void *state, const struct later_job *job, const struct later_host *host)
{
    int fd = (int)(intptr_t)state;

    (void)host;
    if (fd >= 0 && record_start(fd, job->occurrence_ms > 0 ? job->occurrence_ms : job->due_ms) != 0)
        return LATER_DEAD;
    return LATER_OK;
}

static void job_done(void *state)
{
    int fd = (int)(intptr_t)state;

    if (fd >= 0)
        (void)close(fd);
}

const struct later_plugin later_plugin = {LATER_PLUGIN_ABI, sizeof(later_plugin), job_init, job_run,
                                          job_done};
