#include "cli/local_run.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/signal_set.h"
#include "conf/conf.h"
#include "job/step.h"
#include "run/exec/exec.h"
#include "serve/handler_env.h"
#include "serve/invocation.h"
#include "serve/policy.h"

#define MEDIAN (UINT32_C(1) << 31) /* of the random part of a backoff */

static void on_told(void *arg, enum run_word word, const char *text, size_t n)
{
    struct local_run *r = arg;
    struct buf *to = word == RUN_PROGRESS ? &r->progress : &r->checkpoint;

    buf_clear(to);
    buf_add(to, text, n);
}

/* ---- signals: a thread waits for them while the handler runs */

struct signals {
    struct exec_slot *slot;
    uint64_t serial;
    sigset_t set;
    int first; /* 0: none has come. The thread's, until it has ended */
    pthread_t thread;
};

/* From us: the handler has ended. Nobody else sends it, as a shell sends SIGCONT. */
#define OVER SIGRTMIN

static void *wait_for_signals(void *arg)
{
    struct signals *s = arg;
    int number;

    while (sigwait(&s->set, &number) == 0 && number != OVER) {
        exec_slot_control(s->slot, s->serial,
                          s->first == 0 ? EXEC_CONTROL_CANCEL : EXEC_CONTROL_KILL);
        s->first = s->first == 0 ? number : s->first;
    }
    return NULL;
}

static const int ending[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

static int run_order(struct local_run *r, const struct exec_order *order, struct err *err)
{
    const struct exec_hooks hooks = {.told = on_told, .arg = r};
    struct signals s = {.slot = exec_slot_new()};
    sigset_t inherited;
    int status, e;

    if (s.slot == NULL)
        return err_sys(err, errno, "no place to run the handler");
    s.serial = exec_slot_arm(s.slot);
    (void)sigemptyset(&s.set);
    (void)sigaddset(&s.set, OVER);
    signal_set_add(&s.set, ending, sizeof(ending) / sizeof(ending[0]));
    (void)signal(SIGCHLD, SIG_DFL);
    (void)pthread_sigmask(SIG_BLOCK, &s.set, &inherited);
    e = pthread_create(&s.thread, NULL, wait_for_signals, &s);
    if (e == 0) {
        exec_run(order, s.slot, &hooks, &r->report);
        (void)pthread_kill(s.thread, OVER);
        (void)pthread_join(s.thread, NULL);
        r->signal = s.first;
        status = 0;
    } else {
        status = err_sys(err, e, "no thread to wait for signals");
    }
    (void)pthread_sigmask(SIG_SETMASK, &inherited, NULL);
    exec_slot_free(s.slot);
    return status;
}

/* ---- the job */

/* laterd runs an absolute path. It is not resolved, since some programs look at their name. */
static char *absolute(const char *handler, struct err *err)
{
    CLEANUP_FREE char *here = getcwd(NULL, 0);

    if (strchr(handler, '/') == NULL)
        (void)err_set(err, ERR_INPUT, "handler %.200s: write a path: ./NAME for one of this folder",
                      handler);
    else if (access(handler, F_OK) < 0)
        (void)err_set(err, ERR_INPUT, "handler %.200s: %s", handler, strerror(errno));
    else if (handler[0] != '/' && here == NULL)
        (void)err_sys(err, errno, "the working folder");
    else
        return handler[0] == '/' ? mem_strdup(handler) : mem_printf("%s/%s", here, handler);
    return NULL;
}

static int run_job(struct local_run *r, const struct conf *conf, char **argv, struct err *err)
{
    const struct conf_queue *settings = conf_queue(conf, r->job.queue);
    const char *wrong;
    char **env = handler_env(settings, NULL, environ, &wrong, err);
    const struct served_queue queue = {.argv = argv, .env = env, .conf = settings};
    struct invocation *o;
    int status;

    if (env == NULL)
        return conf_blame(conf, settings, wrong, err);
    if (!policy_admit(&r->job, settings, &r->verdict)) {
        mem_free_list(env);
        return 0;
    }
    o = invocation_new(&r->job, &queue, r->ns != NULL ? r->ns : conf->namespace, STEP_NONE, 0);
    status = run_order(r, invocation_exec(o), err);
    if (status == 0)
        policy_verdict(&r->job, settings, &r->report, MEDIAN, &r->verdict);
    if (status == 0 && r->verdict.is_host_ill)
        status = err_set(err, ERR_SYSTEM, "the handler was not run: %s", r->report.text);
    invocation_free(o);
    mem_free_list(env);
    return status;
}

int local_run(struct local_run *r, struct err *err)
{
    static char *const none[] = {NULL};
    struct conf *conf = conf_load(r->config, r->config != NULL ? environ : none, err);
    CLEANUP_FREE char *path = conf != NULL ? absolute(r->argv[0], err) : NULL;
    int status = -1;

    run_report_init(&r->report);
    log_init(LOG_LEVEL_INFO);
    if (r->job.fence == 0)
        r->job.fence = getpid(); /* by it those that the handler leaves behind are found */
    if (path != NULL) {
        char **argv = mem_dup_list(r->argv, 0, NULL);

        free(argv[0]);
        argv[0] = TAKE_PTR(path);
        status = run_job(r, conf, argv, err);
        mem_free_list(argv);
    }
    conf_free(conf);
    return status;
}

void local_run_done(struct local_run *r)
{
    job_done(&r->job);
    run_report_done(&r->report);
    buf_done(&r->progress);
    buf_done(&r->checkpoint);
}
