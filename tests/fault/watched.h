/*
 * The setting of the fault tests of handlers, payloads and the host: one redis-server, one laterd
 * and a folder. It can check what a fault must not cost: memory, processor time, descriptors,
 * processes, the time of other queues.
 *
 * There is one at a time, in a global variable. Not thread-safe.
 */
#ifndef LATER_TESTS_FAULT_WATCHED_H
#define LATER_TESTS_FAULT_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../support/laterd.h"

#define ROOT "later:{default}"
#define LONG_MS 40000

struct watched {
    struct test_redis redis;
    struct test_laterd d;
    char dir[64];
    char out[96]; /* file for lines of handlers */
    pid_t pid;    /* pid of the daemon, which may be a child of d.proc */
    int fds, threads;
    int64_t hwm_kib;
    int64_t since_ms;    /* when it was ready; canaries due before count from then */
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

extern struct watched watched;

/* For cmocka: a server and an empty folder. In the end laterd must exit 0 and `later fsck` find
 * nothing. */
int watched_setup(void **state);
int watched_teardown(void **state);
/* Like setup, with arguments for the server (NULL-ended, static). */
int watched_setup_with(const char *const *redis_args);

/* Start the daemon with this configuration, wait until it is ready, then watched_remember. */
void watched_start(const char *yaml);
/* The same by `sh -c 'PREFIX laterd --config FILE SUFFIX'`: under env, setpriv or unshare, or with
 * another stderr. PREFIX usually ends with exec. The log is stderr unless the suffix redirects it.
 * await: return only when it is ready. */
void watched_start_under(const char *prefix, const char *suffix, const char *yaml, bool await);
/* Find the daemon's pid (by name, among what was started and its children). Remember its
 * descriptors, threads and peak memory, to compare with later. */
void watched_remember(void);
/* Copy laterd into the folder, for a daemon that cannot read the build tree. The path is the
 * caller's to free. */
char *watched_program(void);

/* ---- jobs */

/* Call later_add QUEUE [name value]… PAYLOAD; must succeed. The id is the caller's to free. */
char *watched_add(const char *queue, const char *payload);
char *watched_add_with(const char *queue, const char *name, const char *value, const char *payload);
/* The same with bytes and `keep 1h`; NULL if it is refused. */
char *watched_add_bytes(const char *queue, const char *payload, size_t n);
/* Add n jobs with payload "x" over one connection. */
void watched_add_many(const char *queue, int n);
/* The job's state is this one; wait until it is. */
bool watched_state_is(const char *id, const char *state);
bool watched_until_state(const char *id, const char *state);
/* Wait until no job waits or runs, canaries left out; false at the deadline. */
bool watched_until_empty(int deadline_ms);
/* A field of later_result as text: 1 code, 3 start, 4 text, 5 output. The caller's to free. */
char *watched_result(const char *id, int field);

/* ---- the canary: a job of another queue every second, which must not be late */

void watched_canary_start(int seconds);
/* Fail unless all canaries due more than 3 s ago have run, none later than late_ms plus what this
 * machine makes any process wait. Returns the delay of the latest, in ms. */
int watched_canary_check(int late_ms);

/* ---- what the daemon takes */

/* How far its peak memory has grown since watched_remember. */
int64_t watched_grown_kib(void);
/* Wait until descriptors and threads are as remembered and it has no child; else fail. */
void watched_assert_clean(void);
/* Fail if it uses more than 5 % of a processor, measured for two seconds. */
void watched_assert_idle(void);

/* Run the command by sh -c. Returns its exit status; its output goes to out, if not NULL. */
int watched_sh(struct buf *out, const char *command, ...) __attribute__((format(printf, 2, 3)));
/* Run `later` with these arguments (as sh text) against the server. */
int watched_later(struct buf *out, const char *args, ...) __attribute__((format(printf, 2, 3)));

/*
 * Let system calls of the daemon fail until watched_inject_end, by strace ("clone3:error=EAGAIN").
 * It is attached to the daemon's threads, not to its handlers. False if it cannot attach.
 */
bool watched_inject_begin(const char *inject);
/* The same for pool threads only. */
bool watched_inject_pool(const char *inject);
void watched_inject_end(void);

#endif
