/*
 * stream.c: a worker for a queue with `mode: stream` (doc/stream.md). It counts the words of the
 * payload, one job after the other. But 64 jobs may be under way: it reads all that has come at
 * once, and writes all answers at once before it waits for more. If your work takes more than a
 * moment, declare fewer. To try it out: payloads `fail`, `retry`, `dead`, `sleep 5`.
 * Build: cc -O2 -o words stream.c
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Take the next n bytes of standard input. When none are left here, it first writes the answers. */
static bool take(char *to, size_t n)
{
    static char in[65536];
    static size_t at, end;

    for (; n > 0; n--) {
        if (at == end) {
            ssize_t got = fflush(stdout) == 0 ? read(0, in, sizeof(in)) : -1;

            if (got <= 0)
                return false;
            at = 0;
            end = (size_t)got;
        }
        *to++ = in[at++];
    }
    return true;
}

static bool take_line(char *line, size_t size)
{
    size_t n = 0;

    while (n + 1 < size && take(&line[n], 1) && line[n] != '\n')
        n++;
    return line[n] == '\n' && (line[n] = '\0') == '\0';
}

static void count(const char *id, const char *payload, size_t len)
{
    size_t words = 0;
    bool in_word = false;

    for (size_t i = 0; i < len; i++) {
        bool is_space = payload[i] == ' ' || (payload[i] >= '\t' && payload[i] <= '\r');

        words += !is_space && !in_word;
        in_word = !is_space;
    }
    (void)printf("ok %s %zu words in %zu bytes\n", id, words, len);
}

/* The payload may hold any byte; a line feed follows it. */
static void serve(const char *id, const char *payload, size_t len)
{
    size_t n = len > 0 && payload[len - 1] == '\n' ? len - 1 : len;
    int seconds = n > 6 && n < 11 && memcmp(payload, "sleep ", 6) == 0 ? atoi(payload + 6) : 0;

    for (int i = 1; i <= seconds; i++) {
        (void)sleep(1);
        (void)printf("progress %s %d of %d\n", id, i, seconds);
        (void)fflush(stdout);
    }
    if (n == 4 && memcmp(payload, "fail", n) == 0)
        (void)printf("fail %s asked to\n", id);
    else if (n == 5 && memcmp(payload, "retry", n) == 0)
        (void)printf("retry %s 1s later please\n", id);
    else if (n == 4 && memcmp(payload, "dead", n) == 0)
        (void)printf("dead %s never\n", id);
    else
        count(id, payload, len);
}

int main(void)
{
    char header[4096] = "", id[64], *payload = NULL;
    size_t len;

    (void)puts("later-stream 1 inflight=64");
    while (take_line(header, sizeof(header))) {
        const char *id_word = strstr(header, " id="), *len_word = strstr(header, " len=");

        if (strncmp(header, "job ", 4) != 0 || id_word == NULL || len_word == NULL)
            continue; /* ignore what is unknown */
        (void)sscanf(id_word, " id=%63s", id);
        len = strtoul(len_word + 5, NULL, 10);
        payload = realloc(payload, len + 1);
        if (payload == NULL || !take(payload, len + 1))
            return 1; /* no memory, or the input ended in the middle of a job */
        serve(id, payload, len);
    }
    free(payload);
    return 0;
}
