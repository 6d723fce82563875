/*
 * The way to a file: every entry that a path leads through, in the order in which the kernel looks
 * them up, symlinks followed. For whoever has to check all of them, or to notice when one of them
 * leads elsewhere. No state; any thread.
 */
#ifndef LATER_RUN_HANDLER_PATH_WALK_H
#define LATER_RUN_HANDLER_PATH_WALK_H

#include <sys/stat.h>

#include "base/err.h"

struct path_visitor {
    /* name is about to be looked up in dir, whose own path has no symlinks. NULL is fine. */
    void (*look)(void *arg, const char *dir, const char *name);
    /* It is there, maybe as a symlink. -1 with err ends the walk. NULL is fine. */
    int (*entry)(void *arg, const char *path, const struct stat *st, struct err *err);
    void *arg;
};

/* path is taken from the root on. 0, or -1: err says where the way ends (code CONFIG). */
int path_walk(const char *path, const struct path_visitor *visitor, struct err *err);

#endif
