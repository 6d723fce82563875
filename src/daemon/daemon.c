#include "daemon/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/daemon_priv.h"
#include "daemon/log_json.h"
#include "daemon/notify.h"
#include "daemon/redis_settings.h"

#define STATUS_MS 1000
/* Beyond stop_timeout: to end what still runs, to report it, and to stop an embedded Redis. */
#define STOP_SPARE_MS 40000
#define EMBEDDED_START_MS 5000
/* However many HUPs come: at most one reload in this time. No HUP is lost. */
#define RELOAD_GAP_MS 200

static bool serves(void *arg, const char *queue)
{
    return served_queues_find(((struct daemon *)arg)->served, queue) != NULL;
}

/* The watchdog must also notice a stuck pool: jobs run on its threads. Only the second bad check in
 * a row counts, since a process that was suspended first has to catch up. */
static void check_pool(struct daemon *d)
{
    char why[256] = "";

    if (runner_is_well(d->runner, mono_now(), why, sizeof(why))) {
        if (d->wedged > 1)
            log_notice("event=pool-well");
        d->wedged = 0;
    } else if (++d->wedged == 2) {
        log_err("event=pool-wedged reason=\"%s\" effect=\"%s\"", why,
                notify_watchdog_ms() > 0 ? "the watchdog is not fed: a restart is due"
                                         : "its place is lost until a restart");
    }
}

/* Jobs go on without the state folder: it is for the next daemon. */
static void check_state_folder(struct daemon *d)
{
    struct err err = ERR_INIT;
    int kept = d->state_folder != NULL ? state_folder_keep(d->state_folder, &err) : 0;

    if (kept < 0 && !d->is_state_lost)
        log_err("event=state-folder state=lost reason=\"it was removed or moved: %s\" effect=\"a "
                "second daemon may start with it, and the next one will not find what this one "
                "leaves\" cure=\"stop one of them, or restart\"",
                err.text);
    else if (kept > 0 || (kept == 0 && d->is_state_lost))
        log_warn("event=state-folder state=made-again dir=%s reason=\"it was removed, moved or "
                 "truncated\"",
                 d->conf->state_dir);
    d->is_state_lost = kept < 0;
}

static void on_status(void *arg)
{
    struct daemon *d = arg;
    struct sched_status s;

    sched_status(d->sched, &s);
    check_pool(d);
    check_state_folder(d);
    notify_status("%s%s%s%s%s, %zu of %lld running, %zu results unsent, %zu queues",
                  s.is_ready ? "ready" : "waiting for Redis", s.is_quiet ? ", quiet" : "",
                  s.is_stopping ? ", stopping" : "",
                  d->wedged > 1 ? ", POOL WEDGED (see the log)" : "",
                  d->is_state_lost ? ", STATE FOLDER LOST (see the log)" : "", s.running,
                  (long long)d->conf->concurrency, s.unsent, d->served->n);
    daemon_tell_suppressed(d);
    log_tick();
    loop_timer_set(d->status, STATUS_MS);
}

static void say_how_it_is(void *arg, struct buf *line)
{
    const struct daemon *d = arg;
    struct sched_status s;

    sched_status(d->sched, &s);
    buf_printf(line,
               "laterd epoch=%lld linked=%d registered=%d quiet=%d stopping=%d queues=%zu "
               "running=%zu places=%lld",
               (long long)s.epoch, link_is_up(d->link), s.is_ready, s.is_quiet, s.is_stopping,
               d->served->n, s.running, (long long)d->conf->concurrency);
}

/* Without the socket nothing is lost but the answers to `later health`. */
static void listen_for_probes(struct daemon *d)
{
    struct err err = ERR_INIT;

    d->probe_socket = probe_socket_new(d->loop, d->conf->root, say_how_it_is, d, &err);
    if (d->probe_socket == NULL)
        log_warn("event=limits reason=\"%s\" effect=\"later health --live does not find this "
                 "daemon\"",
                 err.text);
}

static void on_watchdog(void *arg)
{
    struct daemon *d = arg;

    if (d->wedged < 2)
        notify_watchdog();
    loop_timer_set(d->watchdog, notify_watchdog_ms());
}

/* ---- the queues, and how they change */

/* Takes over conf and launches, unless the daemon has them already. */
static void serve(struct daemon *d, struct conf *conf, struct launches *launches)
{
    struct served_queues *served;
    CLEANUP_FREE struct queue_spec *specs = NULL;
    CLEANUP_BUF struct buf names = BUF_INIT;
    bool is_news;

    handler_defects_begin(&d->defects, conf != d->conf);
    served = served_queues_build(conf, launches, handler_defects_report, &d->defects);
    specs = mem_new((served->n + 1) * sizeof(*specs));
    is_news = conf != d->conf || !served_queues_equal(d->served, served);
    /* Keep what was served: the folder exists, it just could not be read. */
    if (served->is_incomplete && d->served != NULL && conf == d->conf) {
        served_queues_free(served);
        handlers_folder_again(d->handlers_folder);
        return;
    }
    runner_set(d->runner, conf, served);
    for (size_t i = 0; i < served->n; i++) {
        const struct served_queue *q = &served->at[i];

        specs[i] = (struct queue_spec){q->name, runner_max_at_once(d->runner, q),
                                       (unsigned)q->conf->weight, q->conf->max_payload,
                                       q->conf->fair != 0};
    }
    served_queues_free(d->served);
    d->served = served;
    d->tidy_from = 0;
    if (conf != d->conf) {
        launches_free(d->launches);
        conf_free(d->conf);
    }
    d->launches = launches;
    d->conf = conf;
    foreign_queues_set(d->parts.foreign_queues, served);
    if (served->is_incomplete)
        handlers_folder_again(d->handlers_folder);
    if (!is_news) /* nothing to tell: a folder may change all the time */
        return;
    sched_set_queues(d->sched, mono_now(), specs, served->n);
    queues_names(sched_queues(d->sched), &names);
    log_notice("event=serving queues=%zu names=\"%.1000s\"", served->n, buf_str(&names));
    if (served->n == 0)
        log_warn("event=serving queues=0 reason=\"put executables into handlers_dir (%s), or name "
                 "handlers "
                 "under queues:\"",
                 conf->handlers_dir);
}

static void add_filters(const struct conf *conf, const struct conf_queue *q, char ***files,
                        size_t *n)
{
    for (size_t i = 0; i < q->filters.n; i++)
        mem_list_add(files, n, launches_filter(conf, q, i));
}

/* Call it before the handlers are read, so that no later change is missed. */
static void watch_handlers(const struct daemon *d, const struct conf *conf)
{
    char **files = NULL;
    size_t n = 0;

    for (size_t i = 0; i < conf->nqueues; i++) {
        if (conf->queues[i].handler.n > 0)
            mem_list_add(&files, &n, mem_strdup(conf->queues[i].handler.at[0]));
        add_filters(conf, &conf->queues[i], &files, &n);
    }
    add_filters(conf, &conf->defaults, &files, &n);
    if (files == NULL)
        files = mem_new(sizeof(*files));
    handlers_folder_watch(d->handlers_folder, conf->handlers_dir, (const char *const *)files);
    mem_free_list(files);
}

static void on_folder(void *arg)
{
    struct daemon *d = arg;

    watch_handlers(d, d->conf);
    serve(d, d->conf, d->launches);
}

/* ---- reload */

/* Load the configuration anew, with its launches. NULL: it cannot be used, err says why. */
static struct conf *load_again(const struct daemon *d, struct launches **ret, struct err *err)
{
    struct conf *conf = conf_load(d->conf->path, d->env, err);
    struct url unused = {0};

    if (conf == NULL)
        return NULL;
    *ret =
        redis_settings_check_files(conf, err) < 0 || redis_settings_address(conf, &unused, err) < 0
            ? NULL
            : launches_new(conf, d->env, err);
    if (*ret != NULL && launches_enter(*ret, err) == 0)
        return conf;
    launches_free(*ret);
    conf_free(conf);
    return NULL;
}

/* guard: NULL before there is one. */
static void set_log(const struct conf *conf, struct guard *guard)
{
    bool is_json = conf->log_format == CONF_LOG_JSON;

    log_set_level((enum log_level)CONF_LOG_LEVEL(conf->log_level));
    log_set_format(is_json ? log_json : NULL);
    log_set_rate(conf->log_rate);
    if (guard != NULL)
        guard_log_formatted(guard, is_json);
}

static void reload(void *arg)
{
    struct daemon *d = arg;
    struct err err = ERR_INIT;
    CLEANUP_BUF struct buf restart = BUF_INIT;
    struct launches *launches = NULL;
    struct conf *conf;

    d->reloaded = mono_now();
    loop_timer_stop(d->reload);
    notify_reloading();
    conf = load_again(d, &launches, &err);
    d->reload_refused = err;
    d->tell_at = d->reloaded;
    if (conf == NULL) {
        log_err("event=reload result=refused reason=\"%s\" effect=\"the old configuration stays\"",
                err.text);
        notify_ready();
        return;
    }
    conf_needs_restart(d->conf, conf, &restart);
    if (restart.len > 0) {
        log_warn("event=reload effect=\"" CONF_NEEDS_RESTART "%s\"", buf_str(&restart));
        (void)err_set(&d->reload_refused, ERR_CONFIG, CONF_NEEDS_RESTART "%s", buf_str(&restart));
    }
    conf_keep_fixed(d->conf, conf);
    set_log(conf, d->guard);
    sched_set_stop_timeout(d->sched, conf->stop_timeout);
    watch_handlers(d, conf);
    serve(d, conf, launches);
    parts_set(&d->parts, conf);
    link_renew_password(d->link, d->conf->redis_password_every);
    link_ask_password(d->link);
    log_notice("event=reload result=done");
    notify_ready();
}

static void on_hup(struct daemon *d)
{
    int64_t gone_ms = mono_until_us(d->reloaded, mono_now()) / 1000;

    if (d->reloaded.us == 0 || gone_ms >= RELOAD_GAP_MS)
        reload(d);
    else
        loop_timer_set(d->reload, RELOAD_GAP_MS - gone_ms);
}

static void on_signal(void *arg, int sig)
{
    struct daemon *d = arg;

    switch (sig) {
    case SIGHUP:
        on_hup(d);
        break;
    case SIGUSR1:
        sched_quiet(d->sched, mono_now());
        break;
    case SIGQUIT:
    case SIGTERM:
    case SIGINT:
        notify_stopping(d->conf->stop_timeout + STOP_SPARE_MS);
        runner_start_no_more(d->runner);
        parts_stop(&d->parts);
        sched_stop(d->sched, mono_now());
        if (sig == SIGQUIT) /* the second call: do not wait for running jobs */
            sched_stop(d->sched, mono_now());
        break;
    default:
        break;
    }
}

/* ---- start and end */

static int find_server(struct daemon *d, struct err *err)
{
    if (strcmp(d->conf->redis, "embedded") == 0) {
        CLEANUP_FREE char *url = NULL;

        d->embedded = embedded_start(d->loop, d->conf->state_dir, err);
        if (d->embedded == NULL)
            return -1;
        /* It takes a moment to listen: do not log that as a lost link. */
        d->down_logged = mono_add_ms(mono_now(), EMBEDDED_START_MS - DAEMON_DOWN_LOG_MS);
        url = mem_printf("unix:%s", embedded_socket(d->embedded));
        return url_parse(url, &d->url, err);
    }
    if (redis_settings_address(d->conf, &d->url, err) < 0)
        return -1;
    return redis_settings_password(d->conf, &d->url, err);
}

static int take_state(struct daemon *d, struct err *err)
{
    int killed;

    if (strcmp(d->conf->state_dir, "none") == 0)
        return 0;
    d->state_folder = state_folder_open(d->conf->state_dir, &d->me, err);
    if (d->state_folder == NULL)
        return -1;
    killed = state_folder_take_over(d->state_folder);
    if (killed > 0)
        log_warn("event=predecessor epoch=%lld handlers_killed=%d reason=\"it died and left them "
                 "running\"",
                 (long long)state_folder_predecessor(d->state_folder), killed);
    return 0;
}

/* Each job needs pipes. Handlers inherit the limit: raise it no further than needed. */
static void raise_files(int64_t concurrency)
{
    struct rlimit lim;
    rlim_t need = (rlim_t)concurrency * 8 + 128;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= need)
        return;
    lim.rlim_cur = need < lim.rlim_max ? need : lim.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur < need)
        log_warn(
            "event=limits files=%llu needed=%llu cure=\"raise LimitNOFILE or lower concurrency\"",
            (unsigned long long)lim.rlim_cur, (unsigned long long)need);
}

static int build(struct daemon *d, struct err *err)
{
    struct link_events link_events = daemon_link_events(d);
    struct store_events store_events = daemon_store_events(d);
    struct runner_events runner_events = daemon_runner_events(d);
    /* A job that waits for a place when its worker dies has a crash counted. Where one or two
     * crashes bury a job, none is claimed beyond the places. */
    struct sched_conf sched_conf = {(unsigned)d->conf->concurrency, SCHED_AHEAD_US,
                                    d->conf->stop_timeout, d->conf->defaults.crashes > 2};

    d->link = link_new(d->loop, &d->url, d->conf->root, d->conf->redis_timeout, &link_events);
    d->alarm_at = MONO_NEVER;
    d->alarm = loop_alarm_new(d->loop, daemon_on_alarm, d);
    d->signals = signals_new(d->loop, on_signal, d);
    d->handlers_folder = handlers_folder_new(d->loop, on_folder, d);
    d->status = loop_timer_new(d->loop, on_status, d);
    d->watchdog = loop_timer_new(d->loop, on_watchdog, d);
    d->reload = loop_timer_new(d->loop, reload, d);
    if (d->link == NULL || d->alarm == NULL || d->signals == NULL || d->handlers_folder == NULL)
        return err_set(err, ERR_SYSTEM, "no file descriptors left");
    d->store = store_redis_new(d->link, d->conf->root, &store_events);
    d->runner = runner_new(d->loop, (unsigned)d->conf->concurrency, d->conf->namespace,
                           d->state_folder, &runner_events, err);
    if (d->runner == NULL)
        return -1;
    runner_set_guard(d->runner, d->guard);
    d->job_steps = job_steps_new(d->loop, d->link, d->runner, d->conf->root);
    d->sched = sched_new(&sched_conf, &daemon_ops, d);
    d->orphans = orphans_new(d->loop, d->link, d->conf->root, &d->me, daemon_on_orphans_ended, d);
    if (d->orphans == NULL)
        return err_set(err, ERR_SYSTEM, "no file descriptors left");
    d->stray_keys = stray_keys_new(d->loop, d->link, d->store, d->conf->root);
    stray_keys_set_serves(d->stray_keys, serves, d);
    if (parts_init(&d->parts, d->loop, d->link, d->store, d->conf) < 0)
        return err_set(err, ERR_SYSTEM, "no file descriptors left");
    return 0;
}

static void tear_down(struct daemon *d)
{
    runner_free(d->runner);
    job_steps_free(d->job_steps);
    stray_keys_free(d->stray_keys);
    parts_free(&d->parts);
    sched_free(d->sched);
    link_free(d->link);
    orphans_free(d->orphans);
    store_redis_free(d->store);
    unserved_done(&d->unserved);
    served_queues_free(d->served);
    handler_defects_done(&d->defects);
    launches_free(d->launches);
    handlers_folder_free(d->handlers_folder);
    probe_socket_free(d->probe_socket);
    signals_free(d->signals);
    loop_timer_free(d->status);
    loop_timer_free(d->watchdog);
    loop_timer_free(d->reload);
    loop_alarm_free(d->alarm);
    embedded_stop(d->embedded);
    guardian_free(d->guardian);
    state_folder_close(d->state_folder);
    loop_free(d->loop);
    conf_free(d->conf);
    explicit_bzero(&d->url, sizeof(d->url));
}

static int start(struct daemon *d, struct err *err)
{
    d->loop = loop_new();
    if (d->loop == NULL)
        return err_set(err, ERR_SYSTEM, "no file descriptors left");
    if (redis_settings_check_files(d->conf, err) < 0)
        return -1;
    identity_read(&d->me);
    d->launches = launches_new(d->conf, d->env, err);
    if (d->launches == NULL)
        return -1;
    raise_files(d->conf->concurrency);
    if (take_state(d, err) < 0 || launches_enter(d->launches, err) < 0)
        return -1;
    d->guardian = guardian_new(d->loop, (unsigned)d->conf->concurrency, err);
    if (d->guardian == NULL)
        return -1;
    d->guard = guardian_guard(d->guardian);
    set_log(d->conf, d->guard);
    if (find_server(d, err) < 0 || build(d, err) < 0)
        return -1;
    watch_handlers(d, d->conf);
    serve(d, d->conf, d->launches);
    parts_set(&d->parts, d->conf);
    link_renew_password(d->link, d->conf->redis_password_every);
    link_start(d->link);
    listen_for_probes(d);
    notify_ready();
    on_status(d);
    if (notify_watchdog_ms() > 0)
        on_watchdog(d);
    return 0;
}

int daemon_run(struct conf *conf, char *const *env, struct err *err)
{
    struct daemon d = {.conf = conf, .env = env};
    int rc;

    signals_block();
    set_log(conf, NULL);
    log_notice("event=starting version=%s namespace=%s config=%s concurrency=%lld", PACKAGE_VERSION,
               conf->root, conf->path != NULL ? conf->path : "none", (long long)conf->concurrency);
    if (geteuid() == 0)
        log_warn(
            "event=root reason=\"handlers without user: run as root, too: start it as a user of "
            "its own\"");
    rc = start(&d, err);
    if (rc == 0) {
        loop_run(d.loop);
        if (d.refusal.code != ERR_NONE)
            rc = err_set(err, d.refusal.code, "%s", d.refusal.text);
        log_notice("event=stopped");
    }
    tear_down(&d);
    return rc;
}

static void report_error(void *arg, const char *what, const char *reason, bool is_warning)
{
    int *errors = arg;

    (void)fprintf(stderr, "laterd: %s%s: %s\n", is_warning ? "warning: " : "", what, reason);
    *errors += !is_warning;
}

int daemon_check(const struct conf *conf, char *const *env)
{
    struct conf_errors errors = {.n = 0};
    struct launches *launches;
    struct err err = ERR_INIT;
    struct url url = {0};
    int found;

    if (redis_settings_check_files(conf, &err) < 0 ||
        redis_settings_address(conf, &url, &err) < 0 ||
        redis_settings_password(conf, &url, &err) < 0)
        conf_errors_add(&errors, 0, &err);
    explicit_bzero(&url, sizeof(url));
    launches = launches_new(conf, env, &err);
    if (launches == NULL)
        launches_find_errors(conf, env, &errors);
    if (launches == NULL && errors.n == 0)
        conf_errors_add(&errors, 0, &err);
    conf_errors_print(&errors);
    found = errors.n > 0;
    conf_errors_done(&errors);
    if (launches == NULL)
        return -1;
    served_queues_free(served_queues_build(conf, launches, report_error, &found));
    launches_free(launches);
    return found > 0 ? -1 : 0;
}
