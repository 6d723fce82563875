/*
 * The lines of a crontab, of a user or of the system. Pure.
 *
 * An entry is five fields or @daily, in a system's crontab then a user, then the command. A command
 * goes up to the first % that has no backslash before it; what follows is its standard input. A
 * line NAME=VALUE sets a variable for the entries below it.
 */
#ifndef LATER_CLI_BULK_CRONTAB_H
#define LATER_CLI_BULK_CRONTAB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define CRONTAB_TEXT_MAX 1024

enum crontab_kind { CRONTAB_NOTHING, CRONTAB_VARIABLE, CRONTAB_ENTRY };

struct crontab_line {
    enum crontab_kind kind;
    char name[64];                     /* of a variable */
    char value[CRONTAB_TEXT_MAX];      /* of it, without quotes */
    char expression[CRONTAB_TEXT_MAX]; /* of an entry, with single spaces */
    char user[64];                     /* "" in a user's crontab */
    char command[CRONTAB_TEXT_MAX];    /* with \% as % */
    bool has_input;                    /* a % cut something off the command */
};

/* 0, or -1 with code FORMAT. text: one line without its line end. */
int crontab_parse(const char *text, bool is_system, struct crontab_line *ret, struct err *err);

#endif
