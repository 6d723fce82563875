#include "daemon/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define JOB_VARS 16

struct order {
    struct exec_order exec;
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    char **argv;
    char **envp;
    char *payload;
};

static char **copy_list(char *const *list, size_t extra, size_t *n)
{
    char **out;

    for (*n = 0; list[*n] != NULL; ++*n)
        ;
    out = mem_new((*n + extra + 1) * sizeof(*out));
    for (size_t i = 0; i < *n; i++)
        out[i] = mem_strdup(list[i]);
    return out;
}

static void add_int(char **envp, size_t *n, const char *name, int64_t value)
{
    envp[(*n)++] = mem_printf("%s=%lld", name, (long long)value);
}

static void add_text(char **envp, size_t *n, const char *name, const char *value)
{
    envp[(*n)++] = mem_printf("%s=%s", name, value);
}

/* The names are fixed; nothing a producer writes can become one. */
static void add_job(char **envp, size_t n, const struct job *job, const struct conf_queue *conf,
                    const char *ns, int64_t late_us, int64_t timeout_ms)
{
    add_text(envp, &n, "LATER_ID", job->id);
    add_text(envp, &n, "LATER_QUEUE", job->queue);
    add_text(envp, &n, "LATER_KEY", job->key);
    add_int(envp, &n, "LATER_PRIORITY", job->priority);
    add_int(envp, &n, "LATER_ATTEMPT", job->attempt);
    add_int(envp, &n, "LATER_ATTEMPTS_MAX",
            job->attempts_max > 0 ? job->attempts_max : conf->attempts);
    add_int(envp, &n, "LATER_DUE_MS", job->due.ms);
    add_int(envp, &n, "LATER_LATE_MS", late_us > 0 ? late_us / 1000 : 0);
    add_int(envp, &n, "LATER_TIMEOUT_MS", timeout_ms == CONF_NEVER ? 0 : timeout_ms);
    add_int(envp, &n, "LATER_FENCE", job->fence);
    add_text(envp, &n, "LATER_NAMESPACE", ns);
    add_text(envp, &n, "LATER_CONTROL_FD", "3");
    if (job->trace[0] != '\0')
        add_text(envp, &n, "TRACEPARENT", job->trace);
}

struct order *order_new(struct job *job, const struct served_queue *q, const char *ns,
                        int64_t late_us)
{
    struct order *o = mem_new(sizeof(*o));
    int64_t timeout_ms = job->timeout_ms > 0 ? job->timeout_ms : q->conf->timeout;
    size_t n;

    memcpy(o->id, job->id, sizeof(o->id));
    memcpy(o->queue, job->queue, sizeof(o->queue));
    o->argv = copy_list(q->argv, 0, &n);
    o->envp = copy_list(q->env, JOB_VARS, &n);
    add_job(o->envp, n, job, q->conf, ns, late_us, timeout_ms);
    o->payload = TAKE_PTR(job->payload);
    o->exec = (struct exec_order){.id = o->id,
                                  .queue = o->queue,
                                  .argv = o->argv,
                                  .envp = o->envp,
                                  .payload = o->payload,
                                  .payload_len = job->payload_len,
                                  .timeout_ms = timeout_ms,
                                  .kill_grace_ms = q->conf->kill_grace};
    return o;
}

void order_guard(struct order *o, struct guard *guard, unsigned slot, int64_t fence)
{
    o->exec.guard = guard;
    o->exec.guard_slot = slot;
    o->exec.guard_fence = fence;
}

void order_free(void *order)
{
    struct order *o = order;

    mem_free_list(o->argv);
    mem_free_list(o->envp);
    free(o->payload);
    free(o);
}

const struct exec_order *order_exec(const struct order *o)
{
    return &o->exec;
}
