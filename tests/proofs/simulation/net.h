/*
 * The network between Redis and all others. On a connection calls travel in order, may be lost, may
 * arrive after the connection broke, or may be answered by an error. Redis itself may hang or be
 * down.
 *
 * A call that arrives is made on the real server at that virtual time and shown to the ledger.
 */
#ifndef LATER_TESTS_SIMULATION_NET_H
#define LATER_TESTS_SIMULATION_NET_H

#include <stdbool.h>
#include <stddef.h>

#include "plan.h"
#include "redis/reply.h"
#include "world.h"

struct conn;

typedef void net_answer_f(void *arg, const struct reply *reply);

void net_begin(const struct plan *plan);
void net_end(void);
unsigned net_calls(void); /* calls that were executed */

/* broken(arg) is called once, when the owner can notice the break, and never after net_close. */
struct conn *net_open(const struct owner *owner, event_f *broken, void *arg);
void net_close(struct conn *c);
/* The net frees arg with free(3) when the answer was delivered or will never come. */
void net_call(struct conn *c, int argc, const char *const *argv, const size_t *lens,
              net_answer_f *cb, void *arg);

/* A listener gets what is published, unless it is lost on the way. cb NULL: it has gone. */
typedef void net_wake_f(void *arg, const char *text);
struct listener;
struct listener *net_listen(const struct owner *owner, net_wake_f *cb, void *arg);
void net_unlisten(struct listener *l);

bool net_is_down(void);
int64_t net_hangs_until(void);
/* Redis answers no call until then; arriving calls wait. */
void net_hang(int64_t until_us);
/* All connections break; calls that were not executed never are. */
void net_down(void);
void net_up(void);
/* Break one connection: calls under way may or may not arrive. */
void net_break(struct conn *c);

#endif
