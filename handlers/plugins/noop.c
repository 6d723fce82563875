/*
 * noop: does nothing. For measurements, and as a start for a plug-in of your own (doc/plugins.md):
 *
 *   cc -shared -fPIC -o noop.so noop.c
 *
 *   queues:
 *     nothing: { mode: plugin, handler: [/usr/local/lib/laterd/plugins/noop.so] }
 */
#include <later_plugin.h>

static int run(void *state, const struct later_job *job, const struct later_host *host)
{
    (void)state; /* what init returned in *state, the same for all jobs */
    (void)job;   /* job->payload, job->payload_len, ... */
    (void)host;  /* host->log(host, LATER_INFO, "..."), host->cancelled(host), ... */
    return LATER_OK;
}

/* No init and no done: there is nothing to set up. */
const struct later_plugin later_plugin = {LATER_PLUGIN_ABI, sizeof(later_plugin), NULL, run, NULL};
