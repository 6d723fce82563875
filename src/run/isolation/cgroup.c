#include "run/isolation/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define OURS ".laterd"   /* like a service manager's .control; unlikely to be in use already */
#define PERIOD_US 100000 /* period of cpu.max; the kernel's default */
#define SWEEP_MS 100     /* wait for the end of what a daemon that died left */
#define ROUNDS 100       /* of moving processes, since they may fork meanwhile */

bool cgroup_has(const struct cgroup_limits *l)
{
    return l->memory > 0 || l->cpu > 0 || l->pids > 0;
}

/* ---- files of the kernel, each with a word or some text lines */

/* 0, or -1 with errno. size > 0; out is NUL-ended. */
static int read_at(int dir, const char *name, char *out, size_t size)
{
    CLEANUP_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    return n < 0 ? -1 : 0;
}

static int write_at(int dir, const char *name, const char *text)
{
    CLEANUP_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : -1;
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (; *list != '\0'; list += strspn(list, " \n")) {
        size_t len = strcspn(list, " \n");

        if (len == n && memcmp(list, word, n) == 0)
            return true;
        list += len;
    }
    return false;
}

/* The number after "name " at the start of a text line; 0: no such line. */
static long long count_of(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ' ')
            return strtoll(line + n + 1, NULL, 10);
    }
    return 0;
}

/* ---- our own cgroup */

/* Parse a line of /proc/self/mountinfo: where cgroup2 is mounted (point), and which part (root). */
static bool parse_mount(const char *line, char *root, char *point)
{
    const char *type = strstr(line, " - ");

    return type != NULL && strncmp(type, " - cgroup2 ", 11) == 0 &&
           sscanf(line, "%*s %*s %*s %255s %255s", root, point) == 2;
}

static bool find_mount(char *root, char *point)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[1024];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
        found = parse_mount(line, root, point);
    if (f != NULL)
        (void)fclose(f);
    return found;
}

/* Our path in the cgroup v2 tree, for example "/system.slice/laterd.service". */
static bool find_own(char *out, size_t size)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0 && strlen(line + 3) < size;
        if (found)
            memcpy(out, line + 3, strlen(line + 3) + 1);
    }
    if (f != NULL)
        (void)fclose(f);
    return found;
}

/* Cut off "/.laterd", where a daemon is after cgroup_enter, or "/.control", where a service manager
 * runs helper commands of a service. */
static void strip_leaf(char *own)
{
    static const char *const leaves[] = {"/" OURS, "/.control"};
    size_t n = strlen(own);

    for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
        size_t len = strlen(leaves[i]);

        if (n >= len && strcmp(own + n - len, leaves[i]) == 0) {
            own[n - len] = '\0';
            return;
        }
    }
}

static bool find_base(char base[CGROUP_PATH])
{
    char root[256], point[256], own[400];
    const char *below = own;

    if (!find_mount(root, point) || !find_own(own, sizeof(own)))
        return false;
    strip_leaf(own);
    /* A mount may show only a part of the tree. */
    if (strcmp(root, "/") != 0 && strncmp(own, root, strlen(root)) == 0 &&
        (own[strlen(root)] == '/' || own[strlen(root)] == '\0'))
        below = own + strlen(root);
    return snprintf(base, CGROUP_PATH, "%s%s", point, strcmp(below, "/") == 0 ? "" : below) <
           CGROUP_PATH;
}

/* ---- rights */

#define CURE "its service has to delegate one to it: drop-in cgroups.conf"

int cgroup_find(const struct cgroup_limits *l, char base[CGROUP_PATH], const char **ret_limit,
                struct err *err)
{
    const struct {
        const char *controller;
        bool is_wanted;
    } wanted[] = {{"memory", l->memory > 0}, {"cpu", l->cpu > 0}, {"pids", l->pids > 0}};
    CLEANUP_CLOSE int dir = -1;
    char has[256] = "";

    for (size_t i = 3; i-- > 0;)
        if (wanted[i].is_wanted)
            *ret_limit = wanted[i].controller;
    if (!find_base(base))
        return err_set(err, ERR_CONFIG, "%s: this host has no cgroup v2", *ret_limit);
    dir = open_folder(base);
    if (dir < 0 || read_at(dir, "cgroup.controllers", has, sizeof(has)) < 0)
        return err_set(err, ERR_CONFIG, "%s: %s: %s", *ret_limit, base, strerrordesc_np(errno));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (wanted[i].is_wanted && !has_word(has, wanted[i].controller)) {
            *ret_limit = wanted[i].controller;
            return err_set(err, ERR_CONFIG, "%s: laterd's cgroup %s has no %s controller: " CURE,
                           *ret_limit, base, *ret_limit);
        }
    if (faccessat(dir, "cgroup.kill", F_OK, AT_EACCESS) < 0)
        return err_set(
            err, ERR_CONFIG,
            "%s: laterd is in the root of all cgroups, or the kernel is older than 5.14: " CURE,
            *ret_limit);
    if (faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0 ||
        faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
        faccessat(dir, ".", W_OK, AT_EACCESS) < 0)
        return err_set(err, ERR_CONFIG, "%s: laterd may not write to its cgroup %s: " CURE,
                       *ret_limit, base);
    return 0;
}

/* ---- the daemon's cgroup */

/* Was the base delegated to us, with all processes in it? */
static bool is_delegated(const char *base)
{
    char root[256], point[256], value[4] = "";

    return (getxattr(base, "user.delegate", value, sizeof(value) - 1) == 1 && value[0] == '1') ||
           /* The base is all that a container sees. */
           (find_mount(root, point) && strcmp(base, point) == 0);
}

/* Move all processes of the base to ours. Returns how many there were, -1 with errno. */
static int move_all(int base, int ours, bool may_move_others)
{
    char list[4096], *at = list, *end;
    int n = 0;

    if (read_at(base, "cgroup.procs", list, sizeof(list)) < 0)
        return -1;
    for (long pid; (pid = strtol(at, &end, 10)), end != at; at = end, n++) {
        char text[24];

        if (pid != getpid() && !may_move_others) {
            errno = EBUSY;
            return -1;
        }
        (void)snprintf(text, sizeof(text), "%ld", pid);
        /* Only a complete number: a long list was cut. ESRCH: the process has ended meanwhile. */
        if (*end == '\n' && write_at(ours, "cgroup.procs", text) < 0 && errno != ESRCH)
            return -1;
    }
    return n;
}

/* Kill all processes in dir and wait for their end; one that waits for a disk may take long. */
static void empty(int dir, int wait_ms)
{
    CLEANUP_CLOSE int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    struct mono end = mono_add_ms(mono_now(), wait_ms);
    char text[128];

    (void)write_at(dir, "cgroup.kill", "1");
    while (fd >= 0) {
        int64_t left_ms = mono_until_us(mono_now(), end) / 1000;
        struct pollfd p = {fd, POLLPRI, 0};
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        if (count_of(text, "populated") == 0 || left_ms <= 0 || poll(&p, 1, (int)left_ms) < 0)
            return;
    }
}

/* Is it the "job.DAEMON.PID" of a daemon that has died? */
static bool is_left(const char *name)
{
    char *rest;
    long daemon = strncmp(name, "job.", 4) == 0 ? strtol(name + 4, &rest, 10) : 0;

    return daemon > 0 && daemon <= INT_MAX && *rest == '.' && kill((pid_t)daemon, 0) < 0 &&
           errno == ESRCH;
}

/* End what daemons that died left in the base; another daemon may live in it. */
static void sweep_once(int base, int wait_ms)
{
    DIR *d = fdopendir(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        CLEANUP_CLOSE int dir = -1;

        if (!is_left(e->d_name))
            continue;
        dir = openat(base, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0)
            empty(dir, wait_ms);
        (void)unlinkat(base, e->d_name, AT_REMOVEDIR);
        wait_ms = 0;
    }
    if (d != NULL)
        (void)closedir(d);
}

/* Kill all first, then wait for them, SWEEP_MS altogether. */
static void sweep(int base)
{
    sweep_once(base, 0);
    sweep_once(base, SWEEP_MS);
}

static int enter_failed(const char *base, struct err *err)
{
    if (errno == EBUSY)
        return err_set(err, ERR_CONFIG,
                       "other programs are in laterd's cgroup %s: it needs one of its own; " CURE,
                       base);
    return err_sys(err, errno, "laterd's cgroup %s", base);
}

/* Switch on each controller alone: a service may have only some of them. */
static int enable(int base)
{
    static const char *const controllers[] = {"memory", "cpu", "pids"};
    char has[256], word[16];

    if (read_at(base, "cgroup.controllers", has, sizeof(has)) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
        (void)snprintf(word, sizeof(word), "+%s", controllers[i]);
        if (has_word(has, controllers[i]) && write_at(base, "cgroup.subtree_control", word) < 0)
            return -1;
    }
    return 0;
}

int cgroup_enter(const char *base, struct err *err)
{
    CLEANUP_CLOSE int dir = open_folder(base);
    CLEANUP_CLOSE int ours = -1;
    bool may_move_others = is_delegated(base);
    char own[400];
    int n = 1;

    if (dir >= 0)
        sweep(dir);
    if (find_own(own, sizeof(own)) && strlen(own) > strlen(OURS) &&
        strcmp(own + strlen(own) - strlen(OURS) - 1, "/" OURS) == 0)
        return dir < 0 || enable(dir) < 0 ? enter_failed(base, err) : 0;
    if (dir < 0 || (mkdirat(dir, OURS, 0755) < 0 && errno != EEXIST))
        return enter_failed(base, err);
    ours = openat(dir, OURS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; n > 0 && i < ROUNDS; i++)
        n = ours < 0 ? -1 : move_all(dir, ours, may_move_others);
    if (n > 0)
        errno = EBUSY; /* new processes came faster than they were moved */
    if (n != 0 || enable(dir) < 0)
        return enter_failed(base, err);
    return 0;
}

/* ---- the cgroup of one handler */

static void name_of(pid_t daemon, pid_t pid, char out[48])
{
    (void)snprintf(out, 48, "job.%ld.%ld", (long)daemon, (long)pid);
}

static int set(int dir, const char *file, bool is_wanted, const char *value, const char **ret_what)
{
    *ret_what = file;
    return is_wanted ? write_at(dir, file, value) : 0;
}

static int set_limits(int dir, const struct cgroup_limits *l, const char **ret_what)
{
    char memory[24], cpu[48], pids[24];

    (void)snprintf(memory, sizeof(memory), "%" PRId64, l->memory);
    (void)snprintf(cpu, sizeof(cpu), "%" PRId64 " %d", l->cpu * (PERIOD_US / 100), PERIOD_US);
    (void)snprintf(pids, sizeof(pids), "%" PRId64, l->pids);
    /* Without swap there is no file memory.swap.max. memory.oom.group: out of memory kills all
     * processes of the cgroup, not one. */
    if (set(dir, "memory.swap.max", l->memory > 0, "0", ret_what) < 0 && errno != ENOENT)
        return -1;
    if (set(dir, "memory.max", l->memory > 0, memory, ret_what) < 0 ||
        set(dir, "memory.oom.group", l->memory > 0, "1", ret_what) < 0 ||
        set(dir, "cpu.max", l->cpu > 0, cpu, ret_what) < 0)
        return -1;
    return set(dir, "pids.max", l->pids > 0, pids, ret_what);
}

int cgroup_join(const char *base, const struct cgroup_limits *l, const char **ret_what)
{
    CLEANUP_CLOSE int parent = open_folder(base);
    CLEANUP_CLOSE int dir = -1;
    char name[48];

    *ret_what = base;
    name_of(getppid(), getpid(), name);
    if (parent < 0)
        return -1;
    /* Left by a process with our pid, if its cgroup could not be removed in time. */
    (void)unlinkat(parent, name, AT_REMOVEDIR);
    if (mkdirat(parent, name, 0755) < 0)
        return -1;
    dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || set_limits(dir, l, ret_what) < 0)
        return -1;
    return set(dir, "cgroup.procs", true, "0", ret_what);
}

void cgroup_end(const char *base, const struct cgroup_limits *l, pid_t pid, int wait_ms,
                struct cgroup_met *ret)
{
    CLEANUP_CLOSE int parent = open_folder(base);
    CLEANUP_CLOSE int dir = -1;
    char name[48], text[512];

    *ret = (struct cgroup_met){false, false};
    name_of(getpid(), pid, name);
    dir = parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return; /* the process ended before cgroup_join */
    /* oom counts only its own limit, not a shortage of the whole host. */
    if (l->memory > 0 && read_at(dir, "memory.events", text, sizeof(text)) == 0)
        ret->memory = count_of(text, "oom") > 0 && count_of(text, "oom_kill") > 0;
    if (l->pids > 0 && read_at(dir, "pids.events", text, sizeof(text)) == 0)
        ret->pids = count_of(text, "max") > 0;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
        return;
    empty(dir, wait_ms);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}
