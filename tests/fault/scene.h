/*
 * The scene of the tests that break Redis and the network: a server, a proxy before it, daemons,
 * and the books. Every job has a number for its payload; its handler writes each start and end into
 * a ledger, and at the end of a test the ledger must add up.
 *
 * What cannot be done ends the test program; what is found wrong fails the test.
 */
#ifndef LATER_TESTS_FAULT_SCENE_H
#define LATER_TESTS_FAULT_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/laterd.h"
#include "proxy_client.h"
#include "redis/client.h"

#define SCENE_ROOT "later:{default}"
#define SCENE_DAEMONS 20
#define SCENE_JOBS 40000
#define SCENE_LONG_MS 60000 /* a deadline for what should take a moment */

enum scene_fate { SCENE_NEVER, SCENE_UNKNOWN, SCENE_ACKED, SCENE_LOST_BY_REDIS };

struct scene {
    struct test_redis redis;
    struct proxy proxy;
    char dir[64];
    char ledger[96];
    struct test_laterd d[SCENE_DAEMONS];
    int njobs;                      /* their payloads are 0 to njobs - 1 */
    unsigned char fate[SCENE_JOBS]; /* enum scene_fate */
    char id[SCENE_JOBS][16];        /* of the acknowledged */
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

/* What the ledger says. */
struct scene_sum {
    int acked, attempted;
    int starts, ends;
    int lost;       /* acknowledged, never ended */
    int unexpected; /* ended, never attempted */
    int twice;      /* a (job, attempt) started twice */
    int reruns;     /* ends beyond the first of their job */
};

/* A server with these arguments (NULL: no persistence), no proxy yet, a handler `work` that ends
 * at once and a handler `slow` that takes a second. */
void scene_open(struct scene *s, const char *const *redis_args);
/* Stop the daemons, which must exit 0, and clean up. Returns 0 or -1, for a teardown function. */
int scene_close(struct scene *s);

/* For cmocka, the state of the test being the scene: no persistence, an append-only file, or no
 * persistence and a proxy. */
int scene_setup(void **scene);
int scene_setup_aof(void **scene);
int scene_setup_proxy(void **scene);
int scene_teardown(void **scene);

/* A handler that books its jobs and in between does what the sh lines say; $n is the number. */
void scene_handler(struct scene *s, const char *name, const char *lines);

void scene_proxy(struct scene *s);
/* Daemon i, connected to url (NULL: through the proxy if there is one, else to the server);
 * redis_timeout is 2 s unless the yaml sets it. Returns when it is registered. */
void scene_daemon(struct scene *s, int i, const char *url, const char *yaml);
/* The same without waiting. */
void scene_launch(struct scene *s, int i, const char *url, const char *yaml);
int scene_stop(struct scene *s, int i);

/* n jobs straight to the server, all of which it must take. */
void scene_add(struct scene *s, const char *queue, int n);
/* The same, padded with so many bytes each. */
void scene_add_large(struct scene *s, const char *queue, int n, int bytes);
/* One job with a token, on this connection; false when its answer did not come: to be tried again
 * with the same number until it does. */
bool scene_try_add(struct scene *s, struct client *c, const char *queue, int number);

/* All acknowledged jobs have ended and Redis holds none any more; waited for. */
bool scene_is_drained(struct scene *s, int deadline_ms);
/* scene_is_drained, then the books: nothing lost, nothing unexpected, and each job started and run
 * once, but for `again` of them. */
void scene_drained(struct scene *s, int again);
void scene_sum(struct scene *s, struct scene_sum *ret);
/* Jobs that have ended; until there are n. */
int scene_ends(struct scene *s);
bool scene_until_ends(struct scene *s, int n, int deadline_ms);

/* Work goes on: a new job of `work` ends within this time (and what a slow machine takes without
 * any fault). Returns how long it took. */
int64_t scene_works(struct scene *s, int within_ms);

/* Daemon i for this time: which part of a processor it used (in per mille) and what it logged. */
struct scene_load {
    int cpu_permille;
    int lines;
};
struct scene_load scene_watch(struct scene *s, int i, int ms);
/* Not spinning, not flooding: under 5 % of a processor, at most `lines` lines. */
void scene_is_calm(struct scene *s, int i, int ms, int lines);

/* Lines of the log of daemon i that hold the text; until it says so. */
int scene_log(struct scene *s, int i, const char *text);
bool scene_says(struct scene *s, int i, const char *text, int deadline_ms);
/* `later add work` of the next number, to the server: its exit status, what it wrote in out. A
 * refused one counts as attempted. */
int scene_later_add(struct scene *s, struct buf *out);
/* One command that must not be answered with an error. */
void scene_redis(struct scene *s, const char *command, ...) __attribute__((sentinel));
/* A connection to the server, 20 s for each answer; NULL while it is not there. */
struct client *scene_client(struct scene *s);

#endif
