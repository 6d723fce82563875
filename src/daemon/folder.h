/*
 * Tells when the handlers folder changes, a moment after the last change of a burst (inotify(7)).
 */
#ifndef LATER_DAEMON_FOLDER_H
#define LATER_DAEMON_FOLDER_H

#include "loop/loop.h"

struct folder;
typedef void folder_f(void *arg);
/* A folder that is not there (yet) is looked for again each time folder_watch is called. */
struct folder *folder_new(struct loop *loop, folder_f *changed,
                          void *arg); /* NULL: no descriptor */
void folder_watch(struct folder *f, const char *path);
/* Tell of a change in a second, whatever happens. */
void folder_again(struct folder *f);
void folder_free(struct folder *f);

#endif
