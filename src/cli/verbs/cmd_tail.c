/* later tail: what happens to jobs, as it happens. */
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ask/shards.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/complain.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/tail_event.h"

#define FOLLOW_MS "15000" /* for so long Redis is asked to publish */
#define RENEW_MS 5000     /* how often we renew, and check whether our output is still read */
#define BACK_FIRST_MS 250
#define BACK_MAX_MS 5000
#define LATE_MS 1000 /* a start that is later than this is shown as late */

struct events {
    struct cli *cli;
    const char *queue;   /* NULL: all */
    struct client *ears; /* subscribed; the other connection renews */
    int64_t heard_ms;    /* by Redis' clock: up to here nothing was missed */
    int queue_width;
};

/* ---- what is shown */

static void show_clock(int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    char text[16] = "";
    struct tm tm;

    if (localtime_r(&seconds, &tm) != NULL)
        (void)strftime(text, sizeof(text), "%H:%M:%S", &tm);
    out_printf("%s.%03d", text, (int)(ms % 1000));
}

static enum out_style style_of(const char *event)
{
    if (strcmp(event, "done") == 0)
        return OUT_GOOD;
    return strcmp(event, "dead") == 0 || strcmp(event, "failed") == 0 ? OUT_BAD : OUT_PLAIN;
}

/* "attempt 2, exit status 7, again in 15s" */
static void show_detail(const struct tail_event *e, int64_t now_ms)
{
    int64_t due = e->numbers[TAIL_DUE_MS];
    bool is_start = strcmp(e->event, "started") == 0, is_failure = strcmp(e->event, "failed") == 0;
    const char *comma = "  ";
    char span[48];

    if (e->numbers[TAIL_ATTEMPT] > 0) {
        out_printf("%sattempt %lld", comma, (long long)e->numbers[TAIL_ATTEMPT]);
        comma = ", ";
    }
    if (e->text_len > 0 && !(e->text_len == 2 && memcmp(e->text, "ok", 2) == 0)) {
        out_printf("%s", comma);
        out_text(e->text, e->text_len);
        comma = ", ";
    }
    if (is_start && due >= 0 && now_ms - due >= LATE_MS)
        out_printf("%s%s late", comma, text_span(now_ms - due, span));
    else if (!is_start && due >= 0)
        out_printf("%s%s %s", comma, is_failure ? "again" : "due",
                   due > now_ms ? out_when(due, now_ms, span) : "now");
}

static void show(struct events *t, const struct tail_event *e, int64_t now_ms)
{
    int width = (int)strlen(e->queue);

    if (t->cli->json) {
        json_print(tail_event_to_json(e, now_ms));
        return;
    }
    t->queue_width = width > t->queue_width ? width : t->queue_width;
    show_clock(now_ms);
    out_printf("  %s%-12s%s  %-*s  %-12s", out_style(style_of(e->event)), e->event,
               out_style(OUT_PLAIN), t->queue_width, e->queue, e->id);
    show_detail(e, now_ms);
    out_printf("\n");
}

/* Report missing events: with --json among the events, else on stderr. */
static void show_gap(const struct events *t, const char *event, const char *name, int64_t value,
                     const char *text)
{
    if (t->cli->json) {
        json_t *line = json_object();

        json_put_text(line, "event", event, strlen(event));
        json_put_int(line, name, value);
        json_print(line);
        return;
    }
    (void)out_flush();
    (void)fprintf(stderr, "later: %s\n", text);
}

static void show_missed(const struct events *t, const char *why)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    char when[48];

    buf_printf(&text, "%s: events since %s may be missing", why, out_instant(t->heard_ms, when));
    show_gap(t, "gap", "since_ms", t->heard_ms, buf_str(&text));
}

static void show_left_out(const struct events *t, int64_t n)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "%lld events were left out: too many a second",
                   (long long)n);
    show_gap(t, "left-out", "count", n, text);
}

static void show_message(struct events *t, const char *p, size_t n)
{
    const char *lf = memchr(p, '\n', n);
    struct tail_page page;
    struct tail_event event;

    if (tail_page_parse(p, lf != NULL ? (size_t)(lf - p) : n, &page) < 0)
        return;
    t->heard_ms = page.now_ms > t->heard_ms ? page.now_ms : t->heard_ms;
    if (page.left_out > 0)
        show_left_out(t, page.left_out);
    while (lf != NULL && !out_has_failed()) {
        n -= (size_t)(lf - p) + 1;
        p = lf + 1;
        lf = memchr(p, '\n', n);
        if (tail_event_parse(p, lf != NULL ? (size_t)(lf - p) : n, &event) == 0 &&
            (t->queue == NULL || strcmp(t->queue, event.queue) == 0))
            show(t, &event, page.now_ms);
    }
}

/* ---- following */

/* *was_on: Redis had not forgotten that somebody follows. Of shards: all of them. */
static int renew(struct events *t, bool *was_on, struct err *err)
{
    struct ask_server *s = &t->cli->server;
    int64_t now_ms = INT64_MAX;

    *was_on = true;
    for (int i = 0; i < shards_count(s); i++) {
        struct reply *r;

        shards_use(s, i);
        r = ask_words(s, err, "later_v1_tail", FOLLOW_MS, NULL);
        if (r == NULL)
            return -1;
        *was_on = *was_on && reply_int(reply_at(r, 1)) != 0;
        now_ms = reply_int(reply_at(r, 0)) < now_ms ? reply_int(reply_at(r, 0)) : now_ms;
        reply_free(r);
    }
    if (t->heard_ms == 0 || *was_on)
        t->heard_ms = now_ms;
    return 0;
}

/* In JSON each event tells its shard. */
static void mark_shard(const struct events *t, const struct reply *channel)
{
    const char *name = reply_str(channel), *end = strchr(name, '}'), *dot = end;

    while (dot != NULL && dot > name && *dot != '.')
        dot--;
    if (t->cli->server.target.shards > 0 && dot != NULL && *dot == '.')
        json_mark_shard(atoi(dot + 1));
}

static void hang_up(struct events *t)
{
    client_close(t->ears);
    t->ears = NULL;
    ask_disconnect(&t->cli->server);
}

/* Subscribe first, so that we hear all that happens after the call. */
static int call_up(struct events *t, struct err *err)
{
    bool was_on;

    t->ears = ask_subscribe_all(&t->cli->server, "events", err);
    return t->ears != NULL ? renew(t, &was_on, err) : -1;
}

/* Show events until nobody reads our output any more (0) or the link is gone (-1). */
static int follow(struct events *t, struct err *err)
{
    struct mono renew_at = mono_add_ms(mono_now(), RENEW_MS);
    struct pollfd reader = {STDOUT_FILENO, 0, 0};
    bool was_on;

    while (out_finish(err) == 0 && (poll(&reader, 1, 0) == 0 || (reader.revents & POLLERR) == 0)) {
        int64_t left_ms = mono_until_us(mono_now(), renew_at) / 1000;
        struct reply *r = left_ms > 0 ? client_message(t->ears, left_ms, err) : NULL;

        if (r != NULL && reply_is(reply_at(r, 0), "message")) {
            mark_shard(t, reply_at(r, 1));
            show_message(t, reply_str(reply_at(r, 2)), reply_len(reply_at(r, 2)));
        } else if (r == NULL && left_ms > 0 && err->code != ERR_TEMP)
            return -1;
        reply_free(r);
        if (mono_before(mono_now(), renew_at))
            continue;
        if (renew(t, &was_on, err) < 0)
            return -1;
        if (!was_on) {
            show_missed(t, "Redis had forgotten that somebody follows (a restart, a new library)");
            t->heard_ms = ask_now_ms(&t->cli->server);
        }
        renew_at = mono_add_ms(mono_now(), RENEW_MS);
    }
    return 0;
}

/* Try until Redis is there again. An error that cannot go away by itself ends it (-1). */
static int come_back(struct events *t, struct err *err)
{
    int64_t wait_ms = BACK_FIRST_MS;

    complain(t->cli, err);
    for (;; wait_ms = wait_ms * 2 < BACK_MAX_MS ? wait_ms * 2 : BACK_MAX_MS) {
        hang_up(t);
        (void)poll(NULL, 0, (int)wait_ms);
        if (call_up(t, err) == 0)
            break;
        if (err->code != ERR_UNAVAILABLE)
            return -1;
    }
    show_missed(t, "connected again");
    return 0;
}

static int run(struct cli *cli, struct err *err)
{
    struct events t = {.cli = cli, .queue = cli->argv[0], .queue_width = 8};
    int rc;

    if (t.queue != NULL && !text_is_queue_name(t.queue, strlen(t.queue)))
        return err_set(err, ERR_USAGE,
                       "\"%.80s\" is no queue name (letters, digits, _ and -, at most 64)",
                       t.queue);
    if (ask_target(&cli->server, err) < 0)
        return -1;
    /* It may be a queue that is to come. */
    if (t.queue != NULL && cli->server.target.shards == 0 &&
        queue_name_check(cli, t.queue, err) < 0)
        (void)fprintf(stderr, "later: %s\n", err->text);
    *err = (struct err)ERR_INIT;
    rc = call_up(&t, err);
    while (rc == 0 && (rc = follow(&t, err)) < 0 && err->code == ERR_UNAVAILABLE)
        rc = come_back(&t, err);
    hang_up(&t);
    return rc;
}

const struct cli_verb cmd_tail = {
    "tail",
    "[QUEUE]",
    "follow what happens to jobs",
    "Show what happens to jobs, of QUEUE or of all, as it happens: added replaced moved\n"
    "retried (a dead one, by hand) kept (a step) started parked (before a gate) failed (and\n"
    "when it is tried again) released (put back, no attempt spent) cancelling done dead\n"
    "cancelled batch-sealed batch-ended schedule-fired schedule-skipped schedule-missed\n"
    "(with how many). With --json an object a line. Ctrl-C ends it.\n"
    "\n"
    "These are hints, no ledger: nothing is kept for those who do not listen, and of\n"
    "more than 5,000 events a second the number is told. After a lost connection it\n"
    "goes on, and says since when something may be missing. A raw job is seen when it\n"
    "starts, and one added by a user who may not publish on the channel as well.",
    0,
    1,
    false,
    NULL,
    run,
};
