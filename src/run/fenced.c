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

#define ENV_MAX 131072 /* bytes of an environment that are looked through */

/* The fence in these n bytes of NUL-ended strings if it is one of those; else 0. */
static int64_t fence_in(const int64_t *fences, size_t nfences, const char *env, size_t n)
{
    static const char name[] = "LATER_FENCE=";

    for (const char *at = env; at < env + n; at += strlen(at) + 1) {
        int64_t fence;

        if (strncmp(at, name, sizeof(name) - 1) != 0)
            continue;
        if (text_parse_int(at + sizeof(name) - 1, 1, INT64_MAX, &fence) < 0)
            return 0;
        for (size_t i = 0; i < nfences; i++) {
            if (fences[i] == fence)
                return fence;
        }
        return 0;
    }
    return 0;
}

/* Whose it is may read it. As a process with a user of its own is that user's, we are that user for
 * this one call, where we have the right to (the calling thread alone: fsuid is not shared). */
static int open_as_owner(pid_t pid, const char *path)
{
    char folder[32];
    struct stat st;
    int fd;

    (void)snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
    if (!caps_has(CAP_SETUID) || !caps_has(CAP_SETGID) || stat(folder, &st) < 0)
        return -1;
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    /* Another fsuid makes a process dumpable again, as far as the system lets it (prctl(2)). */
    (void)prctl(PR_SET_DUMPABLE, 0);
    return fd;
}

static int64_t fence_of(const int64_t *fences, size_t nfences, pid_t pid)
{
    char path[64], env[ENV_MAX];
    CLEANUP_CLOSE int fd = -1;
    size_t n = 0;
    ssize_t got;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        fd = open_as_owner(pid, path);
    while (fd >= 0 && n < sizeof(env) - 1 && (got = read(fd, env + n, sizeof(env) - 1 - n)) > 0)
        n += (size_t)got;
    env[n] = '\0';
    return fence_in(fences, nfences, env, n);
}

/* The pidfd is taken before the look, so that what was looked at is what is killed. */
static bool look(const int64_t *fences, size_t n, pid_t pid, struct fenced *ret)
{
    CLEANUP_CLOSE int pidfd = pidfd_open(pid, 0);
    int64_t fence;

    if (pidfd < 0 && errno != ENOSYS)
        return false;
    fence = fence_of(fences, n, pid);
    if (fence == 0)
        return false;
    *ret = (struct fenced){pid, TAKE_FD(pidfd), fence};
    return true;
}

size_t fenced_find(const int64_t *fences, size_t n, size_t max, fenced_found_f *found, void *arg)
{
    DIR *proc = opendir("/proc");
    size_t count = 0;

    for (struct dirent *e = proc != NULL ? readdir(proc) : NULL; e != NULL && count < max;
         e = readdir(proc)) {
        struct fenced p;
        int64_t pid;

        if (text_parse_int(e->d_name, 2, INT32_MAX, &pid) < 0 || pid == getpid() ||
            !look(fences, n, (pid_t)pid, &p))
            continue;
        count++;
        found(arg, &p);
    }
    if (proc != NULL)
        (void)closedir(proc);
    return count;
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
