/*
 * Can anybody but root and us change what a path leads to?
 *
 * Walks the path the way the kernel does, symlink by symlink, so every folder on the way as given
 * and on the way of each target is looked at. Any thread; no state.
 */
#ifndef LATER_RUN_HANDLER_PERMS_H
#define LATER_RUN_HANDLER_PERMS_H

#include "base/err.h"

/*
 * 0: no. -1: err says which file or folder can be changed, by whom, and the cure (code CONFIG).
 * path must be absolute and exist.
 */
int perms_check(const char *path, struct err *err);

#endif
