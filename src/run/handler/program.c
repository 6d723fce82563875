#include "run/handler/program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#define SHOWN_BYTES 80 /* a path has to fit twice into a message of 256 bytes */
#define CHAIN_MAX 5    /* interpreters that are scripts themselves; the kernel's limit */

const char *program_shown(const char *path)
{
    size_t n = strlen(path);

    return n > SHOWN_BYTES ? path + (n - SHOWN_BYTES) : path;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Only bytes that occur in text of any encoding? A binary format has others near its start. */
static bool is_text(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
            return false;
    }
    return true;
}

static enum program_kind interpreter_line(const char *first, size_t n,
                                          char interpreter[PROGRAM_FIRST_BYTES])
{
    const char *lf = memchr(first, '\n', n);
    size_t end = lf != NULL ? (size_t)(lf - first) : n;
    size_t from = 2, to;

    if (lf != NULL && first[end - 1] == '\r')
        return PROGRAM_CRLF;
    while (from < end && is_blank(first[from]))
        from++;
    for (to = from; to < end && !is_blank(first[to]) && first[to] != '\0';)
        to++;
    if (to == from)
        return PROGRAM_NAMELESS;
    /* The name reaches the end of what the kernel reads, so it may be longer. */
    if (to >= PROGRAM_FIRST_BYTES - 1)
        return PROGRAM_LONG;
    memcpy(interpreter, first + from, to - from);
    interpreter[to - from] = '\0';
    return PROGRAM_SCRIPT;
}

enum program_kind program_first(const char *first, size_t n, char interpreter[PROGRAM_FIRST_BYTES])
{
    static const char bom[] = "\xef\xbb\xbf#!";

    interpreter[0] = '\0';
    if (n == 0)
        return PROGRAM_EMPTY;
    if (n >= 2 && memcmp(first, "#!", 2) == 0)
        return interpreter_line(first, n, interpreter);
    if (n >= sizeof(bom) - 1 && memcmp(first, bom, sizeof(bom) - 1) == 0)
        return PROGRAM_BOM;
    return is_text(first, n) ? PROGRAM_TEXT : PROGRAM_OTHER;
}

static int refuse_kind(const char *path, enum program_kind kind, struct err *err)
{
    const char *shown = program_shown(path);

    switch (kind) {
    case PROGRAM_EMPTY:
        return err_set(err, ERR_CONFIG, "%s is empty", shown);
    case PROGRAM_TEXT:
        return err_set(err, ERR_CONFIG,
                       "%s has no interpreter line: make its first line #!/bin/sh, or whatever it "
                       "is written in",
                       shown);
    case PROGRAM_BOM:
        return err_set(err, ERR_CONFIG,
                       "%s starts with a byte order mark instead of #!: LC_ALL=C sed -i "
                       "'1s/^...//' %s",
                       shown, shown);
    case PROGRAM_CRLF:
        return err_set(err, ERR_CONFIG, "%s has Windows line ends (CRLF): sed -i 's/\\r$//' %s",
                       shown, shown);
    case PROGRAM_NAMELESS:
        return err_set(err, ERR_CONFIG, "%s names no interpreter behind its #!", shown);
    case PROGRAM_LONG:
        return err_set(err, ERR_CONFIG, "%s has an interpreter line of more than %d bytes", shown,
                       PROGRAM_FIRST_BYTES - 1);
    case PROGRAM_SCRIPT:
    case PROGRAM_OTHER:
        break;
    }
    return 0;
}

/* ENOENT for a name that is a symlink: its target is missing. */
static int refuse_stat(const char *path, int errnum, struct err *err)
{
    struct stat st;

    if (errnum == ENOENT && lstat(path, &st) == 0)
        return err_set(err, ERR_CONFIG, "%s is a symlink to something that does not exist",
                       program_shown(path));
    if (errnum == ENOENT)
        return err_set(err, ERR_CONFIG, "%s does not exist", program_shown(path));
    return err_set(err, ERR_CONFIG, "%s: %s", program_shown(path), strerror(errnum));
}

static int refuse_access(const char *path, const struct stat *st, struct err *err)
{
    const char *shown = program_shown(path);
    struct statvfs fs;

    if ((st->st_mode & 0111) == 0)
        return err_set(err, ERR_CONFIG, "%s is not executable: chmod +x %s", shown, shown);
    if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC) != 0)
        return err_set(err, ERR_CONFIG, "%s is on a file system mounted noexec", shown);
    return err_set(err, ERR_CONFIG, "%s may not be executed by uid %d: chmod or chown it", shown,
                   (int)geteuid());
}

static int check_file(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return refuse_stat(path, errno, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s is a folder, not a program", program_shown(path));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s is not a regular file", program_shown(path));
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
        return refuse_access(path, &st, err);
    return 0;
}

/* Returns the bytes read. *readable is false for a file that may be executed but not read. */
static size_t read_first(const char *path, char first[PROGRAM_FIRST_BYTES], bool *readable)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd >= 0 ? pread(fd, first, PROGRAM_FIRST_BYTES, 0) : -1;

    *readable = n >= 0;
    return n > 0 ? (size_t)n : 0;
}

bool program_has_magic(const char *path)
{
    char first[PROGRAM_FIRST_BYTES];
    bool readable;
    size_t n = read_first(path, first, &readable);

    return (n >= 2 && memcmp(first, "#!", 2) == 0) || (n >= 4 && memcmp(first, "\177ELF", 4) == 0);
}

/* 0: fine. 1: a script, its interpreter has to be checked next. -1: refused, see err. */
static int check_one(const char *path, char interpreter[PROGRAM_FIRST_BYTES], struct err *err)
{
    char first[PROGRAM_FIRST_BYTES];
    enum program_kind kind;
    bool readable;
    size_t n;

    if (check_file(path, err) != 0)
        return -1;
    n = read_first(path, first, &readable);
    if (!readable)
        return 0;
    kind = program_first(first, n, interpreter);
    if (kind == PROGRAM_SCRIPT)
        return 1;
    return refuse_kind(path, kind, err);
}

static int refuse_interpreter(const char *path, const char *interpreter, struct err *err)
{
    CLEANUP_BUF struct buf name = BUF_INIT;
    struct stat st;

    text_escape(&name, interpreter, strlen(interpreter));
    if (interpreter[0] != '/')
        return err_set(err, ERR_CONFIG,
                       "%s: its interpreter %.60s is no absolute path: write #!/usr/bin/env %.40s",
                       program_shown(path), buf_str(&name), buf_str(&name));
    if (stat(interpreter, &st) != 0 && errno == ENOENT)
        return err_set(err, ERR_CONFIG,
                       "%s: its interpreter %.60s does not exist: install it or correct the first "
                       "line",
                       program_shown(path), buf_str(&name));
    return err_wrap(err, "%s: its interpreter", program_shown(path));
}

int program_check(const char *path, struct err *err)
{
    char interpreter[PROGRAM_FIRST_BYTES], current[PROGRAM_FIRST_BYTES];
    int found = check_one(path, interpreter, err);

    for (int depth = 0; found == 1; depth++) {
        if (depth == CHAIN_MAX)
            return err_set(err, ERR_CONFIG,
                           "%s: its interpreter is a script of a script without end: name a "
                           "program in its first line",
                           program_shown(path));
        memcpy(current, interpreter, sizeof(current));
        if (current[0] != '/')
            return refuse_interpreter(path, current, err);
        found = check_one(current, interpreter, err);
        if (found < 0)
            return refuse_interpreter(path, current, err);
    }
    return found;
}
