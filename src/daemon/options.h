/*
 * The command line of laterd, as one table with a row for each option. The parser, the help, the
 * manual page and the completion are made from it.
 */
#ifndef LATER_DAEMON_OPTIONS_H
#define LATER_DAEMON_OPTIONS_H

#include "base/err.h"

struct daemon_option {
    const char *name; /* without the dashes */
    char letter;      /* NUL: there is none */
    const char *arg;  /* what its value is called in the help; NULL: it has none */
    const char *prose;
};

/* Ended by a NULL name. */
extern const struct daemon_option daemon_options[];

enum daemon_mode { DAEMON_RUN, DAEMON_CHECK, DAEMON_PRINT, DAEMON_VERSION, DAEMON_HELP };

struct options {
    const char *config; /* within argv; NULL: not given */
    enum daemon_mode mode;
};

/* 0, or -1 with code USAGE and, for an unknown word, the nearest option. */
int options_parse(struct options *ret, int argc, char **argv, struct err *err);

/* The help, on stdout. config: the first default of --config. */
void options_help(const char *config);

#endif
