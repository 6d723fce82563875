/*
 * The scheduler's word to Redis on a job whose attempt has ended, or that may not start.
 * serve/policy.h decides it after a run; the scheduler releases or buries a job that it does not
 * start.
 */
#ifndef LATER_STORE_VERDICT_H
#define LATER_STORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct verdict {
    enum store_verb verb;
    int64_t amount; /* see struct store_result */
    int code;
    char text[256];
    bool has_result;  /* DONE: what goes with it is the payload of the next job of its chain */
    bool is_error;    /* worth a warning in the log */
    bool is_host_ill; /* claims should back off */
};

#endif
