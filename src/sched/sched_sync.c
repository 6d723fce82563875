/*
 * When a sync is sent, and what it asks for. sched_claims.c takes the answer.
 *
 * A worker does not ask for a due job while
 *   - it is not READY, is quiet, stops, runs a suspect or stops claiming for one, or its host is
 *     short of processes or memory (room, below);
 *   - all places are taken, syncs under way included, or so many jobs of the queue run as may at
 *     once (queues.c): none while its stream or plug-in is not up;
 *   - it does not know of the job: no wake came, and the look is not there yet;
 *   - the queue has a key of a foreign type, or gave no job just now, and is asked again later;
 *   - it is the turn of other queues: a sync names SYNC_NAMES and brings SCHED_SYNC_JOBS.
 * When Redis does not hand it out: src/lua/claim/claims.lua.
 */
#include "sched/sched_priv.h"

#include <string.h>

#include "base/text.h"

#define GATE_MAX_US INT64_C(3600000000) /* later timers are told again by a look */
#define OVERLAP_ENDS 64                 /* this many ends are worth a second sync */

/* How many more jobs may be claimed, of this many at most; 0 while there is any reason not to. A
 * job whose result was left takes its place still: results must not pile up. */
static unsigned room(const struct sched *s, struct mono now, unsigned most)
{
    size_t taken = s->held.unended + s->held.left;

    if (s->quiet || s->quiet_told || sched_is_stopping(s) || s->held.solos > 0 ||
        sched_solo_dries(s, now))
        return 0;
    if (sched_is_host_ill(s, now))
        return 0;
    return taken < most ? most - (unsigned)taken : 0;
}

unsigned sched_free_places(const struct sched *s, struct mono now)
{
    return room(s, now, sched_places(s));
}

struct mono sched_gate_at(struct mono now, int64_t now_us, int64_t timer_ms)
{
    int64_t in_us =
        timer_ms >= 0 && timer_ms <= STORE_DUE_LATEST_MS ? timer_ms * 1000 - now_us : INT64_MAX;

    return in_us > GATE_MAX_US ? MONO_NEVER : mono_add_us(now, in_us > 0 ? in_us : 0);
}

/* Most claims that the syncs under way may bring. */
static unsigned promised(const struct sched *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->syncs_out; i++)
        n += s->syncs[(s->sync_first + i) % STORE_SYNCS_MAX].max;
    return n;
}

static void send_sync(struct sched *s, struct mono now, unsigned places)
{
    struct sent_sync *out = &s->syncs[(s->sync_first + s->syncs_out) % STORE_SYNCS_MAX];
    struct store_result results[SCHED_SYNC_JOBS];
    struct store_sync sync = {.epoch = s->me.epoch, .link = s->link};

    out->asked = now;
    sync.max = places < SCHED_SYNC_JOBS ? places : SCHED_SYNC_JOBS;
    sync.nresults = held_collect(&s->held, now, results, SCHED_SYNC_JOBS);
    sync.results = results;
    out->nsent = sync.nresults;
    for (size_t i = 0; i < sync.nresults; i++) {
        text_copy(out->sent[i], sizeof(out->sent[i]), results[i].id);
        out->verbs[i] = results[i].verb;
    }
    s->checkpoint_at = held_checkpoint_at(&s->held);
    out->nrooms = queues_plan(s->queues, mono_add_us(now, s->conf.ahead_us), sync.max,
                              s->sync_wanted, out->rooms, SYNC_NAMES);
    /* The table of queues, and the names in it, may be replaced before the answer comes. */
    for (size_t i = 0; i < out->nrooms; i++) {
        memcpy(out->room_names[i], out->rooms[i].queue, strlen(out->rooms[i].queue) + 1);
        out->rooms[i].queue = out->room_names[i];
    }
    sync.rooms = out->rooms;
    sync.nrooms = out->nrooms;
    /* Count claims already requested as held, so that Redis does not send a job that must run
     * alone. */
    sync.unended = (unsigned)s->held.unended + promised(s);
    sync.ahead_ms = sched_ahead_ms(s);
    out->max = sync.max;
    s->sync_wanted = s->is_hurried = false;
    s->beat.is_exact = false;
    s->syncs_out++;
    s->gate_at = MONO_NEVER;
    if (s->ops->sync(s->ctx, &sync) < 0)
        sched_not_sent(s, now);
}

/* May a second sync be sent while one is under way? It must not depend on the answer to the first.
 * A sync for a look, a gate or a cancel waits until none is under way, and no other is sent before
 * it. A few ends wait as well, for a fraction of a millisecond: more ends come meanwhile, and
 * travel with them. */
static bool may_overlap(const struct sched *s, bool alone, bool claims, bool results)
{
    if (s->syncs_out == STORE_SYNCS_MAX || alone || s->sync_wanted)
        return false;
    return (results && (s->held.ended >= OVERLAP_ENDS || s->held.unended == 0 || s->is_hurried)) ||
           (claims && s->is_more);
}

/* Do more than half of the jobs that may wait here for a place wait already? Then no claims are
 * needed yet, and the ends wait for the sync that asks for them. They wait about as long as a job
 * waits for a place. */
static bool is_stocked(const struct sched *s, struct mono now)
{
    return s->held.nawaiting > 0 && !s->is_hurried && !s->sync_wanted &&
           s->held.ended < OVERLAP_ENDS &&
           2 * s->held.nawaiting > prefetch_most(&s->prefetch, sched_places(s), now);
}

void sched_plan_sync(struct sched *s, struct mono now)
{
    /* Beyond the free places, too (sched/prefetch.h). */
    unsigned beyond = s->conf.prefetches ? prefetch_most(&s->prefetch, sched_places(s), now) : 0;
    unsigned free = room(s, now, sched_places(s) + beyond), taken = promised(s);
    unsigned places = free > taken ? free - taken : 0;
    bool claims =
        places > 0 && sched_is_due(queues_next(s->queues), mono_add_us(now, s->conf.ahead_us));
    bool results = held_has_results(&s->held, now);
    bool gate = sched_is_due(s->gate_at, now);
    bool checkpoint = sched_is_due(s->checkpoint_at, now);

    if (!gate && !checkpoint && is_stocked(s, now))
        return;
    if (s->syncs_out > 0 ? !may_overlap(s, gate, claims, results)
                         : !(results || claims || gate || checkpoint || s->sync_wanted))
        return;
    /* The same sync claims the jobs that the opened gate lets in, so no other worker has to be
     * woken. */
    if (gate)
        queues_wake_gated(s->queues);
    send_sync(s, now, places);
}
