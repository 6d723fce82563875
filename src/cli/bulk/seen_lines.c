#include "cli/bulk/seen_lines.h"

#include <stdio.h>
#include <string.h>

#include "cli/bulk/adds.h"
#include "cli/bulk/feed.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define FUNCTION "later_seen"
#define CALLS_MAX 128 /* under way */

struct asking {
    struct cli *cli;
    const char *name;
    const struct ask_call *options;
    struct feed feed;
    struct feed_line line[CALLS_MAX]; /* without an answer, the oldest first */
    unsigned long long number[CALLS_MAX];
    size_t n;
    size_t behind;            /* offset behind all lines that were handed out */
    unsigned long long lines; /* handed out */
    unsigned long long found; /* new ones */
    unsigned long long told;  /* up to this line the new ones were written out */
    bool has_called;
    struct err err; /* the first error */
};

void seen_put_json(const char *name, const char *key, size_t n, const char *status)
{
    json_t *line = json_object();

    json_put_text(line, "name", name, strlen(name));
    json_put_bytes(line, "key", key, n);
    json_put_text(line, "status", status, strlen(status));
    json_print(line);
}

static void fail(struct asking *a, const struct err *why, unsigned long long number)
{
    if (a->err.code != ERR_NONE)
        return;
    a->err = *why;
    adds_name_line(&a->err, number);
}

/* r: the answer for a line, or NULL with why. */
static void take(struct asking *a, size_t i, struct reply *r, const struct err *why)
{
    const char *key = feed_at(&a->feed, a->line[i].offset);
    size_t n = a->line[i].size;

    if (r == NULL) {
        fail(a, why, a->number[i]);
    } else if (reply_int(reply_at(r, 0)) == 0) {
        a->found++;
        if (a->cli->json) {
            seen_put_json(a->name, key, n, "new");
        } else {
            out_bytes(key, n);
            out_bytes("\n", 1);
        }
    }
    reply_free(r);
}

/* Take all answers, and give up the lines. */
static void take_all(struct asking *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct err why = ERR_INIT;
        struct reply *r = client_answer(a->cli->server.client, &why);
        bool is_lost = r == NULL && client_is_broken(a->cli->server.client);

        take(a, i, r, &why);
        if (is_lost)
            break;
    }
    a->n = 0;
    feed_drop(&a->feed, a->behind);
    a->behind = 0;
    if (out_flush())
        a->told = a->lines;
}

/* A key that was asked for is remembered, and nobody can take that back. */
static void tell_unwritten(const struct asking *a)
{
    if (out_has_failed() && a->lines > a->told)
        (void)fprintf(stderr,
                      "later: the new keys of lines %llu to %llu are remembered now, but were not "
                      "written\n",
                      a->told + 1, a->lines);
}

/* Ask for a line. The first call waits for its answer: it loads a missing library. */
static void ask(struct asking *a, struct feed_line line)
{
    struct ask_call call = {.n = 0};
    struct err why = ERR_INIT;

    ask_call_puts(&call, a->name);
    ask_call_add(&call, feed_at(&a->feed, line.offset), line.size);
    for (int i = 0; i < a->options->n; i++)
        ask_call_add(&call, a->options->argv[i], a->options->lens[i]);
    a->line[a->n] = line;
    a->number[a->n] = a->lines;
    if (!a->has_called) {
        struct reply *r = ask_fcall(&a->cli->server, FUNCTION, &call, &why);

        a->has_called = true;
        take(a, a->n, r, &why);
    } else if (client_fcall_send(a->cli->server.client, a->cli->server.target.ns, FUNCTION, call.n,
                                 call.argv, call.lens, &why) < 0) {
        fail(a, &why, a->lines);
    } else {
        a->n++;
    }
}

/* The next line, or what there is instead. Returns whether to go on. */
static bool step(struct asking *a)
{
    struct err why = ERR_INIT;
    struct feed_line line;
    enum feed_got got = feed_next(&a->feed, SEEN_KEY_MAX, &line);

    if (got == FEED_LINE) {
        a->lines++;
        a->behind = line.next;
        if (line.size > 0)
            ask(a, line);
        if (a->n == CALLS_MAX)
            take_all(a);
        return true;
    }
    take_all(a);
    if (got == FEED_LONG) {
        err_fill(&why, ERR_REFUSED, "ELATER_KEY the key has more than %d bytes", SEEN_KEY_MAX);
        fail(a, &why, a->lines + 1);
    }
    if (got != FEED_NONE)
        return false;
    if (feed_read(&a->feed, -1, true, &why) < 0)
        fail(a, &why, a->lines + 1);
    return true;
}

int seen_lines(struct cli *cli, const char *name, const struct ask_call *options, const char *path,
               struct err *err)
{
    struct asking a = {.cli = cli, .name = name, .options = options, .err = ERR_INIT};
    int rc = feed_open(&a.feed, path, err);

    while (rc == 0 && a.err.code == ERR_NONE && !out_has_failed() && step(&a))
        continue;
    if (rc == 0)
        take_all(&a);
    tell_unwritten(&a);
    feed_done(&a.feed);
    if (rc < 0)
        return -1;
    if (a.err.code != ERR_NONE) {
        *err = a.err;
        return -1;
    }
    return a.found > 0 ? 0 : 1;
}
