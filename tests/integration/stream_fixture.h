/*
 * For tests of stream mode through the built laterd: besides fixture.h a queue `s` that is served
 * by tests/handlers/worker.c, which writes what it does to the file `journal` and waits for the
 * file `latch`; and a queue `other` in exec mode.
 */
#ifndef LATER_TESTS_INTEGRATION_STREAM_FIXTURE_H
#define LATER_TESTS_INTEGRATION_STREAM_FIXTURE_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"
#include "redis/client.h"

#define LONG_MS 60000

static char worker[128]; /* the program: a copy, since anybody may own the build folders */
static char journal[96], latch[96];

static inline void install(const char *from, const char *to)
{
    char *argv[] = {(char *)(uintptr_t) "install", (char *)(uintptr_t) "-m755",
                    (char *)(uintptr_t)from, (char *)(uintptr_t)to, NULL};

    if (proc_run(argv, NULL, 0, NULL, NULL) != 0)
        test_die(from);
}

static inline int stream_open(void **state)
{
    CLEANUP_FREE char *from = mem_printf("%s/tests/handlers/worker", test_build_dir());

    (void)fx_open(state);
    (void)snprintf(worker, sizeof(worker), "%s/worker", dir);
    (void)snprintf(journal, sizeof(journal), "%s/journal", dir);
    (void)snprintf(latch, sizeof(latch), "%s/latch", dir);
    install(from, worker);
    return 0;
}

/* Stop both daemons. Fails when a process of the worker is left. */
static inline int stream_close_all(void **state)
{
    int status = test_laterd_stop(&a) + test_laterd_stop(&b);
    bool is_clean = proc_until_none(worker, LONG_MS);

    if (!is_clean)
        (void)fprintf(stderr, "processes of %s are left\n", worker);
    return fx_close(state) + status + !is_clean;
}

/* Write the configuration of the daemon `a`. top: its first lines; settings: more settings of the
 * queue, args: more arguments of the worker, each with a comma in front. */
static inline void stream_conf(struct test_laterd *d, const char *top, const char *settings,
                               const char *args)
{
    CLEANUP_FREE char *yaml = mem_printf(
        "%s\nqueues:\n  s: { mode: stream, keep: 1m, handler: [%s, %s, \"latch=%s\"%s]%s }\n"
        "  other: { handler: [/bin/sh, -c, \"echo other >> %s\"] }\n",
        top, worker, journal, latch, args, settings, out);

    test_laterd_conf(d, dir, "a", redis.url, yaml);
}

static inline void stream_start_a(const char *top, const char *settings, const char *args)
{
    stream_conf(&a, top, settings, args);
    test_laterd_start(&a);
}

static inline void reload_with(const char *settings, const char *args)
{
    struct test_laterd edited;
    int before = test_lines(a.log, "event=reload result=done");

    stream_conf(&edited, "", settings, args);
    test_laterd_kill(&a, SIGHUP);
    if (!test_until_lines(a.log, "event=reload result=done", before + 1, LONG_MS))
        test_die("reload");
}

static inline void open_latch(void)
{
    FILE *f = fopen(latch, "w");

    if (f == NULL || fclose(f) != 0)
        test_die(latch);
}

/* ---- jobs */

/* Add a job to queue `s`. name NULL: without an option. The caller frees the id. */
static inline char *ask_with(const char *name, const char *value, const char *payload)
{
    char *id = test_add(&redis, "s", name, value, payload);

    if (id == NULL)
        test_die("later_add");
    return id;
}

static inline char *ask(const char *payload)
{
    return ask_with(NULL, NULL, payload);
}

static inline char *ask_bytes(const char *queue, const char *payload, size_t n)
{
    const char *argv[] = {"FCALL", "later_add", "1", ROOT, queue, payload};
    size_t len[] = {5, 9, 1, strlen(ROOT), strlen(queue), n};
    struct err err = ERR_INIT;
    struct url url;
    struct client *c =
        url_parse(redis.url, &url, &err) == 0 ? client_open(&url, TEST_CALL_MS, &err) : NULL;
    struct reply *r = c != NULL ? client_call(c, 6, argv, len, &err) : NULL;
    char *id = r != NULL ? mem_strdup(reply_str(reply_at(r, 0))) : NULL;

    if (id == NULL)
        test_die(err.text);
    reply_free(r);
    client_close(c);
    return id;
}

static inline bool until_state(const char *id, const char *state)
{
    return test_until_state(&redis, id, state, LONG_MS);
}

enum result_field { RESULT_CODE = 1, RESULT_TEXT = 4, RESULT_OUTPUT = 5 };

/* Does this field of later_result have the text? */
static inline bool result_has(const char *id, enum result_field field, const char *text)
{
    struct reply *r = test_fcall(&redis, "later_result", id, NULL);
    bool has = strstr(reply_str(reply_at(r, field)), text) != NULL;

    if (!has)
        (void)fprintf(stderr, "%s: \"%s\" is not in \"%s\"\n", id, text,
                      reply_str(reply_at(r, field)));
    reply_free(r);
    return has;
}

/* The number that later_show tells under this name; -1: none. */
static inline int shown(const char *id, const char *name)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    const struct reply *value = reply_named(r, name);
    int n = value != NULL ? (int)strtol(reply_str(value), NULL, 10) : -1;

    reply_free(r);
    return n;
}

/* ---- what the worker wrote */

/* Wait until n lines of the journal have the text; false at the deadline. */
static inline bool until_noted(const char *text, int n)
{
    return test_until_lines(journal, text, n, LONG_MS);
}

static inline int noted(const char *text)
{
    return test_lines(journal, text);
}

/* The pid in the nth line of the journal that begins with the text, from 1; 0: no such line. */
static inline pid_t noted_pid(const char *text, int n)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;

    test_read(journal, &all);
    for (char *l = all.len > 0 ? strtok_r(all.data, "\n", &save) : NULL; l != NULL;
         l = strtok_r(NULL, "\n", &save)) {
        if (strncmp(l, text, strlen(text)) == 0 && --n == 0)
            return (pid_t)strtol(l + strlen(text), NULL, 10);
    }
    return 0;
}

/* How often the journal has a start of the job with this attempt. */
static inline int noted_starts(const char *id, int attempt)
{
    char text[40];

    (void)snprintf(text, sizeof(text), " %s %d ", id, attempt);
    return noted(text);
}

/* Is the exec queue served, too? Adds a job to it and waits. */
static inline bool other_runs(void)
{
    int before = test_lines(out, "other");

    free(test_add(&redis, "other", NULL, NULL, "x"));
    return test_until_lines(out, "other", before + 1, LONG_MS);
}

#endif
