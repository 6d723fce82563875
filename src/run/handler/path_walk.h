/*
 * Visits every entry that a path leads through, in the order of the kernel's lookups, following
 * symlinks. For code that has to check all entries, or to notice when one leads elsewhere.
 * Stateless; any thread.
 */
#ifndef LATER_RUN_HANDLER_PATH_WALK_H
#define LATER_RUN_HANDLER_PATH_WALK_H

#include <sys/stat.h>

#include "base/err.h"

struct path_visitor {
    /* Before name is looked up in dir, whose own path has no symlinks. NULL is fine. */
    void (*lookup)(void *arg, const char *dir, const char *name);
    /* path exists; it may be a symlink. Return -1 with err to end the walk. NULL is fine. */
    int (*entry)(void *arg, const char *path, const struct stat *st, struct err *err);
    void *arg;
};

/* path starts at the root. 0, or -1: err says at which entry the walk failed (code CONFIG). */
int path_walk(const char *path, const struct path_visitor *visitor, struct err *err);

#endif
