#include "run/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "run/guard/guard_table.h"
#include "run/isolation/caps.h"
#include "run/process/spawn.h"

#define FRESH_PART 3 /* a beat is fresh for 1/3 of unacked_us */
#define END_WAIT_MS 5000

struct guard {
    struct guard_table *table;
    size_t bytes;
    int memfd;
    int pipe; /* our end; when it closes, the guard knows that we have ended */
    pid_t pid;
    int pidfd;
    atomic_bool is_up;
};

static int make_table(struct guard *g, unsigned places, int64_t unacked_ms, struct err *err)
{
    g->bytes = sizeof(*g->table) + places * sizeof(g->table->places[0]);
    g->memfd = memfd_create("later-guard", MFD_CLOEXEC);
    /* Allocate the pages, too: a store to a page without memory raises SIGBUS. */
    if (g->memfd < 0 || ftruncate(g->memfd, (off_t)g->bytes) < 0 ||
        fallocate(g->memfd, 0, 0, (off_t)g->bytes) < 0)
        return err_sys(err, errno, "cannot make the guard's table");
    g->table = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
    if (g->table == MAP_FAILED) {
        g->table = NULL;
        return err_sys(err, errno, "cannot map the guard's table");
    }
    g->table->magic = GUARD_MAGIC;
    origin_own(g->table->worker);
    g->table->unacked_us = unacked_ms * 1000;
    g->table->nplaces = places;
    return 0;
}

struct guard *guard_new(unsigned places, int64_t unacked_ms, struct err *err)
{
    struct guard *g = mem_new(sizeof(*g));

    g->memfd = g->pipe = g->pidfd = -1;
    if (make_table(g, places, unacked_ms > 0 ? unacked_ms : GUARD_UNACKED_MS, err) < 0) {
        guard_free(g);
        return NULL;
    }
    return g;
}

/* What the guard needs to start and to log: no settings of ours, no fence that we inherited. */
static void make_env(char *env[], size_t max)
{
    static const char *const names[] = {"JOURNAL_STREAM", "LD_LIBRARY_PATH"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && n + 1 < max; i++) {
        const char *value = getenv(names[i]);

        if (value != NULL)
            env[n++] = mem_printf("%s=%s", names[i], value);
    }
    env[n] = NULL;
}

int guard_start(struct guard *g, struct err *err)
{
    char *argv[] = {(char *)(uintptr_t)SPAWN_SELF, (char *)(uintptr_t)GUARD_ARG, NULL};
    char **env = mem_new(3 * sizeof(*env));
    struct spawned child;
    int pipe[2], rc;

    if (pipe2(pipe, O_CLOEXEC) < 0) {
        mem_free_list(env);
        return err_sys(err, errno, "cannot make the guard's pipe");
    }
    make_env(env, 3);
    /* The guard needs our capabilities to kill handlers of other users. */
    caps_lend();
    rc = spawn(argv, env, &(struct spawn_fds){pipe[0], -1, STDERR_FILENO, g->memfd}, "/", &child,
               err);
    caps_take_back();
    mem_free_list(env);
    (void)close(pipe[0]);
    if (rc < 0) {
        (void)close(pipe[1]);
        return err_wrap(err, "cannot start the guard");
    }
    g->pipe = pipe[1];
    g->pid = child.pid;
    g->pidfd = child.pidfd;
    atomic_store(&g->is_up, true);
    return 0;
}

int guard_pidfd(const struct guard *g)
{
    return g->pidfd;
}

pid_t guard_pid(const struct guard *g)
{
    return g->pid;
}

int guard_ended(struct guard *g)
{
    siginfo_t info = {0};

    atomic_store(&g->is_up, false);
    while (waitid(P_PID, (id_t)g->pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    (void)close(g->pidfd);
    if (g->pipe >= 0)
        (void)close(g->pipe);
    g->pidfd = g->pipe = -1;
    g->pid = 0;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* A guard that hangs is left alone: its table is empty, so it kills nothing. */
static void stop(struct guard *g)
{
    struct pollfd p = {g->pidfd, POLLIN, 0};
    int rc;

    (void)close(TAKE_FD(g->pipe));
    do
        rc = poll(&p, 1, END_WAIT_MS);
    while (rc < 0 && errno == EINTR);
    if (rc > 0)
        (void)guard_ended(g);
    else
        (void)close(TAKE_FD(g->pidfd));
}

void guard_free(struct guard *g)
{
    if (g == NULL)
        return;
    for (int64_t i = 0; g->table != NULL && i < g->table->nplaces; i++)
        guard_clear(g, (unsigned)i);
    if (g->pid > 0)
        stop(g);
    if (g->table != NULL)
        (void)munmap(g->table, g->bytes);
    if (g->memfd >= 0)
        (void)close(g->memfd);
    free(g);
}

bool guard_is_up(const struct guard *g)
{
    return atomic_load(&g->is_up);
}

bool guard_is_fresh(const struct guard *g, int64_t spare_ms)
{
    int64_t acked_us = atomic_load(&g->table->acked_us);

    return acked_us > 0 &&
           boot_now().us - acked_us < g->table->unacked_us / FRESH_PART - spare_ms * 1000;
}

void guard_log_formatted(struct guard *g, bool is_formatted)
{
    atomic_store(&g->table->is_formatted, is_formatted);
}

void guard_alive(struct guard *g, struct boot sent)
{
    if (sent.us > atomic_load(&g->table->acked_us))
        atomic_store(&g->table->acked_us, sent.us);
}

void guard_set(struct guard *g, unsigned place, int64_t fence)
{
    struct guard_place *at = &g->table->places[place];

    atomic_store(&at->killed, 0);
    atomic_store(&at->fence, fence);
}

bool guard_admits(const struct guard *g)
{
    return guard_is_up(g) && guard_is_fresh(g, 0);
}

void guard_set_process(struct guard *g, unsigned place, pid_t pid)
{
    struct guard_place *at = &g->table->places[place];

    if (pid > 0)
        atomic_store(&at->spawned_us, boot_now().us);
    atomic_store(&at->pid, pid);
}

void guard_clear(struct guard *g, unsigned place)
{
    struct guard_place *at = &g->table->places[place];

    atomic_store(&at->pid, 0);
    atomic_store(&at->fence, 0);
}

bool guard_has_killed(const struct guard *g, unsigned place)
{
    const struct guard_place *at = &g->table->places[place];
    int64_t fence = atomic_load(&at->fence);

    return fence != 0 && atomic_load(&at->killed) == fence;
}
