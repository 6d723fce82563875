/*
 * What the fault tests of handlers, payloads and the host stand on: one redis-server, one laterd,
 * a folder, and the means to see what a fault must not do: take memory, processor time,
 * descriptors, processes, or the time of other queues.
 *
 * One at a time, in one global: a test program is single-threaded where it uses it.
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
    char out[96]; /* where handlers write lines */
    pid_t pid;    /* of the daemon, which may be a child of d.proc */
    int fds, threads;
    int64_t hwm_kib;
    int64_t since_ms;    /* it works since; earlier canaries had to wait */
    const char *unsound; /* why `later fsck` may find something at the end; NULL: it must not */
};

extern struct watched watched;

/* For cmocka: a server, an empty folder; at the end nothing may be left and laterd stops with 0. */
int watched_setup(void **state);
int watched_teardown(void **state);
/* Like setup, the server with these arguments (NULL-ended, static). */
int watched_setup_with(const char *const *redis_args);

/* Start the daemon on this configuration and remember what it has open. */
void watched_start(const char *yaml);
/* The same for `sh -c 'exec PREFIX laterd --config FILE SUFFIX'`, as it would be under env,
 * setpriv, unshare or with another stderr. The log is the daemon's stderr unless the suffix says
 * otherwise; await: return when it has registered. */
void watched_start_under(const char *prefix, const char *suffix, const char *yaml, bool await);
/* Remember the daemon's pid (a child of what was started, by name) and what it has now. */
void watched_remember(void);
/* A copy of laterd in the folder, for a daemon that may not read the build tree. */
char *watched_program(void);

/* ---- jobs */

/* later_add QUEUE [name value]… PAYLOAD; the id is the caller's. */
char *watched_add(const char *queue, const char *payload);
char *watched_add_with(const char *queue, const char *name, const char *value, const char *payload);
/* The same with bytes; NULL and *error (may be NULL) when it is refused. */
char *watched_add_bytes(const char *queue, const char *payload, size_t n);
/* n jobs at once, payload "x", over one connection. */
void watched_add_many(const char *queue, int n);
/* The record's state, and waiting for one. */
bool watched_state_is(const char *id, const char *state);
bool watched_until_state(const char *id, const char *state);
/* Until no job waits or runs. */
bool watched_until_empty(int deadline_ms);
/* One value of later_show as text, "" if it has none. The caller's. */
char *watched_shown(const char *id, const char *name);
/* The outcome of a job's end, field 1 code or 4 text or 5 output of later_result. The caller's. */
char *watched_result(const char *id, int field);

/* ---- the canary: a job of another queue every second, which must not be late */

void watched_canary_start(int seconds);
/* Every one that was due more than 3 s ago has run, and none was more than late_ms late (and what
 * the machine, seen by a bystander, makes any process wait). Returns the worst of them. */
int watched_canary_check(int late_ms);

/* ---- what the daemon takes */

/* How much more memory than after the start it took at most, since watched_start. */
int64_t watched_grown_kib(void);
/* Descriptors and threads are as after the start, and there is no child: waits for it. */
void watched_assert_clean(void);
/* It takes less than 5 % of a processor, looked at for a second. */
void watched_assert_idle(void);

/* sh -c with this command; its exit status, what it wrote is dropped (or goes into out). */
int watched_sh(struct buf *out, const char *command, ...) __attribute__((format(printf, 2, 3)));
/* The command later with these arguments (for sh), on the watched's server. */
int watched_later(struct buf *out, const char *args, ...) __attribute__((format(printf, 2, 3)));

/*
 * strace attached to the daemon's threads, not to its handlers, that changes what system calls
 * answer ("clone3:error=EAGAIN"), until watched_inject_end. False: it cannot be attached.
 */
bool watched_inject_begin(const char *inject);
/* The same on the threads of the pool only. */
bool watched_inject_pool(const char *inject);
void watched_inject_end(void);

#endif
