#include "cli/local_run.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "job/step.h"
#include "run/exec/exec.h"
#include "serve/handler_env.h"
#include "serve/invocation.h"
#include "serve/policy.h"

static void on_told(void *arg, enum run_word word, const char *text, size_t n)
{
    struct local_run *r = arg;
    struct buf *to = word == RUN_PROGRESS ? &r->progress : &r->checkpoint;

    buf_clear(to);
    buf_add(to, text, n);
}

#define MEDIAN (UINT32_C(1) << 31) /* of the random part of a backoff */

/* ---- Ctrl-C */

struct interrupt {
    struct exec_slot *slot;
    uint64_t serial;
    sigset_t set;
};

/* Ends by the SIGTERM that says that the run has ended, too: then the slot takes no request. */
static void *wait_for_signal(void *arg)
{
    struct interrupt *i = arg;
    int number;

    if (sigwait(&i->set, &number) == 0)
        exec_slot_control(i->slot, i->serial, EXEC_CONTROL_CANCEL);
    return NULL;
}

static int run_order(struct local_run *r, const struct exec_order *order, struct err *err)
{
    const struct exec_hooks hooks = {.told = on_told, .arg = r};
    struct interrupt i = {.slot = exec_slot_new()};
    pthread_t thread;

    if (i.slot == NULL)
        return err_set(err, ERR_SYSTEM, "no descriptor is left: %s", strerror(errno));
    i.serial = exec_slot_arm(i.slot);
    (void)sigemptyset(&i.set);
    (void)sigaddset(&i.set, SIGINT);
    (void)sigaddset(&i.set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &i.set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signal, &i) != 0) {
        exec_slot_free(i.slot);
        return err_set(err, ERR_SYSTEM, "a thread cannot be started: %s", strerror(errno));
    }
    exec_run(order, i.slot, &hooks, &r->report);
    (void)pthread_kill(thread, SIGTERM);
    (void)pthread_join(thread, NULL);
    exec_slot_free(i.slot);
    return 0;
}

/* ---- the job */

/* laterd runs what an absolute path leads to. */
static char *absolute(const char *handler, struct err *err)
{
    char *path = strchr(handler, '/') != NULL ? realpath(handler, NULL) : NULL;

    if (path == NULL)
        (void)err_set(err, ERR_INPUT, "handler %.200s: %s", handler,
                      strchr(handler, '/') != NULL ? strerror(errno)
                                                   : "write a path: ./NAME for one of this folder");
    return path;
}

static int run_job(struct local_run *r, const struct conf_queue *conf, struct err *err)
{
    const char *setting;
    char **argv = mem_dup_list(r->argv, 0, NULL);
    struct served_queue queue = {.argv = argv, .conf = conf};
    char **env = handler_env(conf, NULL, environ, &setting, err);
    struct invocation *o;
    int ret;

    free(argv[0]);
    argv[0] = env != NULL ? absolute(r->argv[0], err) : mem_strdup("");
    if (argv[0] == NULL || env == NULL) {
        mem_free_list(argv);
        mem_free_list(env);
        return -1;
    }
    queue.env = env;
    o = invocation_new(&r->job, &queue, r->ns, STEP_NONE, 0);
    ret = run_order(r, invocation_exec(o), err);
    if (ret == 0)
        policy_verdict(&r->job, conf, &r->report, MEDIAN, &r->verdict);
    invocation_free(o);
    mem_free_list(argv);
    mem_free_list(env);
    return ret;
}

int local_run(struct local_run *r, struct err *err)
{
    static char *const none[] = {NULL};
    struct conf *conf = conf_load(NULL, none, err);
    int ret;

    if (conf == NULL)
        return -1;
    (void)signal(SIGPIPE, SIG_IGN);
    log_init(LOG_LEVEL_WARN); /* what the handler prints is in its report */
    run_report_init(&r->report);
    ret = run_job(r, &conf->defaults, err);
    conf_free(conf);
    return ret;
}

void local_run_done(struct local_run *r)
{
    job_done(&r->job);
    run_report_done(&r->report);
    buf_done(&r->progress);
    buf_done(&r->checkpoint);
}
