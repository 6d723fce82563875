#include "cli/bulk/import_lines.h"

#include <stdlib.h>
#include <string.h>

#include "ask/shards.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/adds.h"
#include "cli/bulk/job_json.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

/* A payload of 16 MiB with each byte written as \u00XX, and 1 MiB for the rest of the line. */
#define LINE_MAX_BYTES ((6 * 16UL + 1) << 20)

/* The results of a single job beside "added", in the order of the report. */
static const char *const others[] = {"repeated", "dropped", "replaced", "moved"};
#define OTHERS (sizeof(others) / sizeof(others[0]))

/* A job with its own options is two or three times the work of a line of --from. */
#define CALL_LINES (ADDS_CALL_LINES / 2)
#define CALL_WORDS 1000 /* a client's call takes 1,100 at most; a line has about forty */

struct import {
    struct import_how how;
    struct call_args words;
    size_t ready; /* words of the next call; those after them are of a line that did not fit */
    uint64_t other[OTHERS];
};

static void send(struct adds *a)
{
    struct import *im = a->arg;

    call_args_argv(&im->words, a->cli->argv[0], im->ready);
    adds_send(a, (int)im->ready + 1, im->words.argv, im->words.lens);
    if (a->next.n > 0)
        return;
    call_args_drop(&im->words, im->ready);
    im->ready = 0;
}

static void refuse(struct adds *a, struct err *err)
{
    struct import *im = a->arg;
    uint64_t line = a->next.first + (uint64_t)a->next.n;

    call_args_cut(&im->words, im->ready);
    adds_finish(a);
    adds_name_line(err, line);
    adds_fail(a, err, line);
}

/* The shard of the last line, whose words begin at the first one; -1 with err. Its words are the
 * number of options, these, and the payload (job_json.h): with the queue in front, those of an add.
 * One that may go to any goes with those before it: calls of one line take three times as long. */
static int shard_of_line(struct adds *a, size_t first, struct err *err)
{
    struct import *im = a->arg;
    struct ask_server *s = &a->cli->server;
    int before = s->shard, shard, argc = (int)(im->words.n - first);
    const char *const *argv;
    const size_t *lens;

    if (s->target.shards == 0)
        return before;
    call_args_argv(&im->words, a->cli->argv[0], im->words.n);
    argv = im->words.argv + first + 1;
    lens = im->words.lens + first + 1;
    if (a->next.n > 0 && shards_is_any(argc, argv, lens))
        return before;
    if (shards_choose(s, SHARDS_BY_ADD, argc, argv, lens, NULL, err) < 0)
        return -1;
    shard = s->shard;
    shards_use(s, before);
    return shard;
}

/* Does the last line go into the next call? */
static bool fits(const struct adds *a, size_t bytes, bool is_alone, int shard)
{
    const struct import *im = a->arg;

    return !is_alone && shard == a->cli->server.shard && a->next.bytes + bytes <= ADDS_CALL_BYTES &&
           im->words.n <= CALL_WORDS;
}

static void take(struct adds *a, struct feed_line line)
{
    struct import *im = a->arg;
    struct err err = ERR_INIT;
    size_t before = im->words.bytes.len, first = im->words.n, bytes;
    bool is_alone = false;
    int shard;

    if (job_from_json(feed_at(&a->feed, line.offset), line.size, &im->how, &im->words, &is_alone,
                      &err) < 0 ||
        (shard = shard_of_line(a, first, &err)) < 0) {
        refuse(a, &err);
        return;
    }
    feed_drop(&a->feed, line.next);
    bytes = im->words.bytes.len - before;
    if (a->next.n > 0 && !fits(a, bytes, is_alone, shard)) {
        send(a);
        if (adds_is_over(a))
            return;
    }
    shards_use(&a->cli->server, shard);
    im->ready = im->words.n;
    adds_next_has(a, bytes);
    if (is_alone || a->next.n == CALL_LINES)
        send(a);
}

static bool is_good(struct adds *a, const struct reply *r, int n)
{
    struct import *im = a->arg;
    const struct reply *status = reply_at(r, 1);

    if (reply_kind(r) != REPLY_ARRAY || reply_int(reply_at(r, 0)) != n)
        return false;
    if (reply_is(status, "added"))
        return true;
    for (size_t i = 0; i < OTHERS && n == 1; i++) {
        if (!reply_is(status, others[i]))
            continue;
        im->other[i]++;
        return true;
    }
    return false;
}

static void too_long(struct adds *a, size_t size, struct err *err)
{
    (void)size;
    err_fill(err, ERR_FORMAT, "line %llu has more than %lu MiB", (unsigned long long)a->next.first,
             LINE_MAX_BYTES >> 20);
}

/* The library's text ends with " [record 3]" if it is about the third job of the call. */
static uint64_t name_error(struct adds *a, const struct adds_call *c, struct err *err)
{
    char *tag = strstr(err->text, " [record "), *next;
    uint64_t line = c->first;

    (void)a;
    while (tag != NULL && (next = strstr(tag + 1, " [record ")) != NULL)
        tag = next;
    if (tag != NULL && err->code == ERR_REFUSED) {
        line += strtoull(tag + strlen(" [record "), NULL, 10) - 1;
        *tag = '\0';
    }
    adds_name_line(err, line);
    return line;
}

static void tell(struct adds *a, const struct import *im)
{
    unsigned long long added = a->tally.count[LINE_ADDED];
    json_t *line = a->cli->json ? adds_json(a, a->cli->argv[0]) : NULL;

    for (size_t i = 0; i < OTHERS; i++)
        added -= im->other[i];
    if (line != NULL)
        json_put_int(line, "added", (int64_t)added);
    else
        out_printf("%llu %s added", added, added == 1 ? "job" : "jobs");
    for (size_t i = 0; i < OTHERS; i++) {
        if (line != NULL)
            json_put_int(line, others[i], (int64_t)im->other[i]);
        else if (im->other[i] > 0)
            out_printf(", %llu %s", (unsigned long long)im->other[i], others[i]);
    }
    if (line != NULL)
        json_print(line);
    else
        out_printf("\n");
}

int import_lines(struct cli *cli, const char *path, const struct import_how *how, struct err *err)
{
    static const struct adds_face face = {"later_v1_import", CALL_LINES, take,      send,
                                          is_good,           too_long,   name_error};
    struct import im = {.how = *how};
    struct adds a;
    int status = -1;

    if (adds_open(&a, cli, &face, &im, path, err) == 0) {
        a.max = LINE_MAX_BYTES;
        adds_run(&a);
        status = adds_tell(&a);
        tell(&a, &im);
        if (status == 0 && a.tally.count[LINE_ADDED] > 0)
            queue_name_warn(cli, cli->argv[0], "the jobs wait");
    }
    call_args_done(&im.words);
    adds_done(&a);
    return status;
}
