/*
 * What tests that break Redis or the network stand on: a stage whose daemons reach their server
 * through a proxy, as many daemons as a herd needs, and what must hold while they wait.
 *
 * There is one at a time, in a global variable. Setup errors end the test program; a wrong result
 * fails the test.
 */
#ifndef LATER_TESTS_FAULT_NETWORK_H
#define LATER_TESTS_FAULT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy_client.h"
#include "redis/client.h"
#include "stage.h"

#define NETWORK_DAEMONS 20

struct network {
    struct stage s; /* its daemons a and b are not used */
    struct proxy proxy;
    struct test_laterd d[NETWORK_DAEMONS];
};

extern struct network net;

/* For cmocka: a server without persistence, with an append-only file, or without persistence and
 * with a proxy. There are handlers `work`, which ends at once, `slow`, which takes a second, and
 * `flaky`, whose first attempt fails. */
int network_setup(void **state);
int network_setup_aof(void **state);
int network_setup_proxy(void **state);
/* The same without a proxy and with these arguments for the server (NULL-ended, static; NULL:
 * none). Returns 0. */
int network_setup_with(const char *const *redis_args);
/* Stop everything. All daemons must exit 0 and `later fsck` find nothing. */
int network_teardown(void **state);

/* Start the proxy: daemons without a url connect to it from now on. */
void network_proxy(void);
/* Start daemon i and wait until it has registered. url NULL: the proxy if there is one, else the
 * server. redis_timeout is 2 s unless the yaml sets it. */
void network_daemon(int i, const char *url, const char *yaml);
/* The same without waiting. */
void network_launch(int i, const char *url, const char *yaml);

/* Add n jobs one by one directly at the server, which must take each. */
void network_add(const char *queue, int n);
/* The same, with so many bytes of padding in each payload. */
void network_add_large(const char *queue, int n, int bytes);
/* Run `later --redis URL add work NUMBER` with the next number. Returns its exit status. A refused
 * add counts as attempted. */
int network_later_add(char *url, struct buf *out, struct buf *err);

/* Wait until all acknowledged jobs have ended and Redis holds no job; false at the deadline. */
bool network_is_drained(int deadline_ms);
/* network_is_drained, then check that the ledger is sound with so many second runs. */
void network_drained(int again);
/* Fail the test unless a new job of `work` ends within this time, plus five times what a job
 * takes on this machine without a fault. Returns how long it took, in ms. */
int64_t network_works(int within_ms);
/* Watch daemon i for ms. Fail if it used 5 % of a processor or more, or logged more than `lines`
 * lines. Returns how many connections the proxy took meanwhile, 0 without a proxy. */
int64_t network_is_calm(int i, int ms, int lines);

/* Run one command; an error reply fails the test. */
void network_redis(const char *command, ...) __attribute__((sentinel));
/* A connection to the server with a timeout of 20 s; NULL while the server is away. */
struct client *network_client(void);

#endif
