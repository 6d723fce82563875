#include "run/plugin/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/exec/exec_slot.h"
#include "run/exec/output.h"

#define PROGRESS_MS 100 /* a text that comes sooner waits; a newer one replaces it */
#define QUICK_US 100    /* about what it takes to wake a thread */
#define MEAN_OF 8       /* about this many jobs */

struct plugin {
    struct plugin *next; /* list of all loaded plug-ins */
    char *name;          /* the path that dlopen was given */
    dev_t dev;           /* identity of the file */
    ino_t ino;
    void *handle;
    const struct later_plugin *face;
    void *state;
    _Atomic int64_t run_us; /* a running mean of the last jobs */
};

static struct plugin *loaded; /* main thread only */

/* One run, as the plug-in sees it. */
struct plugin_run {
    struct later_host host; /* first */
    const struct plugin_order *order;
    struct exec_slot *slot;
    const struct exec_hooks *hooks;
    struct run_report *ret;
    enum run_end cause; /* why the job should end; RUN_EXITED: it should not */
    struct mono deadline;
    struct mono progress_at; /* earliest time for the next one; until then the last text waits: */
    char progress[OUTPUT_LINE_BYTES + 1];
    bool has_progress, is_result_cut;
    int logged;
};

static struct plugin_run *run_of(const struct later_host *host)
{
    return (struct plugin_run *)(uintptr_t)host;
}

/* ---- what the plug-in may ask */

static void tell_progress(struct plugin_run *r, struct mono now)
{
    if (!r->has_progress || mono_before(now, r->progress_at))
        return;
    r->has_progress = false;
    r->progress_at = mono_add_ms(now, PROGRESS_MS);
    if (r->hooks->told != NULL)
        r->hooks->told(r->hooks->arg, RUN_PROGRESS, r->progress, strlen(r->progress));
}

static void host_progress(const struct later_host *host, const char *text)
{
    struct plugin_run *r = run_of(host);
    struct mono now = mono_now();

    (void)snprintf(r->progress, sizeof(r->progress), "%.*s", OUTPUT_LINE_BYTES, text);
    r->has_progress = true;
    exec_slot_say(r->slot, now);
    tell_progress(r, now);
}

/* Not rationed: what it was given is kept even if the plug-in crashes the next moment, as far as
 * this worker lives. */
static void host_checkpoint(const struct later_host *host, const char *text)
{
    struct plugin_run *r = run_of(host);
    size_t n = strnlen(text, RUN_CHECKPOINT_BYTES + 1);

    exec_slot_say(r->slot, mono_now());
    if (r->hooks->told != NULL &&
        run_checkpoint_fits(r->order->job.id, r->order->job.queue, text, n, false))
        r->hooks->told(r->hooks->arg, RUN_CHECKPOINT, text, n);
}

static void host_log(const struct later_host *host, enum later_level level, const char *text)
{
    struct plugin_run *r = run_of(host);

    exec_slot_say(r->slot, mono_now());
    if (r->logged < INT32_MAX)
        r->logged++;
    if (r->logged > OUTPUT_LOG_LINES)
        return;
    output_log(level < LATER_ERROR   ? LOG_LEVEL_ERR
               : level > LATER_DEBUG ? LOG_LEVEL_DEBUG
                                     : (enum log_level)level,
               r->order->job.id, r->order->job.queue, 0, "plugin", text,
               strnlen(text, OUTPUT_LINE_BYTES + 1), false);
}

/* What is cut off may be missed by the next job of a chain. */
static void host_result(const struct later_host *host, const void *bytes, size_t n)
{
    struct plugin_run *r = run_of(host);

    buf_clear(&r->ret->result);
    buf_add(&r->ret->result, bytes, n < RUN_RESULT_BYTES ? n : RUN_RESULT_BYTES);
    if (n > RUN_RESULT_BYTES && !r->is_result_cut)
        log_warn("event=result-cut job=%s queue=%s kept=%d", r->order->job.id, r->order->job.queue,
                 RUN_RESULT_BYTES);
    r->is_result_cut = n > RUN_RESULT_BYTES || r->is_result_cut;
}

static void host_add(const struct later_host *host, const char *const *words, const size_t *lens,
                     size_t n)
{
    size_t own[CHILDREN_WORDS_MAX];

    for (size_t i = 0; lens == NULL && i < n && i < CHILDREN_WORDS_MAX; i++)
        own[i] = strlen(words[i]);
    children_add(&run_of(host)->ret->children, words, lens != NULL ? lens : own, n);
}

static void host_retry_in(const struct later_host *host, int64_t ms)
{
    run_of(host)->ret->retry_in_ms = ms < 0                     ? 0
                                     : ms < RUN_RETRY_IN_MAX_MS ? ms
                                                                : RUN_RETRY_IN_MAX_MS;
}

static void heed(struct plugin_run *r)
{
    unsigned asked = exec_slot_take(r->slot);
    struct mono now = mono_now();

    if (asked & EXEC_CONTROL_CANCEL)
        r->cause = RUN_CANCELLED;
    else if (asked != 0 && r->cause != RUN_CANCELLED)
        r->cause = RUN_STOPPED;
    else if (r->cause == RUN_EXITED && !mono_before(now, r->deadline))
        r->cause = RUN_TIMED_OUT;
    exec_slot_say(r->slot, now);
    tell_progress(r, now);
}

static int host_cancelled(const struct later_host *host)
{
    struct plugin_run *r = run_of(host);

    heed(r);
    return r->cause != RUN_EXITED;
}

/* ---- a run */

bool plugin_is_quick(const struct plugin *p)
{
    return atomic_load_explicit(&p->run_us, memory_order_relaxed) < QUICK_US;
}

static void learn(struct plugin *p, int64_t us)
{
    int64_t mean = atomic_load_explicit(&p->run_us, memory_order_relaxed);

    atomic_store_explicit(&p->run_us, mean + (us - mean) / MEAN_OF, memory_order_relaxed);
}

static void refuse(struct run_report *ret, const char *why)
{
    ret->end = RUN_STOPPED;
    (void)snprintf(ret->text, sizeof(ret->text), "not started: %s", why);
}

/* As in exec.c, but the process that the guard would kill is ours. */
static bool may_start(const struct plugin_order *o, struct plugin_run *r)
{
    heed(r);
    if (r->cause != RUN_EXITED) {
        refuse(r->ret, "it was to be stopped");
        return false;
    }
    if (o->guard == NULL)
        return true;
    guard_set(o->guard, o->guard_place, o->job.fence);
    if (guard_admits(o->guard)) {
        guard_set_process(o->guard, o->guard_place, getpid());
        return true;
    }
    guard_clear(o->guard, o->guard_place);
    refuse(r->ret, "it holds a lock, and no beat was acknowledged lately");
    return false;
}

static void conclude(const struct plugin_run *r, int outcome)
{
    static const enum run_end ends[] = {[LATER_OK] = RUN_SAID_OK,
                                        [LATER_RETRY] = RUN_SAID_RETRY,
                                        [LATER_FAIL] = RUN_SAID_FAIL,
                                        [LATER_DEAD] = RUN_SAID_DEAD};
    struct run_report *ret = r->ret;
    char why[64] = "";

    if (outcome < LATER_OK || outcome > LATER_DEAD) {
        ret->end = RUN_SAID_FAIL;
        ret->code = 1;
        (void)snprintf(ret->text, sizeof(ret->text), "its plug-in returned %d, which says nothing",
                       outcome);
        return;
    }
    if (r->cause != RUN_EXITED)
        run_describe_cause(r->cause, r->order->timeout_ms, why, sizeof(why));
    run_report_say(ret, ends[outcome], ret->result.data, ret->result.len, r->cause, why);
}

static void tell_left_out(const struct plugin_run *r)
{
    if (r->logged > OUTPUT_LOG_LINES)
        log_info("job=%s queue=%s left_out_lines=%d msg=\"more than %d lines: the rest was left "
                 "out of the log\"",
                 r->order->job.id, r->order->job.queue, r->logged - OUTPUT_LOG_LINES,
                 OUTPUT_LOG_LINES);
}

void plugin_run(const struct plugin_order *order, struct exec_slot *slot,
                const struct exec_hooks *hooks, struct run_report *ret)
{
    const struct later_plugin *face = order->plugin->face;
    struct plugin_run r = {{sizeof(r.host), host_progress, host_log, host_result, host_retry_in,
                            host_cancelled, host_add, host_checkpoint},
                           order,
                           slot,
                           hooks,
                           ret,
                           RUN_EXITED,
                           MONO_NEVER,
                           {0},
                           "",
                           false,
                           false,
                           0};

    if (may_start(order, &r)) {
        ret->started = mono_now();
        r.deadline = mono_add_ms(ret->started, order->timeout_ms);
        conclude(&r, face->run(order->plugin->state, &order->job, &r.host));
        ret->duration_us = mono_until_us(ret->started, mono_now());
        learn(order->plugin, ret->duration_us);
        if (order->guard != NULL)
            guard_clear(order->guard, order->guard_place);
        tell_left_out(&r);
    }
    exec_slot_disarm(slot);
}

/* ---- loading */

static int check(const char *path, const struct later_plugin *face, struct err *err)
{
    if (face == NULL)
        return err_set(err, ERR_CONFIG,
                       "%.150s is no plug-in: it has no later_plugin (see later_plugin.h)", path);
    if (face->abi != LATER_PLUGIN_ABI)
        return err_set(err, ERR_CONFIG,
                       "%.150s was built for plug-in ABI %" PRIu32 ", this laterd has %d: build it "
                       "anew",
                       path, face->abi, LATER_PLUGIN_ABI);
    /* Members that are newer than version 1.0 may be missing. */
    if (face->size < offsetof(struct later_plugin, done) + sizeof(face->done) || face->run == NULL)
        return err_set(err, ERR_CONFIG, "%.150s: its later_plugin is not filled in", path);
    return 0;
}

static int init(struct plugin *p, const char *queue, char *const *argv, struct err *err)
{
    char error[256] = "";

    if (p->face->init == NULL ||
        p->face->init(queue, (const char *const *)argv + 1, &p->state, error) == 0)
        return 0;
    error[sizeof(error) - 1] = '\0';
    return err_set(err, ERR_CONFIG, "%.100s: init refused: %.130s", argv[0],
                   error[0] != '\0' ? error : "it did not say why");
}

/*
 * dlopen returns the old object for a path that it has loaded, even if the file was replaced since.
 * While the old file is in use, by running jobs or in another queue, the new file needs another
 * path: "/./" makes one and does not change $ORIGIN. True: an old file uses this path.
 */
static bool is_taken(const char *name, const struct stat *st)
{
    for (const struct plugin *p = loaded; p != NULL; p = p->next) {
        if (strcmp(p->name, name) == 0 && (p->dev != st->st_dev || p->ino != st->st_ino))
            return true;
    }
    return false;
}

static char *name_file(const char *path, const struct stat *st)
{
    int folder = (int)(strrchr(path, '/') + 1 - path);
    CLEANUP_BUF struct buf dots = BUF_INIT;

    for (;;) {
        char *name = mem_printf("%.*s%s%s", folder, path, buf_str(&dots), path + folder);

        if (!is_taken(name, st))
            return name;
        free(name);
        buf_puts(&dots, "./");
    }
}

static int open_object(struct plugin *p, const char *path, struct err *err)
{
    struct stat st;
    const char *why;

    if (stat(path, &st) != 0)
        return err_sys(err, errno, "%.200s", path);
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    p->name = name_file(path, &st);
    /* RTLD_NOW: a missing symbol is an error here, not in the middle of a job. */
    p->handle = dlopen(p->name, RTLD_NOW | RTLD_LOCAL);
    if (p->handle != NULL)
        return 0;
    why = dlerror();
    return err_set(err, ERR_CONFIG, "cannot load: %.230s", why != NULL ? why : "unknown");
}

static void close_object(struct plugin *p)
{
    if (p->handle != NULL)
        (void)dlclose(p->handle);
    free(p->name);
    free(p);
}

struct plugin *plugin_load(const char *queue, char *const *argv, struct err *err)
{
    struct plugin *p = mem_new(sizeof(*p));

    atomic_init(&p->run_us, 1000000); /* not quick until a job was measured */
    if (open_object(p, argv[0], err) == 0) {
        p->face = dlsym(p->handle, "later_plugin");
        if (check(argv[0], p->face, err) == 0 && init(p, queue, argv, err) == 0) {
            p->next = loaded;
            loaded = p;
            return p;
        }
    }
    close_object(p);
    return NULL;
}

void plugin_free(struct plugin *p)
{
    struct plugin **link = &loaded;

    if (p == NULL)
        return;
    if (p->face->done != NULL)
        p->face->done(p->state);
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    close_object(p);
}
