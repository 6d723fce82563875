#include "cli/verbs/verbs.h"

#include <string.h>

/* Each is defined in a file of this folder. */
extern const struct cli_verb cmd_add, cmd_show, cmd_explain, cmd_wait, cmd_ls, cmd_cancel,
    cmd_retry, cmd_run_now, cmd_reschedule, cmd_pause, cmd_resume, cmd_quiet, cmd_stats,
    cmd_workers, cmd_health, cmd_fsck, cmd_setup, cmd_cli, cmd_limits, cmd_throttle, cmd_lock,
    cmd_sem, cmd_once, cmd_gates, cmd_purge, cmd_export, cmd_import, cmd_tail, cmd_batch,
    cmd_schedule, cmd_publish, cmd_topic, cmd_broadcast, cmd_top, cmd_seen, cmd_find, cmd_bulk,
    cmd_web, cmd_step, cmd_run;

const struct cli_verb *const cli_verbs[] = {
    &cmd_add,   &cmd_show,     &cmd_explain,    &cmd_wait,     &cmd_ls,        &cmd_cancel,
    &cmd_retry, &cmd_run_now,  &cmd_reschedule, &cmd_pause,    &cmd_resume,    &cmd_quiet,
    &cmd_stats, &cmd_workers,  &cmd_limits,     &cmd_throttle, &cmd_lock,      &cmd_sem,
    &cmd_once,  &cmd_gates,    &cmd_purge,      &cmd_export,   &cmd_import,    &cmd_tail,
    &cmd_batch, &cmd_schedule, &cmd_publish,    &cmd_topic,    &cmd_broadcast, &cmd_top,
    &cmd_seen,  &cmd_find,     &cmd_bulk,       &cmd_health,   &cmd_fsck,      &cmd_setup,
    &cmd_cli,   &cmd_web,      &cmd_step,       &cmd_run,      NULL,
};

const struct cli_verb *cli_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}
