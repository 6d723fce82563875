/*
 * Looks. A sync names the queues that are known to be due, and most are known by a message or by
 * the timer. A look finds what no message told of: raw members that were written without a PUBLISH,
 * jobs whose message or head was lost, queues with marks or a pause. So once a second Redis is
 * asked which of the next thousand queues a sync has to name; these then count as due. After
 * trouble, a new subscription or a change of the queues, one look follows the other without a wait
 * until all queues have had their turn. While there are jobs here a sync follows each look, even if
 * it found nothing: the sync fetches cancels, carries progress, and tells of suspects. The answer
 * to a look also tells when a gate wants a sync.
 */
#include "sched/sched_priv.h"

#define LOOK_QUEUES 1000

/* Each queue is looked at twice in this time, so a job that is due later is found by a later look.
 */
static int64_t soon_ms(const struct sched *s)
{
    int64_t turns = ((int64_t)queues_count(s->queues) + LOOK_QUEUES - 1) / LOOK_QUEUES;

    return turns * SCHED_LOOK_MS * 5 / 2;
}

void sched_look_at_all(struct sched *s)
{
    s->look.left = queues_count(s->queues);
    s->look.at = (struct mono){0};
}

/* The names of the next queues. -> how many */
static size_t take_turns(struct sched *s, const char **names)
{
    size_t all = queues_count(s->queues), n = 0;

    if (s->look.from >= all)
        s->look.from = 0;
    while (n < LOOK_QUEUES && s->look.from < all)
        names[n++] = queues_name(s->queues, s->look.from++);
    s->look.left -= n < s->look.left ? n : s->look.left;
    return n;
}

void sched_plan_look(struct sched *s, struct mono now)
{
    const char *names[LOOK_QUEUES];
    size_t n;

    if (s->look.is_out || (s->look.left == 0 && !sched_is_due(s->look.at, now)))
        return;
    s->look.at =
        mono_add_ms(now, SCHED_LOOK_MS * 9 / 10 + s->ops->random(s->ctx) % (SCHED_LOOK_MS / 5));
    n = take_turns(s, names);
    s->look.is_out = n > 0;
    s->sync_wanted = s->sync_wanted || n == 0; /* a worker without queues: a sync, for cancels */
    if (n > 0 && s->ops->look(s->ctx, soon_ms(s), names, n) < 0)
        sched_not_sent(s, now);
}
