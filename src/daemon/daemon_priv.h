/*
 * The parts of the daemon, shared by daemon.c (makes and frees them, signals, reload), wiring.c
 * (connects them) and tidy.c (reports how they are); for no other file.
 */
#ifndef LATER_DAEMON_DAEMON_PRIV_H
#define LATER_DAEMON_DAEMON_PRIV_H

#include "conf/conf.h"
#include "daemon/embedded.h"
#include "daemon/handler_defects.h"
#include "daemon/job_steps.h"
#include "daemon/parts.h"
#include "daemon/probe_socket.h"
#include "daemon/signals.h"
#include "daemon/stray_keys.h"
#include "daemon/unserved.h"
#include "redis/link.h"
#include "run/guard/guard.h"
#include "sched/sched.h"
#include "serve/handlers_folder.h"
#include "serve/runner.h"
#include "serve/served_queues.h"
#include "store/store_redis.h"
#include "worker/guardian.h"
#include "worker/identity.h"
#include "worker/orphans.h"
#include "worker/state_folder.h"

#define DAEMON_DOWN_LOG_MS 30000 /* at most one line about a lost link in this time */
#define DAEMON_TROUBLE_MS 30000  /* the time for which DAEMON_TROUBLE_LINES holds */
#define DAEMON_TROUBLE_LINES 16  /* most lines about the link and refusals */

struct daemon {
    struct conf *conf;
    char *const *env;
    struct loop *loop;
    struct identity me;
    struct state_folder *state_folder; /* NULL: state_dir none */
    bool is_state_lost;                /* it is lost, and that was logged */
    struct guardian *guardian;
    struct guard *guard; /* owned by the guardian */
    struct embedded *embedded;
    struct link *link;
    struct store_redis *store;
    struct stray_keys *stray_keys;
    struct orphans *orphans;
    struct parts parts;
    struct job_steps *job_steps;
    struct launches *launches; /* of conf */
    struct served_queues *served;
    struct handler_defects defects;
    struct sched *sched;
    size_t tidy_from;    /* index of the first served queue that the next tidy names */
    struct mono tell_at; /* from then on a tidy also reports how this worker is */
    struct unserved unserved;
    bool tidy_tells; /* the tidy under way does so: log what it finds */
    struct runner *runner;
    struct signals *signals;
    struct handlers_folder *handlers_folder;
    struct probe_socket *probe_socket; /* NULL: it could not be made */
    struct loop_alarm *alarm;
    struct mono alarm_at; /* when it rings; MONO_NEVER: it is not set */
    struct loop_timer *status, *watchdog;
    unsigned wedged; /* bad checks of the pool in a row; from 2 on the watchdog is not fed */
    struct loop_timer *reload; /* set by a HUP that came too soon after the last reload */
    struct mono reloaded;
    struct err
        reload_refused; /* why the last reload was, or what it left to a restart; NONE: neither */
    struct url url;
    struct mono down_logged;
    struct mono trouble_since; /* lines about the link and refusals are counted from here */
    unsigned trouble_lines;
    bool was_up, has_been_up;
    bool is_small;              /* event=small-host was logged */
    struct preflight preflight; /* what was logged about the server last */
    struct err refusal;         /* strict: why the server is refused; code NONE: it is not */
    int64_t skew_ms;            /* our wall clock minus Redis' */
};

/* The effects of the scheduler; its ctx is the struct daemon. */
extern const struct sched_ops daemon_ops;

/* What is called on events: most go to the scheduler. arg is the struct daemon. */
struct link_events daemon_link_events(struct daemon *d);
struct store_events daemon_store_events(struct daemon *d);
struct runner_events daemon_runner_events(struct daemon *d);
/* As loop_timer_f and orphans_f. */
void daemon_on_alarm(void *daemon);
void daemon_on_orphans_ended(void *daemon, int64_t victim, bool is_clear);
/* Write the queues of which fewer jobs may run at once than there are places: "mail=4,web=2". */
void daemon_tell_max_at_once(const struct daemon *d, struct buf *out);
/* Have Redis tidied; now and then this also reports how the worker is. As the scheduler's tidy. */
int daemon_tidy(struct daemon *d, int64_t epoch);
/* The last chance to report what was counted. */
void daemon_tidy_last(struct daemon *d, int64_t epoch);
/* The worker begins to claim nothing for a suspect, or ends that. As the scheduler's emptying. */
void daemon_emptying(void *daemon, bool is_begun);
/* Log how many lines were suppressed, once DAEMON_TROUBLE_MS are over. Call it now and then. */
void daemon_tell_suppressed(struct daemon *d);

#endif
