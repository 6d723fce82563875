/*
 * The network between everybody and Redis: connections on which calls travel in order, are lost,
 * arrive after their connection has broken, or are answered by an error. And Redis as it is seen
 * from there: it hangs, it is down.
 *
 * A call that arrives is made on the real server at that virtual instant and shown to the ledger.
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
unsigned net_calls(void); /* that were executed */

/* broken(arg) is told once, when the owner can see it; after net_close nothing is. */
struct conn *net_open(const struct owner *owner, event_f *broken, void *arg);
void net_close(struct conn *c);
/* arg is the net's to free(3) when the answer was told, or will never come. */
void net_call(struct conn *c, int argc, const char *const *argv, const size_t *lens,
              net_answer_f *cb, void *arg);

/* Whoever listens gets what is published, unless it is lost on the way; NULL: nobody any more. */
typedef void net_wake_f(void *arg, const char *text);
struct listener;
struct listener *net_listen(const struct owner *owner, net_wake_f *cb, void *arg);
void net_unlisten(struct listener *l);

bool net_is_down(void);
int64_t net_hangs_until(void);
/* Redis answers nobody until then; what arrives waits. */
void net_hang(int64_t until_us);
/* All connections break; what was not executed never is. */
void net_down(void);
void net_up(void);
/* One connection breaks: what is on its way may or may not arrive. */
void net_break(struct conn *c);

#endif
