/*
 * The worker of the stream tests. It does what it is asked to, including what no worker should do:
 *
 *   worker JOURNAL [name=value ...]
 *
 * JOURNAL: a file that gets these lines, each by one write: "start PID", "job PID ID ATTEMPT
 * FIRST-WORD", "cancel PID ID" and "eof PID". Names: greet=LINE (instead of "later-stream 1
 * inflight=4"), mute=1 (no greeting), late=MS (wait before the greeting), code=N (exit with this
 * status instead of a greeting), latch=FILE (jobs that hold go on when it exists),
 * deaf=cancel,term,eof (ignore these), any=TEXT (no effect).
 *
 * The first word of a payload says what to do:
 *
 *   ok TEXT  retry TEXT  fail TEXT  dead TEXT   give this answer
 *   hold                  answer when the latch file exists, or with `fail` after a cancel
 *   late MS  beat MS      answer after so long; beat sends `alive` all the time
 *   nap                   neither read nor write until the latch file exists, then answer
 *   exit N  signal N      end in this way;  bye N: answer first, then exit N
 *   shut in | shut out    close this descriptor and stay alive
 *   say BYTES  err BYTES  write them to standard output or standard error, then answer
 *   wide N                write N bytes to standard output, then answer
 *   twice                 answer twice
 *   grow MIB              use so much more memory, then answer
 *   half                  end in the middle of an answer
 *
 * Any other payload is answered with "ok LENGTH HASH" (FNV-1a, 32 bits).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 20
#define JOBS_MAX 1024

/* A job without an answer yet. */
struct job {
    char id[16];
    bool holds, beats;
    int64_t until_ms; /* answer then, unless it holds */
};

static int journal;
static const char *latch, *deaf = "";
static struct job jobs[JOBS_MAX];
static size_t njobs;
static char *in; /* bytes that were read and not handled yet */
static size_t in_len, in_cap;

static int64_t now_ms(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            _exit(90);
        p += done;
        n -= (size_t)done;
    }
}

__attribute__((format(printf, 2, 3))) static void tell(int fd, const char *format, ...)
{
    char line[32768];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    put(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static bool is_deaf(const char *to)
{
    return strstr(deaf, to) != NULL;
}

static void sleep_ms(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

/* ---- jobs that take time */

static void keep(const char *id, bool holds, bool beats, int64_t ms)
{
    if (njobs == JOBS_MAX)
        _exit(91);
    jobs[njobs] = (struct job){.holds = holds, .beats = beats, .until_ms = now_ms() + ms};
    (void)snprintf(jobs[njobs++].id, sizeof(jobs[0].id), "%s", id);
}

static bool is_open(void)
{
    return latch != NULL && access(latch, F_OK) == 0;
}

static void tick(void)
{
    bool goes_on = is_open();

    for (size_t i = 0; i < njobs;) {
        struct job *j = &jobs[i];

        if (j->holds ? goes_on : now_ms() >= j->until_ms) {
            tell(1, "ok %s ended\n", j->id);
            *j = jobs[--njobs];
            continue;
        }
        if (j->beats)
            tell(1, "alive %s\n", j->id);
        i++;
    }
}

static void cancel(const char *id)
{
    tell(journal, "cancel %d %s\n", (int)getpid(), id);
    for (size_t i = 0; i < njobs && !is_deaf("cancel"); i++) {
        if (strcmp(jobs[i].id, id) == 0) {
            tell(1, "fail %s cancelled\n", id);
            jobs[i] = jobs[--njobs];
            break;
        }
    }
}

/* ---- what a job asks for */

static void hash(const char *id, const char *p, size_t n)
{
    uint32_t h = 2166136261U;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 16777619U;
    tell(1, "ok %s %zu %08x\n", id, n, h);
}

static void shut(const char *what)
{
    (void)close(strcmp(what, "in") == 0 ? 0 : 1);
    for (;;)
        (void)pause();
}

static void grow(size_t mib)
{
    size_t n = mib << 20;
    char *p = malloc(n);

    if (p == NULL)
        _exit(92);
    memset(p, 1, n);
    /* Keep the memory in use until the end. */
    (void)*(volatile char *)p;
}

static void wide(size_t n)
{
    char block[4096];

    memset(block, 'w', sizeof(block));
    for (; n > 0; n -= n < sizeof(block) ? n : sizeof(block))
        put(1, block, n < sizeof(block) ? n : sizeof(block));
    put(1, "\n", 1);
}

static void end_by(const char *id, const char *word, long n)
{
    if (strcmp(word, "bye") == 0)
        tell(1, "ok %s bye\n", id);
    if (strcmp(word, "half") == 0)
        tell(1, "ok %s ha", id);
    if (strcmp(word, "signal") == 0) {
        (void)signal((int)n, SIG_DFL); /* a sanitizer would handle the signal otherwise */
        (void)raise((int)n);
    }
    _exit((int)n);
}

static void do_job(const char *id, const char *attempt, char *payload, size_t len)
{
    char word[16] = "";
    const char *rest = memchr(payload, ' ', len);
    size_t word_len = rest != NULL ? (size_t)(rest - payload) : len;
    long n;

    if (word_len < sizeof(word))
        memcpy(word, payload, word_len);
    payload[len] = '\0'; /* replaces the line feed after it */
    rest = rest != NULL ? rest + 1 : "";
    n = strtol(rest, NULL, 10);
    tell(journal, "job %d %s %s %s\n", (int)getpid(), id, attempt, word);
#define IS(text) (strcmp(word, text) == 0)
    if (IS("ok") || IS("retry") || IS("fail") || IS("dead"))
        tell(1, "%s %s %s\n", word, id, rest);
    else if (IS("hold"))
        keep(id, true, false, 0);
    else if (IS("late") || IS("beat"))
        keep(id, false, IS("beat"), n);
    else if (IS("exit") || IS("signal") || IS("bye") || IS("half"))
        end_by(id, word, n);
    else if (IS("shut"))
        shut(rest);
    else if (IS("nap")) {
        while (!is_open())
            sleep_ms(10);
        tell(1, "ok %s nap\n", id);
    } else if (IS("say") || IS("err") || IS("wide") || IS("grow") || IS("twice")) {
        if (IS("wide"))
            wide((size_t)n);
        else if (IS("grow"))
            grow((size_t)n);
        else if (IS("twice"))
            tell(1, "ok %s first\n", id);
        else
            put(IS("say") ? 1 : 2, rest, len - (size_t)(rest - payload));
        tell(1, "ok %s %s\n", id, word);
    } else {
        hash(id, payload, len);
    }
#undef IS
}

/* ---- reading */

static bool value_of(const char *line, const char *name, char *ret, size_t size)
{
    const char *at = strstr(line, name);
    size_t n;

    if (at == NULL)
        return false;
    at += strlen(name);
    n = strcspn(at, " ");
    (void)snprintf(ret, size, "%.*s", (int)n, at);
    return true;
}

/* Handle the first message if it is complete. Returns its length; 0: incomplete. */
static size_t take(void)
{
    char *end = memchr(in, '\n', in_len);
    char id[16] = "", attempt[16] = "", len[16] = "";
    size_t n, body;

    if (end == NULL)
        return 0;
    n = (size_t)(end - in) + 1;
    if (strncmp(in, "job ", 4) != 0) {
        *end = '\0';
        if (strncmp(in, "cancel ", 7) == 0)
            cancel(in + 7);
        return n;
    }
    *end = '\0';
    (void)value_of(in, " id=", id, sizeof(id));
    (void)value_of(in, " attempt=", attempt, sizeof(attempt));
    (void)value_of(in, " len=", len, sizeof(len));
    *end = '\n';
    body = strtoul(len, NULL, 10);
    if (in_len < n + body + 1)
        return 0;
    if (in[n + body] != '\n')
        _exit(93);
    do_job(id, attempt, in + n, body);
    return n + body + 1;
}

/* False at the end of the input. */
static bool read_more(void)
{
    struct pollfd at = {0, POLLIN, 0};
    ssize_t n;

    if (poll(&at, 1, TICK_MS) <= 0)
        return true;
    if (in_cap - in_len < 65536) {
        in_cap = in_cap * 2 + 131072;
        in = realloc(in, in_cap);
        if (in == NULL)
            _exit(94);
    }
    n = read(0, in + in_len, 65536);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    in_len += (size_t)n;
    return true;
}

static const char *option(char **argv, const char *name, const char *otherwise)
{
    size_t n = strlen(name);

    for (; *argv != NULL; argv++) {
        if (strncmp(*argv, name, n) == 0 && (*argv)[n] == '=')
            return *argv + n + 1;
    }
    return otherwise;
}

static void begin(char **argv)
{
    if (is_deaf("term"))
        (void)signal(SIGTERM, SIG_IGN);
    tell(journal, "start %d\n", (int)getpid());
    sleep_ms(strtol(option(argv, "late", "0"), NULL, 10));
    if (option(argv, "code", NULL) != NULL)
        _exit((int)strtol(option(argv, "code", NULL), NULL, 10));
    if (option(argv, "mute", NULL) == NULL)
        tell(1, "%s\n", option(argv, "greet", "later-stream 1 inflight=4"));
}

int main(int argc, char **argv)
{
    if (argc < 2 || (journal = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return 95;
    latch = option(argv, "latch", NULL);
    deaf = option(argv, "deaf", "");
    begin(argv);
    while (read_more()) {
        size_t n;

        while (in_len > 0 && (n = take()) > 0) {
            memmove(in, in + n, in_len - n);
            in_len -= n;
        }
        tick();
    }
    tell(journal, "eof %d\n", (int)getpid());
    while (is_deaf("eof"))
        (void)pause();
    return 0;
}
