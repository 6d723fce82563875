/*
 * The scheduler's word to Redis on a job whose attempt has ended, or that may not start.
 * serve/policy.h decides it after a run; the scheduler releases or buries a job that it does not
 * start.
 */
#ifndef LATER_STORE_VERDICT_H
#define LATER_STORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "job/children.h"
#include "store/store.h"

struct verdict {
    enum store_verb verb;
    int64_t amount; /* see struct store_result */
    int code;
    char reason[256];
    bool has_result;  /* DONE: what goes with it is the payload of the next job of its chain */
    bool is_error;    /* worth a warning in the log */
    bool is_host_ill; /* claims should back off */
};

/* What goes with a verdict. Empty when zeroed. */
struct verdict_data {
    const char *output; /* its last bytes; with has_result the result of the handler instead */
    size_t output_len;
    const struct children *children; /* jobs that are added if it is done; NULL: none */
};

#endif
