#include "worker/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/process/offspring_end.h"
#include "run/process/origin.h"
#include "run/process/pidstat.h"

#define MAGIC "laterd-worker-3"
#define PLACES_MAX 1024 /* of the table */
#define LOCK_WAIT_S 5
#define DEATH_WAIT_MS 10000 /* until all that were killed together have ended */

/* The file, and a copy of it in memory. It is not mapped: whoever truncates a mapped file ends us.
 * Only this machine reads it, so its numbers are native. */
struct file {
    char magic[16];
    char boot[40];
    int64_t epoch;
    int64_t pid;                /* of the daemon; a second one names it in its message */
    int64_t pstart;             /* its start (run/process/pidstat.h), to see whether it lives */
    char worker[ORIGIN_WORKER]; /* the WORKER in its origins (run/process/origin.h) */
    int64_t fences[PLACES_MAX]; /* 0: the place is free */
};

struct state_folder {
    char *dir, *path; /* of the folder, and of the file in it */
    int fd;
    struct file *file; /* owned */
    int64_t predecessor;
};

static int check_dir(const char *dir, struct err *err)
{
    struct stat st;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(
            err, errno,
            "state_dir %s cannot be made (make it, or set state_dir to another folder or none)",
            dir);
    if (stat(dir, &st) < 0)
        return err_sys(err, errno, "state_dir %s", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_CONFIG, "state_dir %s is not a folder", dir);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, ERR_CONFIG, "state_dir %s belongs to another user: chown it", dir);
    if (st.st_mode & 022)
        return err_set(err, ERR_CONFIG, "state_dir %s can be written by others: chmod go-w it",
                       dir);
    return 0;
}

static void on_alarm(int sig)
{
    (void)sig;
}

/* flock(2) for LOCK_WAIT_S seconds at most. */
static int wait_for_lock(int fd)
{
    struct sigaction act = {.sa_handler = on_alarm}, was;
    int rc, e;

    (void)sigaction(SIGALRM, &act, &was);
    (void)alarm(LOCK_WAIT_S);
    rc = flock(fd, LOCK_EX);
    e = errno;
    (void)alarm(0);
    (void)sigaction(SIGALRM, &was, NULL);
    errno = e;
    return rc;
}

/*
 * A process that the predecessor was starting when it died holds the lock until it has become its
 * handler. Wait for that: from then on its environment has the origin by which it is found.
 */
static int take_lock(int fd, const char *dir, bool may_wait, struct err *err)
{
    int64_t pid = 0;

    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK &&
        pread(fd, &pid, sizeof(pid), offsetof(struct file, pid)) == (ssize_t)sizeof(pid) &&
        may_wait && pidstat_start((pid_t)pid) < 0 && wait_for_lock(fd) == 0)
        return 0;
    if (errno != EWOULDBLOCK && errno != EINTR)
        return err_sys(err, errno, "state_dir %s cannot be locked", dir);
    return err_set(err, ERR_CONFIG,
                   "state_dir %s is in use by another laterd (pid %lld): give each its own "
                   "state_dir, or none",
                   dir, (long long)pid);
}

/* Its blocks are allocated, so a write fails only with the disk itself, or where somebody truncated
 * the file: state_folder_keep mends that. */
static void put_number(const struct state_folder *s, size_t at, int64_t number)
{
    (void)!pwrite(s->fd, &number, sizeof(number), (off_t)at);
}

static void put_all(const struct state_folder *s)
{
    (void)!pwrite(s->fd, s->file, sizeof(*s->file), 0);
}

/* Allocate the blocks: a full disk must not lose what is written later. */
static int allocate(const struct state_folder *s, struct err *err)
{
    int e = posix_fallocate(s->fd, 0, sizeof(struct file));

    return e == 0 ? 0 : err_sys(err, e, "%s", s->path);
}

static int lock_file(struct state_folder *s, bool may_wait, struct err *err)
{
    s->fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->fd < 0)
        return err_sys(err, errno, "%s", s->path);
    if (take_lock(s->fd, s->dir, may_wait, err) < 0 || allocate(s, err) < 0)
        return -1;
    if (pread(s->fd, s->file, sizeof(*s->file), 0) != (ssize_t)sizeof(*s->file))
        return err_sys(err, errno, "%s cannot be read", s->path);
    return 0;
}

static struct state_folder *new_state(const char *dir)
{
    struct state_folder *s = mem_new(sizeof(*s));

    s->fd = -1;
    s->file = mem_new(sizeof(*s->file));
    s->dir = mem_strdup(dir);
    s->path = mem_printf("%s/worker", dir);
    return s;
}

struct state_folder *state_folder_open(const char *dir, const struct identity *me, struct err *err)
{
    struct state_folder *s = new_state(dir);

    if (check_dir(dir, err) < 0 || lock_file(s, true, err) < 0)
        goto fail;
    if (memcmp(s->file->magic, MAGIC, sizeof(s->file->magic)) != 0)
        memset(s->file, 0, sizeof(*s->file));
    /* After a reboot nothing runs, but the epoch is still that of a worker that died. */
    if (strncmp(s->file->boot, me->boot, sizeof(s->file->boot)) != 0)
        memset(s->file->fences, 0, sizeof(s->file->fences));
    memcpy(s->file->magic, MAGIC, sizeof(s->file->magic));
    memcpy(s->file->boot, me->boot, sizeof(s->file->boot));
    s->predecessor = s->file->epoch;
    put_all(s);
    return s;
fail:
    state_folder_close(s);
    return NULL;
}

void state_folder_close(struct state_folder *s)
{
    if (s == NULL)
        return;
    if (s->fd >= 0)
        (void)close(s->fd);
    free(s->file);
    free(s->dir);
    free(s->path);
    free(s);
}

enum condition { WHOLE, TRUNCATED, GONE };

static enum condition condition(const struct state_folder *s)
{
    struct stat there, ours;

    if (stat(s->path, &there) < 0 || fstat(s->fd, &ours) < 0 || there.st_dev != ours.st_dev ||
        there.st_ino != ours.st_ino)
        return GONE;
    return ours.st_size < (off_t)sizeof(struct file) ? TRUNCATED : WHOLE;
}

/* Another file is at the path, or none: make it anew. */
static int replace(struct state_folder *s, struct err *err)
{
    static const struct file nothing;
    struct state_folder *next = new_state(s->dir);
    int was = s->fd;

    if (check_dir(s->dir, err) < 0 || lock_file(next, false, err) < 0) {
        state_folder_close(next);
        return -1;
    }
    /* A daemon that finds the old file must not believe that we died. */
    (void)!pwrite(was, &nothing, sizeof(nothing), 0);
    s->fd = next->fd;
    next->fd = was;
    state_folder_close(next);
    put_all(s);
    return 1;
}

int state_folder_keep(struct state_folder *s, struct err *err)
{
    switch (condition(s)) {
    case WHOLE:
        return 0;
    case TRUNCATED:
        if (allocate(s, err) < 0)
            return -1;
        put_all(s);
        return 1;
    case GONE:
    default:
        return replace(s, err);
    }
}

int64_t state_folder_predecessor(const struct state_folder *s)
{
    return s->predecessor;
}

static bool has_any(const struct state_folder *s)
{
    for (size_t i = 0; i < PLACES_MAX; i++) {
        if (s->file->fences[i] != 0)
            return true;
    }
    return false;
}

/* Does the daemon that wrote the file live? Then the folder is a copy of the one that it uses. */
static bool lives(const struct file *f)
{
    return f->pid > 0 && f->pid != getpid() && f->pstart >= 0 &&
           pidstat_start((pid_t)f->pid) == f->pstart;
}

int state_folder_take_over(struct state_folder *s)
{
    const struct offspring_query whom = {
        .worker = s->file->worker, .fences = s->file->fences, .nfences = PLACES_MAX};
    size_t killed = 0;

    if (has_any(s) && !lives(s->file) &&
        !offspring_end(&whom, mono_add_ms(mono_now(), DEATH_WAIT_MS), &killed))
        log_warn("event=predecessor effect=\"some of what it left running may live\"");
    memset(s->file->fences, 0, sizeof(s->file->fences));
    s->file->pid = getpid();
    s->file->pstart = pidstat_start(getpid());
    origin_own(s->file->worker);
    put_all(s);
    return (int)killed;
}

void state_folder_set_epoch(struct state_folder *s, int64_t epoch)
{
    s->file->epoch = epoch;
    put_number(s, offsetof(struct file, epoch), epoch);
}

void state_folder_set_fence(struct state_folder *s, unsigned place, int64_t fence)
{
    s->file->fences[place] = fence;
    put_number(s, offsetof(struct file, fences) + place * sizeof(fence), fence);
}
