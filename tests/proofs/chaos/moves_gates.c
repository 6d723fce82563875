#include "moves.h"

#include <stdio.h>
#include <string.h>

#include "rates.h"
#include "finding.h"

static const char *const algorithms[] = {"gcra", "sliding", "fixed"};

/* The role of a caller of the bare functions. */
static enum role caller_role(struct world *w)
{
    return dice_percent(&w->dice, 60) ? ROLE_CALLER : ROLE_ALL;
}

struct lease_name {
    bool is_lock;
    int name, owner;
};

static struct lease_name choose(struct world *w)
{
    struct lease_name p = {.is_lock = dice_percent(&w->dice, 55)};

    p.name = dice_below(&w->dice, p.is_lock ? LOCKS : LIMITED);
    p.owner = dice_below(&w->dice, OWNERS);
    return p;
}

/* Mostly a lease that is held. */
static struct lease_name choose_held(struct world *w)
{
    struct lease_name p = choose(w);

    for (int i = 0; i < 10; i++) {
        p = choose(w);
        if ((p.is_lock ? w->l->lock[p.name] : w->l->sem[p.name])[p.owner].is_held)
            return p;
    }
    return p;
}

static struct lease *lease_of(struct ledger *l, struct lease_name p)
{
    return p.is_lock ? &l->lock[p.name][p.owner] : &l->sem[p.name][p.owner];
}

static void begin(struct world *w, struct lease_name p, const char *lock, const char *sem)
{
    world_begin(w, p.is_lock ? lock : sem);
    call_text(&w->call, p.is_lock ? names_lock[p.name] : names_limited[p.name]);
    call_text(&w->call, names_owner[p.owner]);
}

static void put_ttl(struct world *w)
{
    static const int most[] = {20, 2000, 20000};

    call_text(&w->call, "ttl");
    call_printf(&w->call, "%dms", 1 + dice_below(&w->dice, PICK(&w->dice, most)));
}

static void take_granted(struct world *w, struct lease_name p, const struct reply *r)
{
    struct lease *lease = lease_of(w->l, p);
    int64_t fence = reply_int(reply_at(r, 1));
    bool was = lease->is_held && lease->until_ms > NOW_MS(w);

    if (reply_int(reply_at(r, 0)) != 1) {
        if (was)
            finding_break("gate", "%s %s asks for %s again and is refused", w->l->root,
                          call_word(&w->call, 5), call_word(&w->call, 4));
        return;
    }
    /* A reserved permit got its fence earlier, so the fence may be the same. */
    if (p.is_lock && fence < lease->fence)
        finding_break("fence", "%s lock %s has the fence %lld after %lld", w->l->root,
                      names_lock[p.name], (long long)fence, (long long)lease->fence);
    if (fence > w->l->fence)
        w->l->fence = fence;
    *lease = (struct lease){true, reply_int(reply_at(r, 2)), fence};
}

void move_lock(struct world *w)
{
    struct lease_name p = choose(w);
    struct reply *r;

    begin(w, p, "later_lock", "later_sem_acquire");
    put_ttl(w);
    if (dice_percent(&w->dice, 50)) {
        call_text(&w->call, "wait");
        call_printf(&w->call, "%dms",
                    1 + dice_below(&w->dice, dice_percent(&w->dice, 50) ? 10 : 9000));
    }
    r = world_ask(w, caller_role(w));
    if (r != NULL)
        take_granted(w, p, r);
    reply_free(r);
}

void move_unlock(struct world *w)
{
    struct lease_name p = choose_held(w);
    struct lease *lease = lease_of(w->l, p);
    struct reply *r;

    begin(w, p, "later_unlock", "later_sem_release");
    r = world_ask(w, caller_role(w));
    if (reply_is(r, "not-held") && lease->is_held && lease->until_ms > NOW_MS(w))
        finding_break("gate", "%s %s gives back %s and is not-held", w->l->root,
                      names_owner[p.owner], call_word(&w->call, 4));
    if (r != NULL && !reply_is(r, "kept"))
        lease->is_held = false;
    reply_free(r);
}

void move_renew(struct world *w)
{
    struct lease_name p = choose_held(w);
    struct lease *lease = lease_of(w->l, p);
    bool was = lease->is_held && lease->until_ms > NOW_MS(w);
    struct reply *r;

    begin(w, p, "later_renew", "later_renew");
    put_ttl(w);
    call_text(&w->call, "kind");
    call_text(&w->call, p.is_lock ? "lock" : "sem");
    r = world_ask(w, caller_role(w));
    if (r == NULL && was && !w->is_disturbed)
        finding_break("gate", "%s %s renews %s and is refused", w->l->root, names_owner[p.owner],
                      call_word(&w->call, 4));
    if (r != NULL && was)
        lease->until_ms = reply_int(reply_at(r, 1));
    reply_free(r);
}

void move_throttle(struct world *w)
{
    int name = dice_below(&w->dice, LIMITED), n = 1 + dice_below(&w->dice, 2);
    struct reply *r;

    world_begin(w, "later_throttle");
    call_text(&w->call, names_limited[name]);
    call_text(&w->call, "quota");
    call_number(&w->call, n);
    r = world_ask(w, caller_role(w));
    if (r != NULL && reply_int(reply_at(r, 0)) == 0)
        rates_pass(w->l, name, n, w->now_us);
    reply_free(r);
}

/* ---- limits */

static bool is_under(const struct ledger *l, int limited, int defined)
{
    return ledger_limit(l, limited) == &l->limit[defined];
}

/* How many starts of a rate are reserved for jobs that were granted. */
static int64_t granted_at(struct world *w, int limited)
{
    struct call c = {BUF_INIT, {0}, {0}, 0};
    struct reply *r;
    int64_t n;

    call_begin(&c, "EVAL_RO");
    call_text(&c, "local n = redis.pcall('SCARD', ARGV[1]) return type(n) == 'number' and n or 0");
    call_text(&c, "0");
    call_printf(&c, "%s:rate:granted:%s", w->l->root, names_limited[limited]);
    r = arena_must(&c);
    n = reply_int(r);
    reply_free(r);
    call_done(&c);
    return n;
}

static void change(struct world *w, int defined, const struct limit *limit)
{
    w->l->limit[defined] = *limit;
    ledger_permit(w->l); /* the call itself may have let waiting jobs in */
    for (int i = 0; i < LIMITED; i++)
        if (is_under(w->l, i, defined))
            rates_change(w->l, i, granted_at(w, i));
}

void limit_delete(struct world *w, int defined)
{
    static const struct limit none = {.kind = LIMIT_NONE};
    struct reply *r;

    world_begin(w, "later_limit_del");
    call_text(&w->call, names_defined[defined]);
    r = world_ask(w, ROLE_ADMIN);
    if (r != NULL)
        change(w, defined, &none);
    reply_free(r);
}

void limit_set(struct world *w, int defined, const struct limit *limit)
{
    struct reply *r;

    world_begin(w, "later_limit_set");
    call_text(&w->call, names_defined[defined]);
    if (limit->kind == LIMIT_SEM) {
        call_text(&w->call, "semaphore");
        call_number(&w->call, limit->n);
    } else {
        call_text(&w->call, "rate");
        call_printf(&w->call, "%lld/%lldms", (long long)limit->n, (long long)limit->per_ms);
        call_text(&w->call, "algorithm");
        call_text(&w->call, algorithms[limit->algorithm]);
        if (limit->algorithm == 0) {
            call_text(&w->call, "burst");
            call_number(&w->call, limit->burst);
        }
    }
    r = world_ask(w, ROLE_ADMIN);
    if (r != NULL)
        change(w, defined, limit);
    reply_free(r);
}

void move_limit(struct world *w)
{
    static const int64_t permits[] = {0, 0, 1, 1, 2, 5}, starts[] = {0, 0, 1, 3, 20, 1000},
                         pers[] = {5, 100, 1000, 60000};
    int defined = dice_below(&w->dice, DEFINED);
    const struct limit *was = &w->l->limit[defined];
    struct limit limit = {.kind = LIMIT_SEM, .burst = 1};

    if (dice_percent(&w->dice, 8)) {
        limit_delete(w, defined);
        return;
    }
    /* Open the limit, or shut it again before a job that it let in can be claimed. */
    if (was->kind != LIMIT_NONE && dice_percent(&w->dice, 45)) {
        limit = *was;
        limit.n = was->n == 0 ? 20 : 0;
        limit_set(w, defined, &limit);
        return;
    }
    /* Mostly keep the kind. */
    if (was->kind == LIMIT_NONE ? dice_percent(&w->dice, 50)
                                : (was->kind == LIMIT_RATE) != dice_percent(&w->dice, 15))
        limit.kind = LIMIT_RATE;
    if (limit.kind == LIMIT_SEM) {
        limit.n = PICK(&w->dice, permits);
    } else {
        limit.n = PICK(&w->dice, starts);
        limit.per_ms = PICK(&w->dice, pers);
        limit.algorithm = dice_percent(&w->dice, 60) ? 0 : dice_below(&w->dice, 3);
        limit.burst = 1 + (limit.algorithm == 0 ? dice_below(&w->dice, 3) : 0);
    }
    limit_set(w, defined, &limit);
}
