/*
 * Messages from any thread to the loop: a locked list and an eventfd that is written only when the
 * list was empty, so a burst rouses the loop once. Order is kept.
 */
#ifndef LATER_LOOP_MAILBOX_H
#define LATER_LOOP_MAILBOX_H

#include "loop/loop.h"

/* Embed it as the first member of a message struct. */
struct mail {
    struct mail *next;
};

struct mailbox;
/* Called on the loop for each message; the callee owns the message. */
typedef void mailbox_f(void *arg, struct mail *mail);

/* Called once after each burst of messages, for work that the whole burst needs only once. May be
 * NULL. */
typedef void mailbox_rest_f(void *arg);

struct mailbox *mailbox_new(struct loop *loop, mailbox_f *cb, mailbox_rest_f *rest,
                            void *arg); /* NULL: no fd */
/* Delivers the messages that are left. No thread may post any more. */
void mailbox_free(struct mailbox *box);
/* Any thread. Takes ownership of the message. */
void mailbox_post(struct mailbox *box, struct mail *mail);

#endif
