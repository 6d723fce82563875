#include "run/stream/stream_core.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define KEEP_BYTES 65536 /* a larger buffer is freed once it is written */
#define FAREWELL_MS 200  /* for a process that closed a pipe: it is most likely about to end */

bool stream_core_is_kept(const struct stream_proc *p)
{
    return p->state <= READY && !p->is_retired && !p->is_killed;
}

void stream_core_arm(struct stream_proc *p, struct mono at)
{
    int64_t us = mono_until_us(mono_now(), at);

    if (!mono_before(at, p->armed))
        return;
    p->armed = at;
    loop_timer_set(p->timer, us > 0 ? (us + 999) / 1000 : 0);
}

void stream_core_set_deadline(struct stream_proc *p, int64_t ms)
{
    p->deadline = mono_add_ms(mono_now(), ms);
    stream_core_arm(p, p->deadline);
}

void stream_core_signal(const struct stream_proc *p, int sig)
{
    (void)kill(-p->process.pid, sig);
    /* A stopped process handles the signal only when it is continued. */
    (void)kill(-p->process.pid, SIGCONT);
}

/* The process has not read what is still in the pipe. */
void stream_core_close_in(struct stream_proc *p)
{
    int unread = 0;

    if (p->pipes.ours[PIPE_IN] < 0)
        return;
    (void)ioctl(p->pipes.ours[PIPE_IN], FIONREAD, &unread);
    p->taken = p->written - (uint64_t)unread;
    loop_fd_free(p->watch_in);
    p->watch_in = NULL;
    exec_pipes_close_one(&p->pipes, PIPE_IN);
    buf_done(&p->out);
    p->sent = 0;
}

void stream_core_end(struct stream_proc *p, const char *why)
{
    bool was_kept = stream_core_is_kept(p);

    if (p->state >= ENDING)
        return;
    if (p->why[0] == '\0')
        text_copy(p->why, sizeof(p->why), why);
    p->was_ended = true;
    if (p->state == LAUNCHING) { /* on_launched ends it */
        p->is_killed = true;
        return;
    }
    p->state = ENDING;
    stream_core_close_in(p);
    stream_core_signal(p, SIGTERM);
    stream_core_set_deadline(p, p->conf->kill_grace_ms);
    if (was_kept)
        p->events->ending(p->events->arg, p);
}

void stream_core_breach(struct stream_proc *p, const char *why)
{
    p->is_in_breach = p->state < CLOSING;
    stream_core_end(p, why);
}

/*
 * It closed one of its pipes. A process that dies closes its pipes first: wait FAREWELL_MS for it
 * to end by itself. If it does, its exit status becomes the reason for its jobs.
 */
void stream_core_expect_end(struct stream_proc *p, const char *why)
{
    bool was_kept = stream_core_is_kept(p);

    if (p->state != READY && p->state != GREETING)
        return;
    text_copy(p->why, sizeof(p->why), why);
    p->is_in_breach = true;
    p->state = CLOSING;
    stream_core_close_in(p);
    stream_core_set_deadline(p, FAREWELL_MS);
    if (was_kept)
        p->events->ending(p->events->arg, p);
}

void stream_core_close_when_idle(struct stream_proc *p)
{
    if (!p->is_retired || p->running > 0 || (p->state != READY && p->state != GREETING))
        return;
    p->state = CLOSING;
    stream_core_close_in(p);
    stream_core_set_deadline(p, p->conf->kill_grace_ms);
}

void stream_core_put(struct stream_proc *p, const char *bytes, size_t n)
{
    buf_add(&p->out, bytes, n);
    p->queued += n;
}

static void flush(struct stream_proc *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = write(p->pipes.ours[PIPE_IN], p->out.data + p->sent, p->out.len - p->sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            /* Drop what was written: a buffer that never becomes empty would grow for ever. */
            if (p->sent >= KEEP_BYTES) {
                buf_drop(&p->out, p->sent);
                p->sent = 0;
            }
            loop_fd_events(p->watch_in, LOOP_WRITE);
            return;
        }
        if (n < 0) { /* EPIPE: it reads no more */
            stream_core_expect_end(p, "it closed its standard input");
            return;
        }
        p->sent += (size_t)n;
        p->written += (size_t)n;
    }
    loop_fd_events(p->watch_in, 0);
    p->sent = 0;
    if (p->out.cap > KEEP_BYTES)
        buf_done(&p->out);
    else
        buf_clear(&p->out);
}

void stream_core_flush(struct stream_proc *p)
{
    if (p->out.len > 0 && p->state == READY)
        flush(p);
}
