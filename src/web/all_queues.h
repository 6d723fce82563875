/*
 * All queues of the namespace, the worst first. Redis tells them by pages of names, and one look at
 * ten thousand takes a second. So a walk over them goes on by a few pages with each question that
 * needs it, and what the last walk saw is shown meanwhile. Without a question nothing is asked.
 */
#ifndef LATER_WEB_ALL_QUEUES_H
#define LATER_WEB_ALL_QUEUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "web/call.h"

#define ALL_QUEUES_MAX 10000 /* a namespace has no more names */
#define ALL_QUEUES_PAGES 20  /* at once, for who looks at queues */

struct all_queues *all_queues_new(void);
void all_queues_free(struct all_queues *q);

struct known_queues {
    json_t *rows; /* as stats_queue_to_json has them */
    bool is_part; /* there are more: no walk has ended yet, or it saw ALL_QUEUES_MAX */
    int64_t dead; /* jobs of all rows */
};

/*
 * Go on with the walk, if it is time: it begins each ten seconds at most, that of a single page
 * with each question. most: pages of fifty queues that are read now, each of which takes Redis
 * a millisecond. What is known: rows live until the next call. NULL with call->err.
 */
const struct known_queues *all_queues_look(struct api_call *call, int most);

#endif
