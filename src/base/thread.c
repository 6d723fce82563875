#include "base/thread.h"

#include <signal.h>

/* A thread inherits the mask of the one that makes it. */
int thread_start(void *(*run)(void *), void *arg, size_t stack_bytes, pthread_t *ret)
{
    pthread_attr_t attr;
    pthread_t id;
    sigset_t all, was;
    int e;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, stack_bytes);
    if (ret == NULL)
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    e = pthread_create(ret != NULL ? ret : &id, &attr, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    (void)pthread_attr_destroy(&attr);
    return e;
}
