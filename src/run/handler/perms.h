/*
 * Can another user than root and us change what a path leads to?
 *
 * Walks the path as the kernel does, symlink by symlink. So it checks every folder of the path and
 * of each symlink's target. Any thread; stateless.
 */
#ifndef LATER_RUN_HANDLER_PERMS_H
#define LATER_RUN_HANDLER_PERMS_H

#include "base/err.h"

/*
 * 0: no. -1: err says which file or folder, who can change it, and the cure (code CONFIG).
 * path must be absolute and exist.
 */
int perms_check(const char *path, struct err *err);

#endif
