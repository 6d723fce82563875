/*
 * The daemon's parts, for daemon.c (makes and unmakes them, signals, reload) and wiring.c (who
 * tells whom what); for nobody else.
 */
#ifndef LATER_DAEMON_DAEMON_PRIV_H
#define LATER_DAEMON_DAEMON_PRIV_H

#include "conf/conf.h"
#include "daemon/embedded.h"
#include "serve/handlers_folder.h"
#include "daemon/gate_settings.h"
#include "daemon/probe_socket.h"
#include "serve/runner.h"
#include "sched/sched.h"
#include "serve/served_queues.h"
#include "daemon/signals.h"
#include "worker/state_folder.h"
#include "daemon/stray_keys.h"
#include "redis/link.h"
#include "run/guard/guard.h"
#include "store/store_redis.h"
#include "worker/guardian.h"
#include "worker/identity.h"
#include "worker/remains.h"

#define DAEMON_DOWN_LOG_MS 30000 /* one line about a lost link per so long */
#define DAEMON_TROUBLE_MS 30000  /* of lines about the link and refusals, so many per so long */
#define DAEMON_TROUBLE_LINES 16

struct daemon {
    struct conf *conf;
    char *const *env;
    struct loop *loop;
    struct identity me;
    struct state_folder *state_folder; /* NULL: state_dir none */
    bool is_state_lost;                /* and it was said */
    struct guardian *guardian;
    struct guard *guard; /* the guardian's */
    struct embedded *embedded;
    struct link *link;
    struct store_redis *store;
    struct stray_keys *stray_keys;
    struct remains *remains;
    struct gate_settings *gate_settings;
    struct launches *launches; /* of conf */
    struct served_queues *served;
    struct sched *sched;
    size_t tidy_from;    /* of the served queues: from where on the next call tidies */
    struct mono tell_at; /* then a call also says how this worker is, */
    bool tidy_tells;     /* as the one under way does: what it finds is told in the log */
    struct runner *runner;
    struct signals *signals;
    struct handlers_folder *handlers_folder;
    struct probe_socket *probe_socket; /* NULL: it could not be made */
    struct loop_alarm *alarm;
    struct mono alarm_at; /* what it is set for, MONO_NEVER: nothing */
    struct loop_timer *status, *watchdog;
    unsigned wedged; /* looks at the pool that found it so, in a row; from 2 no watchdog is fed */
    struct loop_timer *reload; /* of HUPs that came too soon after the last */
    struct mono reloaded;
    struct url url;
    struct mono down_logged;
    struct mono trouble_since; /* lines about the link and refusals are counted from here */
    unsigned trouble_lines;
    bool was_up, has_been_up;
    struct preflight preflight; /* what was said of the server last */
    struct err refusal;         /* strict: why it is no server for us; code NONE while it is */
    int64_t skew_ms;            /* our wall clock minus Redis' */
};

/* What the scheduler may do; its ctx is the struct daemon. */
extern const struct sched_ops daemon_ops;

/* Where events go: to the scheduler, mostly. arg is the struct daemon. */
struct link_events daemon_link_events(struct daemon *d);
struct store_events daemon_store_events(struct daemon *d);
struct runner_events daemon_runner_events(struct daemon *d);
void daemon_on_alarm(void *daemon);
void daemon_on_cleared(void *daemon, int64_t victim, bool is_clear);
void daemon_tell_suppressed(struct daemon *d);

#endif
