/*
 * Plug-in mode: a shared object inside the daemon (run/plugin/later_plugin.h is its side of it). A
 * pool thread runs each job; a plug-in that runs cannot be killed, only asked.
 */
#ifndef LATER_RUN_PLUGIN_PLUGIN_H
#define LATER_RUN_PLUGIN_PLUGIN_H

#include "base/err.h"
#include "run/exec/exec.h"
#include "run/plugin/later_plugin.h"

struct plugin;

/*
 * Load argv[0] for a queue and init it with the rest, which must live as long as it. NULL: err says
 * why, and the cure (code CONFIG). Main thread; blocks as long as its init does.
 */
struct plugin *plugin_load(const char *queue, char *const *argv, struct err *err);
/* Nothing of it may run. Calls its done; NULL is fine. */
void plugin_free(struct plugin *p);

/* Do its jobs end in less time than it takes to wake a thread? As the last ones did. Any thread. */
bool plugin_is_quick(const struct plugin *p);

/* A job for it, owned by the caller until plugin_run returns. */
struct plugin_order {
    struct plugin *plugin;
    struct later_job job;
    int64_t timeout_ms; /* INT64_MAX: none */
    /* It holds a lock: the guard is told before it is started, and kills the whole worker. NULL:
     * none is. */
    struct guard *guard;
    unsigned guard_slot;
};

/* Pool thread; as exec_run. */
void plugin_run(const struct plugin_order *order, struct exec_slot *slot,
                const struct exec_hooks *hooks, struct run_result *ret);

#endif
