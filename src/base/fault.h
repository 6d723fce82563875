/*
 * The class of a failed call of Redis. It decides what the worker does next (doc/architecture.md
 * has the table). redis/error_reply.h sorts error replies into these classes.
 */
#ifndef LATER_BASE_FAULT_H
#define LATER_BASE_FAULT_H

enum fault {
    FAULT_NONE,
    FAULT_LINK,    /* the link broke or did not answer; it is unknown what calls under way did */
    FAULT_WAIT,    /* LOADING, BUSY, too many clients, TRYAGAIN: Redis cannot serve us now */
    FAULT_FULL,    /* OOM, MISCONF, NOREPLICAS: no writes now; results wait, claims stop */
    FAULT_MOVED,   /* READONLY, MASTERDOWN, UNBLOCKED, MOVED …: not a master; connect anew */
    FAULT_LIBRARY, /* the library is missing or lacks a function: load it */
    FAULT_DENIED,  /* no right, wrong password: only an operator can cure it */
    FAULT_TYPE,    /* one of our keys holds a foreign type */
    FAULT_CALL,    /* the library refused the call (ELATER_…), or gave an unknown answer */
};

/* One lower-case word, for the log. */
const char *fault_name(enum fault fault);

#endif
