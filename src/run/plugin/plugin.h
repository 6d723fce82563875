/*
 * Plug-in mode: a shared object inside the daemon (run/plugin/later_plugin.h is the plug-in's
 * side). A pool thread runs each job. A running plug-in cannot be killed, only asked to end.
 */
#ifndef LATER_RUN_PLUGIN_PLUGIN_H
#define LATER_RUN_PLUGIN_PLUGIN_H

#include "base/err.h"
#include "run/exec/exec.h"
#include "run/plugin/later_plugin.h"

struct plugin;

/*
 * Load argv[0] for a queue and call its init with the other arguments, which must outlive the
 * plug-in. NULL: err has the reason and the cure (code CONFIG). Main thread; blocks as long as init
 * does.
 */
struct plugin *plugin_load(const char *queue, char *const *argv, struct err *err);
/* Calls done and unloads it; none of its jobs may run. Main thread. NULL is fine. */
void plugin_free(struct plugin *p);

/* Did its last jobs take less time than waking a thread does (mean below 100 us)? Any thread. */
bool plugin_is_quick(const struct plugin *p);

/* A job for it, owned by the caller until plugin_run returns. */
struct plugin_order {
    struct plugin *plugin;
    struct later_job job;
    int64_t timeout_ms; /* INT64_MAX: none */
    /* Set if the job is guarded (job/job.h): the guard is told before the start, and would kill the
     * whole worker. NULL: it is not. */
    struct guard *guard;
    unsigned guard_place;
};

/* Run one job on a pool thread. As exec_run, but hooks must not be NULL. */
void plugin_run(const struct plugin_order *order, struct exec_slot *slot,
                const struct exec_hooks *hooks, struct run_report *ret);

#endif
