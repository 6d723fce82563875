#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "base/mem.h"
#include "ledger.h"
#include "server.h"

#define LATE_MAX_US (8 * SECOND)

struct conn {
    struct conn *next;
    const struct owner *owner;
    event_f *broken; /* NULL: closed, or already called */
    void *arg;
    unsigned refs;        /* held by calls, the pending notice, the owner */
    int64_t last_arrival; /* the latest arrival of the calls sent so far */
    int64_t last_answer;
    bool is_cut;  /* calls sent from now on do not arrive */
    bool is_mute; /* an answer was lost, so all later ones are */
    bool is_dead; /* calls under way do not arrive any more */
    bool is_breaking;
};

struct call {
    struct conn *conn;
    int argc;
    int64_t sent_us;
    char **argv;
    size_t *lens;
    net_answer_f *cb;
    void *arg;
    struct reply *reply; /* NULL: not executed yet */
    bool is_refused, loses_reply;
};

struct listener {
    struct listener *next;
    const struct owner *owner;
    net_wake_f *cb; /* NULL: the listener has gone */
    void *arg;
    unsigned refs;
};

struct message {
    struct listener *to;
    char *text;
};

static const struct plan *plan;
static struct conn *conns;
static struct listener *listeners;
static int64_t hangs_until;
static bool is_down;
static unsigned ncalls;

static int64_t latency(void)
{
    return random_chance(50) ? random_between(1 * MS, 40 * MS) : random_between(50, 900);
}

static bool may(unsigned permille)
{
    return !world.is_calm && random_chance(permille);
}

/* ---- connections */

static void conn_unref(struct conn *c)
{
    struct conn **at = &conns;

    if (--c->refs > 0)
        return;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

static void conn_drop(void *arg)
{
    conn_unref(arg);
}

struct conn *net_open(const struct owner *owner, event_f *broken, void *arg)
{
    struct conn *c = mem_new(sizeof(*c));

    *c = (struct conn){.next = conns, .owner = owner, .broken = broken, .arg = arg, .refs = 1};
    conns = c;
    return c;
}

void net_close(struct conn *c)
{
    c->is_cut = true;
    c->broken = NULL;
    conn_unref(c);
}

static void on_broken(void *arg)
{
    struct conn *c = arg;
    event_f *broken = c->broken;

    c->broken = NULL;
    if (broken != NULL)
        broken(c->arg);
    conn_unref(c);
}

/* The owner notices after this time. */
static void break_in(struct conn *c, int64_t us)
{
    c->is_cut = true;
    if (c->is_breaking)
        return;
    c->is_breaking = true;
    c->refs++;
    (void)world_in(us, c->owner, on_broken, c, conn_drop);
}

void net_break(struct conn *c)
{
    break_in(c, random_between(0, 5 * MS));
}

/* ---- published messages */

static void listener_unref(struct listener *l)
{
    struct listener **at = &listeners;

    if (--l->refs > 0)
        return;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l);
}

struct listener *net_listen(const struct owner *owner, net_wake_f *cb, void *arg)
{
    struct listener *l = mem_new(sizeof(*l));

    *l = (struct listener){listeners, owner, cb, arg, 1};
    listeners = l;
    return l;
}

void net_unlisten(struct listener *l)
{
    if (l == NULL)
        return;
    l->cb = NULL;
    listener_unref(l);
}

static void message_drop(void *arg)
{
    struct message *m = arg;

    listener_unref(m->to);
    free(m->text);
    free(m);
}

static void on_message(void *arg)
{
    const struct message *m = arg;

    if (m->to->cb != NULL)
        m->to->cb(m->to->arg, m->text);
    message_drop(arg);
}

static void publish(void)
{
    const char *const *texts;
    size_t n = server_wakes(&texts);

    for (size_t i = 0; i < n; i++) {
        world_say("published %s", texts[i]);
        for (struct listener *l = listeners; l != NULL; l = l->next) {
            struct message *m;

            if (l->cb == NULL || may(plan->lost_wake))
                continue;
            m = mem_new(sizeof(*m));
            m->to = l;
            m->text = mem_strdup(texts[i]);
            l->refs++;
            (void)world_in(latency(), l->owner, on_message, m, message_drop);
        }
    }
}

/* ---- calls */

static void call_drop(void *arg)
{
    struct call *c = arg;

    for (int i = 0; i < c->argc; i++)
        free(c->argv[i]);
    free(c->argv);
    free(c->lens);
    reply_free(c->reply);
    free(c->arg);
    conn_unref(c->conn);
    free(c);
}

static void on_answer(void *arg)
{
    struct call *c = arg;

    if (c->conn->broken != NULL)
        c->cb(c->arg, c->reply);
    call_drop(c);
}

static struct reply *refusal(void)
{
    static const char *const texts[] = {
        "OOM command not allowed when used memory > 'maxmemory'.",
        "BUSY Redis is busy running a script.",
        "LOADING Redis is loading the dataset in memory",
        "MISCONF Redis is configured to save RDB snapshots",
        "READONLY You can't write against a read only replica.",
        "ERR Function not found",
        "TRYAGAIN Multiple keys request during rehashing of slot",
    };

    return server_error(texts[random_between(0, 6)]);
}

static void execute(struct call *c)
{
    if (c->is_refused) {
        c->reply = refusal();
        world_say("refused %s for %s: %s", c->argv[c->argc > 1], c->conn->owner->name,
                  reply_str(c->reply));
        return;
    }
    if (strcmp(c->argv[c->argc > 1], "later_batch_cancel") == 0)
        audit_meet(); /* the model has to know whom it cancels */
    ncalls++;
    c->reply = server_call(c->argc, (const char *const *)c->argv, c->lens);
    ledger_executed(c->conn->owner, c->sent_us, c->argc, (const char *const *)c->argv, c->reply);
    publish();
}

/* Sometimes an answer takes long, most often that of a reap: so its victim can wake before it
 * arrives. */
static bool is_slow(const struct call *c)
{
    return strcmp(c->argv[c->argc > 1], "later_v1_reap") == 0 ? random_chance(300) : may(3);
}

static void on_arrival(void *arg)
{
    struct call *c = arg;
    struct conn *conn = c->conn;
    int64_t at;

    if (is_down || conn->is_dead) {
        call_drop(c);
        return;
    }
    if (hangs_until > world.now_us) {
        at = hangs_until + random_between(0, 2 * MS);

        conn->last_arrival = at > conn->last_arrival ? at : conn->last_arrival;
        (void)world_at(conn->last_arrival, NULL, on_arrival, c, call_drop);
        return;
    }
    execute(c);
    /* All later answers are lost, too. */
    if (c->loses_reply) {
        conn->is_mute = true;
        break_in(conn, latency());
    }
    if (conn->is_mute || conn->broken == NULL) {
        call_drop(c);
        return;
    }
    at = world.now_us + (is_slow(c) ? random_between(200 * MS, 3 * SECOND) : latency());
    conn->last_answer = at > conn->last_answer ? at : conn->last_answer;
    (void)world_at(conn->last_answer, conn->owner, on_answer, c, call_drop);
}

static struct call *call_new(struct conn *conn, int argc, const char *const *argv,
                             const size_t *lens)
{
    struct call *c = mem_new(sizeof(*c));

    c->conn = conn;
    c->sent_us = world.now_us;
    conn->refs++;
    c->argc = argc;
    c->argv = mem_new((size_t)argc * sizeof(*c->argv));
    c->lens = mem_new((size_t)argc * sizeof(*c->lens));
    for (int i = 0; i < argc; i++) {
        c->lens[i] = lens != NULL ? lens[i] : strlen(argv[i]);
        c->argv[i] = mem_dup(argv[i], c->lens[i]);
    }
    return c;
}

void net_call(struct conn *conn, int argc, const char *const *argv, const size_t *lens,
              net_answer_f *cb, void *arg)
{
    struct call *c;
    int64_t at = world.now_us + latency();

    if (!conn->is_cut && may(plan->cut))
        break_in(conn, random_between(0, 20 * MS));
    if (conn->is_cut) {
        free(arg);
        return;
    }
    c = call_new(conn, argc, argv, lens);
    c->cb = cb;
    c->arg = arg;
    if (may(plan->late)) {
        at += random_between(1, LATE_MAX_US);
        break_in(conn, random_between(0, 20 * MS));
    } else {
        c->is_refused = may(plan->refused);
        c->loses_reply = may(plan->unheard);
    }
    conn->last_arrival = at > conn->last_arrival ? at : conn->last_arrival;
    (void)world_at(conn->last_arrival, NULL, on_arrival, c, call_drop);
}

/* ---- Redis as seen from here */

bool net_is_down(void)
{
    return is_down;
}

int64_t net_hangs_until(void)
{
    return hangs_until;
}

void net_hang(int64_t until_us)
{
    hangs_until = until_us > hangs_until ? until_us : hangs_until;
}

void net_down(void)
{
    is_down = true;
    hangs_until = 0;
    for (struct conn *c = conns; c != NULL; c = c->next) {
        c->is_dead = true;
        break_in(c, random_between(0, 50 * MS));
    }
}

void net_up(void)
{
    is_down = false;
}

void net_begin(const struct plan *p)
{
    plan = p;
    hangs_until = 0;
    is_down = false;
    ncalls = 0;
}

void net_end(void)
{
    /* With the events everything that referred to these is gone. */
    if (conns != NULL || listeners != NULL)
        abort();
}

unsigned net_calls(void)
{
    return ncalls;
}
