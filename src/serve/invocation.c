#include "serve/invocation.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/process/origin.h"
#include "serve/policy.h"

#define JOB_VARS 28

struct invocation {
    struct exec_order exec;
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    char **argv;
    char **envp;
    char *payload;
};

static void add_int(char **envp, size_t *n, const char *name, int64_t value)
{
    envp[(*n)++] = mem_printf("%s=%lld", name, (long long)value);
}

static void add_text(char **envp, size_t *n, const char *name, const char *value)
{
    envp[(*n)++] = mem_printf("%s=%s", name, value);
}

int64_t invocation_timeout_ms(const struct job *job, const struct conf_queue *conf)
{
    return job->timeout_ms > 0 ? job->timeout_ms : conf->timeout;
}

/* All modes tell the same numbers. */
static int64_t late_ms(int64_t late_us)
{
    return late_us > 0 ? late_us / 1000 : 0;
}

static int64_t told_ms(int64_t timeout_ms)
{
    return timeout_ms == CONF_NEVER ? 0 : timeout_ms;
}

/* The names are fixed: nothing that a producer writes can become a name. */
static void add_job(char **envp, size_t n, const struct job *job, const struct conf_queue *conf,
                    const char *ns, const char *step, int64_t late_us, int64_t timeout_ms)
{
    add_text(envp, &n, "LATER_ID", job->id);
    add_text(envp, &n, "LATER_QUEUE", job->queue);
    add_text(envp, &n, "LATER_KEY", job->key);
    add_int(envp, &n, "LATER_PRIORITY", job->priority);
    add_int(envp, &n, "LATER_ATTEMPT", job->attempt);
    add_int(envp, &n, "LATER_ATTEMPTS_MAX", policy_attempts_max(job, conf));
    add_int(envp, &n, "LATER_DUE_MS", job->due.ms);
    add_int(envp, &n, "LATER_LATE_MS", late_ms(late_us));
    add_int(envp, &n, "LATER_TIMEOUT_MS", told_ms(timeout_ms));
    add_int(envp, &n, "LATER_FENCE", job->fence);
    add_text(envp, &n, "LATER_NAMESPACE", ns);
    add_text(envp, &n, "LATER_CONTROL_FD", "3");
    if (job->trace[0] != '\0')
        add_text(envp, &n, "TRACEPARENT", job->trace);
    if (job->parent[0] != '\0')
        add_text(envp, &n, "LATER_PARENT", job->parent);
    if (job->parent_reason[0] != '\0')
        add_text(envp, &n, "LATER_REASON", job->parent_reason);
    if (job->batch[0] != '\0')
        add_text(envp, &n, "LATER_BATCH", job->batch);
    if (job->is_callback) {
        add_int(envp, &n, "LATER_BATCH_TOTAL", job->counts.total);
        add_int(envp, &n, "LATER_BATCH_DONE", job->counts.done);
        add_int(envp, &n, "LATER_BATCH_DEAD", job->counts.dead);
        add_int(envp, &n, "LATER_BATCH_CANCELLED", job->counts.cancelled);
    }
    if (job->schedule != NULL) {
        add_text(envp, &n, "LATER_SCHEDULE", job->schedule);
        add_int(envp, &n, "LATER_OCCURRENCE_MS", job->occurrence_ms);
    }
    if (job->topic != NULL)
        add_text(envp, &n, "LATER_TOPIC", job->topic);
    if (job->checkpoint != NULL)
        add_text(envp, &n, "LATER_CHECKPOINT", job->checkpoint);
    if (step[0] != '\0')
        add_text(envp, &n, "LATER_STEP", step);
}

struct invocation *invocation_new(struct job *job, const struct served_queue *q, const char *ns,
                                  const char *step, int64_t late_us)
{
    struct invocation *o = mem_new(sizeof(*o));
    int64_t timeout_ms = invocation_timeout_ms(job, q->conf);
    size_t n;

    memcpy(o->id, job->id, sizeof(o->id));
    memcpy(o->queue, job->queue, sizeof(o->queue));
    o->argv = mem_dup_list(q->argv, 0, NULL);
    o->envp = mem_dup_list(q->env, JOB_VARS, &n);
    o->envp[n++] = origin_env(job->fence, job->id);
    add_job(o->envp, n, job, q->conf, ns, step, late_us, timeout_ms);
    o->payload = TAKE_PTR(job->payload);
    o->exec = (struct exec_order){.id = o->id,
                                  .queue = o->queue,
                                  .argv = o->argv,
                                  .envp = o->envp,
                                  .payload = o->payload,
                                  .payload_len = job->payload_len,
                                  .timeout_ms = timeout_ms,
                                  .kill_grace_ms = q->conf->kill_grace,
                                  .fence = job->fence};
    return o;
}

void invocation_guard(struct invocation *o, struct guard *guard, unsigned place)
{
    o->exec.guard = guard;
    o->exec.guard_place = place;
}

void invocation_free(void *order)
{
    struct invocation *o = order;

    mem_free_list(o->argv);
    mem_free_list(o->envp);
    free(o->payload);
    free(o);
}

const struct exec_order *invocation_exec(const struct invocation *o)
{
    return &o->exec;
}

struct later_job invocation_plugin(const struct job *job, const struct conf_queue *conf,
                                   const char *ns, const char *step, int64_t late_us)
{
    return (struct later_job){.size = sizeof(struct later_job),
                              .id = job->id,
                              .queue = job->queue,
                              .key = job->key,
                              .trace = job->trace,
                              .ns = ns,
                              .payload = job->payload != NULL ? job->payload : "",
                              .payload_len = job->payload_len,
                              .attempt = job->attempt,
                              .attempts_max = policy_attempts_max(job, conf),
                              .start = job->start,
                              .priority = job->priority,
                              .due_ms = job->due.ms,
                              .late_ms = late_ms(late_us),
                              .timeout_ms = told_ms(invocation_timeout_ms(job, conf)),
                              .fence = job->fence,
                              .parent = job->parent,
                              .reason = job->parent_reason,
                              .batch = job->batch,
                              .batch_total = job->counts.total,
                              .batch_done = job->counts.done,
                              .batch_dead = job->counts.dead,
                              .batch_cancelled = job->counts.cancelled,
                              .schedule = job->schedule != NULL ? job->schedule : "",
                              .occurrence_ms = job->occurrence_ms,
                              .topic = job->topic != NULL ? job->topic : "",
                              .checkpoint = job->checkpoint,
                              .step = step[0] != '\0' ? step : NULL};
}

/* A word of the line has no space and no control character: these, and %, are written as %HH. An
 * empty value is left out. */
static bool is_plain(char c)
{
    return (unsigned char)c > ' ' && c != '%' && c != 0x7f;
}

static void add_word(struct buf *out, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    buf_puts(out, name);
    for (size_t n = 0; *value != '\0'; value += n, n = 0) {
        while (is_plain(value[n]))
            n++;
        buf_add(out, value, n);
        for (; value[n] != '\0' && !is_plain(value[n]); n++)
            buf_printf(out, "%%%02X", (unsigned char)value[n]);
    }
}

/* -> where the n bytes begin that are put before this place */
static char *put_before(char *place, const char *text, size_t n)
{
    return memcpy(place - n, text, n);
}

/* The name has at most 40 bytes. */
static void add_number(struct buf *out, const char *name, int64_t value)
{
    char word[40 + 1 + TEXT_DIGITS_MAX], *end = word + sizeof(word);
    char *p = text_digits(end, value < 0 ? -(uint64_t)value : (uint64_t)value);

    if (value < 0)
        *--p = '-';
    p = put_before(p, name, strlen(name));
    buf_add(out, p, (size_t)(end - p));
}

void invocation_header(const struct job *job, const struct conf_queue *conf, const char *step,
                       int64_t late_us, struct buf *out)
{
    buf_puts(out, "job id=");
    buf_puts(out, job->id);
    buf_puts(out, " queue=");
    buf_puts(out, job->queue);
    add_number(out, " attempt=", job->attempt);
    add_number(out, " attempts_max=", policy_attempts_max(job, conf));
    add_number(out, " start=", job->start);
    add_number(out, " priority=", job->priority);
    add_number(out, " due_ms=", job->due.ms);
    add_number(out, " late_ms=", late_ms(late_us));
    add_number(out, " timeout_ms=", told_ms(invocation_timeout_ms(job, conf)));
    add_number(out, " fence=", job->fence);
    if (step[0] != '\0') { /* of our own making: there is nothing to escape */
        buf_puts(out, " step=");
        buf_puts(out, step);
    }
    if (job->checkpoint != NULL)
        add_word(out, " checkpoint=", job->checkpoint);
    add_word(out, " key=", job->key);
    add_word(out, " trace=", job->trace);
    add_word(out, " parent=", job->parent);
    add_word(out, " reason=", job->parent_reason);
    add_word(out, " batch=", job->batch);
    if (job->is_callback) {
        add_number(out, " batch_total=", job->counts.total);
        add_number(out, " batch_done=", job->counts.done);
        add_number(out, " batch_dead=", job->counts.dead);
        add_number(out, " batch_cancelled=", job->counts.cancelled);
    }
    if (job->schedule != NULL) {
        add_word(out, " schedule=", job->schedule);
        add_number(out, " occurrence_ms=", job->occurrence_ms);
    }
    if (job->topic != NULL)
        add_word(out, " topic=", job->topic);
    add_number(out, " len=", (int64_t)job->payload_len);
}
