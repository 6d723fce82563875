/*
 * Messages from any thread to the loop: a locked list and an eventfd that is written only when the
 * list was empty, so a burst wakes the loop once. Order is kept.
 */
#ifndef LATER_LOOP_MAILBOX_H
#define LATER_LOOP_MAILBOX_H

#include "loop/loop.h"

/* Embed first in a message struct. */
struct mail {
    struct mail *next;
};

struct mailbox;
/* Called on the loop for each message; the message is the callee's to free. */
typedef void mailbox_f(void *arg, struct mail *mail);

/* Called when all that was there at once has been handed over; NULL: not. What a burst of messages
 * asks for together is done here, once. */
typedef void mailbox_rest_f(void *arg);

struct mailbox *mailbox_new(struct loop *loop, mailbox_f *cb, mailbox_rest_f *rest,
                            void *arg); /* NULL: no fd */
/* Messages not delivered are handed to the callback first. No thread may post any more. */
void mailbox_free(struct mailbox *box);
/* Any thread. */
void mailbox_post(struct mailbox *box, struct mail *mail);

#endif
