/*
 * Why a call of Redis failed, as far as it matters for what to do next (doc/architecture.md has the
 * table). redis/error_reply.h tells which fault an error reply is.
 */
#ifndef LATER_BASE_FAULT_H
#define LATER_BASE_FAULT_H

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

/* One lower-case word, for the log. */
const char *fault_name(enum fault fault);

#endif
