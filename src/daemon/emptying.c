/*
 * The worker empties itself for a suspect (sched/sched_solo.c): the log and `later health` say so,
 * and for which job. A sync tells only that one of its queues has a suspect, so it is asked for
 * here, once in five minutes at most.
 */
#include "daemon/daemon_priv.h"

#include <stdio.h>

#include "base/log.h"
#include "job/job.h"
#include "redis/reply.h"

/* The first suspect of a queue that this worker serves, or NULL. The first element is the time. */
static const struct reply *first_served(const struct daemon *d, const struct reply *r)
{
    for (size_t i = 1; i < reply_count(r); i++) {
        const char *queue = reply_str(reply_at(reply_at(r, i), 1));

        if (served_queues_find(d->served, queue) != NULL)
            return reply_at(r, i);
    }
    return NULL;
}

static void on_suspects(void *arg, const struct reply *r)
{
    struct daemon *d = arg;
    const struct reply *found = first_served(d, r);
    const char *id = reply_str(reply_at(found, 0)), *queue = reply_str(reply_at(found, 1));
    struct sched_status s;
    char note[200];

    if (found == NULL || !job_is_id(id, reply_len(reply_at(found, 0)))) {
        log_warn(
            "event=emptying state=begun for=30s reason=\"a suspect waits, which is gone now\"");
        return;
    }
    log_warn("event=emptying state=begun job=%s queue=%s crashes=%lld for=30s reason=\"its workers "
             "died under it, so it starts only where nothing else runs: until then, or for this "
             "time, no job is claimed\"",
             id, queue, (long long)reply_int(reply_at(found, 3)));
    sched_status(d->sched, &s);
    (void)snprintf(note, sizeof(note), "%lld %.64s %s %s", (long long)s.epoch, d->me.host, id,
                   queue);
    (void)store_note(d->store, "emptying", note);
}

void daemon_emptying(void *daemon, bool is_begun)
{
    struct daemon *d = daemon;
    CLEANUP_BUF struct buf root = BUF_INIT;
    const char *argv[] = {"FCALL", "later_v1_suspects", "1", NULL};

    buf_printf(&root, "later:{%s}", d->conf->root);
    argv[3] = buf_str(&root);
    if (!is_begun)
        log_notice("event=emptying state=over");
    else
        (void)link_call(d->link, 4, argv, NULL, on_suspects, d);
}
