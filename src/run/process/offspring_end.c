#include "run/process/offspring_end.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "run/process/origin.h"

#define FOUND_MAX 100 /* in one pass; each needs a descriptor */
/* Wait before a process in the middle of an exec is checked again; doubles up to CALM_MAX_MS. */
#define CALM_MS 5
#define CALM_MAX_MS 200
#define SHARED_MAX 64 /* fences of one pass */
#define UNKNOWN_MS 1000
/* A process that does not die must not delay the other threads that share the pass. */
#define SHARED_WAIT_MS 200

/* ---- a pass */

struct pass {
    struct offspring at[FOUND_MAX];
    size_t n;
    struct offspring_count tally;
};

static void on_found(void *arg, const struct offspring *p)
{
    struct pass *pass = arg;

    pass->at[pass->n++] = *p;
}

static void wait_for_end(int pidfd, struct mono until)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int64_t left_us = mono_until_us(mono_now(), until);

    while (left_us > 0 && poll(&p, 1, (int)(left_us / 1000) + 1) < 0 && errno == EINTR)
        left_us = mono_until_us(mono_now(), until);
}

/* Find all before the first kill: a killed process loses its environment with its memory. It could
 * not be found any more, and nothing would wait for its end. */
static void run_pass(struct pass *pass, const struct offspring_query *whom, struct mono until,
                     struct mono wait_until)
{
    pass->n = 0;
    pass->tally = offspring_find(whom, FOUND_MAX, until, on_found, pass);
    for (size_t i = 0; i < pass->n; i++)
        offspring_kill(&pass->at[i]);
    for (size_t i = 0; i < pass->n; i++) {
        if (pass->at[i].pidfd < 0)
            continue;
        wait_for_end(pass->at[i].pidfd, wait_until);
        (void)close(pass->at[i].pidfd);
    }
}

static void be_calm(int *ms)
{
    (void)poll(NULL, 0, *ms);
    *ms = *ms * 2 < CALM_MAX_MS ? *ms * 2 : CALM_MAX_MS;
}

bool offspring_end(const struct offspring_query *whom, struct mono until, size_t *ret_found)
{
    struct pass pass;
    int calm_ms = CALM_MS;

    run_pass(&pass, whom, until, until);
    if (ret_found != NULL)
        *ret_found = pass.n;
    while (pass.tally.found + pass.tally.unknown > 0 && mono_before(mono_now(), until)) {
        if (pass.n == 0)
            be_calm(&calm_ms);
        run_pass(&pass, whom, until, until);
    }
    return pass.tally.found + pass.tally.unknown == 0;
}

/* ---- shared passes */

/* What a thread waits for: a pass that begins after its wish. On the thread's stack. */
struct wish {
    struct wish *next;
    int64_t fence;
    bool is_served;
    size_t left;    /* result of the pass: processes found with this fence, */
    size_t unknown; /* and unknown ones (offspring.h) */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t served = PTHREAD_COND_INITIALIZER;
static struct wish *wishes; /* those that no pass has taken yet */
static bool is_under_way;

/* Under the lock: take up to SHARED_MAX wishes, as a list, and their fences. */
static struct wish *take(int64_t fences[SHARED_MAX], size_t *ret_n)
{
    struct wish *first = wishes, *last = NULL;
    size_t n = 0;

    for (; wishes != NULL && n < SHARED_MAX; wishes = wishes->next) {
        fences[n++] = wishes->fence;
        last = wishes;
    }
    if (last != NULL)
        last->next = NULL;
    *ret_n = n;
    return first;
}

static size_t left_of(const struct pass *pass, int64_t fence)
{
    size_t left = 0;

    for (size_t i = 0; i < pass->n; i++)
        left += pass->at[i].fence == fence;
    /* A full pass may have left some out. */
    return left + (pass->n == FOUND_MAX);
}

/* One pass for the threads that wait now. Called under the lock, which is given up meanwhile. */
static void serve(struct mono until)
{
    struct mono soon = mono_add_ms(mono_now(), SHARED_WAIT_MS);
    struct wish *taken;
    int64_t fences[SHARED_MAX];
    char worker[ORIGIN_WORKER];
    struct offspring_query whom = {.worker = worker, .fences = fences};
    struct pass pass;

    origin_own(worker);
    taken = take(fences, &whom.nfences);
    is_under_way = true;
    (void)pthread_mutex_unlock(&lock);
    run_pass(&pass, &whom, until, mono_min(soon, until));
    (void)pthread_mutex_lock(&lock);
    is_under_way = false;
    for (struct wish *w = taken; w != NULL; w = w->next) {
        w->left = left_of(&pass, w->fence);
        w->unknown = pass.tally.unknown;
        w->is_served = true;
    }
    (void)pthread_cond_broadcast(&served);
}

static void pass_with_others(struct wish *wish, struct mono until)
{
    wish->is_served = false;
    (void)pthread_mutex_lock(&lock);
    wish->next = wishes;
    wishes = wish;
    while (!wish->is_served) {
        if (is_under_way)
            (void)pthread_cond_wait(&served, &lock);
        else
            serve(until);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* A process that stays unknown for UNKNOWN_MS is not ours: an exec is shorter, and ends of jobs
 * wait. */
bool offspring_end_one(int64_t fence, struct mono until)
{
    struct mono patient = mono_add_ms(mono_now(), UNKNOWN_MS);
    struct wish wish = {.fence = fence};
    int calm_ms = CALM_MS;

    for (;;) {
        pass_with_others(&wish, until);
        if (wish.left == 0 && (wish.unknown == 0 || !mono_before(mono_now(), patient)))
            return true;
        if (!mono_before(mono_now(), until))
            return false;
        be_calm(&calm_ms);
    }
}
