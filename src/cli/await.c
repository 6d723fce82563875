#include "cli/await.h"

#include <stdio.h>
#include <string.h>

#include "ask/shards.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/again.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/outcome.h"

#define ASK_AGAIN_MS 30000
#define LAST_WORD_MS 1000 /* the message of an end may come behind the answer that it is gone */
#define STATUS_CANCELLED 130

struct await {
    struct cli *cli;
    const char *id;
    char found[SHARDS_ID]; /* id, if the job was named otherwise */
    struct client *events; /* subscribed; the other connection asks */
    struct mono deadline;
    struct again again;
    bool was_there;      /* the job, when we asked */
    bool was_deaf;       /* since then the link was lost: its end may have been told meanwhile */
    struct reply *reply; /* outcome points into it */
    struct outcome outcome;
};

/* The end is published under the id. So a job that was named by its unique key, or that may be in
 * several shards, is looked up first, which also holds on to it when the key goes to another one.
 */
static int find_id(struct await *w, const char *job, struct err *err)
{
    struct reply *r;

    w->id = job;
    if (ask_target(&w->cli->server, err) < 0)
        return -1;
    if (strchr(job, '@') == NULL && w->cli->server.target.shards == 0)
        return 0;
    if (shards_take_id(&w->cli->server, job, w->found)) {
        w->id = w->found;
        return 0;
    }
    r = ask_words(&w->cli->server, err, "later_show", job, NULL);
    if (r == NULL)
        return -1;
    text_copy(w->found, sizeof(w->found), reply_str(reply_at(r, 1)));
    w->id = w->found;
    reply_free(r);
    return 0;
}

static int subscribe(struct await *w, struct err *err)
{
    CLEANUP_BUF struct buf channel = BUF_INIT;

    buf_printf(&channel, "ended:%s", w->id);
    w->events = ask_subscribe(&w->cli->server, buf_str(&channel), err);
    if (w->events == NULL)
        return -1;
    w->again.has_begun = true;
    return 0;
}

static bool has_ended(const char *state)
{
    static const char *const alive[] = {"waiting", "parked", "running", "failed"};

    for (size_t i = 0; i < sizeof(alive) / sizeof(alive[0]); i++) {
        if (strcmp(state, alive[i]) == 0)
            return false;
    }
    return true;
}

/* 1: the job has ended, outcome is set. 0: not yet. -1 with err. Its shard is the present one: by
 * the id alone another one might be found. */
static int ask(struct await *w, struct err *err)
{
    struct reply *r = ask_present_one(&w->cli->server, "later_v1_await", w->id, err);

    if (r == NULL)
        return -1;
    if (outcome_of_reply(r, &w->outcome) < 0) {
        reply_free(r);
        return err_set(err, ERR_DATA, "the answer about the job is not understood");
    }
    if (!has_ended(w->outcome.state)) {
        reply_free(r);
        return 0;
    }
    w->reply = r;
    return 1;
}

/* The same from a message. 0 also if none came in this time. */
static int listen_for(struct await *w, int64_t ms, struct err *err)
{
    const struct reply *text;
    struct reply *r = client_message(w->events, ms, err);

    if (r == NULL)
        return err->code == ERR_TEMP ? 0 : -1;
    text = reply_at(r, 2);
    if (reply_is(reply_at(r, 0), "message") &&
        outcome_parse(reply_str(text), reply_len(text), &w->outcome) == 0) {
        w->reply = r;
        return 1;
    }
    reply_free(r);
    return 0;
}

/* Not there, and its id is well-formed. */
static bool is_gone(const struct err *err)
{
    return ask_is_refusal(err, "ELATER_NOJOB") && strstr(err->text, "there is no job") != NULL;
}

static int listen(struct await *w, struct err *err)
{
    int64_t left_ms = mono_until_us(mono_now(), w->deadline) / 1000 + 1;

    if (left_ms <= 1 && !mono_before(mono_now(), w->deadline))
        return err_set(err, ERR_TEMP, "job %.40s has not ended yet", w->id);
    return listen_for(w, left_ms < ASK_AGAIN_MS ? left_ms : ASK_AGAIN_MS, err);
}

/* What is not there may never have been: only who has seen the job knows. Who listened all the time
 * would have heard of its end. 1 or -1, as ask. */
static int be_gone(struct await *w, struct err *err)
{
    struct err ignored = ERR_INIT;

    if (w->was_there && listen_for(w, LAST_WORD_MS, &ignored) == 1)
        return 1;
    if (w->was_there && !w->was_deaf)
        return err_set(
            err, ERR_REFUSED,
            "ELATER_NOJOB job %.40s is gone, and has not ended: it was removed, or Redis "
            "has lost its data",
            w->id);
    return err_set(err, ERR_REFUSED,
                   "ELATER_NOJOB job %.40s has ended and its outcome was not kept%s (later add "
                   "--keep D keeps it, and for done jobs keep: of its queue)",
                   w->id, w->was_there ? ", or Redis has lost it" : ", or it was never here");
}

/* One round, as ask. */
static int look(struct await *w, struct err *err)
{
    int ended;

    if (w->events == NULL && subscribe(w, err) < 0)
        return -1;
    ended = ask(w, err);
    if (ended < 0 && is_gone(err))
        return be_gone(w, err);
    if (ended == 0) {
        w->was_there = true;
        again_well(&w->again);
        ended = listen(w, err);
    }
    return ended;
}

static int wait_for_end(struct await *w, struct err *err)
{
    int ended;

    while ((ended = look(w, err)) <= 0) {
        if (ended == 0)
            continue;
        if (!again_after(&w->again, w->cli, w->deadline, err))
            return -1;
        client_close(w->events);
        w->events = NULL;
        w->was_deaf = true;
    }
    return 0;
}

static int status_of(const struct outcome *o)
{
    if (strcmp(o->state, "done") == 0)
        return 0;
    if (strcmp(o->state, "cancelled") == 0)
        return STATUS_CANCELLED;
    return o->code >= 1 && o->code <= 255 ? (int)o->code : 1;
}

static void show_json(const char *id, const struct outcome *o)
{
    json_t *line = json_object();

    json_put_text(line, "id", id, strlen(id));
    outcome_to_json(o, line);
    json_print(line);
}

/* Print the output; arg: the id. */
static void show_output(void *arg, const struct cli *cli, const struct outcome *o)
{
    const char *id = arg;
    CLEANUP_BUF struct buf line = BUF_INIT;

    if (cli->json) {
        show_json(id, o);
        return;
    }
    if (out_is_tty())
        out_lines(o->output, o->output_len);
    else
        out_bytes(o->output, o->output_len);
    if (strcmp(o->state, "done") == 0)
        return;
    (void)out_flush();
    text_escape(&line, id, strlen(id));
    buf_puts(&line, " is ");
    text_escape(&line, o->state, strlen(o->state));
    buf_puts(&line, o->reason_len > 0 ? ": " : "");
    text_escape(&line, o->reason, o->reason_len);
    (void)fprintf(stderr, "later: job %s\n", buf_str(&line));
}

/* arg NULL: the id, which is known only here. */
int await_with(struct cli *cli, const char *job, struct mono deadline, await_show_f *show,
               void *arg, struct err *err)
{
    struct await w = {.cli = cli, .deadline = deadline};
    char text[SHARDS_ID];
    int status = -1;

    if (find_id(&w, job, err) == 0 && wait_for_end(&w, err) == 0) {
        status = status_of(&w.outcome);
        if (arg == NULL)
            arg = (void *)(uintptr_t)shards_show_id(&cli->server, w.id, text);
        show(arg, cli, &w.outcome);
    }
    reply_free(w.reply);
    client_close(w.events);
    return status;
}

int await_timeout(const struct cli *cli, int64_t *timeout_ms, struct err *err)
{
    if (cli_duration(cli, "wait-timeout", timeout_ms, err) < 0)
        return -1;
    if (cli_value(cli, "wait") == NULL && *timeout_ms != AWAIT_FOREVER)
        return err_set(err, ERR_USAGE, "--wait-timeout goes with --wait");
    return 0;
}

struct mono await_deadline(int64_t timeout_ms)
{
    return timeout_ms == AWAIT_FOREVER ? MONO_NEVER : mono_add_ms(mono_now(), timeout_ms);
}

int await_job(struct cli *cli, const char *job, int64_t timeout_ms, struct err *err)
{
    return await_with(cli, job, await_deadline(timeout_ms), show_output, NULL, err);
}
