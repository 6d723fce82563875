#include "drive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"

#define DEADLINE_MS 60000
#define LINE_MAX_BYTES 4096
/* Contains an escaped key and a word of a later version, which a worker must skip. */
#define HEADER                                                                                     \
    "job id=%s queue=words attempt=2 attempts_max=25 start=3 priority=5 due_ms=1795174305568 "     \
    "late_ms=1 timeout_ms=3600000 fence=1795174305568123 key=user:a%%20b%%0a%%25 "                 \
    "trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 "                               \
    "later_word=a=b len=%zu\n"

struct run {
    struct stream_worker *worker;
    struct stream_job *jobs;
    size_t n, given, answered;
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Has the worker read the last byte from the pipe? */
static bool is_read(int fd)
{
    int left = 0;

    return ioctl(fd, FIONREAD, &left) != 0 || left == 0;
}

static void feed(struct stream_worker *w)
{
    size_t want = w->is_drip ? 1 : w->unsent.len;
    ssize_t n;

    if (w->is_drip && !is_read(w->in))
        return;
    n = write(w->in, w->unsent.data, want);
    if (n > 0)
        buf_drop(&w->unsent, (size_t)n);
    else if (errno != EAGAIN)
        fail_msg("it does not read: %s", strerror(errno));
}

static void hear(struct stream_worker *w)
{
    char part[65536];
    ssize_t n = read(w->out, part, sizeof(part));

    if (n > 0)
        buf_add(&w->said, part, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        close_one(&w->out);
}

/* Poll both pipes once. False at the deadline or when its output has ended. */
static bool turn(struct stream_worker *w, struct mono deadline)
{
    struct pollfd at[2] = {{w->out, POLLIN, 0}, {-1, POLLOUT, 0}};
    int64_t left_ms = mono_until_us(mono_now(), deadline) / 1000;

    if (left_ms <= 0 || w->out < 0)
        return false;
    if (w->unsent.len > 0 && w->is_drip)
        left_ms = is_read(w->in) ? 0 : 1;
    else if (w->unsent.len > 0)
        at[1].fd = w->in;
    (void)poll(at, 2, (int)left_ms);
    if (w->unsent.len > 0 && (w->is_drip || at[1].revents != 0))
        feed(w);
    if (at[0].revents != 0)
        hear(w);
    return true;
}

/* The next line without its line feed; NULL: none yet. The caller's to free. */
static char *take_line(struct stream_worker *w)
{
    const char *end = w->said.len > 0 ? memchr(w->said.data, '\n', w->said.len) : NULL;
    char *line;

    if (end == NULL)
        return NULL;
    if (end - w->said.data >= LINE_MAX_BYTES)
        fail_msg("a line of %td bytes", end - w->said.data);
    line = mem_dup(w->said.data, (size_t)(end - w->said.data));
    buf_drop(&w->said, (size_t)(end - w->said.data) + 1);
    return line;
}

static char *await_line(struct stream_worker *w)
{
    struct mono deadline = mono_add_ms(mono_now(), DEADLINE_MS);
    char *line;

    while ((line = take_line(w)) == NULL)
        if (!turn(w, deadline))
            fail_msg("no line from it; so far: %s", buf_str(&w->said));
    return line;
}

static void take_greeting(struct stream_worker *w)
{
    CLEANUP_FREE char *line = await_line(w);
    char *rest, *word = strtok_r(line, " ", &rest);

    if (word == NULL || strcmp(word, "later-stream") != 0)
        fail_msg("its first line is %s", line);
    word = strtok_r(NULL, " ", &rest);
    assert_non_null(word);
    assert_string_equal(word, "1");
    w->inflight = 1;
    while ((word = strtok_r(NULL, " ", &rest)) != NULL)
        if (strcmp(word, "cancel") == 0)
            w->knows_cancel = true;
        else if (sscanf(word, "inflight=%u", &w->inflight) != 1 || w->inflight == 0)
            fail_msg("its greeting says %s", word);
}

void stream_start(struct stream_worker *w, const char *path)
{
    CLEANUP_FREE char *search = mem_printf("PATH=%s", getenv("PATH"));
    CLEANUP_FREE char *program = mem_strdup(path);
    const char *argv[] = {"env",
                          "-i",
                          search,
                          "LANG=C",
                          "LATER_QUEUE=words",
                          "LATER_NAMESPACE=default",
                          "LATER_MODE=stream",
                          program,
                          NULL};

    *w = (struct stream_worker){.in = -1, .out = -1};
    proc_start_piped(&w->proc, (char *const *)(uintptr_t)argv, &w->in, &w->out);
    take_greeting(w);
}

void stream_done(struct stream_worker *w)
{
    if (w->proc.pid == 0 && w->in == 0)
        return;
    proc_done(&w->proc);
    close_one(&w->in);
    close_one(&w->out);
    buf_done(&w->unsent);
    buf_done(&w->said);
}

static void give(struct run *r)
{
    struct stream_worker *w = r->worker;

    while (r->given < r->n && r->given - r->answered < w->inflight) {
        struct stream_job *job = &r->jobs[r->given++];

        (void)snprintf(job->id, sizeof(job->id), "j1k0pe%06u", ++w->last_id);
        buf_printf(&w->unsent, HEADER, job->id, job->len);
        buf_add(&w->unsent, job->payload, job->len);
        buf_puts(&w->unsent, "\n");
    }
}

static struct stream_job *find(struct run *r, const char *id)
{
    for (size_t i = 0; i < r->given; i++)
        if (r->jobs[i].answer == NULL && strcmp(r->jobs[i].id, id) == 0)
            return &r->jobs[i];
    return NULL;
}

static void on_sign(struct run *r, struct stream_job *job)
{
    if (job->signs++ == 0 && job->has_cancel)
        /* Cancel an unknown job, too: a cancel may arrive when its job is already answered. */
        buf_printf(&r->worker->unsent, "cancel j1k0pe999999\ncancel %s\n", job->id);
}

static void on_line(struct run *r, const char *line)
{
    static const char *const answers[] = {"ok", "retry", "fail", "dead"};
    struct stream_job *job;
    char verb[16] = "", id[16] = "";
    int end = 0;

    (void)sscanf(line, "%15s %15s%n", verb, id, &end);
    job = end > 0 ? find(r, id) : NULL;
    if (job == NULL)
        fail_msg("it says of no job in flight: %s", line);
    if (strcmp(verb, "progress") == 0 || strcmp(verb, "alive") == 0) {
        on_sign(r, job);
        return;
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (strcmp(verb, answers[i]) == 0) {
            job->answer = mem_printf("%s%s", verb, line + end);
            job->rank = (unsigned)++r->answered;
            return;
        }
    fail_msg("no answer: %s", line);
}

void stream_run(struct stream_worker *w, struct stream_job *jobs, size_t n, bool is_end)
{
    struct run r = {w, jobs, n, 0, 0};
    struct mono deadline = mono_add_ms(mono_now(), DEADLINE_MS);

    while (r.answered < n) {
        char *line;

        give(&r);
        if (is_end && r.given == n && w->unsent.len == 0)
            close_one(&w->in);
        if (!turn(w, deadline))
            fail_msg("%zu of %zu jobs are answered, the output %s", r.answered, n,
                     w->out < 0 ? "has ended" : "says nothing");
        while ((line = take_line(w)) != NULL) {
            CLEANUP_FREE char *owned = line;

            on_line(&r, owned);
        }
    }
}

void stream_jobs_done(struct stream_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(jobs[i].answer);
        jobs[i].answer = NULL;
    }
}

int stream_end(struct stream_worker *w, int deadline_ms)
{
    struct mono deadline = mono_add_ms(mono_now(), deadline_ms);

    close_one(&w->in);
    while (turn(w, deadline))
        ;
    if (w->said.len > 0)
        fail_msg("nobody asked, and it says: %s", buf_str(&w->said));
    return proc_wait(&w->proc, deadline_ms);
}
