#include "producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "batch.h"
#include "broadcast.h"
#include "fair.h"
#include "ledger.h"
#include "net.h"
#include "server.h"
#include "worker.h"

#define ARGS_MAX 40
#define BIG_BYTES 17000 /* more than BIG */
#define PATIENCE_US (3 * SECOND)

/* One call that a person or program wants to make. */
struct deed {
    struct conn *conn; /* NULL: not under way */
    struct event *patience;
    unsigned left; /* how often it may be sent again */
    bool is_add;
    int argc;
    char *argv[ARGS_MAX];
};

static const struct plan *plan;
static const struct owner people = {.name = "user"};
static unsigned nadds, npayloads;

static void ask(void *deed);

static void deed_free(void *arg)
{
    struct deed *d = arg;

    world_cancel(d->patience);
    if (d->conn != NULL)
        net_close(d->conn);
    if (d->is_add)
        nadds--;
    for (int i = 0; i < d->argc; i++)
        free(d->argv[i]);
    free(d);
}

static void word(struct deed *d, const char *text)
{
    d->argv[d->argc++] = mem_strdup(text);
}

static void pair(struct deed *d, const char *name, const char *unit, int64_t value)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%lld%s", (long long)value, unit);
    word(d, name);
    word(d, text);
}

static struct deed *deed_new(const char *function)
{
    struct deed *d = mem_new(sizeof(*d));

    word(d, "FCALL");
    word(d, function);
    word(d, "1");
    word(d, SERVER_ROOT);
    return d;
}

/* No answer came: a call with a token may be sent again. */
static void give_up(struct deed *d)
{
    world_cancel(d->patience);
    d->patience = NULL;
    if (d->conn != NULL)
        net_close(d->conn);
    d->conn = NULL;
    if (d->left == 0) {
        deed_free(d);
        return;
    }
    d->left--;
    (void)world_in(random_between(10 * MS, 800 * MS), NULL, ask, d, deed_free);
}

static void on_broken(void *arg)
{
    give_up(arg);
}

static void on_impatient(void *arg)
{
    struct deed *d = arg;

    d->patience = NULL;
    give_up(d);
}

static void on_answer(void *arg, const struct reply *r)
{
    struct deed *d = *(struct deed **)arg;

    if (reply_kind(r) == REPLY_ERROR && strncmp(reply_str(r), "ELATER_", 7) != 0)
        give_up(d);
    else
        deed_free(d);
}

static void ask(void *arg)
{
    struct deed *d = arg;
    struct deed **self;

    if (net_is_down()) {
        give_up(d);
        return;
    }
    self = mem_new(sizeof(*self));
    *self = d;
    d->conn = net_open(&people, on_broken, d);
    d->patience = world_in(PATIENCE_US, NULL, on_impatient, d, deed_free);
    net_call(d->conn, d->argc, (const char *const *)d->argv, NULL, on_answer, self);
}

/* ---- adds */

static const char *any_queue(void)
{
    return plan_queue((unsigned)random_between(0, plan->queues - 1));
}

static void add_options(struct deed *d)
{
    if (random_chance(300))
        pair(d, "in", "ms", random_between(1, 8000));
    if (random_chance(300))
        pair(d, "priority", "", random_between(0, 9));
    if (random_chance(150))
        pair(d, "attempts", "", random_between(1, 3));
    if (random_chance(100))
        pair(d, "keep", "ms", random_between(1, 20000));
    if (random_chance(80))
        pair(d, "expire", "ms", random_between(1, 3000));
    if (random_chance(100))
        pair(d, "timeout", "ms", random_between(50, 2000));
}

static void add_gates(struct deed *d)
{
    if (!random_chance(plan->gates))
        return;
    if (random_chance(700))
        pair(d, "lock", "", random_between(1, PLAN_LOCKS));
    if (random_chance(400))
        pair(d, "sem", "", PLAN_SEM);
    if (random_chance(200))
        pair(d, "rate", "", PLAN_RATE);
}

static void add_chain(struct deed *d)
{
    if (!random_chance(plan->chains))
        return;
    for (int64_t n = random_between(0, 3); n > 0; n--) {
        word(d, "then");
        word(d, any_queue());
    }
    if (random_chance(500)) {
        word(d, "on_dead");
        word(d, any_queue());
    }
}

static void add_batch(struct deed *d)
{
    if (!random_chance(600))
        return;
    word(d, "batch");
    d->argv[d->argc++] = mem_printf("b%lld", (long long)random_between(1, plan->batches));
}

static struct deed *add_job(void)
{
    bool is_plain = plan->quick > 0 && random_chance(970);
    struct deed *d;
    char text[64];

    if (!is_plain && random_chance(150)) {
        d = mem_new(sizeof(*d));
        word(d, "ZADD");
        (void)snprintf(text, sizeof(text), SERVER_ROOT ":due:%s", any_queue());
        word(d, text);
        (void)snprintf(text, sizeof(text), "%lld",
                       (long long)(world_wall_us() / 1000 + random_between(-1000, 4000)));
        word(d, text);
        (void)snprintf(text, sizeof(text), "raw-%u", npayloads++);
        word(d, text);
        return d;
    }
    d = deed_new("later_add");
    word(d, any_queue());
    if (!is_plain) {
        add_options(d);
        add_gates(d);
    }
    if (plan->fair != 0 && random_chance(800)) {
        word(d, "key");
        word(d, fair_any_tenant());
    }
    if (plan->chains > 0)
        add_chain(d);
    if (plan->batches > 0)
        add_batch(d);
    if (random_chance(600)) {
        pair(d, "token", "", npayloads);
        d->left = 10;
    }
    (void)snprintf(text, sizeof(text), "job-%u", npayloads++);
    if (!is_plain && random_chance(60)) /* a large payload, fetched after the claim */
        d->argv[d->argc++] = mem_printf("%s %*s", text, BIG_BYTES, ".");
    else
        word(d, text);
    return d;
}

static void on_add(void *arg)
{
    struct deed *d = add_job();

    (void)arg;
    d->is_add = true;
    ask(d);
}

/* ---- for several receivers */

/* It expires: nobody may come back to its host. */
static void on_shared(void *function)
{
    struct deed *d = deed_new(function);

    if (strcmp(function, "later_publish") == 0) {
        word(d, BROADCAST_TOPIC);
    } else {
        word(d, any_queue());
        if (random_chance(500)) {
            word(d, "per");
            word(d, random_chance(700) ? "host" : "worker");
        }
        pair(d, "expire", "ms", random_between(1000, 20000));
    }
    if (random_chance(300))
        pair(d, "in", "ms", random_between(1, 4000));
    if (random_chance(200))
        pair(d, "attempts", "", random_between(1, 3));
    if (random_chance(300))
        pair(d, "keep", "ms", random_between(1, 20000));
    if (random_chance(600)) {
        pair(d, "token", "", npayloads);
        d->left = 10;
    }
    d->argv[d->argc++] = mem_printf("job-%u", npayloads++);
    d->is_add = true;
    ask(d);
}

/* ---- batches */

static struct deed *of_batch(const char *function, unsigned number)
{
    struct deed *d = deed_new(function);

    d->argv[d->argc++] = mem_printf("b%u", number);
    d->left = 10;
    return d;
}

struct batch_event {
    const char *function;
    unsigned number;
};

static void on_batch(void *arg)
{
    struct batch_event *e = arg;
    struct deed *d = of_batch(e->function, e->number);

    if (strcmp(e->function, "later_batch") == 0) {
        for (unsigned i = 0; i < BATCH_CALLBACKS && i < plan->queues; i++) {
            word(d, batch_callbacks[i]);
            word(d, plan_queue(i));
        }
        word(d, "all ended");
    }
    free(e);
    ask(d);
}

static void batch_at(int64_t us, const char *function, unsigned number)
{
    struct batch_event *e = mem_new(sizeof(*e));

    *e = (struct batch_event){function, number};
    (void)world_in(us, NULL, on_batch, e, free);
}

/* Most are opened early. Some are cancelled. */
static void plan_batch(unsigned number)
{
    batch_at(random_between(0, plan->chaos_us / 20), "later_batch", number);
    batch_at(random_between(plan->chaos_us / 4, plan->chaos_us), "later_batch_seal", number);
    if (random_chance(250))
        batch_at(random_between(plan->chaos_us / 2, plan->chaos_us), "later_batch_cancel", number);
}

/* ---- actions of operators */

/* Mostly for a job in this state, if there is one. */
static struct deed *of_job(const char *function, enum where where)
{
    size_t n = ledger_count(), i;
    struct deed *d;

    if (n == 0)
        return NULL;
    i = (size_t)random_between(0, (int64_t)n - 1);
    for (size_t k = 0; random_chance(900) && k < n && ledger_at(i)->where != where; k++)
        i = (i + 1) % n;
    d = deed_new(function);
    word(d, ledger_at(i)->id);
    return d;
}

static struct deed *of_queue(const char *function, const char *queue)
{
    struct deed *d = deed_new(function);

    word(d, queue);
    return d;
}

static struct deed *quiet(bool on)
{
    struct deed *d = deed_new("later_v1_quiet");

    word(d, "*");
    word(d, on ? "on" : "off");
    return d;
}

static void on_operator(void *arg)
{
    struct deed *d = NULL;

    (void)arg;
    switch (random_between(0, 9)) {
    case 0:
    case 1:
    case 2:
        d = of_job("later_cancel", random_chance(700) ? RUNNING : WAITING);
        break;
    case 3:
        d = of_job("later_run_now", WAITING);
        break;
    case 4:
        d = of_job("later_reschedule", WAITING);
        if (d != NULL)
            word(d, random_chance(500) ? "+3s" : "+200ms");
        break;
    case 5:
        d = of_job("later_retry", DEAD);
        break;
    case 6:
        d = of_job("later_v1_await", WAITING);
        break;
    case 7:
        d = of_queue("later_pause", any_queue());
        if (random_chance(500))
            pair(d, "for", "ms", random_between(100, 5000));
        break;
    case 8:
        d = of_queue("later_resume", any_queue());
        break;
    default:
        d = quiet(random_chance(300));
        break;
    }
    if (d != NULL)
        ask(d);
}

/* A worker says with other settings whether a queue is fair. */
static void on_fair(void *arg)
{
    const struct worker *w = worker_any();
    int64_t epoch = w != NULL ? ledger_epoch(w) : 0;
    struct deed *d;

    (void)arg;
    if (epoch == 0)
        return;
    d = deed_new("later_v1_declare");
    d->argv[d->argc++] = mem_printf("%lld", (long long)epoch);
    word(d, "0");
    word(d, "1");
    word(d, any_queue());
    word(d, fair_any_text());
    world_say("queue %s: %s", d->argv[d->argc - 2], d->argv[d->argc - 1]);
    ask(d);
}

/* Quick jobs come in bursts, so that they wait for each other. */
static int64_t when_added(void)
{
    int64_t us = random_between(0, random_chance(500) ? SECOND : plan->chaos_us);

    return plan->quick == 0 ? us : us / SECOND * SECOND + random_between(0, 15 * MS);
}

void producer_begin(const struct plan *p)
{
    plan = p;
    npayloads = 0;
    nadds = p->jobs + 2 * p->broadcasts;
    server_define("FCALL later_limit_set 1 " SERVER_ROOT " 7 semaphore 2");
    server_define("FCALL later_limit_set 1 " SERVER_ROOT " 8 " PLAN_RATE_TEXT);
    for (unsigned i = 0; i < p->jobs; i++)
        (void)world_in(when_added(), NULL, on_add, NULL, NULL);
    for (unsigned i = 1; i <= p->batches; i++)
        plan_batch(i);
    for (unsigned i = 0; i < 2 * p->broadcasts; i++) {
        static char names[][16] = {"later_publish", "later_broadcast"};

        (void)world_in(random_between(0, p->chaos_us), NULL, on_shared, names[i % 2], NULL);
    }
    for (unsigned i = 0; i < p->fair_changes; i++)
        (void)world_in(random_between(0, p->chaos_us), NULL, on_fair, NULL, NULL);
    for (unsigned i = 0; i < p->operators; i++)
        (void)world_in(random_between(0, p->chaos_us), NULL, on_operator, NULL, NULL);
}

/* Repeat this, since calls that operators made during the trouble may still arrive. */
static void on_calm(void *arg)
{
    (void)arg;
    for (unsigned q = 0; q < plan->queues; q++)
        ask(of_queue("later_resume", plan_queue(q)));
    ask(quiet(false));
    for (unsigned i = 1; i <= plan->batches; i++)
        ask(of_batch("later_batch_seal", i));
    (void)world_in(20 * SECOND, NULL, on_calm, NULL, NULL);
}

void producer_calm(void)
{
    on_calm(NULL);
}

unsigned producer_waits(void)
{
    return nadds;
}
