/*
 * Can the kernel start this file? Checked before a handler is accepted, and again after a failed
 * start, because errno alone does not tell a missing interpreter, Windows line ends and a missing
 * file apart: all are ENOENT. Pure except for the files it reads; any thread.
 */
#ifndef LATER_RUN_HANDLER_PROGRAM_H
#define LATER_RUN_HANDLER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* 0: no reason against it was found. -1: err has the reason and the cure (code CONFIG). */
int program_check(const char *path, struct err *err);

/* Whether a file that can be read begins as a script (#!) or an ELF executable does. */
bool program_has_magic(const char *path);

/* The end of a path, as much as fits into a message. Points into path. */
const char *program_shown(const char *path);

#define PROGRAM_FIRST_BYTES 256 /* what the kernel reads */

enum program_kind {
    PROGRAM_SCRIPT,   /* #! and an interpreter */
    PROGRAM_OTHER,    /* a binary; the kernel decides */
    PROGRAM_EMPTY,    /* no bytes */
    PROGRAM_TEXT,     /* looks like a script without an interpreter line */
    PROGRAM_BOM,      /* #! after a UTF-8 byte order mark */
    PROGRAM_CRLF,     /* an interpreter line that ends in CR LF */
    PROGRAM_NAMELESS, /* #! without a name */
    PROGRAM_LONG,     /* the interpreter's name does not fit into PROGRAM_FIRST_BYTES */
};

/*
 * Classify the first n (at most PROGRAM_FIRST_BYTES) bytes of a file. For SCRIPT, interpreter gets
 * the interpreter's name, read as the kernel does; else it is "". Pure.
 */
enum program_kind program_first(const char *first, size_t n, char interpreter[PROGRAM_FIRST_BYTES]);

#endif
