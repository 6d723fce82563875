#include "run/process/offspring.h"

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
#include "run/isolation/caps.h"
#include "run/process/origin.h"
#include "run/process/pidstat.h"

#define ENV_MAX 16384  /* bytes of an environment that are searched at a time */
#define ENV_PIECES 800 /* execve takes 6 MiB at most, which is less; a process may show more */
#define OUR_PROGRAMS "later" /* prefix of the names of our programs and their threads */

enum sight { NONE, FOUND, UNKNOWN };

/* A search without fences is for a worker that died: processes that cannot be inspected count, too.
 */
static bool is_for_dead(const struct offspring_query *whom)
{
    return whom->fences == NULL;
}

/* ---- origins */

static bool has_fence(const struct offspring_query *whom, int64_t fence)
{
    for (size_t i = 0; fence > 0 && i < whom->nfences; i++) {
        if (whom->fences[i] == fence)
            return true;
    }
    return false;
}

static bool has_job(const struct offspring_query *whom, const char *job)
{
    if (job[0] == '\0' || whom->jobs == NULL)
        return true;
    for (size_t i = 0; i < whom->njobs; i++) {
        if (strcmp(job, whom->jobs[i]) == 0)
            return true;
    }
    return false;
}

/* Is one of these origins searched for? *ret_fence: its fence. */
static bool is_sought(const struct offspring_query *whom, const char *all, int64_t *ret_fence)
{
    struct origin o;

    while (origin_next(&all, &o)) {
        if (strcmp(o.worker, whom->worker) == 0 &&
            (is_for_dead(whom) ? has_job(whom, o.job) : has_fence(whom, o.fence))) {
            *ret_fence = o.fence;
            return true;
        }
    }
    return false;
}

/* ---- one environment */

/* Only the owner of a process may read its environment, and a handler may run as another user. So
 * become that user for this one call, if we have the right to; fsuid changes this thread only. */
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
    /* A change of the fsuid resets the dumpable flag to fs.suid_dumpable (prctl(2)). */
    (void)prctl(PR_SET_DUMPABLE, 0);
    errno = e;
    return fd;
}

static int open_file(pid_t pid, const char *name)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 && errno == EACCES ? open_as_owner(pid, path) : fd;
}

/* Read a file of /proc/PID into out, NUL-ended. Returns its bytes; -1 with errno. */
static ssize_t read_file(pid_t pid, const char *name, char *out, size_t cap)
{
    CLEANUP_CLOSE int fd = open_file(pid, name);
    size_t n = 0;
    ssize_t got = 0;

    while (fd >= 0 && n < cap - 1 && (got = read(fd, out + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    return fd < 0 || got < 0 ? -1 : (ssize_t)n;
}

/* Find the origins in n bytes of variables; NULL: none, or not complete. begins: env is the start
 * of a variable. *ret_used: bytes that need not be searched again. */
static const char *find_origins(const char *env, size_t n, bool begins, size_t *ret_used)
{
    static const char behind_another[] = "\0" ORIGIN_NAME;
    const size_t len = strlen(ORIGIN_NAME);
    const char *at = begins && n >= len && memcmp(env, ORIGIN_NAME, len) == 0 ? env : NULL;
    const char *last = memrchr(env, '\0', n);

    if (at == NULL) {
        at = memmem(env, n, behind_another, sizeof(behind_another) - 1);
        at = at != NULL ? at + 1 : NULL;
    }
    /* The first origins are enough if the list is longer than the buffer. */
    if (at != NULL &&
        (memchr(at, '\0', n - (size_t)(at - env)) != NULL || (at == env && n == ENV_MAX)))
        return at + len;
    *ret_used = at != NULL ? (size_t)(at - env) : last != NULL ? (size_t)(last - env) + 1 : 0;
    return NULL;
}

/* Result for the environment of one task. EMPTY: it has none. HIDDEN: it cannot be read. */
enum env { ENV_NONE, ENV_FOUND, ENV_EMPTY, ENV_HIDDEN };

/* Read from fd piece by piece to the end: a shell passes variables on in any order. */
static enum env search(int fd, const struct offspring_query *whom, int64_t *ret_fence)
{
    char env[ENV_MAX + 1] = "";
    size_t have = 0, used = 0;
    bool begins = true, has_any = false;
    ssize_t got = 1;

    for (int i = 0; i < ENV_PIECES && got > 0; i++) {
        const char *all;

        got = read(fd, env + have, ENV_MAX - have);
        if (got <= 0)
            break;
        has_any = true;
        have += (size_t)got;
        env[have] = '\0';
        all = find_origins(env, have, begins, &used);
        if (all != NULL)
            return is_sought(whom, all, ret_fence) ? ENV_FOUND : ENV_NONE;
        begins = used > 0 || (begins && have < ENV_MAX);
        used = used == 0 && have == ENV_MAX ? have : used;
        memmove(env, env + used, have - used);
        have -= used;
        env[have] = '\0';
    }
    if (got < 0)
        return errno == ESRCH ? ENV_EMPTY : ENV_HIDDEN;
    /* The last variable may have no NUL at its end. */
    if (begins && have > 0 && strncmp(env, ORIGIN_NAME, strlen(ORIGIN_NAME)) == 0)
        return is_sought(whom, env + strlen(ORIGIN_NAME), ret_fence) ? ENV_FOUND : ENV_NONE;
    return has_any ? ENV_NONE : ENV_EMPTY;
}

/* file: environ, or task/TID/environ of a thread. */
static enum env search_file(const struct offspring_query *whom, pid_t pid, const char *file,
                            int64_t *ret_fence)
{
    CLEANUP_CLOSE int fd = open_file(pid, file);

    if (fd < 0)
        return errno == ESRCH || errno == ENOENT ? ENV_EMPTY : ENV_HIDDEN;
    return search(fd, whom, ret_fence);
}

/* For a process whose first thread has ended: then only its other threads show the environment. */
static enum env search_threads(const struct offspring_query *whom, pid_t pid, int64_t *ret_fence)
{
    enum env worst = ENV_EMPTY;
    char folder[32], file[64];
    int64_t tid;
    DIR *tasks;

    (void)snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
    tasks = opendir(folder);
    for (struct dirent *e = tasks != NULL ? readdir(tasks) : NULL; e != NULL; e = readdir(tasks)) {
        enum env is;

        if (text_parse_int(e->d_name, 1, INT32_MAX, &tid) < 0)
            continue;
        (void)snprintf(file, sizeof(file), "task/%d/environ", (int)tid);
        is = search_file(whom, pid, file, ret_fence);
        worst = is == ENV_HIDDEN ? is : worst;
        if (is == ENV_NONE || is == ENV_FOUND) {
            worst = is;
            break;
        }
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return worst;
}

/* ---- one process */

static bool is_our_program(const struct pidstat *p)
{
    return strncmp(p->name, OUR_PROGRAMS, sizeof(OUR_PROGRAMS) - 1) == 0;
}

/* Is its parent a living program of ours? Living workers start processes all the time; what one
 * that died was starting is an orphan. Process 1 may be a laterd, but it also adopts orphans. */
static bool is_of_living(const struct pidstat *p)
{
    struct pidstat parent;

    return p->parent > 1 && pidstat_read(p->parent, &parent) == 0 && is_our_program(&parent);
}

/* Might a worker with our rights have started it? If we cannot change users, such a process has our
 * uid as one of its four uids. True if they cannot be read. */
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

/* During exec a process has its new program, but not yet its environment; then its command line is
 * empty, too. */
static enum sight sight_of_empty(const struct pidstat *p, pid_t pid)
{
    char line[2];

    if (read_file(pid, "cmdline", line, sizeof(line)) > 0)
        return NONE;
    return is_of_living(p) ? NONE : UNKNOWN;
}

/* Our own programs do not count: laterd and its guard are always hidden, and what they start has an
 * origin of its own. */
static enum sight sight_of_hidden(const struct offspring_query *whom, const struct pidstat *p,
                                  pid_t pid)
{
    return !is_for_dead(whom) || is_our_program(p) || !may_be_ours(pid) ? NONE : UNKNOWN;
}

/* Judge a process whose environment is empty or hidden. */
static enum sight sight_from_near(const struct offspring_query *whom, pid_t pid, enum env is,
                                  int64_t *ret_fence)
{
    struct pidstat p;

    if (pidstat_read(pid, &p) < 0)
        return errno == ENOENT || errno == ESRCH || !is_for_dead(whom) ? NONE : UNKNOWN;
    /* A process that ended is only a pid, unless some of its threads live. */
    if (p.is_kernels || (pidstat_is_dead(&p) && p.threads <= 1))
        return NONE;
    if (pidstat_is_dead(&p)) {
        is = search_threads(whom, pid, ret_fence);
        if (is == ENV_FOUND || is == ENV_NONE)
            return is == ENV_FOUND ? FOUND : NONE;
    }
    return is == ENV_HIDDEN ? sight_of_hidden(whom, &p, pid) : sight_of_empty(&p, pid);
}

/* For a worker that died: check what needs no environment. NONE: go on with the environment, unless
 * *ret_is_older. */
static enum sight sight_of_stat(const struct offspring_query *whom, pid_t pid, bool *ret_is_older)
{
    struct pidstat p;

    *ret_is_older = false;
    if (pidstat_read(pid, &p) < 0)
        return errno == ENOENT || errno == ESRCH ? NONE : UNKNOWN;
    *ret_is_older = p.start < whom->since;
    /* Forked by a worker that has died meanwhile: it is about to become one of its handlers. */
    return !*ret_is_older && p.is_fork && is_our_program(&p) && !is_of_living(&p) ? UNKNOWN : NONE;
}

/* The pidfd is opened before the check, so that the checked process is the one that is killed. */
static enum sight sight_of(const struct offspring_query *whom, pid_t pid, struct offspring *ret)
{
    CLEANUP_CLOSE int pidfd = -1;
    bool is_older = false;
    enum sight sight;
    enum env is;

    if (is_for_dead(whom) && sight_of_stat(whom, pid, &is_older) == UNKNOWN)
        return UNKNOWN;
    if (is_older)
        return NONE;
    pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 && errno != ENOSYS)
        return errno == ESRCH ? NONE : UNKNOWN;
    *ret = (struct offspring){.pid = pid, .pidfd = -1};
    is = search_file(whom, pid, "environ", &ret->fence);
    sight = is == ENV_FOUND  ? FOUND
            : is == ENV_NONE ? NONE
                             : sight_from_near(whom, pid, is, &ret->fence);
    if (sight == FOUND)
        ret->pidfd = TAKE_FD(pidfd);
    return sight;
}

/* ---- all processes */

struct offspring_count offspring_find(const struct offspring_query *whom, size_t max,
                                      struct mono until, offspring_found_f *found, void *arg)
{
    struct offspring_count tally = {0, 0};
    struct offspring p;
    int64_t pid;
    DIR *proc = opendir("/proc");

    /* If /proc does not show processes of others (hidepid), we cannot know what runs. */
    if (proc == NULL || (is_for_dead(whom) && pidstat_start(1) == -1))
        tally.unknown++;
    for (struct dirent *e = proc != NULL ? readdir(proc) : NULL; e != NULL && tally.found < max;
         e = readdir(proc)) {
        enum sight sight;

        if (text_parse_int(e->d_name, 2, INT32_MAX, &pid) < 0 || pid == getpid())
            continue;
        if (!mono_before(mono_now(), until)) {
            tally.unknown++;
            break;
        }
        sight = sight_of(whom, (pid_t)pid, &p);
        tally.found += sight == FOUND;
        tally.unknown += sight == UNKNOWN;
        if (sight == FOUND)
            found(arg, &p);
    }
    if (proc != NULL)
        (void)closedir(proc);
    return tally;
}

void offspring_kill(const struct offspring *p)
{
    /* Members of its group may have changed their environment. The group's number is not reused:
     * the leader is not waited for before this. */
    if (getpgid(p->pid) == p->pid)
        (void)kill(-p->pid, SIGKILL);
    if (p->pidfd >= 0)
        (void)pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
    else
        (void)kill(p->pid, SIGKILL);
}
