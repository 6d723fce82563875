#include "daemon/folder.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"

#define SETTLE_MS 150 /* editors and package managers write, rename, chmod: one rescan will do */
#define AGAIN_MS 1000
#define MASK                                                                                       \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB |            \
     IN_MOVE_SELF | IN_DELETE_SELF)

struct folder {
    int fd, wd;
    struct loop_fd *watch;
    struct loop_timer *timer;
};

static void on_readable(void *arg, int events)
{
    struct folder *f = arg;
    char buf[4096] __attribute__((aligned(8)));

    (void)events;
    /* What changed does not matter: the whole folder is read again. Not put off by the next change:
     * where something is written all the time the folder would never be read. */
    while (read(f->fd, buf, sizeof(buf)) > 0)
        ;
    if (!loop_timer_is_set(f->timer))
        loop_timer_set(f->timer, SETTLE_MS);
}

struct folder *folder_new(struct loop *loop, folder_f *changed, void *arg)
{
    struct folder *f = mem_new(sizeof(*f));

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

void folder_watch(struct folder *f, const char *path)
{
    int wd;

    if (f == NULL)
        return;
    /* The same folder gives the same number; removing it first would wake us for nothing. */
    wd = path[0] != '\0' ? inotify_add_watch(f->fd, path, MASK) : -1;
    if (f->wd >= 0 && f->wd != wd)
        (void)inotify_rm_watch(f->fd, f->wd);
    f->wd = wd;
}

void folder_again(struct folder *f)
{
    loop_timer_set(f->timer, AGAIN_MS);
}

void folder_free(struct folder *f)
{
    if (f == NULL)
        return;
    loop_fd_free(f->watch);
    loop_timer_free(f->timer);
    (void)close(f->fd);
    free(f);
}
