/*
 * The guard process itself (run/guard/guard.h). Single-threaded, without child processes. It
 * allocates memory only at its start and to log; it logs a kill after the kill.
 */
#include "run/guard/guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/guard/guard_table.h"
#include "run/process/offspring.h"
#include "run/process/pidstat.h"

#define REPEAT_US INT64_C(1000000) /* between kills: a process may have been created meanwhile */
#define PASSES_MAX 10

/* Without any fence the guard sleeps for 1/3 of unacked_us. A job that starts meanwhile needs a
 * beat that is younger than that (FRESH_PART in guard.c), so its deadline is after the sleep. */
#define IDLE_PART 3

/* When a worker dies, a process that it has just created may not yet be its handler: search until
 * CALM_US have passed without a find, CALM_MAX_US at most. */
#define CALM_US INT64_C(2000000)
#define CALM_STEP_MS 100
#define CALM_MAX_US INT64_C(10000000)

struct guarding {
    struct guard_table *table;
    log_format_f *format;
    int64_t *fences; /* a copy of the places' fences; 0: none */
    char reason[80];
    bool is_orphaned; /* the worker is gone; another process waits for its processes */
    bool is_first;    /* first pass of kill_all: only this one logs its kills */
    size_t killed;
};

static struct guard_table *map_table(void)
{
    struct guard_table *t;
    struct stat st;
    size_t bytes;

    if (fstat(GUARD_TABLE_FD, &st) < 0 || (size_t)st.st_size < sizeof(*t))
        return NULL;
    bytes = (size_t)st.st_size;
    t = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, GUARD_TABLE_FD, 0);
    if (t == MAP_FAILED)
        return NULL;
    if (t->magic != GUARD_MAGIC || t->nplaces < 0 ||
        (size_t)t->nplaces != (bytes - sizeof(*t)) / sizeof(t->places[0]))
        return NULL;
    (void)close(GUARD_TABLE_FD);
    return t;
}

/* ---- killing */

static void tell(struct guarding *w, pid_t pid, int64_t fence)
{
    w->killed++;
    if (!w->is_first)
        return;
    log_set_format(atomic_load(&w->table->is_formatted) ? w->format : NULL);
    log_warn("event=guard-kill pid=%d fence=%lld reason=\"%s\"", (int)pid, (long long)fence,
             w->reason);
}

/*
 * Is the process with the pid of this place still the job's? While the worker lives, yes: it clears
 * the pid before it waits for it. After that the pid may have been reused; then the process began
 * later than the job's. start: from pidstat_start; -2: a zombie, whose group may live.
 */
static bool is_it(const struct guarding *w, const struct guard_place *at, int64_t start)
{
    int64_t per_s = sysconf(_SC_CLK_TCK), spawned_us = atomic_load(&at->spawned_us);

    if (!w->is_orphaned || start == -2)
        return true;
    return start >= 0 && start / per_s * 1000000 + start % per_s * 1000000 / per_s <= spawned_us;
}

/* Kill by the pid of the place, which also finds a process without our environment. */
static void kill_leader(struct guarding *w, struct guard_place *at, int64_t fence)
{
    pid_t pid = (pid_t)atomic_load(&at->pid);
    CLEANUP_CLOSE int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    int64_t start;

    if (pid <= 0)
        return;
    start = pidstat_start(pid);
    if (!is_it(w, at, start) || atomic_load(&at->pid) != pid || atomic_load(&at->fence) != fence)
        return;
    offspring_kill(&(struct offspring){pid, pidfd, fence});
    /* The leader has ended already; only its group was killed. */
    if (start != -2)
        tell(w, pid, fence);
}

static bool is_leader(const struct guarding *w, pid_t pid)
{
    for (int64_t i = 0; i < w->table->nplaces; i++) {
        if (atomic_load(&w->table->places[i].pid) == pid)
            return true;
    }
    return false;
}

static void on_found(void *arg, const struct offspring *p)
{
    struct guarding *w = arg;
    bool was_told = is_leader(w, p->pid);

    offspring_kill(p);
    if (p->pidfd >= 0)
        (void)close(p->pidfd);
    if (!was_told)
        tell(w, p->pid, p->fence);
}

static bool read_fences(struct guarding *w)
{
    bool has_any = false;

    for (int64_t i = 0; i < w->table->nplaces; i++) {
        w->fences[i] = atomic_load(&w->table->places[i].fence);
        has_any = has_any || w->fences[i] != 0;
    }
    return has_any;
}

/* Kill the processes of all fences. Returns how many were alive. */
static size_t kill_all(struct guarding *w)
{
    size_t n = (size_t)w->table->nplaces;
    const struct offspring_query whom = {
        .worker = w->table->worker, .fences = w->fences, .nfences = n};

    w->killed = 0;
    w->is_first = true;
    /* Write `killed` before the kill: the worker may see the end at once. */
    for (size_t i = 0; i < n; i++) {
        if (w->fences[i] != 0)
            atomic_store(&w->table->places[i].killed, w->fences[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (w->fences[i] != 0)
            kill_leader(w, &w->table->places[i], w->fences[i]);
    }
    /* Repeat until nothing is found: a process may have forked during the pass. */
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        if (offspring_find(&whom, SIZE_MAX, MONO_NEVER, on_found, w).found == 0)
            break;
        w->is_first = false;
    }
    return w->killed;
}

/* ---- when */

/*
 * Check the table, and kill if it is time to. Returns the time of the next check. Read the fences
 * first: a fence is set after the acknowledgement that let its job start, so if we see the fence we
 * see that, too.
 */
static int64_t decide(struct guarding *w)
{
    bool has_any = read_fences(w);
    int64_t deadline = atomic_load(&w->table->acked_us) + w->table->unacked_us;
    int64_t now = boot_now().us;

    if (now < deadline)
        return deadline;
    if (!has_any)
        return now + w->table->unacked_us / IDLE_PART;
    (void)kill_all(w);
    return now + REPEAT_US;
}

static void finish(struct guarding *w)
{
    int64_t begin = boot_now().us, calm_since = begin, now = begin;

    (void)snprintf(w->reason, sizeof(w->reason), "the worker died");
    w->is_orphaned = true;
    while (read_fences(w) && now - calm_since < CALM_US && now - begin < CALM_MAX_US) {
        if (kill_all(w) > 0)
            calm_since = boot_now().us;
        (void)poll(NULL, 0, CALM_STEP_MS);
        now = boot_now().us;
    }
}

/* Wait until at_us (CLOCK_BOOTTIME). True: the worker is gone. */
static bool wait_until(int timer, int64_t at_us)
{
    struct itimerspec spec = {
        .it_value = {(time_t)(at_us / 1000000), (long)(at_us % 1000000 * 1000)}};
    struct pollfd p[] = {{GUARD_PIPE_FD, 0, 0}, {timer, POLLIN, 0}};

    (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
    return poll(p, 2, -1) > 0 && p[0].revents != 0;
}

/* Signals for the worker may reach the guard, too (from a terminal, a service manager). Only KILL
 * and the end of the worker may end it. */
static void ignore_signals(void)
{
    static const int list[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                               SIGPIPE, SIGXFSZ, SIGTSTP, SIGTTIN, SIGTTOU};

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        (void)signal(list[i], SIG_IGN);
}

int guard_main(log_format_f *format)
{
    struct guarding w = {.format = format};
    int timer;

    ignore_signals();
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_NAME, "later-guard");
    program_invocation_short_name = (char *)(uintptr_t) "later-guard"; /* for the log */
    log_init(LOG_LEVEL_INFO);
    w.table = map_table();
    if (w.table == NULL) {
        (void)fputs("this is for the program's own use\n", stderr);
        return EX_USAGE;
    }
    timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (timer < 0) {
        log_err("event=guard reason=\"no timer: %s\"", strerrordesc_np(errno));
        return EX_OSERR;
    }
    w.fences = mem_new(((size_t)w.table->nplaces + 1) * sizeof(*w.fences));
    (void)snprintf(w.reason, sizeof(w.reason), "no beat was acknowledged for %lld ms",
                   (long long)(w.table->unacked_us / 1000));
    while (!wait_until(timer, decide(&w)))
        continue;
    finish(&w);
    free(w.fences);
    return EX_OK;
}
