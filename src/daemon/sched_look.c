/*
 * Looks: a sweep of many queues names few, and asks of the others at once, beside the steps, which
 * of them have to be named.
 */
#include "daemon/sched_priv.h"

#include "base/cleanup.h"
#include "base/mem.h"

static void send_look(struct sched *s, struct mono now)
{
    CLEANUP_FREE const char **names = mem_new((queues_count(s->queues) + 1) * sizeof(*names));
    size_t n = queues_to_look_at(s->queues, now, names);

    s->look_wanted = false;
    if (n == 0)
        return;
    s->look_out = true;
    if (s->ops->look(s->ctx, names, n) < 0)
        sched_not_sent(s, now);
}

enum queues_sweep sched_look_kind(const struct sched *s)
{
    return s->may_look && !s->solo_due ? QUEUES_OTHERS : QUEUES_ALL;
}

void sched_look(struct sched *s, struct mono now)
{
    if (sched_look_kind(s) != QUEUES_OTHERS)
        return;
    /* What is under way may have been asked before a message was missed. */
    s->look_wanted = true;
    if (!s->look_out)
        send_look(s, now);
}

void sched_on_looked(struct sched *s, struct mono now, const char *const *queues, size_t n,
                     bool is_over)
{
    if (!s->look_out)
        return;
    for (size_t i = 0; i < n; i++)
        queues_found(s->queues, queues[i]);
    s->look_out = !is_over;
    if (is_over && s->look_wanted)
        send_look(s, now);
    sched_go_on(s, now);
}
