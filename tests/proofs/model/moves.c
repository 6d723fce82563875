#include "moves.h"

#include <string.h>

#include "store.h"
#include "worker.h"

/* ---- calls under way */

/* The link broke. A call that was not executed is lost; with choice 1 it becomes a stray that may
 * be executed later. */
static void leave_behind(struct worker *w, unsigned choice)
{
    if (choice == 1)
        w->stray = w->call;
}

static bool can_leave_behind(const struct worker *w, unsigned choice)
{
    return choice == 0 || (w->call.kind != NO_CALL && !w->call.is_answered);
}

static bool link_up(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    if (w->process != UP || w->state != OFFLINE || s->is_out)
        return false;
    worker_enter(c, w);
    return true;
}

/* A sync with room has one choice for each job that it could claim first. All other calls have one
 * choice, 0. */
static bool is_choice(const struct conf *c, const struct state *s, const struct call *call,
                      unsigned choice)
{
    if (call->kind != SYNC || call->room == 0)
        return choice == 0;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (store_can_claim(c, s, j))
            return choice < c->jobs && store_can_claim(c, s, choice);
    }
    return choice == 0;
}

/* Redis executes the call that is under way, and its answer is under way then. */
static void run_call(const struct conf *c, struct state *s, unsigned i, unsigned choice)
{
    struct worker *w = &s->workers[i];
    bool counts = !w->has_beaten || w->call.kind == REGISTER;

    store_execute(c, s, i, &w->call, choice, &w->answer);
    w->call.is_answered = 1;
    if ((w->call.kind != BEAT && w->call.kind != REGISTER) || w->answer.status != OK)
        return;
    w->has_beaten = 1;
    w->is_ailing = w->process == FROZEN;
    /* Beats less than SILENCE_GAP_MS apart do not count; a registration always counts as the
     * first. */
    if (counts)
        worker_watch(c, s, i, w->call.kind == BEAT ? w->epoch : w->answer.number);
}

static bool execute(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    if (w->call.kind == NO_CALL || w->call.is_answered || s->is_out ||
        !is_choice(c, s, &w->call, m->choice))
        return false;
    run_call(c, s, m->worker, m->choice);
    return true;
}

static bool deliver(const struct conf *c, struct state *s, const struct move *m)
{
    const struct worker *w = &s->workers[m->worker];

    if (w->process != UP || !w->call.is_answered)
        return false;
    if (m->choice == 1 && (w->call.kind != REGISTER || w->answer.status != OK ||
                           !worker_has_predecessor(s, m->worker)))
        return false;
    worker_deliver(c, s, m->worker, m->choice == 1);
    return true;
}

static bool execute_stray(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];
    struct call call = w->stray;
    struct answer nobody;

    if (call.kind == NO_CALL || s->is_out || !is_choice(c, s, &call, m->choice))
        return false;
    memset(&w->stray, 0, sizeof(w->stray));
    store_execute(c, s, m->worker, &call, m->choice, &nobody);
    return true;
}

/* ---- what a worker does */

static bool send_sync(const struct conf *c, struct state *s, const struct move *m)
{
    return worker_send_sync(c, s, m->worker);
}

/* The regular beat is one move. A lost beat or answer would be the same as a link that broke before
 * or after it. So only two kinds of beats are under way for a time: one with bad news, and the one
 * that follows trouble. */
static bool send_beat(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    if (!worker_send_beat(w))
        return false;
    run_call(c, s, m->worker, 0);
    if (w->answer.status == OK)
        worker_deliver(c, s, m->worker, false);
    return true;
}

static bool send_reap(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    return worker_send_reap(&s->workers[m->worker]);
}

static bool send_leave(const struct conf *c, struct state *s, const struct move *m)
{
    return worker_send_leave(c, &s->workers[m->worker]);
}

static bool end(const struct conf *c, struct state *s, const struct move *m)
{
    return worker_end(c, s, m->worker, m->job, (enum ending)m->choice);
}

static bool end_lost(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    return worker_end_lost(&s->workers[m->worker], m->job);
}

/* ---- time: a round is over when every worker that can beat has had a beat accepted */

static bool tick(const struct conf *c, struct state *s, const struct move *m)
{
    (void)m;
    for (unsigned w = 0; w < c->workers && !s->is_out; w++) {
        const struct worker *worker = &s->workers[w];

        if (worker->process == UP && !worker->is_ailing && !worker->has_beaten)
            return false;
    }
    for (unsigned w = 0; w < c->workers; w++) {
        s->workers[w].has_beaten = 0;
        worker_wait(c, &s->workers[w]);
    }
    return true;
}

/* ---- trouble */

static bool cut(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    if (s->left.cut == 0 || w->process != UP || w->state == OFFLINE ||
        !can_leave_behind(w, m->choice))
        return false;
    s->left.cut--;
    leave_behind(w, m->choice);
    w->is_ailing = 1;
    worker_trouble(c, w);
    return true;
}

static bool crash(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    (void)c;
    if (s->left.crash == 0 || w->process == DOWN || !can_leave_behind(w, m->choice))
        return false;
    s->left.crash--;
    leave_behind(w, m->choice);
    worker_die(w);
    return true;
}

static bool restart(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    (void)c;
    if (w->process != DOWN)
        return false;
    w->process = UP;
    w->state = OFFLINE;
    w->life++;
    return true;
}

static bool freeze(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    (void)c;
    if (s->left.freeze == 0 || w->process != UP)
        return false;
    s->left.freeze--;
    w->process = FROZEN;
    w->is_ailing = 1;
    return true;
}

static bool wake(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    (void)c;
    if (w->process != FROZEN)
        return false;
    w->process = UP;
    return true;
}

/* All links break. A frozen worker notices only when it wakes, but then it does the same. */
static void break_links(const struct conf *c, struct state *s, unsigned choice)
{
    for (unsigned w = 0; w < c->workers; w++) {
        struct worker *worker = &s->workers[w];

        if (worker->process == DOWN || worker->state == OFFLINE)
            continue;
        if (can_leave_behind(worker, choice))
            leave_behind(worker, choice);
        worker_trouble(c, worker);
    }
}

static bool outage(const struct conf *c, struct state *s, const struct move *m)
{
    if (s->left.outage == 0 || s->is_out)
        return false;
    s->left.outage--;
    s->is_out = 1;
    break_links(c, s, m->choice);
    return true;
}

static bool recover(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    (void)m;
    if (!s->is_out)
        return false;
    s->is_out = 0;
    return true;
}

/* Are all workers registered? Then a rewind can lose only what they are given later, not their
 * epochs. */
static bool are_entered(const struct conf *c, const struct state *s)
{
    for (unsigned w = 0; w < c->workers; w++) {
        if (s->workers[w].epoch == 0 || store_entry(&s->redis, s->workers[w].epoch) == NULL)
            return false;
    }
    return true;
}

static bool snapshot(const struct conf *c, struct state *s, const struct move *m)
{
    (void)m;
    if (s->left.rewind == 0 || s->has_snapshot || c->is_early ||
        (c->is_entered && !are_entered(c, s)))
        return false;
    s->snapshot = s->redis;
    s->has_snapshot = 1;
    return true;
}

static bool rewind_redis(const struct conf *c, struct state *s, const struct move *m)
{
    if (s->left.rewind == 0 || !s->has_snapshot || (m->choice == 1 && !c->has_late))
        return false;
    s->left.rewind--;
    break_links(c, s, m->choice);
    for (unsigned w = 0; w < c->workers && !c->has_late; w++)
        memset(&s->workers[w].stray, 0, sizeof(s->workers[w].stray));
    store_rewind(c, s);
    if (s->left.rewind == 0) {
        memset(&s->snapshot, 0, sizeof(s->snapshot));
        s->has_snapshot = 0;
    }
    return true;
}

/* ---- people */

static bool add(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    return !s->is_out && store_add(s, m->job);
}

static bool cancel(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    if (s->left.cancel == 0 || s->is_out || !store_cancel(s, m->job))
        return false;
    s->left.cancel--;
    return true;
}

static bool retry(const struct conf *c, struct state *s, const struct move *m)
{
    (void)c;
    if (s->left.retry == 0 || s->is_out || !store_retry(s, m->job))
        return false;
    s->left.retry--;
    return true;
}

static bool stop(const struct conf *c, struct state *s, const struct move *m)
{
    struct worker *w = &s->workers[m->worker];

    (void)c;
    if (s->left.stop == 0 || w->process != UP || w->is_stopping)
        return false;
    s->left.stop--;
    w->is_stopping = 1;
    return true;
}

/* ---- the table */

static const struct kind {
    const char *text;
    bool (*apply)(const struct conf *c, struct state *s, const struct move *m);
    bool has_worker, has_job;
    uint8_t choices;
} kinds[MOVES] = {
    [LINK_UP] = {"has a link", link_up, true, false, 1},
    [SEND_SYNC] = {"sends a sync", send_sync, true, false, 1},
    [SEND_BEAT] = {"beats", send_beat, true, false, 1},
    [SEND_REAP] = {"sends a reap", send_reap, true, false, 1},
    [SEND_LEAVE] = {"sends a leave", send_leave, true, false, 1},
    [EXECUTE] = {"is executed", execute, true, false, JOBS_MAX},
    [DELIVER] = {"hears the answer", deliver, true, false, 2},
    [END] = {"ends", end, true, true, 3},
    [END_LOST] = {"killed run has ended", end_lost, true, true, 1},
    [TICK] = {"time passes: a round of beats is over", tick, false, false, 1},
    [EXECUTE_STRAY] = {"is executed late", execute_stray, true, false, JOBS_MAX},
    [CUT] = {"loses its link", cut, true, false, 2},
    [CRASH] = {"is killed", crash, true, false, 2},
    [RESTART] = {"is started again", restart, true, false, 1},
    [FREEZE] = {"is frozen", freeze, true, false, 1},
    [WAKE] = {"wakes up", wake, true, false, 1},
    [OUTAGE] = {"Redis cannot be reached any more", outage, false, false, 2},
    [RECOVER] = {"Redis is back", recover, false, false, 1},
    [SNAPSHOT] = {"(this is the state that Redis will be restored to)", snapshot, false, false, 1},
    [REWIND] = {"Redis restarts and has lost what was written since", rewind_redis, false, false,
                2},
    [ADD] = {"is added", add, false, true, 1},
    [CANCEL] = {"is cancelled by hand", cancel, false, true, 1},
    [RETRY] = {"is retried by hand", retry, false, true, 1},
    [STOP] = {"is told to stop", stop, true, false, 1},
};

bool move_apply(const struct conf *c, struct state *s, const struct move *m)
{
    return kinds[m->kind].apply(c, s, m);
}

void moves_each(const struct conf *c, const struct state *s, visit_f *visit, void *arg)
{
    struct state next = *s;

    for (unsigned kind = 0; kind < MOVES; kind++) {
        const struct kind *k = &kinds[kind];

        for (unsigned w = 0; w < (k->has_worker ? c->workers : 1U); w++) {
            for (unsigned j = 0; j < (k->has_job ? c->jobs : 1U); j++) {
                for (unsigned choice = 0; choice < k->choices; choice++) {
                    struct move m = {(uint8_t)kind, (uint8_t)w, (uint8_t)j, (uint8_t)choice};

                    if (!k->apply(c, &next, &m))
                        continue;
                    if (!visit(arg, &m, &next))
                        return;
                    next = *s;
                }
            }
        }
    }
}

/* ---- print moves in words */

static void print_call(const struct conf *c, const struct call *call, FILE *out)
{
    static const char *const names[] = {"nothing", "registration", "beat", "reconcile",
                                        "sync",    "reap",         "leave"};
    static const char *const verbs[] = {"", "done", "retry", "dead", "release"};

    fprintf(out, "%s", names[call->kind]);
    if (call->epoch != 0)
        fprintf(out, " of epoch %u", call->epoch);
    if (call->link != 0)
        fprintf(out, " link %u", call->link);
    if (call->victim != 0)
        fprintf(out, " of victim %u", call->victim);
    for (unsigned j = 0; j < c->jobs; j++) {
        if (call->verb[j] != NO_VERB)
            fprintf(out, ", job %u start %u: %s", j, call->start[j], verbs[call->verb[j]]);
        else if (call->start[j] != 0)
            fprintf(out, ", runs job %u start %u", j, call->start[j]);
    }
}

static void print_answer(const struct conf *c, const struct call *call, const struct answer *a,
                         FILE *out)
{
    static const char *const statuses[] = {"ok", "dead", "unknown", "link", "refused"};

    fprintf(out, " (%s", statuses[a->status]);
    for (unsigned j = 0; call->kind == SYNC && j < c->jobs; j++) {
        if (a->start[j] != 0)
            fprintf(out, ", claimed job %u start %u", j, a->start[j]);
        if (a->cancels & BIT(j))
            fprintf(out, ", cancel job %u", j);
    }
    if (call->kind == REGISTER && a->status == OK)
        fprintf(out, ", epoch %u", a->number);
    if (call->kind == BEAT && a->status == OK)
        fprintf(out, ", link %u, holds %u", a->link, a->count);
    if (call->kind == REAP)
        fprintf(out, ", moved %u", a->number);
    fprintf(out, ")");
}

static void print_of_worker(const struct conf *c, const struct state *s, const struct move *m,
                            FILE *out)
{
    static const char *const endings[] = {"ends well", "fails", "has been killed"};
    const struct worker *w = &s->workers[m->worker];
    const struct slot *slot = &w->slots[m->job];

    fprintf(out, "w%u ", m->worker);
    switch (m->kind) {
    case EXECUTE:
    case EXECUTE_STRAY:
        fprintf(out, "'s ");
        print_call(c, m->kind == EXECUTE ? &w->call : &w->stray, out);
        fprintf(out, " %s", kinds[m->kind].text);
        break;
    case DELIVER:
        fprintf(out, "hears the answer to its ");
        print_call(c, &w->call, out);
        print_answer(c, &w->call, &w->answer, out);
        if (m->choice == 1)
            fprintf(out, " and knows that its predecessor is gone");
        break;
    case END:
        fprintf(out, "'s run of job %u (start %u) %s", m->job, slot->start, endings[m->choice]);
        break;
    case END_LOST:
        fprintf(out, "'s run of job %u that was not its own any more is gone", m->job);
        break;
    default:
        fprintf(out, "%s", kinds[m->kind].text);
        if ((m->kind == CUT || m->kind == CRASH) && m->choice == 1) {
            fprintf(out, ", under way: ");
            print_call(c, &w->call, out);
        }
    }
}

void move_print(const struct conf *c, const struct state *before, const struct move *m, FILE *out)
{
    const struct kind *k = &kinds[m->kind];

    if (k->has_worker)
        print_of_worker(c, before, m, out);
    else if (k->has_job)
        fprintf(out, "job %u %s", m->job, k->text);
    else
        fprintf(out, "%s%s", k->text,
                k->choices == 2 && m->choice == 1 ? "; calls may still be on their way" : "");
    fprintf(out, "\n");
}
