/*
 * A real laterd for a test: the built program with a configuration, a state folder and a handlers
 * folder of its own. It dies with the test program. Failures of these functions end the test
 * program.
 */
#ifndef LATER_TESTS_SUPPORT_LATERD_H
#define LATER_TESTS_SUPPORT_LATERD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proc.h"
#include "redis.h"

struct test_laterd {
    char name[16];
    char dir[64];   /* has state-NAME and NAME.yaml; several daemons may share it */
    char conf[128]; /* the configuration file */
    char log[128];
    struct proc proc;
    bool runs;
};

/* Make a folder for daemons, handlers and what they write, with dir/handlers in it (0755). */
void test_folder_make(char dir[64]);
void test_folder_remove(const char *dir);
/* Write dir/handlers/NAME, a /bin/sh script, 0755. body is printf-style. */
void test_handler(const char *dir, const char *name, const char *body, ...)
    __attribute__((format(printf, 3, 4)));

/* Copy the program of this path in the build tree to dir/NAME, its own name, which goes to path.
 * Other users may be able to change folders above the build, and laterd would refuse a handler
 * there. */
void test_install(const char *dir, const char *program, char path[96]);

/* Write redis, state_dir, handlers_dir, log_rate 0 unless yaml has it, then yaml. */
void test_laterd_conf(struct test_laterd *d, const char *dir, const char *name, const char *redis,
                      const char *yaml);
/* Start it; returns when it has registered. */
void test_laterd_start(struct test_laterd *d);
/* Start it without waiting. */
void test_laterd_launch(struct test_laterd *d);
void test_laterd_kill(struct test_laterd *d, int sig);
/* Write another configuration, as test_laterd_conf, and have it read. Returns at once. */
void test_laterd_reload(struct test_laterd *d, const char *redis, const char *yaml);
/* Wait for its end. -> the exit status; ends the test program if it still runs at the deadline */
int test_laterd_wait(struct test_laterd *d, int deadline_ms);
/* If it runs, send TERM and wait. -> the exit status; 0 if it did not run */
int test_laterd_stop(struct test_laterd *d);
/* Wait until its log since the last start has the text; false at the deadline. */
bool test_laterd_says(struct test_laterd *d, const char *text, int deadline_ms);

/* A file as bytes, "" if it is not there. The caller frees the buf. */
void test_read(const char *path, struct buf *ret);
/* Print its last 8,000 bytes to standard error. */
void test_show_end(const char *path);
/* How many lines of a file have the text (NULL: all). */
int test_lines(const char *path, const char *text);
/* Wait until at least n lines of the file have the text; false at the deadline. */
bool test_until_lines(const char *path, const char *text, int n, int deadline_ms);
/* Milliseconds of the wall clock, for scores. */
int64_t test_now_ms(void);

/* FCALL function 1 later:{default} args…, NULL-ended. NULL: an error reply. The caller frees it. */
struct reply *test_fcall(struct test_redis *r, const char *function, ...) __attribute__((sentinel));
/* later_add QUEUE [name value] PAYLOAD (name NULL: without). -> the id, which the caller frees;
 * NULL: refused */
char *test_add(struct test_redis *r, const char *queue, const char *name, const char *value,
               const char *payload);
/* Does later_result tell this state of the job? The second waits for it; false at the deadline. */
bool test_state_is(struct test_redis *r, const char *id, const char *state);
bool test_until_state(struct test_redis *r, const char *id, const char *state, int deadline_ms);
/* One value of later_show as text, "" if it is missing; the caller's to free. */
char *test_shown(struct test_redis *r, const char *id, const char *name);
/* The integer answer of a command. The second waits until it is n; false at the deadline. */
int64_t test_int(struct test_redis *r, const char *command, const char *key);
bool test_until_int(struct test_redis *r, const char *command, const char *key, int64_t n,
                    int deadline_ms);

#endif
