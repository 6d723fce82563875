/*
 * The handler of the benchmarks as a stream process. Without an argument it does nothing. With one
 * it notes each start in that file (record.h). One write answers all jobs that one read brought.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define IN_FLIGHT 1024
#define READ_BYTES (256 * 1024)
#define ANSWER_BYTES 64 /* "ok " and an id */

static char *in; /* bytes that were read and not yet handled */
static size_t in_len, in_cap;
static char out[READ_BYTES];
static size_t out_len;

static void flush(void)
{
    for (size_t at = 0; at < out_len;) {
        ssize_t n = write(STDOUT_FILENO, out + at, out_len - at);

        if (n <= 0)
            exit(1);
        at += (size_t)n;
    }
    out_len = 0;
}

/* The value of NAME in a header line that ends at `end`, or NULL. */
static const char *field(const char *line, const char *end, const char *name)
{
    const char *at = memmem(line, (size_t)(end - line), name, strlen(name));

    return at == NULL ? NULL : at + strlen(name);
}

/* Run the job of this header line, "job id=ID ... len=N", and add its answer. */
static void run(const char *line, const char *end, int record)
{
    const char *id = field(line, end, "id=");
    const char *occurrence = field(line, end, " occurrence_ms=");
    const char *due = occurrence != NULL ? occurrence : field(line, end, " due_ms=");

    if (id == NULL || due == NULL)
        exit(65);
    if (record >= 0 && record_start(record, strtoll(due, NULL, 10)) != 0)
        exit(74);
    if (out_len + ANSWER_BYTES > sizeof(out))
        flush();
    out_len +=
        (size_t)snprintf(out + out_len, ANSWER_BYTES, "ok %.*s\n", (int)strcspn(id, " "), id);
}

/* Run the job at the start of p. Returns its bytes: header, payload and line ends; 0: not
 * complete. */
static size_t take(const char *p, size_t n, int record)
{
    const char *end = memchr(p, '\n', n);
    const char *len;
    size_t whole;

    if (end == NULL)
        return 0;
    for (len = end; len > p && *len != '='; len--) {
    }
    whole = (size_t)(end - p) + 1 + strtoul(len + 1, NULL, 10) + 1;
    if (whole > n)
        return 0;
    run(p, end, record);
    return whole;
}

int main(int argc, char **argv)
{
    int record = argc > 1 ? record_open(argv[1]) : -1;

    if (argc > 1 && record < 0)
        return 74;
    out_len = (size_t)snprintf(out, sizeof(out), "later-stream 1 inflight=%d\n", IN_FLIGHT);
    for (;;) {
        size_t at = 0, used;
        ssize_t n;

        while ((used = take(in + at, in_len - at, record)) > 0)
            at += used;
        flush();
        in_len -= at;
        if (at > 0)
            memmove(in, in + at, in_len);
        if (in_cap - in_len < READ_BYTES) {
            char *more = realloc(in, in_len + 2 * READ_BYTES);

            if (more == NULL)
                return 71;
            in = more;
            in_cap = in_len + 2 * READ_BYTES;
        }
        n = read(STDIN_FILENO, in + in_len, READ_BYTES);
        if (n <= 0)
            return n == 0 ? 0 : 74;
        in_len += (size_t)n;
    }
}
