#include "serve/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define END_MS 2000    /* how long processes may take to end when the daemon stops; then KILL */
#define STUCK_MS 10000 /* how long plug-ins, which cannot be killed, may take to return */

#define TABLE 4096 /* a power of two */

/* Identifies the version of a file: a file that was replaced has another stamp. */
struct stamp {
    uint64_t dev, ino;
    int64_t s, ns;
};

struct backend {
    struct backend *next, *before;
    struct backend *chain;       /* the next one in the same bucket of the table */
    struct backend *next_stream; /* in the list of those that were made with a stream */
    struct backends *all;
    char queue[65];
    struct stream *stream; /* NULL: none, or it has closed */
    struct plugin *plugin;
    char **argv; /* of the plug-in */
    struct stamp stamp;
    char *why;           /* the plug-in could not be loaded; NULL: it was */
    int64_t concurrency; /* that of the queue */
    unsigned running;    /* taken and not given back */
    bool is_old;         /* takes no more jobs, and is removed after its last one */
};

struct backends {
    struct loop *loop;
    struct pool *pool;
    char ns[80];
    struct backends_events events;
    struct backend *first;
    struct backend *last_found;   /* jobs of one queue often come together */
    struct backend *gone;         /* to be freed at the end of the iteration */
    struct backend *table[TABLE]; /* by name */
    struct backend *streams;
    unsigned places;
    struct loop_timer *kill, *stuck;
    struct loop_hook *flush;
    bool is_final, is_ending; /* is_final: no backend is made any more */
};

static size_t bucket_of(const char *queue)
{
    return text_hash(queue) % TABLE;
}

static bool serves(const struct backend *at, const char *queue)
{
    return at != NULL && !at->is_old && strcmp(at->queue, queue) == 0;
}

static struct backend *find(struct backends *b, const char *queue)
{
    struct backend *at = b->last_found;

    if (!serves(at, queue))
        at = b->table[bucket_of(queue)];
    while (at != NULL && !serves(at, queue))
        at = at->chain;
    b->last_found = at;
    return at;
}

/* ---- the end of a backend */

static void unlink_all(struct backends *b, struct backend *at)
{
    struct backend **chain = &b->table[bucket_of(at->queue)], **stream = &b->streams;

    if (b->last_found == at)
        b->last_found = NULL;
    if (b->first == at)
        b->first = at->next;
    else
        at->before->next = at->next;
    if (at->next != NULL)
        at->next->before = at->before;
    while (*chain != at)
        chain = &(*chain)->chain;
    *chain = at->chain;
    while (*stream != NULL && *stream != at)
        stream = &(*stream)->next_stream;
    if (*stream != NULL)
        *stream = at->next_stream;
}

static void tell_gone(struct backends *b)
{
    loop_timer_stop(b->kill);
    loop_timer_stop(b->stuck);
    b->events.gone(b->events.arg);
}

static void free_gone(struct backends *b)
{
    while (b->gone != NULL) {
        struct backend *at = b->gone;

        b->gone = at->next;
        free(at);
    }
}

static void drop_if_done(struct backend *at)
{
    struct backends *b = at->all;

    if (!at->is_old || at->running > 0 || at->stream != NULL)
        return;
    unlink_all(b, at);
    plugin_free(at->plugin);
    mem_free_list(at->argv);
    free(at->why);
    /* The caller may still use it: free it at the end of the iteration. */
    at->next = b->gone;
    b->gone = at;
    if (b->is_ending && b->first == NULL)
        tell_gone(b);
}

static void retire(struct backend *at)
{
    if (at->is_old)
        return;
    at->is_old = true;
    if (at->stream != NULL)
        stream_close(at->stream); /* may call on_closed before it returns */
    else
        drop_if_done(at);
}

static void on_closed(void *arg)
{
    struct backend *at = arg;

    at->stream = NULL;
    drop_if_done(at);
}

/* ---- events of streams */

static void on_ended(void *arg, unsigned place, const struct run_report *report)
{
    const struct backends *b = ((struct backend *)arg)->all;

    b->events.ended(b->events.arg, place, report);
}

static void on_told(void *arg, unsigned place, enum run_word word, const char *text)
{
    const struct backends *b = ((struct backend *)arg)->all;

    b->events.told(b->events.arg, place, word, text);
}

static void on_rest(void *arg)
{
    const struct backends *b = ((struct backend *)arg)->all;

    b->events.rest(b->events.arg);
}

static unsigned cut_to_capacity(const struct backend *at, unsigned n)
{
    unsigned capacity;

    if (at->plugin != NULL)
        return n;
    capacity = at->stream != NULL ? stream_capacity(at->stream) : 0;
    return capacity < n ? capacity : n;
}

static unsigned max_by_settings(int64_t concurrency, unsigned places)
{
    return concurrency > 0 && concurrency < places ? (unsigned)concurrency : places;
}

static void on_capacity(void *arg)
{
    struct backend *at = arg;
    const struct backends *b = at->all;

    if (!at->is_old)
        b->events.max_at_once(b->events.arg, at->queue,
                              cut_to_capacity(at, max_by_settings(at->concurrency, b->places)));
}

/* ---- making */

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct stamp){0};
    return (struct stamp){st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

static bool is_same_file(const struct backend *at, const char *path)
{
    struct stamp now = stamp_of(path);

    return memcmp(&at->stamp, &now, sizeof(now)) == 0;
}

static struct backend *add(struct backends *b, const char *queue, const char *path)
{
    struct backend *at = mem_new(sizeof(*at));
    struct backend **bucket = &b->table[bucket_of(queue)];

    at->all = b;
    at->next = b->first;
    if (b->first != NULL)
        b->first->before = at;
    at->chain = *bucket;
    *bucket = at;
    text_copy(at->queue, sizeof(at->queue), queue);
    at->stamp = stamp_of(path);
    b->first = at;
    return at;
}

static char **make_env(const struct backends *b, const struct served_queue *q)
{
    size_t n;
    char **out = mem_dup_list(q->env, 3, &n);

    out[n++] = mem_printf("LATER_QUEUE=%s", q->name);
    out[n++] = mem_printf("LATER_NAMESPACE=%s", b->ns);
    out[n] = mem_strdup("LATER_MODE=stream");
    return out;
}

static void set_stream(struct backends *b, struct backend *at, const struct served_queue *q)
{
    const struct conf_queue *c = q->conf;
    char **env = make_env(b, q);
    struct stream_conf conf = {.queue = q->name,
                               .argv = q->argv,
                               .envp = env,
                               .processes = (unsigned)c->processes,
                               .places = b->places,
                               .kill_grace_ms = c->kill_grace,
                               .start_timeout_ms = c->start_timeout,
                               .heartbeat_ms = c->heartbeat,
                               .recycle_jobs = c->recycle_jobs,
                               .recycle_memory = c->recycle_memory,
                               .recycle_age_ms = c->recycle_age};

    if (at != NULL &&
        (at->stream == NULL || !is_same_file(at, q->file) || !stream_equal(at->stream, &conf))) {
        retire(at);
        at = NULL;
    }
    if (at == NULL) {
        at = add(b, q->name, q->file);
        at->next_stream = b->streams;
        b->streams = at;
        at->stream = stream_new(
            b->loop, b->pool, &conf,
            &(struct stream_events){on_ended, on_told, on_rest, on_capacity, on_closed, at});
    }
    at->concurrency = c->concurrency;
    mem_free_list(env);
}

static void set_plugin(struct backends *b, struct backend *at, const struct served_queue *q)
{
    struct err err = ERR_INIT;

    if (at != NULL && (at->plugin == NULL || !is_same_file(at, q->file) ||
                       !mem_is_same_list(at->argv, q->argv))) {
        retire(at);
        at = NULL;
    }
    if (at == NULL) {
        at = add(b, q->name, q->file);
        at->argv = mem_dup_list(q->argv, 0, NULL);
        at->plugin = plugin_load(at->queue, at->argv, &err);
        if (at->plugin == NULL) {
            at->why = mem_strdup(err.text);
            log_err("event=handler-refused what=%s reason=\"%s\"", q->name, err.text);
        }
    }
    at->concurrency = q->conf->concurrency;
}

void backends_set(struct backends *b, const struct served_queues *served, unsigned places)
{
    if (b->is_final) /* the daemon stops */
        return;
    b->places = places;
    for (struct backend *at = b->first, *next; at != NULL; at = next) {
        const struct served_queue *q = served_queues_find(served, at->queue);

        next = at->next;
        if (q == NULL || q->conf->mode == CONF_MODE_EXEC)
            retire(at);
    }
    for (size_t i = 0; i < served->n; i++) {
        const struct served_queue *q = &served->at[i];

        if (q->conf->mode == CONF_MODE_STREAM)
            set_stream(b, find(b, q->name), q);
        else if (q->conf->mode == CONF_MODE_PLUGIN)
            set_plugin(b, find(b, q->name), q);
    }
}

unsigned backends_max_at_once(struct backends *b, const struct served_queue *q, unsigned places)
{
    const struct backend *at;
    unsigned n = max_by_settings(q->conf->concurrency, places);

    if (q->conf->mode == CONF_MODE_EXEC)
        return n;
    at = find(b, q->name);
    return at != NULL ? cut_to_capacity(at, n) : 0;
}

const char *backends_defect(struct backends *b, const struct served_queue *q)
{
    const struct backend *at = q->conf->mode != CONF_MODE_EXEC ? find(b, q->name) : NULL;

    if (at == NULL)
        return NULL;
    return at->stream != NULL ? stream_defect(at->stream) : at->why;
}

bool backends_can_run(struct backends *b, const struct served_queue *q)
{
    const struct backend *at;

    if (q->conf->mode == CONF_MODE_EXEC)
        return true;
    at = find(b, q->name);
    return at != NULL && (at->stream != NULL || at->plugin != NULL);
}

void backends_start_no_more(struct backends *b)
{
    b->is_final = true;
    for (struct backend *at = b->first; at != NULL; at = at->next) {
        if (at->stream != NULL)
            stream_start_no_more(at->stream);
    }
}

/* ---- use */

struct backend *backends_take(struct backends *b, const char *queue)
{
    struct backend *at = find(b, queue);

    if (at != NULL)
        at->running++;
    return at;
}

void backends_put(struct backends *b, struct backend *at)
{
    (void)b;
    at->running--;
    drop_if_done(at);
}

struct stream *backend_stream(const struct backend *at)
{
    return at->stream;
}

struct plugin *backend_plugin(const struct backend *at)
{
    return at->plugin;
}

/* The end of an iteration of the loop: write what was started in it. */
static void flush(void *arg)
{
    struct backends *b = arg;

    free_gone(b);
    for (struct backend *at = b->streams, *next; at != NULL; at = next) {
        next = at->next_stream;
        if (at->stream != NULL)
            stream_flush(at->stream);
    }
}

/* ---- making and unmaking */

static void on_kill(void *arg)
{
    struct backends *b = arg;

    for (struct backend *at = b->streams; at != NULL; at = at->next_stream) {
        if (at->stream != NULL)
            stream_kill(at->stream);
    }
}

static void on_stuck(void *arg)
{
    (void)arg;
    log_err("event=stopped result=failed reason=\"a plug-in did not return: leaving it; its jobs "
            "will be run again\"");
    _exit(EX_SOFTWARE);
}

struct backends *backends_new(struct loop *loop, struct pool *pool, const char *ns,
                              const struct backends_events *events)
{
    struct backends *b = mem_new(sizeof(*b));

    b->loop = loop;
    b->pool = pool;
    text_copy(b->ns, sizeof(b->ns), ns);
    b->events = *events;
    b->kill = loop_timer_new(loop, on_kill, b);
    b->stuck = loop_timer_new(loop, on_stuck, b);
    b->flush = loop_hook_new(loop, LOOP_HOOK_GATHERED, flush, b);
    return b;
}

void backends_free(struct backends *b)
{
    if (b == NULL)
        return;
    loop_timer_free(b->kill);
    loop_timer_free(b->stuck);
    loop_hook_free(b->flush);
    free_gone(b);
    free(b);
}

void backends_end(struct backends *b, bool at_once)
{
    b->is_final = b->is_ending = true;
    if (b->first == NULL) {
        tell_gone(b);
        return;
    }
    loop_timer_set(b->kill, END_MS);
    loop_timer_set(b->stuck, STUCK_MS);
    for (struct backend *at = b->first, *next; at != NULL; at = next) {
        next = at->next;
        retire(at);
    }
    if (at_once)
        on_kill(b);
}
