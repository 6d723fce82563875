#include "serve/handlers_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/handler/path_walk.h"

#define RESCAN_MS 150 /* editors and package managers write, rename, chmod: one rescan will do */
#define AGAIN_MS 1000
#define READS                                                                                      \
    16 /* in an iteration: a folder that is written all the time must not block the loop */
#define MASK                                                                                       \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB |            \
     IN_MOVE_SELF | IN_DELETE_SELF)

/* A name that counts in a folder which is only part of a path. */
struct watched_name {
    int wd;
    char *name;
};

struct handlers_folder {
    int fd;
    int wd; /* of the handlers folder, where every change counts; -1: it does not exist */
    int *wds;
    struct watched_name *watched;
    size_t nwds, nwatched;
    char blind[256], told[256]; /* why not all can be watched, and what of that was logged last */
    struct loop_fd *watch;
    struct loop_timer *timer;
};

/* ---- changes */

static bool is_watched(const struct handlers_folder *f, const struct inotify_event *event)
{
    for (size_t i = 0; event->len > 0 && i < f->nwatched; i++) {
        if (f->watched[i].wd == event->wd && strcmp(f->watched[i].name, event->name) == 0)
            return true;
    }
    return false;
}

static bool counts(const struct handlers_folder *f, const struct inotify_event *event)
{
    if (event->mask & (IN_Q_OVERFLOW | IN_UNMOUNT))
        return true;
    if (event->mask & IN_IGNORED)
        return false;
    return event->wd == f->wd || is_watched(f, event);
}

/* The first change sets the timer, and later ones do not put it off: otherwise a folder that is
 * written all the time would never be read. */
static void take(struct handlers_folder *f, const char *events, size_t n)
{
    size_t at = 0;

    while (at + sizeof(struct inotify_event) <= n && !loop_timer_is_set(f->timer)) {
        const struct inotify_event *event = (const void *)(events + at);

        if (counts(f, event))
            loop_timer_set(f->timer, RESCAN_MS);
        at += sizeof(*event) + event->len;
    }
}

/* It does not matter which change it was: all handlers are read again. */
static void on_readable(void *arg, int events)
{
    struct handlers_folder *f = arg;
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = 1;

    (void)events;
    for (int i = 0; n > 0 && i < READS; i++) {
        n = read(f->fd, buf, sizeof(buf));
        if (n > 0)
            take(f, buf, (size_t)n);
    }
}

struct handlers_folder *handlers_folder_new(struct loop *loop, handlers_folder_f *changed,
                                            void *arg)
{
    struct handlers_folder *f = mem_new(sizeof(*f));

    f->wd = -1;
    f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->fd < 0) {
        free(f);
        return NULL;
    }
    f->watch = loop_fd_new(loop, f->fd, LOOP_READ, on_readable, f);
    f->timer = loop_timer_new(loop, changed, arg);
    return f;
}

/* ---- what is watched */

static bool has(const int *wds, size_t n, int wd)
{
    for (size_t i = 0; i < n; i++) {
        if (wds[i] == wd)
            return true;
    }
    return false;
}

/* -> the watch descriptor, or -1. A missing folder is no error: its name is watched in the folder
 * above. */
static int add(struct handlers_folder *f, const char *dir)
{
    int wd = inotify_add_watch(f->fd, dir, MASK | IN_ONLYDIR);

    if (wd >= 0 && !has(f->wds, f->nwds, wd)) {
        f->wds = mem_grow(f->wds, f->nwds + 1, sizeof(*f->wds));
        f->wds[f->nwds++] = wd;
    }
    if (wd < 0 && errno != ENOENT && errno != ENOTDIR && f->blind[0] == '\0')
        (void)snprintf(f->blind, sizeof(f->blind), "%.150s: %s", dir,
                       errno == ENOSPC ? "raise fs.inotify.max_user_watches" : strerror(errno));
    return wd;
}

/* The folder is watched before the name is looked up in it, so that no change after the lookup is
 * missed. */
static void on_lookup(void *arg, const char *dir, const char *name)
{
    struct handlers_folder *f = arg;
    int wd = add(f, dir);

    if (wd < 0)
        return;
    f->watched = mem_grow(f->watched, f->nwatched + 1, sizeof(*f->watched));
    f->watched[f->nwatched++] = (struct watched_name){wd, mem_strdup(name)};
}

/* A path that ends early is no error here: the code that reads the handler reports it. */
static void watch_way(struct handlers_folder *f, const char *path)
{
    const struct path_visitor visitor = {.lookup = on_lookup, .arg = f};
    struct err ignored = ERR_INIT;

    if (path[0] == '/')
        (void)path_walk(path, &visitor, &ignored);
}

static void watch_links(struct handlers_folder *f, const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;

    while (d != NULL && (entry = readdir(d)) != NULL) {
        CLEANUP_FREE char *path = NULL;

        if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
            continue;
        path = mem_printf("%s/%s", dir, entry->d_name);
        watch_way(f, path);
    }
    if (d != NULL)
        (void)closedir(d);
}

static void forget_watched(struct handlers_folder *f)
{
    for (size_t i = 0; i < f->nwatched; i++)
        free(f->watched[i].name);
    free(f->watched);
    f->watched = NULL;
    f->nwatched = 0;
}

static void tell_blind(struct handlers_folder *f)
{
    if (f->blind[0] != '\0' && strcmp(f->blind, f->told) != 0)
        log_warn("event=not-watched reason=\"%s\" effect=\"changes there are seen by HUP only\"",
                 f->blind);
    memcpy(f->told, f->blind, sizeof(f->told));
}

void handlers_folder_watch(struct handlers_folder *f, const char *dir, const char *const *files)
{
    CLEANUP_FREE int *before = f->wds;
    size_t nbefore = f->nwds;

    f->wds = NULL;
    f->nwds = 0;
    f->blind[0] = '\0';
    forget_watched(f);
    watch_way(f, dir);
    f->wd = dir[0] == '/' ? add(f, dir) : -1;
    if (f->wd >= 0)
        watch_links(f, dir);
    for (size_t i = 0; files[i] != NULL; i++)
        watch_way(f, files[i]);
    /* Folders that are still watched have kept their descriptors. */
    for (size_t i = 0; i < nbefore; i++) {
        if (!has(f->wds, f->nwds, before[i]))
            (void)inotify_rm_watch(f->fd, before[i]);
    }
    tell_blind(f);
}

void handlers_folder_again(struct handlers_folder *f)
{
    loop_timer_set(f->timer, AGAIN_MS);
}

void handlers_folder_free(struct handlers_folder *f)
{
    if (f == NULL)
        return;
    loop_fd_free(f->watch);
    loop_timer_free(f->timer);
    (void)close(f->fd);
    forget_watched(f);
    free(f->wds);
    free(f);
}
