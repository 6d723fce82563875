/*
 * The event loop: descriptors, timers, one precise alarm. The only folder that names libev.
 *
 * It uses ev_loop_new: libev's default loop would wait for every child process of ours and take
 * the exit statuses that the pool threads wait for. Main thread only, except mailbox_post. Every
 * watcher may be freed inside its own callback.
 */
#ifndef LATER_LOOP_LOOP_H
#define LATER_LOOP_LOOP_H

#include <stdbool.h>

#include "base/clock.h"

#define LOOP_READ 1
#define LOOP_WRITE 2

struct loop;
struct loop *loop_new(void); /* NULL: no descriptors */
void loop_free(struct loop *loop);
/* Run until loop_stop; one that was called before counts too. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Watches a descriptor for LOOP_READ and LOOP_WRITE; does not own it. events 0: for nothing. */
struct loop_fd;
typedef void loop_fd_f(void *arg, int events);
struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_f *cb, void *arg);
void loop_fd_events(struct loop_fd *w, int events);
void loop_fd_free(struct loop_fd *w); /* NULL is fine */

/* Called each time before the loop waits. First come the GATHERED hooks: they hand over together
 * what the iteration has collected. Then the SEND hooks send what came of it. */
enum loop_hook_when { LOOP_HOOK_GATHERED, LOOP_HOOK_SEND };
struct loop_hook;
typedef void loop_hook_f(void *arg);
struct loop_hook *loop_hook_new(struct loop *loop, enum loop_hook_when when, loop_hook_f *cb,
                                void *arg);
void loop_hook_free(struct loop_hook *h); /* NULL is fine */

/* A one-shot timer, 0 to 2 ms late (libev's resolution). Stopped until set. */
struct loop_timer;
typedef void loop_timer_f(void *arg);
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_f *cb, void *arg);
void loop_timer_set(struct loop_timer *t, int64_t ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_is_set(const struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/*
 * An alarm at an absolute monotonic time, with the kernel's precision (timerfd). libev would be
 * late: it rounds waits up to whole milliseconds, but jobs are due at exact ones.
 */
struct loop_alarm;
struct loop_alarm *loop_alarm_new(struct loop *loop, loop_timer_f *cb, void *arg); /* NULL: no fd */
void loop_alarm_set(struct loop_alarm *a, struct mono at); /* MONO_NEVER: off; the past: now */
void loop_alarm_free(struct loop_alarm *a);

#endif
