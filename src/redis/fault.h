/*
 * What an error reply means for us (faults.md 1.2 names them; doc/architecture.md has the table).
 */
#ifndef LATER_REDIS_FAULT_H
#define LATER_REDIS_FAULT_H

#include "base/err.h"

enum fault {
    FAULT_NONE,
    FAULT_LINK,    /* the connection broke or did not answer: what was under way is unknown */
    FAULT_WAIT,    /* LOADING, BUSY, too many clients, TRYAGAIN: the server is there, not now */
    FAULT_FULL,    /* OOM, MISCONF, NOREPLICAS: it takes no writes; results wait, claims stop */
    FAULT_MOVED,   /* READONLY, MASTERDOWN, UNBLOCKED, MOVED …: not the master: connect anew */
    FAULT_LIBRARY, /* the function library is missing or too old: load it */
    FAULT_DENIED,  /* no right, wrong password: only an operator can cure it */
    FAULT_TYPE,    /* a foreign value at one of our keys */
    FAULT_CALL,    /* the library refused the call (ELATER_…) or did not understand it */
};

enum fault fault_of(const char *error_text);
const char *fault_name(enum fault fault);
/* Fill err for a person: code and text with the cure. */
int fault_err(struct err *err, const char *error_text);

#endif
