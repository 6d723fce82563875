#include "worker/orphans.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/thread.h"
#include "loop/mailbox.h"
#include "run/process/offspring_end.h"
#include "run/process/origin.h"

#define STACK_BYTES 524288
#define SEARCH_MS 3000 /* for the whole search; mostly it takes milliseconds */

enum fact { HOST, BOOT, PIDNS, PID, PSTART, PLACES, ROWS };

/* A search. The thread owns it until it posts it. */
struct search {
    struct mail mail;      /* first */
    struct orphans *owner; /* NULL: the result is not wanted any more; guarded by owner_lock */
    int64_t epoch;
    char worker[ORIGIN_WORKER];
    int64_t since;
    bool has_jobs; /* false: the worker is a `later lock` */
    char **jobs;
    size_t njobs;
    size_t found;
    bool is_clear, must_be_gone;
};

struct orphans {
    struct link *link;
    char ns[80];
    const struct identity *me;
    orphans_f *cb;
    void *arg;
    struct mailbox *box;
    struct search *search; /* that runs on its thread; NULL: none */
    /* The epoch that Redis is being asked about; 0: none. */
    int64_t epoch;
    bool may_be_past;
    struct search *made; /* made from the first of two answers; NULL: nothing to search for */
    bool is_past;
};

static pthread_mutex_t owner_lock = PTHREAD_MUTEX_INITIALIZER;

static void search_free(struct search *s)
{
    if (s == NULL)
        return;
    mem_free_list(s->jobs);
    free(s);
}

/* ---- the search */

static void *thread(void *arg)
{
    struct search *s = arg;
    const struct offspring_query whom = {.worker = s->worker,
                                         .jobs = s->has_jobs ? (const char *const *)s->jobs : NULL,
                                         .njobs = s->njobs,
                                         .since = s->since};
    bool is_none = offspring_end(&whom, mono_add_ms(mono_now(), SEARCH_MS), &s->found);

    s->is_clear = is_none && s->must_be_gone;
    (void)pthread_mutex_lock(&owner_lock);
    if (s->owner != NULL)
        mailbox_post(s->owner->box, &s->mail);
    else
        search_free(s);
    (void)pthread_mutex_unlock(&owner_lock);
    return NULL;
}

static void tell(const struct search *s)
{
    if (s->found > 0)
        log_warn("event=orphans epoch=%lld killed=%zu left=%s reason=\"its worker %s and left them "
                 "running\"",
                 (long long)s->epoch, s->found, s->is_clear || !s->must_be_gone ? "0" : "some",
                 s->must_be_gone ? "died" : "stands still");
}

static void on_mail(void *arg, struct mail *mail)
{
    struct orphans *r = arg;
    struct search *s = (struct search *)(void *)mail;
    int64_t epoch = s->epoch;
    bool is_clear = s->is_clear;

    r->search = NULL;
    tell(s);
    search_free(s);
    if (r->cb != NULL)
        r->cb(r->arg, epoch, is_clear);
}

/* ---- what Redis says */

static const char *text_at(const struct reply *r, size_t i)
{
    return reply_kind(r) == REPLY_ARRAY && i < reply_count(r) ? reply_str(reply_at(r, i)) : "";
}

/* NULL: there is nothing to search for: the worker lives, or this host cannot tell. */
static struct search *make_search(const struct orphans *r, const struct store_peer *peer)
{
    enum identity_sight sight = identity_see(r->me, peer);
    struct search *s;

    if (sight != IDENTITY_GONE && sight != IDENTITY_STOPPED)
        return NULL;
    s = mem_new(sizeof(*s));
    s->epoch = r->epoch;
    s->must_be_gone = sight == IDENTITY_GONE;
    origin_worker(peer->pidns, peer->pid, peer->pstart, s->worker);
    (void)text_parse_int(peer->pstart, 0, INT64_MAX, &s->since);
    return s;
}

static void on_worker(void *arg, const struct reply *reply)
{
    struct orphans *r = arg;
    const struct store_peer peer = {.epoch = r->epoch,
                                    .host = text_at(reply, HOST),
                                    .boot = text_at(reply, BOOT),
                                    .pidns = text_at(reply, PIDNS),
                                    .pid = text_at(reply, PID),
                                    .pstart = text_at(reply, PSTART)};

    if (r->epoch == 0)
        return;
    r->is_past = r->may_be_past && identity_is_of_other_boot(r->me, &peer);
    r->made = make_search(r, &peer);
    if (r->made != NULL)
        r->made->has_jobs = strcmp(text_at(reply, PLACES), "0") != 0;
}

static void take_jobs(struct search *s, const struct reply *reply)
{
    s->njobs = reply_count(reply);
    s->jobs = mem_new((s->njobs + 1) * sizeof(*s->jobs));
    for (size_t i = 0; i < s->njobs; i++)
        s->jobs[i] = mem_strdup(reply_str(reply_at(reply, i)));
}

static void on_jobs(void *arg, const struct reply *reply)
{
    struct orphans *r = arg;
    struct search *s = TAKE_PTR(r->made);
    int64_t epoch = r->epoch;

    if (epoch == 0) {
        search_free(s);
        return;
    }
    r->epoch = 0;
    if (s != NULL && reply_kind(reply) == REPLY_ARRAY) {
        take_jobs(s, reply);
        s->owner = r;
        r->search = s;
        if (thread_start(thread, s, STACK_BYTES, NULL) == 0)
            return;
        r->search = NULL;
    }
    search_free(s);
    r->cb(r->arg, epoch, r->is_past);
}

/* ---- the owner's side */

struct orphans *orphans_new(struct loop *loop, struct link *link, const char *ns,
                            const struct identity *me, orphans_f *cb, void *arg)
{
    struct orphans *r = mem_new(sizeof(*r));

    r->link = link;
    text_copy(r->ns, sizeof(r->ns), ns);
    r->me = me;
    r->cb = cb;
    r->arg = arg;
    r->box = mailbox_new(loop, on_mail, NULL, r);
    if (r->box == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void orphans_free(struct orphans *r)
{
    if (r == NULL)
        return;
    (void)pthread_mutex_lock(&owner_lock);
    if (r->search != NULL)
        r->search->owner = NULL;
    (void)pthread_mutex_unlock(&owner_lock);
    r->cb = NULL;
    mailbox_free(r->box);
    search_free(r->made);
    free(r);
}

void orphans_reset(struct orphans *r)
{
    r->epoch = 0;
    search_free(TAKE_PTR(r->made));
}

int orphans_end(struct orphans *r, int64_t epoch, bool may_be_past)
{
    CLEANUP_FREE char *worker = mem_printf("later:{%s}:worker:%lld", r->ns, (long long)epoch);
    CLEANUP_FREE char *running = mem_printf("later:{%s}:running", r->ns);
    CLEANUP_FREE char *score = mem_printf("%lld", (long long)epoch);
    const char *who[] = {"HMGET", worker, "host", "boot", "pidns", "pid", "pstart", "places"};
    const char *what[] = {"ZRANGEBYSCORE", running, score, score};

    if (r->search != NULL || r->epoch != 0)
        return -1;
    r->epoch = epoch;
    r->may_be_past = may_be_past;
    if (link_call(r->link, 2 + ROWS, who, NULL, on_worker, r) == 0 &&
        link_call(r->link, 4, what, NULL, on_jobs, r) == 0)
        return 0;
    orphans_reset(r);
    return -1;
}
