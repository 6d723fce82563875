/*
 * The example workers of handlers/examples, the payloads that tests give them and the answers
 * expected: both over two pipes (drive.h) and through a daemon.
 */
#ifndef LATER_TESTS_STREAM_EXAMPLES_H
#define LATER_TESTS_STREAM_EXAMPLES_H

#include <stdbool.h>
#include <stddef.h>

struct stream_example {
    const char *name;        /* of its file */
    const char *interpreter; /* NULL: a built program */
    unsigned inflight;       /* as its greeting must say */
    bool knows_cancel;
    bool is_parallel; /* a sleeping job does not delay the next one */
    unsigned many;    /* jobs of a long run, which takes seconds at most */
};

#define STREAM_EXAMPLES 5
extern const struct stream_example stream_examples[STREAM_EXAMPLES];

/* The path of its program; the caller's to free. */
char *stream_example_path(const struct stream_example *e);
/* True if its interpreter is installed and starts. */
bool stream_example_can_run(const struct stream_example *e);

struct stream_case {
    const char *name;
    char *payload;
    size_t len;
    char *answer; /* verb and text: "ok 3 words in 14 bytes" */
};

/* All cases, each of which takes a moment only. Free with stream_cases_free. */
struct stream_case *stream_cases_new(size_t *ret_n);
void stream_cases_free(struct stream_case *cases, size_t n);
/* n bytes of words, the same for the same seed. The caller's to free. */
char *stream_words(size_t n, unsigned seed);
/* The answer that every example gives to these bytes, sleeps left out. The caller's to free. */
char *stream_answer(const char *payload, size_t len);

#endif
