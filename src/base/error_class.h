/*
 * The class of the error with which a call of Redis failed. It decides what the worker does next
 * (doc/architecture.md has the table). redis/error_reply.h sorts error replies into these classes.
 */
#ifndef LATER_BASE_ERROR_CLASS_H
#define LATER_BASE_ERROR_CLASS_H

enum error_class {
    ERROR_CLASS_NONE,
    ERROR_CLASS_LINK,  /* it broke or did not answer; it is unknown what calls under way did */
    ERROR_CLASS_WAIT,  /* LOADING, BUSY, too many clients, TRYAGAIN: Redis cannot serve us now */
    ERROR_CLASS_FULL,  /* OOM, MISCONF, NOREPLICAS: no writes; results wait, claims stop */
    ERROR_CLASS_MOVED, /* READONLY, MASTERDOWN, UNBLOCKED, MOVED …: not a master; connect anew */
    ERROR_CLASS_LIBRARY, /* the library is missing or lacks a function: load it */
    ERROR_CLASS_DENIED,  /* no right, wrong password: only an operator can cure it */
    ERROR_CLASS_UNFIT,   /* the server lacks what laterd needs: only another server cures it */
    ERROR_CLASS_TYPE,    /* one of our keys holds a foreign type */
    ERROR_CLASS_CALL,    /* the library refused the call (ELATER_…), or gave an unknown answer */
};

/* One lower-case word, for the log. */
const char *error_class_name(enum error_class class);

#endif
