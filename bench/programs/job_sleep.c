/*
 * A handler whose jobs take time and no processor: a stream process that sleeps, in as many threads
 * as it takes jobs at once.
 *
 *   job_sleep RECORD THREADS FIRST_MS OTHERS_MS
 *
 * The key of a job is t<number>, its tenant. Those of t0 take FIRST_MS, all others OTHERS_MS:
 * a number, or LEAST-MOST for any between. Each job that has ended appends a row of four int64 to
 * the file RECORD: its tenant, when it was due, began and ended, in microseconds since 1970.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 1024

struct range {
    long least, most;
};

struct row {
    int64_t tenant, due_us, begin_us, end_us;
};

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static struct range first, others;
static int record;

static struct range range_read(const char *text)
{
    char *end;
    struct range r = {.least = strtol(text, &end, 10)};

    r.most = *end == '-' ? strtol(end + 1, NULL, 10) : r.least;
    return r;
}

static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&left, NULL);
}

/* The value of NAME in a header line, or its end. */
static const char *field(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    return at == NULL ? "" : at + strlen(name);
}

/* Read the next job's header into line, and skip its payload. Returns 0, or -1 at the end. */
static int next_job(char **line, size_t *cap)
{
    if (getline(line, cap, stdin) <= 0)
        return -1;
    for (long left = atol(field(*line, " len=")) + 1; left > 0; left--)
        if (getchar() == EOF)
            return -1;
    return 0;
}

static void run(const char *line, unsigned *dice)
{
    const char *id = field(line, "id=");
    struct row row = {.tenant = atol(field(line, " key=t")),
                      .due_us = atoll(field(line, " due_ms=")) * 1000,
                      .begin_us = now_us()};
    struct range r = row.tenant == 0 ? first : others;
    char answer[64];
    int n = snprintf(answer, sizeof(answer), "ok %.*s\n", (int)strcspn(id, " "), id);

    sleep_ms(r.least + rand_r(dice) % (r.most - r.least + 1));
    row.end_us = now_us();
    if (write(record, &row, sizeof(row)) != (ssize_t)sizeof(row))
        exit(74);
    if (write(STDOUT_FILENO, answer, (size_t)n) != n)
        exit(1);
}

static void *serve(void *number)
{
    unsigned dice = (unsigned)(uintptr_t)number;
    char *line = NULL;
    size_t cap = 0;
    int is_end;

    for (;;) {
        (void)pthread_mutex_lock(&reading);
        is_end = next_job(&line, &cap);
        (void)pthread_mutex_unlock(&reading);
        if (is_end != 0)
            break;
        run(line, &dice);
    }
    free(line);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    long n = argc == 5 ? atol(argv[2]) : 0;

    if (n < 1 || n > THREADS_MAX)
        return 64;
    first = range_read(argv[3]);
    others = range_read(argv[4]);
    record = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (record < 0 || first.most < first.least || others.most < others.least)
        return 74;
    (void)printf("later-stream 1 inflight=%ld\n", n);
    (void)fflush(stdout);
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, serve, (void *)(uintptr_t)i) != 0)
            return 71;
    for (long i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    return 0;
}
