/*
 * Can the kernel start this file? Asked before a handler is accepted, and again when a start
 * failed, because errno alone is no help: a missing interpreter, Windows line ends and a missing
 * file are all ENOENT. Pure but for the files it looks at; any thread.
 */
#ifndef LATER_RUN_HANDLER_PROGRAM_H
#define LATER_RUN_HANDLER_PROGRAM_H

#include <stddef.h>

#include "base/err.h"

/* 0: nothing speaks against it. -1: err says what does and the cure (code CONFIG). */
int program_check(const char *path, struct err *err);

/* As much of the end of a path as fits into a message. */
const char *program_shown(const char *path);

#define PROGRAM_HEAD_BYTES 256 /* what the kernel looks at */

enum program_kind {
    PROGRAM_SCRIPT,   /* #! and an interpreter */
    PROGRAM_OTHER,    /* a binary: the kernel's business */
    PROGRAM_EMPTY,    /* no byte */
    PROGRAM_TEXT,     /* looks like a script without an interpreter line */
    PROGRAM_BOM,      /* #! behind a UTF-8 byte order mark */
    PROGRAM_CRLF,     /* an interpreter line that ends in CR LF */
    PROGRAM_NAMELESS, /* #! and nothing */
    PROGRAM_LONG,     /* the interpreter's name does not fit into PROGRAM_HEAD_BYTES */
};

/*
 * What the first n (at most PROGRAM_HEAD_BYTES) bytes of a file say. For SCRIPT, interpreter (as
 * large as the head) is its name, read the way the kernel does. Pure.
 */
enum program_kind program_head(const char *head, size_t n, char interpreter[PROGRAM_HEAD_BYTES]);

#endif
