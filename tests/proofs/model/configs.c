#include "configs.h"

#define ALL(n) ((1U << (n)) - 1)

#define NUMBERS(name_, jobs_, workers_, places_, attempts_, crashes_, lock_)                       \
    .name = name_, .jobs = jobs_, .workers = workers_, .places = places_, .attempts = attempts_,   \
    .crashes = crashes_, .silence = 3, .lock = lock_, .sem = ALL(jobs_)
/* The common values: one place in a worker, two attempts, two crashes; each job needs the lock. */
#define CONF(name_, jobs_, workers_) NUMBERS(name_, jobs_, workers_, 1, 2, 2, ALL(jobs_))

const struct conf configs_quick[] = {
    {CONF("link", 1, 2), .budget = {.cut = 1, .fail = 1}},
    {CONF("freeze", 2, 2), .budget = {.freeze = 1}},
    {CONF("crash", 1, 2), .budget = {.crash = 1}},
    {CONF("outage", 1, 2), .budget = {.outage = 1, .fail = 1}},
    {NUMBERS("people", 2, 2, 1, 1, 2, ALL(2)), .budget = {.fail = 1, .cancel = 1, .retry = 1}},
    {CONF("stop", 1, 2), .budget = {.stop = 1, .fail = 1, .cancel = 1}},
    {CONF("lost writes", 1, 2), .has_add = true, .has_late = true, .budget = {.rewind = 1}},
    {NUMBERS("gates", 3, 2, 2, 2, 2, 1), .budget = {.fail = 1}},
    {CONF("all lost, clock back", 1, 1), .is_early = true, .budget = {.rewind = 1},
     .variant = CLOCK_BACK},
    {CONF("clock back", 1, 1), .budget = {.rewind = 1}, .variant = CLOCK_BACK},
    {CONF("clock back, two workers", 1, 2), .is_entered = true, .budget = {.rewind = 1},
     .variant = CLOCK_BACK | BACK_ONLY},
};
const unsigned nconfigs_quick = sizeof(configs_quick) / sizeof(configs_quick[0]);

const struct conf configs_full[] = {
    {CONF("link, two jobs", 2, 2), .budget = {.cut = 1, .fail = 1}},
    {CONF("link twice", 1, 2), .budget = {.cut = 2}},
    {CONF("link and freeze", 1, 2), .budget = {.cut = 1, .freeze = 1}},
    {CONF("link and stop", 1, 2), .budget = {.cut = 1, .fail = 1, .stop = 1}},
    {CONF("freeze twice", 2, 2), .budget = {.freeze = 2}},
    {CONF("freeze and people", 1, 2), .budget = {.freeze = 1, .fail = 1, .cancel = 1, .retry = 1}},
    {CONF("crash, two jobs", 2, 2), .budget = {.crash = 1}},
    {CONF("crash and freeze", 1, 2), .budget = {.crash = 1, .freeze = 1}},
    {CONF("outage and freeze", 1, 2), .budget = {.outage = 1, .freeze = 1}},
    {CONF("lost writes, two jobs", 2, 2), .has_add = true, .has_late = true,
     .budget = {.rewind = 1}},
    {CONF("lost writes and freeze", 1, 2), .budget = {.rewind = 1, .freeze = 1}},
    {CONF("clock back and freeze", 1, 2), .is_entered = true, .budget = {.rewind = 1, .freeze = 1},
     .variant = CLOCK_BACK | BACK_ONLY},
    {CONF("three workers", 1, 3), .budget = {.freeze = 1}},
    {NUMBERS("suspects", 2, 2, 2, 3, 3, ALL(2)), .budget = {.freeze = 2}},
    {NUMBERS("gates, three jobs", 3, 3, 2, 2, 2, 3), .budget = {.fail = 1}},
};
const unsigned nconfigs_full = sizeof(configs_full) / sizeof(configs_full[0]);

const struct variant_of variants[] = {
    {"no-fence",
     "I3",
     "a result is accepted by the id of its job alone",
     {CONF("no-fence", 1, 2), .budget = {.freeze = 1}, .variant = NO_FENCE}},
    {"no-link",
     "ClaimedHasStart",
     "link numbers are not compared",
     {CONF("no-link", 1, 2), .budget = {.cut = 1}, .variant = NO_LINK}},
    {"seconds",
     "EffectCause",
     "silence is counted in time, not in own accepted beats",
     {CONF("seconds", 1, 2), .budget = {.outage = 1}, .variant = SECONDS}},
    {"attempts",
     "I3",
     "attempts are compared where start numbers should be, and an operator's retry resets them",
     {NUMBERS("attempts", 1, 2, 1, 1, 2, 1), .budget = {.freeze = 1, .fail = 2, .retry = 1},
      .variant = ATTEMPT_FENCE}},
    {"gate-leak",
     "HolderHasLease",
     "reaping does not free the gates",
     {CONF("gate-leak", 1, 2), .budget = {.crash = 1}, .variant = GATE_LEAK}},
    {"no-counter",
     "EffectCause",
     "a reap does not compare the counter of its victim",
     {CONF("no-counter", 1, 2), .budget = {.freeze = 1}, .variant = NO_COUNTER}},
    {"no-seen",
     "TokenUnique",
     "Redis lost everything, its clock is behind, and a registration ignores SEEN",
     {CONF("no-seen", 1, 1), .is_early = true, .budget = {.rewind = 1},
      .variant = NO_SEEN | CLOCK_BACK}},
    {"adopt-settled",
     "AckIdempotent",
     "a job that waits is adopted, though it may wait because this very start has ended",
     {CONF("adopt-settled", 1, 2), .budget = {.cut = 1, .fail = 1, .stop = 1},
      .variant = ADOPT_SETTLED}},
    {"no-seen-reconcile",
     "TokenUnique",
     "Redis lost its last writes, its clock is behind them, and a reconcile ignores SEEN",
     {CONF("no-seen-reconcile", 1, 2), .is_entered = true, .budget = {.rewind = 1},
      .variant = NO_SEEN_RECONCILE | CLOCK_BACK | BACK_ONLY}},
    {"clock-back",
     "TokenUnique",
     "a limit of what is shipped: as above with SEEN, and a worker claims before one that knows "
     "higher numbers is back",
     {CONF("clock-back", 1, 2), .is_entered = true, .budget = {.rewind = 1},
      .variant = CLOCK_BACK}},
    {"same-epoch",
     "OneLivePerId",
     "a limit of what is shipped: Redis lost a registration, its clock is behind, and the epoch is "
     "given to another worker",
     {CONF("same-epoch", 1, 2), .is_early = true, .budget = {.rewind = 1},
      .variant = CLOCK_BACK | BACK_ONLY}},
};
const unsigned nvariants = sizeof(variants) / sizeof(variants[0]);
