#include "loop/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

struct mailbox {
    struct loop_fd *watch;
    int fd;
    mailbox_f *cb;
    mailbox_rest_f *rest;
    void *arg;
    pthread_mutex_t mu; /* protects the list; nothing is called while it is held */
    struct mail *first;
    struct mail **end;
};

static struct mail *take_all(struct mailbox *box)
{
    struct mail *all;

    (void)pthread_mutex_lock(&box->mu);
    all = box->first;
    box->first = NULL;
    box->end = &box->first;
    (void)pthread_mutex_unlock(&box->mu);
    return all;
}

static void deliver(struct mailbox *box)
{
    struct mail *mail = take_all(box);

    if (mail == NULL)
        return;
    while (mail != NULL) {
        struct mail *next = mail->next;

        box->cb(box->arg, mail);
        mail = next;
    }
    if (box->rest != NULL)
        box->rest(box->arg);
}

static void on_ready(void *arg, int events)
{
    struct mailbox *box = arg;
    uint64_t n;

    (void)events;
    /* Read before the list is taken: a post after that finds an empty list and calls us again. */
    if (read(box->fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
        deliver(box);
}

struct mailbox *mailbox_new(struct loop *loop, mailbox_f *cb, mailbox_rest_f *rest, void *arg)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct mailbox *box;

    if (fd < 0)
        return NULL;
    box = mem_new(sizeof(*box));
    box->fd = fd;
    box->cb = cb;
    box->rest = rest;
    box->arg = arg;
    box->end = &box->first;
    (void)pthread_mutex_init(&box->mu, NULL);
    box->watch = loop_fd_new(loop, fd, LOOP_READ, on_ready, box);
    return box;
}

void mailbox_free(struct mailbox *box)
{
    if (box == NULL)
        return;
    deliver(box);
    loop_fd_free(box->watch);
    (void)close(box->fd);
    (void)pthread_mutex_destroy(&box->mu);
    free(box);
}

void mailbox_post(struct mailbox *box, struct mail *mail)
{
    static const uint64_t one = 1;
    bool was_empty;

    mail->next = NULL;
    (void)pthread_mutex_lock(&box->mu);
    was_empty = box->first == NULL;
    *box->end = mail;
    box->end = &mail->next;
    (void)pthread_mutex_unlock(&box->mu);
    /* If the counter is full the loop is awake already. An interrupted write must be repeated: no
     * later post would rouse the loop either. */
    while (was_empty && write(box->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}
