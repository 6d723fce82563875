/*
 * Processes of a test: started so that they die with it, fed, read, waited for with a deadline.
 *
 * Failures (no such program, no descriptors) end the test program at once: a test has no use for a
 * half-started child. Single thread only, since the children are made by fork.
 */
#ifndef LATER_TESTS_SUPPORT_PROC_H
#define LATER_TESTS_SUPPORT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"

struct proc {
    pid_t pid;  /* 0 once it is reaped */
    int out;    /* its log, opened for reading from the start; -1: none */
    int status; /* set by proc_wait: exit status, 128 + n for signal n */
};

/*
 * Start argv (argv[0] by PATH) in a process group of its own, stdin from /dev/null, our environment
 * plus env_extra ("NAME=value", NULL-ended; NULL for none; "NAME" alone takes it away). stdout and
 * stderr are appended to the file log_path, or are ours when it is NULL. SIGKILL reaches it when
 * the test program dies.
 */
void proc_start(struct proc *p, char *const *argv, char *const *env_extra, const char *log_path);

/*
 * The same, but stdin and stdout are pipes whose other ends the caller gets, non-blocking, and
 * closes; stderr is ours. SIGPIPE is ignored from here on.
 */
void proc_start_piped(struct proc *p, char *const *argv, int *ret_in, int *ret_out);

void proc_signal(const struct proc *p, int sig);
/* Send SIGSTOP. Returns when the process has stopped; SIGCONT lets it go on. */
void proc_stop(const struct proc *p);
/* Wait for its end. -> the exit status (128 + n for signal n); -1: it still runs at the deadline */
int proc_wait(struct proc *p, int deadline_ms);
/* Kill it and its group if it still runs, reap it, close. Safe to call twice. */
void proc_done(struct proc *p);

/* Does the log have the text so far? proc_log_has is the same as a condition for test_until. */
bool proc_has_logged(const struct proc *p, const char *text);
struct proc_log {
    const struct proc *proc;
    const char *text;
};
bool proc_log_has(void *proc_log);

/*
 * Run to the end: stdin gets n bytes (stdin_bytes NULL: /dev/null), out and err (NULL: dropped) get
 * what it wrote, appended. Returns the exit status as proc_wait does; after 60 s it is killed and
 * the test program fails.
 */
int proc_run(char *const *argv, const char *stdin_bytes, size_t n, struct buf *out,
             struct buf *err);

/* Wait until no process has this text (pgrep -f) in its command line; false at the deadline. */
bool proc_until_none(const char *text, int deadline_ms);

/* Wait until cond(arg) holds, checked every 10 ms; false: it did not hold by the deadline. */
bool test_until(bool (*cond)(void *arg), void *arg, int deadline_ms);
/* Wait: only where trouble has to last, or a rate is measured. */
void test_pause(int64_t ms);
/* In a child before exec: handle signals by default, also those that our caller ignores (nohup, a
 * shell's background job). */
void proc_default_signals(void);
/* End the test program with this and the text of errno. */
void test_die(const char *what) __attribute__((noreturn));
/* Milliseconds since then by the monotonic clock, which no test changes. */
int64_t test_ms_since(struct mono begin);

#endif
