#include "cli/add_from.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/feed.h"
#include "cli/json.h"
#include "cli/meter.h"
#include "cli/out.h"
#include "cli/tally.h"

/*
 * Calls keep Redis from everybody else. Where lines are short it reads all that are under way at
 * once and makes them one after the other: four of 128 jobs take it about 4 ms, and calls of 256
 * are no faster (Redis 7.0.15). Four have the next one there when one is done, over a link of up to
 * some milliseconds.
 */
#define CALL_JOBS 128
#define CALL_BYTES (256UL << 10) /* of payload; a longer line goes alone */
#define CALLS_MAX 4
/* What later_add_many takes in one call, and so the longest line whatever max_payload says. */
#define LINE_MAX_BYTES (16UL << 20)
/* As the library has them: L.MAX_PAYLOAD, and what passes whatever is set. */
#define PAYLOAD_DEFAULT (1 << 20)
#define PAYLOAD_LEAST 1024

struct call {
    uint64_t first; /* line */
    int n;
    uint64_t longest; /* line */
    size_t longest_bytes;
};

struct load {
    struct cli *cli;
    const struct cli_call *head;
    size_t max; /* bytes of a line */
    struct feed feed;
    struct meter meter;
    struct tally tally;

    struct call next; /* being made, of these lines */
    struct feed_line line[CALL_JOBS];
    size_t bytes;
    struct call sent[CALLS_MAX]; /* without an answer, the oldest first */
    int nsent;
    bool has_called;

    int stop_fd, signal; /* 0: none */
    struct err err;      /* the first fault */
    uint64_t err_line;   /* that it names, 0: none */
};

static bool is_over(const struct load *l)
{
    return l->err.code != ERR_NONE || l->signal != 0;
}

/* ---- faults */

/* Only the first one counts; those after it come of the same cause, and the tally has them. */
static void fail(struct load *l, const struct err *err, uint64_t line)
{
    if (l->err.code != ERR_NONE)
        return;
    l->err = *err;
    l->err_line = line;
}

/* The number goes behind the text: it starts with a code, or with the server's name. */
static void name_line(struct err *err, uint64_t line)
{
    size_t room = sizeof(err->text) - 40, n = strlen(err->text);

    if (n > room)
        n = room;
    (void)snprintf(err->text + n, sizeof(err->text) - n, ", at line %llu",
                   (unsigned long long)line);
}

static void fail_size(struct load *l, uint64_t line, size_t size)
{
    struct err err = ERR_INIT;
    size_t bytes = size > 0 ? size : l->max;
    const char *more = size > 0 ? "" : "more than ";

    if (l->max < LINE_MAX_BYTES)
        err_fill(&err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %s%zu bytes, queue %s takes %zu (max_payload)",
                 (unsigned long long)line, more, bytes, l->cli->argv[0], l->max);
    else
        err_fill(&err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %s%zu bytes; --from takes lines of %zu, and no longer "
                 "ones than the queue (max_payload)",
                 (unsigned long long)line, more, bytes, l->max);
    fail(l, &err, line);
}

static void fail_call(struct load *l, const struct call *c, struct err *err)
{
    /* The limit was lowered meanwhile, or may not be read: one of the lines is over it, so the
     * longest one is. */
    if (cli_is_refusal(err, "ELATER_SIZE")) {
        err_fill(err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %zu bytes, more than queue %s takes (max_payload)",
                 (unsigned long long)c->longest, c->longest_bytes, l->cli->argv[0]);
        fail(l, err, c->longest);
        return;
    }
    /* A refusal of the very first call is one of the options, not of a line. */
    if (c->first > 1 || err->code != ERR_REFUSED)
        name_line(err, c->first);
    fail(l, err, c->first);
}

/* ---- calls */

static bool are_all_added(const struct reply *r, int n)
{
    if (reply_kind(r) != REPLY_ARRAY || reply_len(r) != (size_t)n)
        return false;
    for (size_t i = 0; i < (size_t)n; i++) {
        if (!reply_is(reply_at(reply_at(r, i), 1), "added"))
            return false;
    }
    return true;
}

/* The answer to a call, or why there is none. A refused call has added nothing. */
static void settle(struct load *l, const struct call *c, struct reply *r, struct err *err)
{
    enum tally_fate fate = TALLY_ADDED;

    if (r == NULL)
        fate = client_is_broken(l->cli->client) ? TALLY_UNKNOWN : TALLY_REFUSED;
    else if (!are_all_added(r, c->n)) {
        fate = TALLY_UNKNOWN;
        err_fill(err, ERR_DATA, "the answer to an add of %d jobs is something else", c->n);
    }
    reply_free(r);
    tally_note(&l->tally, fate, c->first, (uint64_t)c->n);
    if (fate != TALLY_ADDED)
        fail_call(l, c, err);
    meter_show(&l->meter, l->tally.count[TALLY_ADDED], l->feed.passed);
}

static void take_answer(struct load *l)
{
    struct call c = l->sent[0];
    struct err err = ERR_INIT;
    struct reply *r = client_answer(l->cli->client, &err);

    memmove(l->sent, l->sent + 1, (size_t)--l->nsent * sizeof(l->sent[0]));
    settle(l, &c, r, &err);
}

static void take_answers(struct load *l)
{
    while (l->nsent > 0)
        take_answer(l);
}

/* Whoever waits for a signal must look for it: it is blocked. */
static void look_for_signal(struct load *l)
{
    struct signalfd_siginfo got;

    if (l->stop_fd >= 0 && l->signal == 0 &&
        read(l->stop_fd, &got, sizeof(got)) == (ssize_t)sizeof(got))
        l->signal = (int)got.ssi_signo;
}

/* The arguments are copied by the time this returns. */
static void make_call(struct load *l)
{
    const char *argv[CLI_CALL_MAX + 1 + CALL_JOBS];
    size_t lens[CLI_CALL_MAX + 1 + CALL_JOBS];
    int argc = l->head->n;
    struct client *c = l->cli->client;
    const char *ns = l->cli->target.ns;
    struct err err = ERR_INIT;

    memcpy(argv, l->head->argv, (size_t)argc * sizeof(argv[0]));
    memcpy(lens, l->head->lens, (size_t)argc * sizeof(lens[0]));
    argv[argc] = "--";
    lens[argc++] = 2;
    for (int i = 0; i < l->next.n; i++, argc++) {
        argv[argc] = feed_at(&l->feed, l->line[i].offset);
        lens[argc] = l->line[i].size;
    }
    /* The first one waits for its answer: it loads a library that is missing, and with options that
     * are refused it is the only one. */
    if (!l->has_called) {
        l->has_called = true;
        settle(l, &l->next, client_fcall(c, ns, "later_add_many", argc, argv, lens, &err), &err);
        return;
    }
    l->sent[l->nsent++] = l->next;
    /* The answers that came before the link broke still count; the others tell why. */
    if (client_fcall_send(c, ns, "later_add_many", argc, argv, lens, &err) < 0)
        take_answers(l);
}

/* Send what there is; nothing once it is over. */
static void send_next(struct load *l)
{
    if (l->next.n == 0)
        return;
    if (l->nsent == CALLS_MAX)
        take_answer(l);
    look_for_signal(l);
    if (is_over(l))
        return;
    make_call(l);
    feed_drop(&l->feed, l->line[l->next.n - 1].next);
    l->next = (struct call){.first = l->next.first + (uint64_t)l->next.n};
    l->bytes = 0;
}

/* ---- lines */

static void add_line(struct load *l, struct feed_line line)
{
    struct call *next = &l->next;

    if (next->n > 0 && l->bytes + line.size > CALL_BYTES) {
        size_t dropped = l->line[next->n - 1].next;

        send_next(l);
        if (is_over(l))
            return;
        line.offset -= dropped;
        line.next -= dropped;
    }
    if (next->n == 0 || line.size > next->longest_bytes) {
        next->longest = next->first + (uint64_t)next->n;
        next->longest_bytes = line.size;
    }
    l->line[next->n++] = line;
    l->bytes += line.size;
    if (next->n == CALL_JOBS)
        send_next(l);
}

/* Everything before a line that cannot be sent is done first, so that its number tells all. */
static void finish(struct load *l)
{
    send_next(l);
    take_answers(l);
}

/*
 * Where lines come slower than they are added, none waits for a call to be full: it goes as soon as
 * there is no call under way, and until then more may come.
 */
static void read_more(struct load *l)
{
    struct err err = ERR_INIT;
    int got = feed_read(&l->feed, l->stop_fd, false, &err);

    look_for_signal(l);
    if (got > 0 || is_over(l))
        return;
    if (got == 0 && l->nsent > 0)
        take_answer(l);
    else if (got == 0 && l->next.n > 0)
        send_next(l);
    else if (got == 0)
        got = feed_read(&l->feed, l->stop_fd, true, &err);
    look_for_signal(l);
    if (got < 0) {
        finish(l);
        name_line(&err, l->next.first);
        fail(l, &err, l->next.first);
    }
}

static void add_lines(struct load *l)
{
    struct feed_line line;
    enum feed_got got = FEED_NONE;

    while (!is_over(l) && got != FEED_END) {
        got = feed_next(&l->feed, l->max, &line);
        if (got == FEED_LINE)
            add_line(l, line);
        else if (got == FEED_NONE)
            read_more(l);
        else
            finish(l);
        if (got == FEED_LONG && !is_over(l))
            fail_size(l, l->next.first, line.size);
    }
    take_answers(l);
}

/* ---- before and after */

/* A longer line is found out here, before lines behind it are sent. Who may not read the limit is
 * told by the library. 0 or -1. */
static int find_max(struct load *l, struct err *err)
{
    CLEANUP_FREE char *key = mem_printf("later:{%s}:config", l->cli->target.ns);
    CLEANUP_FREE char *of_queue = mem_printf("max_payload:%s", l->cli->argv[0]);
    const char *const ask[] = {"HMGET", key, of_queue, "max_payload"};
    struct reply *r = client_call(l->cli->client, 4, ask, NULL, err);
    int64_t max = PAYLOAD_DEFAULT;

    l->max = LINE_MAX_BYTES;
    if (r == NULL)
        return client_is_broken(l->cli->client) ? -1 : 0;
    if (text_parse_int(reply_str(reply_at(r, 0)), 0, INT64_MAX, &max) < 0)
        (void)text_parse_int(reply_str(reply_at(r, 1)), 0, INT64_MAX, &max);
    if (max < PAYLOAD_LEAST)
        max = PAYLOAD_LEAST;
    if (max < (int64_t)LINE_MAX_BYTES)
        l->max = (size_t)max;
    reply_free(r);
    return 0;
}

/* From here on they are looked for where nothing is half done. What was ignored (nohup) stays so.
 */
static int watch_signals(void)
{
    static const int list[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (sigaction(list[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&set, list[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_all_sent(const struct load *l)
{
    return l->next.n == 0 && feed_is_empty(&l->feed);
}

static void tell_json(const struct load *l)
{
    json_t *line = json_object();

    json_put_text(line, "queue", l->cli->argv[0], strlen(l->cli->argv[0]));
    json_put_int(line, "added", (int64_t)l->tally.count[TALLY_ADDED]);
    if (l->err.code != ERR_NONE) {
        json_put_text(line, "error", l->err.text, strlen(l->err.text));
        json_put_int(line, "line", (int64_t)l->err_line);
    }
    if (is_over(l)) {
        (void)json_object_set_new(line, "lines_added", tally_json(&l->tally, TALLY_ADDED));
        (void)json_object_set_new(line, "lines_unknown", tally_json(&l->tally, TALLY_UNKNOWN));
    }
    if (!is_all_sent(l))
        json_put_int(line, "not_sent_from", (int64_t)l->next.first);
    json_print(line);
}

/* What a person needs to go on from where it stopped. */
static void tell_lines(const struct load *l)
{
    static const char *const says[] = {
        "added: ", "not added: ", "sent, but nobody knows whether they were added: "};
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *before = l->signal != 0 ? "later: stopped; " : "later: ";

    for (int fate = TALLY_ADDED; fate <= TALLY_UNKNOWN; fate++) {
        if (l->tally.count[fate] == 0)
            continue;
        buf_printf(&text, "%s%s", before, says[fate]);
        tally_put(&l->tally, (enum tally_fate)fate, &text);
        before = "; ";
    }
    if (!is_all_sent(l))
        buf_printf(&text, "%snot sent: from line %llu on", before,
                   (unsigned long long)l->next.first);
    (void)fprintf(stderr, "%s\n", buf_str(&text));
}

static int tell(struct load *l)
{
    unsigned long long added = l->tally.count[TALLY_ADDED];

    meter_wipe(&l->meter);
    if (l->err.code != ERR_NONE)
        cli_complain(l->cli, &l->err);
    if (is_over(l))
        tell_lines(l);
    if (l->cli->json)
        tell_json(l);
    else
        out_printf("%llu %s added\n", added, added == 1 ? "job" : "jobs");
    if (l->err.code != ERR_NONE)
        return cli_status(&l->err);
    return l->signal != 0 ? 128 + l->signal : 0;
}

int add_from(struct cli *cli, const struct cli_call *head, const char *path, struct err *err)
{
    struct load l = {.cli = cli, .head = head, .next = {.first = 1}, .stop_fd = -1};
    int status = -1;

    if (feed_open(&l.feed, path, err) == 0 && cli_connect(cli, err) == 0 &&
        find_max(&l, err) == 0) {
        l.stop_fd = watch_signals();
        meter_init(&l.meter, !cli->json, l.feed.size);
        add_lines(&l);
        status = tell(&l);
    }
    if (l.stop_fd >= 0)
        (void)close(l.stop_fd);
    feed_done(&l.feed);
    return status;
}
