#include "cli/bulk/adds.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ask/shards.h"
#include "base/buf.h"
#include "cli/complain.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/signal_set.h"

bool adds_is_over(const struct adds *a)
{
    return a->err.code != ERR_NONE || a->signal != 0;
}

/* ---- errors */

/* Later errors have the same cause, and the tally counts their lines. */
void adds_fail(struct adds *a, const struct err *err, uint64_t line)
{
    if (a->err.code != ERR_NONE)
        return;
    a->err = *err;
    a->err_line = line;
}

/* The number goes after the text, which starts with a code or with the server's name. */
void adds_name_line(struct err *err, uint64_t line)
{
    size_t cap = sizeof(err->text) - 40, n = strlen(err->text);

    if (n > cap)
        n = cap;
    (void)snprintf(err->text + n, sizeof(err->text) - n, ", at line %llu",
                   (unsigned long long)line);
}

static void fail_long(struct adds *a, size_t size)
{
    struct err err = ERR_INIT;

    a->face->too_long(a, size, &err);
    adds_fail(a, &err, a->next.first);
}

/* ---- calls */

/* Count the lines of a call by its answer r, or NULL with err. A refused call has added nothing. */
static void count_lines(struct adds *a, const struct adds_call *c, struct reply *r, struct err *err)
{
    enum line_result result = LINE_ADDED;

    /* Without a connection none was made anew, after a refusal. */
    if (r == NULL)
        result = ask_is_broken(&a->cli->server) ? LINE_UNKNOWN : LINE_REFUSED;
    else if (!a->face->is_good(a, r, c->n)) {
        result = LINE_UNKNOWN;
        err_fill(err, ERR_DATA, "the answer to an add of %d jobs is something else", c->n);
    }
    reply_free(r);
    line_results_add(&a->tally, result, c->first, (uint64_t)c->n);
    if (result != LINE_ADDED)
        adds_fail(a, err, a->face->name_error(a, c, err));
    meter_show(&a->meter, a->tally.count[LINE_ADDED], a->feed.passed);
}

/* An answer, or NULL with err. */
struct heard {
    struct adds_call call;
    struct reply *reply;
    struct err err;
    bool is_elsewhere;
};

static void hear(struct adds *a, struct heard *ret)
{
    *ret = (struct heard){.call = a->sent[0], .err = ERR_INIT};
    shards_use(&a->cli->server, ret->call.shard);
    memmove(a->sent, a->sent + 1, (size_t)--a->nsent * sizeof(a->sent[0]));
    ret->reply = client_answer(a->cli->server.client, &ret->err);
    ret->is_elsewhere = ret->reply == NULL && ask_is_elsewhere(&a->cli->server, &ret->err);
}

static void count_heard(struct adds *a, struct heard *h)
{
    struct call_args *words = &h->call.words;

    shards_use(&a->cli->server, h->call.shard);
    if (h->is_elsewhere && !adds_is_over(a)) {
        h->err = (struct err)ERR_INIT;
        h->reply = ask_present(&a->cli->server, a->face->function, (int)words->n + 1, words->argv,
                               words->lens, &h->err);
    }
    count_lines(a, &h->call, h->reply, &h->err);
    call_args_done(words);
}

/* Whoever connects to another node leaves this one: hear first what it has to say to all calls
 * under way. */
static void take_answer(struct adds *a)
{
    struct heard heard[ADDS_CALLS_MAX];
    int n = 0, shard = a->cli->server.shard;

    hear(a, &heard[n++]);
    while (heard[0].is_elsewhere && a->nsent > 0)
        hear(a, &heard[n++]);
    for (int i = 0; i < n; i++)
        count_heard(a, &heard[i]);
    shards_use(&a->cli->server, shard);
}

static void take_answers(struct adds *a)
{
    while (a->nsent > 0)
        take_answer(a);
}

/* The signals are blocked, so they have to be read here. */
static void check_signal(struct adds *a)
{
    struct signalfd_siginfo got;

    if (a->stop_fd >= 0 && a->signal == 0 &&
        read(a->stop_fd, &got, sizeof(got)) == (ssize_t)sizeof(got))
        a->signal = (int)got.ssi_signo;
}

/* Whether the next call may join those under way. */
static bool may_join(const struct adds *a)
{
    int lines = a->next.n, full = ADDS_CALLS_FULL * shards_count(&a->cli->server);
    size_t bytes = a->next.bytes;

    for (int i = 0; i < a->nsent; i++) {
        lines += a->sent[i].n;
        bytes += a->sent[i].bytes;
    }
    return a->nsent == 0 || (a->nsent < ADDS_CALLS_MAX && lines <= full * a->face->call_lines &&
                             bytes <= (size_t)full * ADDS_CALL_BYTES);
}

static void keep_words(struct adds_call *c, int argc, const char *const *argv, const size_t *lens)
{
    for (int i = 1; i < argc; i++)
        call_args_add(&c->words, argv[i], lens[i]);
    call_args_argv(&c->words, argv[0], (size_t)argc - 1);
}

/* Wait for the answer to a shard's first call: it loads a missing library, and if it refuses the
 * options no other call is sent. False: what others answered has ended all before. */
static bool make_first_call(struct adds *a, int argc, const char *const *argv, const size_t *lens)
{
    struct ask_server *s = &a->cli->server;
    struct err err = ERR_INIT;
    struct reply *r;

    take_answers(a);
    if (adds_is_over(a))
        return false;
    r = ask_present(s, a->face->function, argc, argv, lens, &err);
    a->has_called[s->shard] = true;
    count_lines(a, &a->next, r, &err);
    return true;
}

/* The arguments are copied before this returns; the first one stays. False as above. */
static bool make_call(struct adds *a, int argc, const char *const *argv, const size_t *lens)
{
    struct ask_server *s = &a->cli->server;
    struct err err = ERR_INIT;

    if (shards_choose(s, shards_by(a->face->function), argc, argv, lens, NULL, &err) < 0) {
        count_lines(a, &a->next, NULL, &err);
        return true;
    }
    if (!a->has_called[s->shard])
        return make_first_call(a, argc, argv, lens);
    if (s->target.url.nodes[0] != '\0')
        keep_words(&a->next, argc, argv, lens);
    a->next.shard = s->shard;
    a->sent[a->nsent++] = a->next;
    /* Answers that came before the link broke still count; reading the others gives the reason. */
    if (client_fcall_send(s->client, s->target.ns, a->face->function, argc, argv, lens, &err) < 0)
        take_answers(a);
    return true;
}

void adds_next_has(struct adds *a, size_t bytes)
{
    struct adds_call *next = &a->next;

    if (next->n == 0 || bytes > next->longest_bytes) {
        next->longest = next->first + (uint64_t)next->n;
        next->longest_bytes = bytes;
    }
    next->n++;
    next->bytes += bytes;
}

void adds_send(struct adds *a, int argc, const char *const *argv, const size_t *lens)
{
    while (!may_join(a))
        take_answer(a);
    check_signal(a);
    if (adds_is_over(a))
        return;
    if (make_call(a, argc, argv, lens))
        a->next = (struct adds_call){.first = a->next.first + (uint64_t)a->next.n};
}

static void send_next(struct adds *a)
{
    if (a->next.n > 0 && !adds_is_over(a))
        a->face->send(a);
}

void adds_finish(struct adds *a)
{
    send_next(a);
    take_answers(a);
}

/* ---- lines */

/*
 * If lines come slower than they are added, do not wait for a full call: send the next call as soon
 * as none is under way. Until then more lines may join it.
 */
static void read_more(struct adds *a)
{
    struct err err = ERR_INIT;
    int got = feed_read(&a->feed, a->stop_fd, false, &err);

    check_signal(a);
    if (got > 0 || adds_is_over(a))
        return;
    if (got == 0 && a->nsent > 0)
        take_answer(a);
    else if (got == 0 && a->next.n > 0)
        send_next(a);
    else if (got == 0)
        got = feed_read(&a->feed, a->stop_fd, true, &err);
    check_signal(a);
    if (got < 0) {
        adds_finish(a);
        adds_name_line(&err, a->next.first);
        adds_fail(a, &err, a->next.first);
    }
}

static void add_lines(struct adds *a)
{
    struct feed_line line;
    enum feed_got got = FEED_NONE;

    while (!adds_is_over(a) && got != FEED_END) {
        got = feed_next(&a->feed, a->max, &line);
        a->lines += got == FEED_LINE;
        if (got == FEED_LINE)
            a->face->take(a, line);
        else if (got == FEED_NONE)
            read_more(a);
        else
            adds_finish(a);
        if (got == FEED_LONG && !adds_is_over(a))
            fail_long(a, line.size);
    }
    take_answers(a);
}

/* ---- before and after */

/* Block the signals and return a signalfd for them, to be read where nothing is half done. Ignored
 * signals (nohup) stay ignored. */
static int watch_signals(void)
{
    static const int list[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;

    (void)sigemptyset(&set);
    signal_set_add(&set, list, sizeof(list) / sizeof(list[0]));
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int adds_open(struct adds *a, struct cli *cli, const struct adds_face *face, void *arg,
              const char *path, struct err *err)
{
    *a = (struct adds){
        .face = face, .arg = arg, .cli = cli, .next = {.first = 1}, .stop_fd = -1, .max = SIZE_MAX};
    return feed_open(&a->feed, path, err) == 0 && ask_connect(&cli->server, err) == 0 ? 0 : -1;
}

void adds_done(struct adds *a)
{
    if (a->stop_fd >= 0)
        (void)close(a->stop_fd);
    feed_done(&a->feed);
}

void adds_run(struct adds *a)
{
    a->stop_fd = watch_signals();
    meter_init(&a->meter, !a->cli->json, a->feed.size);
    add_lines(a);
}

static bool is_all_sent(const struct adds *a)
{
    return a->next.first > a->lines && feed_is_empty(&a->feed);
}

json_t *adds_json(const struct adds *a, const char *queue)
{
    json_t *line = json_object();

    json_put_text(line, "queue", queue, strlen(queue));
    json_put_int(line, "added", (int64_t)a->tally.count[LINE_ADDED]);
    if (a->err.code != ERR_NONE) {
        json_put_text(line, "error", a->err.text, strlen(a->err.text));
        json_put_int(line, "line", (int64_t)a->err_line);
    }
    if (adds_is_over(a)) {
        (void)json_object_set_new(line, "lines_added", line_results_json(&a->tally, LINE_ADDED));
        (void)json_object_set_new(line, "lines_unknown",
                                  line_results_json(&a->tally, LINE_UNKNOWN));
    }
    if (!is_all_sent(a))
        json_put_int(line, "not_sent_from", (int64_t)a->next.first);
    return line;
}

/* What a person needs to know to continue from where it stopped. */
static void tell_lines(const struct adds *a)
{
    static const char *const says[] = {
        "added: ", "not added: ", "sent, but nobody knows whether they were added: "};
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *before = a->signal != 0 ? "later: stopped; " : "later: ";

    for (int result = LINE_ADDED; result <= LINE_UNKNOWN; result++) {
        if (a->tally.count[result] == 0)
            continue;
        buf_printf(&text, "%s%s", before, says[result]);
        line_results_put(&a->tally, (enum line_result)result, &text);
        before = "; ";
    }
    if (!is_all_sent(a))
        buf_printf(&text, "%snot sent: from line %llu on", before,
                   (unsigned long long)a->next.first);
    (void)fprintf(stderr, "%s\n", buf_str(&text));
}

int adds_tell(struct adds *a)
{
    meter_wipe(&a->meter);
    if (a->err.code != ERR_NONE)
        complain(a->cli, &a->err);
    if (adds_is_over(a))
        tell_lines(a);
    if (a->err.code != ERR_NONE)
        return complain_status(&a->err);
    return a->signal != 0 ? 128 + a->signal : 0;
}
