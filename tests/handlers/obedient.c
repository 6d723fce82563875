/*
 * A plug-in that does what a payload asks for. Arguments: JOURNAL, a file that gets a line for each
 * event; LATCH, a file; and optionally `refuse`, which makes init fail with a text, or `refuse
 * wordless`, which makes it fail without one. The latch is open while the file LATCH exists.
 *
 *   ok TEXT  fail TEXT  dead TEXT   returns this outcome, with this result
 *   retry MS          returns retry, after so many ms
 *   number N          returns the number N
 *   progress TEXT     reports progress twice, the second time this text; then like hold
 *   log               writes log texts that could harm a log
 *   hold              waits until the latch is open; fails once it is cancelled
 *   spite             the same, but returns LATER_OK when it is cancelled
 *   stone             waits until the latch is open and ignores a cancel
 *   crash             writes to address 0, unless the latch is open
 *   facts             the result is what the plug-in was told about the job
 *   add QUEUE         adds a job there, with a NUL in its payload, and one with an option
 *   together N        waits until N jobs were in it at the same time
 *   deep              uses 128 KiB of its stack
 *
 * Any other payload: the result is the payload.
 */
#include <fcntl.h>
#include <later_plugin.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef VERSION /* the tests build it with other versions, too */
#define VERSION "1"
#endif
#ifndef ABI
#define ABI LATER_PLUGIN_ABI
#endif

struct state {
    char queue[65];
    const char *const *args;
    atomic_int inside;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct state *s, const char *format,
                                                       ...)
{
    int fd = open(s->args[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char line[512];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    (void)close(fd);
}

static int is_open(const struct state *s)
{
    return access(s->args[1], F_OK) == 0;
}

static void nap(void)
{
    const struct timespec time = {0, 10000000};

    (void)nanosleep(&time, NULL);
}

static int say(const struct later_host *host, const char *text, int outcome)
{
    host->result(host, text, strlen(text));
    return outcome;
}

static int hold(const struct state *s, const struct later_host *host, int is_deaf, int otherwise)
{
    while (!is_open(s)) {
        if (!is_deaf && host->cancelled(host))
            return say(host, "gave up", otherwise);
        nap();
    }
    return say(host, "ended", LATER_OK);
}

static int facts(const struct later_job *job, const struct later_host *host)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "%s %s %s %s len=%zu nul=%d attempt=%lld/%lld start=%lld priority=%lld "
                   "timeout=%lld late=%d fence=%d size=%d %d",
                   job->id, job->queue, job->key, job->ns, job->payload_len,
                   ((const char *)job->payload)[job->payload_len] == '\0', (long long)job->attempt,
                   (long long)job->attempts_max, (long long)job->start, (long long)job->priority,
                   (long long)job->timeout_ms, job->late_ms >= 0 && job->due_ms > 0, job->fence > 0,
                   job->size == sizeof(*job), host->size == sizeof(*host));
    return say(host, text, LATER_OK);
}

static int together(struct state *s, const struct later_host *host, int n)
{
    (void)atomic_fetch_add(&s->inside, 1);
    while (atomic_load(&s->inside) < n && !host->cancelled(host))
        nap();
    return LATER_OK;
}

static int deep(const struct later_host *host)
{
    volatile char stack[128 * 1024];

    for (size_t i = 0; i < sizeof(stack); i += 512)
        stack[i] = (char)i;
    return say(host, stack[512] == 0 ? "deep" : "", LATER_OK);
}

static int log_all(const struct later_host *host)
{
    static char wide[5000];

    memset(wide, 'w', sizeof(wide) - 1);
    host->log(host, LATER_ERROR, "line\nevent=forged job=x \x1b[31m \"quoted\" \\ \x80\xff");
    host->log(host, LATER_WARNING, wide);
    host->log(host, (enum later_level)99, "unheard of");
    host->log(host, (enum later_level) - 1, "too loud");
    for (int i = 0; i < 1200; i++)
        host->log(host, LATER_INFO, "flood");
    return LATER_OK;
}

static int progress(const struct state *s, const struct later_host *host, const char *text)
{
    host->progress(host, "begun");
    host->progress(host, text);
    return hold(s, host, 0, LATER_FAIL);
}

static int add(const struct later_host *host, const char *queue)
{
    const char *const words[] = {queue, "a\0b"}, *const more[] = {queue, "key", "k", "text"};
    const size_t lens[] = {strlen(queue), 3};

    host->add(host, words, lens, 2);
    host->add(host, more, NULL, 4);
    return LATER_OK;
}

static int *volatile null;

static int run(void *state, const struct later_job *job, const struct later_host *host)
{
    struct state *s = state;
    const char *payload = job->payload, *rest = strchr(payload, ' ');
    char word[16];

    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(payload, " "), payload);
    rest = rest != NULL ? rest + 1 : "";
    tell(s, "job %s %lld %s " VERSION "\n", job->id, (long long)job->attempt, word);
#define IS(text) (strcmp(word, text) == 0)
    if (IS("retry"))
        host->retry_in(host, strtol(rest, NULL, 10));
    if (IS("crash") && !is_open(s))
        *null = 0;
    return IS("ok")         ? say(host, rest, LATER_OK)
           : IS("retry")    ? LATER_RETRY
           : IS("fail")     ? say(host, rest, LATER_FAIL)
           : IS("dead")     ? say(host, rest, LATER_DEAD)
           : IS("number")   ? (int)strtol(rest, NULL, 10)
           : IS("progress") ? progress(s, host, rest)
           : IS("log")      ? log_all(host)
           : IS("hold")     ? hold(s, host, 0, LATER_FAIL)
           : IS("spite")    ? hold(s, host, 0, LATER_OK)
           : IS("stone")    ? hold(s, host, 1, LATER_OK)
           : IS("facts")    ? facts(job, host)
           : IS("add")      ? add(host, rest)
           : IS("together") ? together(s, host, (int)strtol(rest, NULL, 10))
           : IS("deep")     ? deep(host)
                            : (host->result(host, payload, job->payload_len), LATER_OK);
#undef IS
}

static int init(const char *queue, const char *const *args, void **state, char *error)
{
    struct state *s = calloc(1, sizeof(*s));

    if (s == NULL)
        abort();
    (void)snprintf(s->queue, sizeof(s->queue), "%s", queue);
    s->args = args;
    tell(s, "init %s %s " VERSION "\n", queue, args[2] != NULL ? args[2] : "-");
    if (args[2] != NULL && strncmp(args[2], "refuse", 6) == 0) {
        if (args[3] == NULL)
            (void)snprintf(error, 256, "no licence for %s", queue);
        free(s);
        return 1;
    }
    *state = s;
    return 0;
}

static void done(void *state)
{
    struct state *s = state;

    tell(s, "done %s %s " VERSION "\n", s->queue, s->args[2] != NULL ? s->args[2] : "-");
    free(s);
}

#ifndef NAMELESS
const struct later_plugin later_plugin = {ABI, sizeof(later_plugin), init, run, done};
#else
extern const struct later_plugin nameless;
const struct later_plugin nameless = {ABI, sizeof(nameless), init, run, done};
#endif
