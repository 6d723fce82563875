#include "run/exec/exec_slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

struct exec_slot {
    int event;
    atomic_llong taken_us, said_us; /* the job's first and last sign of life; 0: none */
    pthread_mutex_t mu;             /* protects what follows but the buffer; innermost lock */
    uint64_t serial;
    bool armed;
    unsigned asked;
    char buffer[EXEC_SLOT_BUFFER];
};

struct exec_slot *exec_slot_new(void)
{
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct exec_slot *slot;

    if (event < 0)
        return NULL;
    slot = mem_new(sizeof(*slot));
    slot->event = event;
    (void)pthread_mutex_init(&slot->mu, NULL);
    return slot;
}

void exec_slot_free(struct exec_slot *slot)
{
    if (slot == NULL)
        return;
    (void)close(slot->event);
    (void)pthread_mutex_destroy(&slot->mu);
    free(slot);
}

/* Called under the lock, so that the eventfd and `asked` always agree. */
static unsigned forget(struct exec_slot *slot)
{
    unsigned asked = slot->asked;
    uint64_t n;

    slot->asked = 0;
    if (asked != 0)
        (void)!read(slot->event, &n, sizeof(n));
    return asked;
}

uint64_t exec_slot_arm(struct exec_slot *slot)
{
    uint64_t serial;

    (void)pthread_mutex_lock(&slot->mu);
    (void)forget(slot);
    atomic_store(&slot->taken_us, 0);
    atomic_store(&slot->said_us, 0);
    serial = ++slot->serial;
    slot->armed = true;
    (void)pthread_mutex_unlock(&slot->mu);
    return serial;
}

void exec_slot_say(struct exec_slot *slot, struct mono when)
{
    if (atomic_load_explicit(&slot->taken_us, memory_order_relaxed) == 0)
        atomic_store_explicit(&slot->taken_us, when.us, memory_order_relaxed);
    atomic_store_explicit(&slot->said_us, when.us, memory_order_relaxed);
}

void exec_slot_heard(const struct exec_slot *slot, struct mono *ret_taken, struct mono *ret_said)
{
    ret_taken->us = atomic_load_explicit(&slot->taken_us, memory_order_relaxed);
    ret_said->us = atomic_load_explicit(&slot->said_us, memory_order_relaxed);
}

void exec_slot_disarm(struct exec_slot *slot)
{
    (void)pthread_mutex_lock(&slot->mu);
    (void)forget(slot);
    slot->armed = false;
    (void)pthread_mutex_unlock(&slot->mu);
}

void exec_slot_control(struct exec_slot *slot, uint64_t serial, enum exec_control what)
{
    static const uint64_t one = 1;

    (void)pthread_mutex_lock(&slot->mu);
    if (slot->armed && slot->serial == serial) {
        /* A write fails only on a full counter, and forget() empties it each time. */
        while (slot->asked == 0 && write(slot->event, &one, sizeof(one)) < 0)
            if (errno != EINTR)
                abort();
        slot->asked |= (unsigned)what;
    }
    (void)pthread_mutex_unlock(&slot->mu);
}

int exec_slot_fd(const struct exec_slot *slot)
{
    return slot->event;
}

unsigned exec_slot_take(struct exec_slot *slot)
{
    unsigned asked;

    (void)pthread_mutex_lock(&slot->mu);
    asked = forget(slot);
    (void)pthread_mutex_unlock(&slot->mu);
    return asked;
}

char *exec_slot_buffer(struct exec_slot *slot)
{
    return slot->buffer;
}
