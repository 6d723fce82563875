/*
 * The error object: what went wrong, in words for a person, with a code for the program.
 *
 * A function that can fail returns -1 (or NULL) and fills the struct err that its caller owns.
 * Nothing is allocated. Lower layers only return errors; worker/, serve/, daemon/ and cli/ log or
 * print them. Any thread.
 */
#ifndef LATER_BASE_ERR_H
#define LATER_BASE_ERR_H

#include <stddef.h>

enum err_code {
#define ERR(name, exit_status) ERR_##name,
#include "base/err.def"
#undef ERR
};

struct err {
    enum err_code code;
    int errnum; /* errno of a failed system call, else 0 */
    char text[256];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        ERR_NONE, 0, ""                                                                            \
    }

/*
 * Each fills *err (which may be NULL) and has the value -1, so that one line can return it:
 *   err_set(err, code, fmt, …)     the message, printf-style
 *   err_sys(err, errnum, fmt, …)   the same, with ": <text of errnum>" appended; code SYSTEM
 *   err_wrap(err, fmt, …)          puts "<message>: " before the text of *err; keeps the code
 * They are macros so that compilers and analyzers see the -1.
 */
#define err_set(err, code, ...) (err_fill((err), (code), __VA_ARGS__), -1)
#define err_sys(err, errnum, ...) (err_fill_sys((err), (errnum), __VA_ARGS__), -1)
#define err_wrap(err, ...) (err_prefix((err), __VA_ARGS__), -1)

void err_fill(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void err_fill_sys(struct err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Exit status (sysexits.h) of a program that ends with this error. */
int err_exit_status(const struct err *err);

#endif
