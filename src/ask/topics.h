/* All subscriptions of the namespace, read page by page. */
#ifndef LATER_ASK_TOPICS_H
#define LATER_ASK_TOPICS_H

#include "ask/ask.h"
#include "redis/reply.h"

/* The elements of a row, as of later_topics. */
enum { TOPICS_TOPIC, TOPICS_QUEUE, TOPICS_ORIGIN, TOPICS_PUBLISHED };

struct topics {
    const struct reply **row; /* sorted by topic and queue, each once */
    size_t n;
    struct reply **page; /* the replies that have them */
    size_t npages;
};

/* Read them. 0, or -1 with err. Call topics_done in any case. */
int topics_read(struct topics *t, struct ask_server *s, struct err *err);
void topics_done(struct topics *t);

#endif
