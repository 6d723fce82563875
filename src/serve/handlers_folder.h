/*
 * Tells when the handlers change (inotify(7)), a moment after the first change of a burst. It
 * watches the handlers folder, the folders on the paths to it and to handlers elsewhere, and where
 * symlinks on these paths lead. It also notices when a missing part of a path appears. Main thread.
 *
 * Not noticed: a file system that is mounted over a folder, and changes in a folder that we may not
 * read.
 */
#ifndef LATER_SERVE_HANDLERS_FOLDER_H
#define LATER_SERVE_HANDLERS_FOLDER_H

#include "loop/loop.h"

struct handlers_folder;
typedef void handlers_folder_f(void *arg);
struct handlers_folder *handlers_folder_new(struct loop *loop, handlers_folder_f *changed,
                                            void *arg); /* NULL: no descriptor */
/* From now on watch this folder ("" for none), and these handlers elsewhere (NULL-ended). Call it
 * before they are read, and again after each change: the paths may lead elsewhere then. */
void handlers_folder_watch(struct handlers_folder *f, const char *dir, const char *const *files);
/* Call `changed` in a second, whatever happens. */
void handlers_folder_again(struct handlers_folder *f);
void handlers_folder_free(struct handlers_folder *f);

#endif
