#include "run/process/origin.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "run/isolation/caps.h"
#include "run/process/pidstat.h"

void origin_process_read(struct origin_process *ret)
{
    bool may_switch = caps_has(CAP_SETUID) && caps_has(CAP_SETGID);
    struct stat st;

    memset(ret, 0, sizeof(*ret));
    if (stat("/proc/self/ns/pid", &st) == 0)
        (void)snprintf(ret->pidns, sizeof(ret->pidns), "%llu.%u%s", (unsigned long long)st.st_ino,
                       geteuid(), may_switch ? "+" : "");
    (void)snprintf(ret->pid, sizeof(ret->pid), "%d", (int)getpid());
    (void)snprintf(ret->pstart, sizeof(ret->pstart), "%lld", (long long)pidstat_start(getpid()));
}

void origin_worker(const char *pidns, const char *pid, const char *pstart, char out[ORIGIN_WORKER])
{
    (void)snprintf(out, ORIGIN_WORKER, "%.47s-%.15s-%.23s", pidns, pid, pstart);
}

/* The origin is cached: it is the same while the process lives, but reading it again may fail for
 * lack of descriptors, and then it would differ. */
void origin_own(char out[ORIGIN_WORKER])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char known[ORIGIN_WORKER];
    static pid_t of;
    struct origin_process me;

    (void)pthread_mutex_lock(&lock);
    if (of != getpid()) {
        origin_process_read(&me);
        origin_worker(me.pidns, me.pid, me.pstart, known);
        of = me.pstart[0] != '-' && me.pidns[0] != '\0' ? getpid() : 0;
    }
    memcpy(out, known, ORIGIN_WORKER);
    (void)pthread_mutex_unlock(&lock);
}

char *origin_env(int64_t fence, const char *job)
{
    const char *outer = getenv("LATER_WORKER");
    char worker[ORIGIN_WORKER];

    origin_own(worker);
    if (outer == NULL)
        outer = "";
    return mem_printf(ORIGIN_NAME "%s/%lld/%s%s%s", worker, (long long)fence, job,
                      outer[0] != '\0' ? " " : "", outer);
}

/* Parse one origin: n bytes without a space. */
static bool parse(const char *text, size_t n, struct origin *ret)
{
    const char *fence = memchr(text, '/', n);
    const char *job = fence != NULL ? memchr(fence + 1, '/', n - (size_t)(fence + 1 - text)) : NULL;
    char number[24];
    size_t worker_len, fence_len, job_len;

    if (job == NULL)
        return false;
    worker_len = (size_t)(fence - text);
    fence_len = (size_t)(job - fence) - 1;
    job_len = n - (size_t)(job + 1 - text);
    if (worker_len >= sizeof(ret->worker) || fence_len >= sizeof(number) ||
        job_len >= sizeof(ret->job))
        return false;
    (void)snprintf(ret->worker, sizeof(ret->worker), "%.*s", (int)worker_len, text);
    (void)snprintf(number, sizeof(number), "%.*s", (int)fence_len, fence + 1);
    (void)snprintf(ret->job, sizeof(ret->job), "%.*s", (int)job_len, job + 1);
    return text_parse_int(number, 0, INT64_MAX, &ret->fence) == 0;
}

bool origin_next(const char **at, struct origin *ret)
{
    while (**at != '\0') {
        const char *text = *at;
        size_t n = strcspn(text, " ");

        *at += n + strspn(text + n, " ");
        if (parse(text, n, ret))
            return true;
    }
    return false;
}
