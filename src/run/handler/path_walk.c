#include "run/handler/path_walk.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "run/handler/program.h"

#define LINKS_MAX 40 /* the kernel's limit */

struct walk {
    const struct path_visitor *visitor;
    struct buf at;   /* folders walked so far, without symlinks; empty: the root */
    struct buf rest; /* the part of the path still to walk */
    int links;
};

static void pop(struct buf *at)
{
    const char *slash = at->len > 0 ? strrchr(buf_str(at), '/') : NULL;

    if (slash != NULL)
        at->len = (size_t)(slash - at->data);
    if (at->data != NULL)
        at->data[at->len] = '\0';
}

static int follow(struct walk *w, struct err *err)
{
    char target[PATH_MAX];
    ssize_t n = readlink(buf_str(&w->at), target, sizeof(target) - 1);
    struct buf rest = BUF_INIT;

    if (n < 0)
        return err_sys(err, errno, "%s", program_shown(buf_str(&w->at)));
    if (++w->links > LINKS_MAX)
        return err_set(err, ERR_CONFIG, "%s: too many symlinks", program_shown(buf_str(&w->at)));
    if (n > 0 && target[0] == '/')
        buf_clear(&w->at);
    else
        pop(&w->at);
    buf_add(&rest, target, (size_t)n);
    buf_puts(&rest, "/");
    buf_add(&rest, w->rest.data, w->rest.len);
    buf_done(&w->rest);
    w->rest = rest;
    return 0;
}

/* Walk one name of the rest. */
static int step(struct walk *w, const char *name, size_t n, struct err *err)
{
    struct stat st;

    if (n == 0 || (n == 1 && name[0] == '.'))
        return 0;
    if (n == 2 && memcmp(name, "..", 2) == 0) {
        pop(&w->at);
        return 0;
    }
    if (w->visitor->lookup != NULL)
        w->visitor->lookup(w->visitor->arg, w->at.len > 0 ? buf_str(&w->at) : "/", name);
    buf_puts(&w->at, "/");
    buf_add(&w->at, name, n);
    if (lstat(buf_str(&w->at), &st) != 0) {
        int e = errno;

        (void)err_set(err, ERR_CONFIG, "%s: %s", program_shown(buf_str(&w->at)), strerror(e));
        return -1;
    }
    if (w->visitor->entry != NULL &&
        w->visitor->entry(w->visitor->arg, buf_str(&w->at), &st, err) != 0)
        return -1;
    return S_ISLNK(st.st_mode) ? follow(w, err) : 0;
}

static int walk(struct walk *w, struct err *err)
{
    while (w->rest.len > 0) {
        char name[NAME_MAX + 1];
        size_t n = strcspn(buf_str(&w->rest), "/");

        if (n > NAME_MAX)
            return err_set(err, ERR_CONFIG, "a name in the path is longer than %d bytes", NAME_MAX);
        memcpy(name, w->rest.data, n);
        name[n] = '\0';
        buf_drop(&w->rest, n + 1);
        if (step(w, name, n, err) != 0)
            return -1;
    }
    return 0;
}

int path_walk(const char *path, const struct path_visitor *visitor, struct err *err)
{
    struct walk w = {visitor, BUF_INIT, BUF_INIT, 0};
    int rc;

    buf_puts(&w.rest, path);
    rc = walk(&w, err);
    buf_done(&w.at);
    buf_done(&w.rest);
    return rc;
}
