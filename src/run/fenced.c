#include "run/fenced.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/caps.h"
#include "run/pidstat.h"

#define ENV_MAX 131072       /* bytes of an environment that are looked through */
#define OUR_PROGRAMS "later" /* their names, and those of their threads, begin so */

enum sight { NONE, FOUND, UNKNOWN };

/* ---- marks */

/* What an environment says; its texts point into it. */
struct marks {
    const char *fence, *worker, *job; /* NULL: it has none */
};

static void read_mark(const char *variable, const char *name, const char **ret)
{
    size_t n = strlen(name);

    if (*ret == NULL && strncmp(variable, name, n) == 0)
        *ret = variable + n;
}

/* env: n bytes of NUL-ended strings. */
static struct marks read_marks(const char *env, size_t n)
{
    struct marks m = {NULL, NULL, NULL};

    for (const char *at = env; at < env + n; at += strlen(at) + 1) {
        read_mark(at, "LATER_FENCE=", &m.fence);
        read_mark(at, "LATER_WORKER=", &m.worker);
        read_mark(at, "LATER_ID=", &m.job);
    }
    return m;
}

/* Its fence if it is one of those; else 0. */
static int64_t fence_of(const struct fenced_whom *whom, const struct marks *m)
{
    int64_t fence;

    if (m->fence == NULL || text_parse_int(m->fence, 1, INT64_MAX, &fence) < 0)
        return 0;
    for (size_t i = 0; i < whom->nfences; i++) {
        if (whom->fences[i] == fence)
            return fence;
    }
    return 0;
}

static bool is_of_worker(const struct fenced_whom *whom, const struct marks *m)
{
    if (m->worker == NULL || strcmp(m->worker, whom->worker) != 0)
        return false;
    if (m->job == NULL || whom->jobs == NULL)
        return true;
    for (size_t i = 0; i < whom->njobs; i++) {
        if (strcmp(m->job, whom->jobs[i]) == 0)
            return true;
    }
    return false;
}

/* ---- one process */

/* Whose it is may read it. As a process with a user of its own is that user's, we are that user for
 * this one call, where we have the right to (the calling thread alone: fsuid is not shared). */
static int open_as_owner(pid_t pid, const char *path)
{
    char folder[32];
    struct stat st;
    int fd, e;

    (void)snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
    if (!caps_has(CAP_SETUID) || !caps_has(CAP_SETGID)) {
        errno = EACCES;
        return -1;
    }
    if (stat(folder, &st) < 0)
        return -1;
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    e = errno;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    /* Another fsuid makes a process dumpable again, as far as the system lets it (prctl(2)). */
    (void)prctl(PR_SET_DUMPABLE, 0);
    errno = e;
    return fd;
}

/* Bytes of a file of it, a NUL behind; -1 with errno. */
static ssize_t read_file(pid_t pid, const char *name, char *out, size_t room)
{
    char path[64];
    CLEANUP_CLOSE int fd = -1;
    size_t n = 0;
    ssize_t got = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        fd = open_as_owner(pid, path);
    while (fd >= 0 && n < room - 1 && (got = read(fd, out + n, room - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    return fd < 0 || got < 0 ? -1 : (ssize_t)n;
}

static bool is_our_program(const struct pidstat *p)
{
    return strncmp(p->name, OUR_PROGRAMS, sizeof(OUR_PROGRAMS) - 1) == 0;
}

/* A worker that lives starts others all the time; what a dead one was making is an orphan. (Process
 * 1 may be a laterd, and a foster parent all the same.) */
static bool is_of_living(const struct pidstat *p)
{
    struct pidstat parent;

    return p->parent > 1 && pidstat_read(p->parent, &parent) == 0 && is_our_program(&parent);
}

/* One of these ids may be that of what the worker started: of our user it has at least one. */
static bool may_be_ours(pid_t pid)
{
    char status[4096], *at;
    unsigned ids[4];

    if (caps_has(CAP_SETUID) && caps_has(CAP_SETGID))
        return true;
    if (read_file(pid, "status", status, sizeof(status)) < 0)
        return errno != ENOENT && errno != ESRCH;
    at = strstr(status, "\nUid:");
    if (at == NULL || sscanf(at, " Uid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
        return true;
    for (size_t i = 0; i < 4; i++) {
        if (ids[i] == geteuid())
            return true;
    }
    return false;
}

/* Nothing of it is left but its number; unless only the first of its threads has ended, and took
 * the environment with it. */
static enum sight look_at_dead(const struct pidstat *p)
{
    return p->threads > 1 ? UNKNOWN : NONE;
}

/* The moment in which a process has the new program, but not yet its environment: its command line
 * is empty as well. */
static enum sight look_at_empty(pid_t pid)
{
    struct pidstat p;
    char line[2];

    if (pidstat_read(pid, &p) < 0 || p.is_kernels)
        return NONE;
    if (pidstat_is_dead(&p))
        return look_at_dead(&p);
    if (read_file(pid, "cmdline", line, sizeof(line)) != 0)
        return NONE;
    return is_of_living(&p) ? NONE : UNKNOWN;
}

/* Of the programs of laterd none can be looked at; what they start has marks of its own. */
static enum sight look_at_hidden(const struct fenced_whom *whom, pid_t pid, int errnum)
{
    struct pidstat p;

    if (whom->worker == NULL || errnum == ENOENT || errnum == ESRCH)
        return NONE;
    if (pidstat_read(pid, &p) < 0)
        return errno == ENOENT || errno == ESRCH ? NONE : UNKNOWN;
    if (pidstat_is_dead(&p))
        return look_at_dead(&p);
    return p.is_kernels || is_our_program(&p) || !may_be_ours(pid) ? NONE : UNKNOWN;
}

/* By what does not need its environment: with worker. NONE: look at that. */
static enum sight look_at_stat(const struct fenced_whom *whom, pid_t pid, bool *ret_is_older)
{
    struct pidstat p;

    *ret_is_older = false;
    if (pidstat_read(pid, &p) < 0)
        return errno == ENOENT || errno == ESRCH ? NONE : UNKNOWN;
    *ret_is_older = p.start < whom->since;
    /* Forked by a worker that has died meanwhile, it is about to become its handler. */
    return !*ret_is_older && p.is_fork && is_our_program(&p) && !is_of_living(&p) ? UNKNOWN : NONE;
}

/* The pidfd is taken before the look, so that what was looked at is what is killed. */
static enum sight look(const struct fenced_whom *whom, char *env, pid_t pid, struct fenced *ret)
{
    CLEANUP_CLOSE int pidfd = -1;
    bool is_older = false;
    struct marks marks;
    int64_t fence;
    ssize_t n;

    if (whom->worker != NULL && look_at_stat(whom, pid, &is_older) == UNKNOWN)
        return UNKNOWN;
    if (is_older)
        return NONE;
    pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 && errno != ENOSYS)
        return errno == ESRCH ? NONE : UNKNOWN;
    n = read_file(pid, "environ", env, ENV_MAX);
    if (n < 0)
        return look_at_hidden(whom, pid, errno);
    if (n == 0)
        return look_at_empty(pid);
    marks = read_marks(env, (size_t)n);
    fence = fence_of(whom, &marks);
    if (whom->worker != NULL ? !is_of_worker(whom, &marks) : fence == 0)
        return whom->worker != NULL && n == ENV_MAX - 1 && marks.worker == NULL ? UNKNOWN : NONE;
    *ret = (struct fenced){pid, TAKE_FD(pidfd), fence};
    return FOUND;
}

/* ---- all of them */

struct fenced_tally fenced_find(const struct fenced_whom *whom, size_t max, fenced_found_f *found,
                                void *arg)
{
    char env[ENV_MAX];
    struct fenced_tally tally = {0, 0};
    struct fenced p;
    int64_t pid;
    DIR *proc = opendir("/proc");

    /* Where others' processes are not shown at all (hidepid), nobody knows who is there. */
    if (proc == NULL || (whom->worker != NULL && pidstat_start(1) == -1))
        tally.unknown++;
    for (struct dirent *e = proc != NULL ? readdir(proc) : NULL; e != NULL && tally.found < max;
         e = readdir(proc)) {
        enum sight sight;

        if (text_parse_int(e->d_name, 2, INT32_MAX, &pid) < 0 || pid == getpid())
            continue;
        sight = look(whom, env, (pid_t)pid, &p);
        tally.found += sight == FOUND;
        tally.unknown += sight == UNKNOWN;
        if (sight == FOUND)
            found(arg, &p);
    }
    if (proc != NULL)
        (void)closedir(proc);
    return tally;
}

void fenced_kill(const struct fenced *p)
{
    /* Members of its group may have changed their environment; the leader is not reaped before us.
     */
    if (getpgid(p->pid) == p->pid)
        (void)kill(-p->pid, SIGKILL);
    if (p->pidfd >= 0)
        (void)pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
    else
        (void)kill(p->pid, SIGKILL);
}
