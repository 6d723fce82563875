/*
 * A handler as a shared object: `mode: plugin` of laterd. C89 and later, C++; needs nothing else.
 *
 *   #include <later_plugin.h>
 *
 *   static int run(void *state, const struct later_job *job, const struct later_host *host)
 *   {
 *       host->log(host, LATER_INFO, "hello");
 *       return LATER_OK;
 *   }
 *   const struct later_plugin later_plugin = {
 *       LATER_PLUGIN_ABI, sizeof(later_plugin), NULL, run, NULL};
 *
 *   cc -shared -fPIC -o hello.so hello.c
 *
 * The daemon loads it with dlopen. It calls init once for each queue that the plug-in serves, and
 * run once for each job, from as many threads at once as the queue's `concurrency` allows. It calls
 * done when no job of the queue runs any more (at a reload or a stop).
 *
 * A plug-in runs inside the daemon. If it crashes, the worker crashes, and all jobs of that worker
 * are run again elsewhere. Memory that it leaks is the daemon's. It must not change what belongs to
 * the whole process (signals, umask, working directory, environment, locale), must not exit, and
 * must not fork without exec.
 *
 * ABI rule: within one LATER_PLUGIN_ABI, members are only added at the end of a structure. A
 * plug-in checks `size` of a structure before it reads a member that is newer than version 1.0; the
 * daemon does the same. A plug-in of another LATER_PLUGIN_ABI is refused; the message names both.
 */
#ifndef LATER_PLUGIN_H
#define LATER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LATER_PLUGIN_ABI 1

/* What run returns. Any other number counts as LATER_FAIL and is shown in the reason. */
enum later_outcome {
    LATER_OK,    /* done */
    LATER_RETRY, /* try again; no error, but it counts as an attempt (exit status 75) */
    LATER_FAIL,  /* failed: try again with backoff (exit status 1) */
    LATER_DEAD   /* never try again (exit status 65) */
};

/* Levels of log, with the numbers of syslog. */
enum later_level { LATER_ERROR = 3, LATER_WARNING, LATER_NOTICE, LATER_INFO, LATER_DEBUG };

/* One job. The daemon owns all of it, and it is valid until run returns. Texts are never NULL. */
struct later_job {
    size_t size;                          /* of this structure, in the daemon */
    const char *id, *queue, *key, *trace; /* key and trace: "" if the job has none */
    const char *ns;                       /* the namespace */
    const void *payload;                  /* any bytes; a NUL follows the last one */
    size_t payload_len;
    int64_t attempt, attempts_max; /* number of this attempt, from 1; how many are allowed */
    int64_t start; /* number of this start, from 1; starts that ended in a crash count, too */
    int64_t priority;
    int64_t due_ms;     /* Unix time in ms, by the clock of Redis */
    int64_t late_ms;    /* how late it was when it was given to a thread */
    int64_t timeout_ms; /* 0: none */
    int64_t fence; /* rises with every claim of any job; for later_fence_check and your own store */
    /* Since version 1.1. The job that caused this one (`then`, `on_dead`), and why that one died;
     * "" without one. */
    const char *parent, *reason;
    /* The batch that it is a member or a callback of; "" without one. A callback is told how many
     * members the batch had when it was added; they are 0 for others. */
    const char *batch;
    int64_t batch_total, batch_done, batch_dead, batch_cancelled;
    /* Since version 1.2. The schedule that added it, "" for none, and for which time. */
    const char *schedule;
    int64_t occurrence_ms;
    const char *topic; /* under which it was published; "" for none */
    /* Since version 1.3. The last checkpoint of an earlier attempt; NULL for none. And what the
     * variable LATER_STEP has to be for `later step`, NULL where there is none (doc/resume.md). */
    const char *checkpoint, *step;
};

/* What run may ask of the daemon, only from the thread that was called. Texts are copied. */
struct later_host {
    size_t size; /* of this structure, in the daemon */
    /* Shown by `later show`; at most ten times a second. A text that comes sooner waits for the
     * next call of `progress` or `cancelled`; a newer text replaces it. */
    void (*progress)(const struct later_host *host, const char *text);
    /* One line for the log, with the job's id; cut after 1 KiB. At most 1000 lines a run. */
    void (*log)(const struct later_host *host, enum later_level level, const char *text);
    /* Kept with the outcome (at most 16 KiB): the result, or why it failed. The last one counts.
     * The result of a job that has `then` is the payload of the next job. */
    void (*result)(const struct later_host *host, const void *bytes, size_t n);
    /* How long to wait before the next attempt, in ms, if the job is retried. */
    void (*retry_in)(const struct later_host *host, int64_t ms);
    /* Not 0 once the job should end: its time is over, it was cancelled, or the daemon stops. A
     * plug-in cannot be killed, so a long job must ask now and then. It may then return any
     * of the four values. LATER_OK and LATER_DEAD count as always. Otherwise the cause decides: the
     * attempt has timed out, or the job is cancelled, or it is put back without counting an
     * attempt. */
    int (*cancelled)(const struct later_host *host);
    /* Since version 1.1. Add a job when this one is done, in the same instant; any other end throws
     * it away. words: as later_add takes them, QUEUE [name value]... PAYLOAD, n of them; lens:
     * their bytes, NULL if each is a text. At most 1,000 jobs and 1 MiB a run. A job that is
     * refused makes the run fail. Look at `size` of the host before you call it. */
    void (*add)(const struct later_host *host, const char *const *words, const size_t *lens,
                size_t n);
    /* Since version 1.3. Where the next attempt goes on: a text of at most 4096 bytes, which it
     * finds in `checkpoint`. The last one counts; "": none. It is kept within a second. Look at
     * `size` of the host before you call it. */
    void (*checkpoint)(const struct later_host *host, const char *text);
};

struct later_plugin {
    uint32_t abi; /* LATER_PLUGIN_ABI */
    size_t size;  /* sizeof(struct later_plugin), in the plug-in */
    /* May be NULL. args: what follows the file in the setting `handler`, NULL-ended; valid until
     * done returns. Return 0 to serve the queue: *state is then given to run and done. Any other
     * number refuses the queue; write the reason into error (256 bytes). */
    int (*init)(const char *queue, const char *const *args, void **state, char *error);
    /* Runs one job and returns an enum later_outcome. Called from several threads at once. */
    int (*run)(void *state, const struct later_job *job, const struct later_host *host);
    /* Called after the last job; may be NULL. */
    void (*done)(void *state);
};

/* The plug-in defines it; the daemon finds it by this name. */
extern const struct later_plugin later_plugin;

#ifdef __cplusplus
}
#endif

#endif
