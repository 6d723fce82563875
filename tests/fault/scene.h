/*
 * The scene of tests that break Redis and the network: a server, a proxy before it, daemons and a
 * ledger, which must add up at the end of a test.
 *
 * Setup errors end the test program; a wrong result fails the test.
 */
#ifndef LATER_TESTS_FAULT_SCENE_H
#define LATER_TESTS_FAULT_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/laterd.h"
#include "ledger.h"
#include "proxy_client.h"
#include "redis/client.h"

#define SCENE_ROOT "later:{default}"
#define SCENE_DAEMONS 20
#define SCENE_LONG_MS 60000 /* deadline for what takes a moment on an idle machine */

struct scene {
    struct test_redis redis;
    struct proxy proxy;
    char dir[64];
    struct ledger ledger;
    struct test_laterd d[SCENE_DAEMONS];
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

/* Start a server with these arguments (NULL: no persistence), without a proxy. Make a handler
 * `work` that ends at once and a handler `slow` that takes a second. */
void scene_open(struct scene *s, const char *const *redis_args);
/* Stop the daemons, check with `later fsck`, clean up. 0 if all exited 0 and fsck found nothing,
 * else -1: for a teardown function. */
int scene_close(struct scene *s);

/* For cmocka; the test's state is the scene. Without persistence, with an append-only file, or
 * without persistence and with a proxy. */
int scene_setup(void **scene);
int scene_setup_aof(void **scene);
int scene_setup_proxy(void **scene);
int scene_teardown(void **scene);

/* Start the proxy: daemons without a url connect to it from now on. */
void scene_proxy(struct scene *s);
/* Start daemon i and wait until it has registered. url NULL: the proxy if there is one, else the
 * server. redis_timeout is 2 s unless the yaml sets it. */
void scene_daemon(struct scene *s, int i, const char *url, const char *yaml);
/* The same without waiting. */
void scene_launch(struct scene *s, int i, const char *url, const char *yaml);
/* Stop it with TERM. Returns its exit status; 0 if it does not run. */
int scene_stop(struct scene *s, int i);

/* Add n jobs directly at the server, which must take each. */
void scene_add(struct scene *s, const char *queue, int n);
/* The same, with so many bytes of padding in each payload. */
void scene_add_large(struct scene *s, const char *queue, int n, int bytes);
/* Wait until all acknowledged jobs have ended and Redis holds no job; false at the deadline. */
bool scene_is_drained(struct scene *s, int deadline_ms);
/* scene_is_drained, then check that the ledger is sound with so many second runs. */
void scene_drained(struct scene *s, int again);

/* Fail the test unless a new job of `work` ends within this time, plus five times what a job
 * takes on this machine without a fault. Returns how long it took, in ms. */
int64_t scene_works(struct scene *s, int within_ms);

/* Watch daemon i for ms: its processor time (per mille of one processor) and its log lines. */
struct scene_load {
    int cpu_permille;
    int lines;
};
struct scene_load scene_watch(struct scene *s, int i, int ms);
/* Fail if it used 5 % of a processor or more, or logged more than `lines` lines. */
void scene_is_calm(struct scene *s, int i, int ms, int lines);

/* Lines of daemon i's log with the text; wait until there is one. */
int scene_log(struct scene *s, int i, const char *text);
bool scene_says(struct scene *s, int i, const char *text, int deadline_ms);
/* Run `later add work NUMBER` with the next number at the server. Returns its exit status; its
 * output goes to out. A refused add counts as attempted. */
int scene_later_add(struct scene *s, struct buf *out);
/* Run one command; an error reply fails the test. */
void scene_redis(struct scene *s, const char *command, ...) __attribute__((sentinel));
/* A connection to the server with a timeout of 20 s; NULL while the server is away. */
struct client *scene_client(struct scene *s);

#endif
