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
 * The daemon loads it with dlopen, calls init once for each queue it serves, run once for each job,
 * from as many threads at once as the queue's `concurrency` allows, and done when nothing of the
 * queue runs any more (at a reload or a stop). It runs inside the daemon: a crash of it is a crash
 * of the worker, all of whose jobs are run again elsewhere; memory that it leaks is the daemon's;
 * it must not change what a process has once (signals, umask, folder, environment, locale), must
 * not exit, and must not fork without exec.
 *
 * ABI rule: within one LATER_PLUGIN_ABI members are only added at the end of a structure. A plug-in
 * looks at `size` of what it is given before it reads a member that came later than version 1.0;
 * the daemon does the same. A plug-in of another LATER_PLUGIN_ABI is refused by name.
 */
#ifndef LATER_PLUGIN_H
#define LATER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LATER_PLUGIN_ABI 1

/* What run returns. Anything else counts as LATER_FAIL and is named in the reason. */
enum later_outcome {
    LATER_OK,    /* done */
    LATER_RETRY, /* try again: expected, no error; spends an attempt (exit status 75) */
    LATER_FAIL,  /* failed: try again with backoff (exit status 1) */
    LATER_DEAD   /* never try again (exit status 65) */
};

/* Levels of log, as in syslog. */
enum later_level { LATER_ERROR = 3, LATER_WARNING, LATER_NOTICE, LATER_INFO, LATER_DEBUG };

/* One job. All of it belongs to the daemon and lives until run returns. Texts are never NULL. */
struct later_job {
    size_t size;                          /* of this structure, in the daemon */
    const char *id, *queue, *key, *trace; /* key and trace: "" where there is none */
    const char *ns;                       /* the namespace */
    const void *payload;                  /* any bytes; a NUL stands behind the last one */
    size_t payload_len;
    int64_t attempt, attempts_max; /* this one, from 1; how many there are */
    int64_t start;                 /* how often it was started, crashes included */
    int64_t priority;
    int64_t due_ms;     /* Unix time, by the clock of Redis */
    int64_t late_ms;    /* when it was given to run */
    int64_t timeout_ms; /* 0: none */
    int64_t fence; /* rises with every start of any job; for later_fence_check and your own store */
};

/* What run may ask of the daemon, from the thread that runs it. Texts are copied. */
struct later_host {
    size_t size; /* of this structure, in the daemon */
    /* Shown by `later show`; at most ten times a second. What is said sooner waits until the job
     * says more or asks `cancelled`; the last one wins. */
    void (*progress)(const struct later_host *host, const char *text);
    /* One line for the log, cut behind 1 KiB; it bears the job's id. At most 1000 a job. */
    void (*log)(const struct later_host *host, enum later_level level, const char *text);
    /* Kept with the outcome (at most 16 KiB): the result, or why it failed. The last call holds. */
    void (*result)(const struct later_host *host, const void *bytes, size_t n);
    /* If this attempt asks for another: when. */
    void (*retry_in)(const struct later_host *host, int64_t ms);
    /* Not 0 once the job should end: its time is over, it was cancelled, or the daemon stops. A
     * plug-in cannot be killed; one that runs long must ask now and then, and return what it will
     * (a job that is cancelled so is put back or forgotten, as the cause wants). */
    int (*cancelled)(const struct later_host *host);
};

struct later_plugin {
    uint32_t abi; /* LATER_PLUGIN_ABI */
    size_t size;  /* sizeof(struct later_plugin), in the plug-in */
    /* args: what the configuration has behind the file in `handler`, NULL-ended; they live until
     * done returns. 0: *state is given
     * to run and done. Anything else refuses the queue; `error` (256 bytes) says why. May be NULL.
     */
    int (*init)(const char *queue, const char *const *args, void **state, char *error);
    /* An enum later_outcome. Called from several threads at once. */
    int (*run)(void *state, const struct later_job *job, const struct later_host *host);
    /* May be NULL. */
    void (*done)(void *state);
};

/* What the daemon looks up by name. */
extern const struct later_plugin later_plugin;

#ifdef __cplusplus
}
#endif

#endif
