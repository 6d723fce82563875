/*
 * Which program serves a queue, and whether it may be trusted.
 *
 * A handler is refused, with its name and the cure, when it is missing, not a regular file, not
 * executable, or has an interpreter line that cannot work (missing interpreter, CRLF). It is also
 * refused when it or a folder above it (symlinks followed, both chains checked) belongs to another
 * user than root or us, or can be written by others (root-owned sticky folders pass). Stateless;
 * main thread.
 */
#ifndef LATER_RUN_HANDLER_HANDLER_H
#define LATER_RUN_HANDLER_HANDLER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum handler_check { HANDLER_CHECK_STRICT, HANDLER_CHECK_WARN, HANDLER_CHECK_OFF };

/*
 * Check one file. 0: fine. -1: refused, err says what and how to cure it (code CONFIG).
 * With HANDLER_CHECK_WARN wrong permissions alone return 0 and leave their text in *err (err->code
 * != NONE); other errors still refuse. path must be absolute.
 */
int handler_check(const char *path, enum handler_check how, struct err *err);

/* The same for a shared object, which needs no execute permission. */
int handler_check_object(const char *path, enum handler_check how, struct err *err);

struct handler_file {
    char queue[65]; /* name without extension */
    char *path;     /* absolute */
};

struct handler_dir {
    struct handler_file *at; /* sorted by queue */
    size_t n;
};

/*
 * Called by handler_scan for a file that it skips, with the reason. With HANDLER_CHECK_WARN also
 * for a file that is listed in spite of its permissions: then the reason starts with "warning: ".
 * So does that of a script or program without any x bit, which is not listed.
 */
typedef void handler_refused_f(void *arg, const char *file, const char *reason);

/*
 * List the executables of a folder. Skipped without a report: hidden files, editors' backups
 * (name~, #name#, .bak .orig .rej .swp .dpkg-* .ucf-* .rpm*), folders, files without any x bit that
 * do not begin as a script or program does. Reported: names that are no queue name, two files for
 * one queue (both refused), files that handler_check refuses. -1 only when dir is not absolute,
 * cannot be read or fails the permission check (with HANDLER_CHECK_WARN: 0, and the text about the
 * folder is in *err).
 */
int handler_scan(const char *dir, enum handler_check how, handler_refused_f *refused, void *arg,
                 struct handler_dir *ret, struct err *err);
/* Free what handler_scan has stored in *d. */
void handler_dir_done(struct handler_dir *d);

#endif
