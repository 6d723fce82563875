/*
 * Tells when the handlers change, a moment after the last change of a burst (inotify(7)): what is
 * in the handlers folder, the ways to it and to other handlers, where they lead through symlinks,
 * and what is missing on them so far. Main thread.
 *
 * Not heard of: what is mounted over a folder, and changes in one that we may not read.
 */
#ifndef LATER_SERVE_HANDLERS_FOLDER_H
#define LATER_SERVE_HANDLERS_FOLDER_H

#include "loop/loop.h"

struct handlers_folder;
typedef void handlers_folder_f(void *arg);
struct handlers_folder *handlers_folder_new(struct loop *loop, handlers_folder_f *changed,
                                            void *arg); /* NULL: no descriptor */
/* From now on look at this folder ("" for none), and at these handlers elsewhere (NULL-ended). To
 * be called before they are read, and again with each change: the ways may be others then. */
void handlers_folder_watch(struct handlers_folder *f, const char *dir, const char *const *files);
/* Tell of a change in a second, whatever happens. */
void handlers_folder_again(struct handlers_folder *f);
void handlers_folder_free(struct handlers_folder *f);

#endif
