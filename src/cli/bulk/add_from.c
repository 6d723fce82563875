#include "cli/bulk/add_from.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/args/recents.h"
#include "cli/bulk/adds.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

/* The limit of later_add_many for one call, and so for a line, whatever max_payload says. */
#define LINE_MAX_BYTES (16UL << 20)
/* As in the library: MAX_PAYLOAD, and LEAST_LIMIT, which passes whatever max_payload says. */
#define PAYLOAD_DEFAULT (1 << 20)
#define PAYLOAD_LEAST 1024

/* The payloads are the lines in the feed's buffer, not copies. */
struct adding {
    const struct ask_call *front; /* queue and options */
    struct feed_line line[ADDS_CALL_LINES];
    char id[RECENTS_MAX][RECENTS_ID]; /* of the jobs that were added last */
    uint64_t nids;                    /* how many there were in all */
};

static const char *queue_of(const struct adds *a)
{
    return ((const struct adding *)a->arg)->front->argv[0];
}

static void send(struct adds *a)
{
    struct adding *l = a->arg;
    const char *argv[ASK_CALL_MAX + 1 + ADDS_CALL_LINES];
    size_t lens[ASK_CALL_MAX + 1 + ADDS_CALL_LINES];
    size_t behind = l->line[a->next.n - 1].next;
    int argc = l->front->n;

    memcpy(argv, l->front->argv, (size_t)argc * sizeof(argv[0]));
    memcpy(lens, l->front->lens, (size_t)argc * sizeof(lens[0]));
    argv[argc] = "--";
    lens[argc++] = 2;
    for (int i = 0; i < a->next.n; i++, argc++) {
        argv[argc] = feed_at(&a->feed, l->line[i].offset);
        lens[argc] = l->line[i].size;
    }
    adds_send(a, argc, argv, lens);
    if (a->next.n == 0)
        feed_drop(&a->feed, behind);
}

static void take(struct adds *a, struct feed_line line)
{
    struct adding *l = a->arg;

    if (a->next.n > 0 && a->next.bytes + line.size > ADDS_CALL_BYTES) {
        size_t dropped = l->line[a->next.n - 1].next;

        send(a);
        if (adds_is_over(a))
            return;
        line.offset -= dropped;
        line.next -= dropped;
    }
    l->line[a->next.n] = line;
    adds_next_has(a, line.size);
    if (a->next.n == ADDS_CALL_LINES)
        send(a);
}

static void keep_id(struct adding *l, const char *id)
{
    text_copy(l->id[l->nids++ % RECENTS_MAX], RECENTS_ID, id);
}

static bool is_good(struct adds *a, const struct reply *r, int n)
{
    if (reply_kind(r) != REPLY_ARRAY || reply_count(r) != (size_t)n)
        return false;
    for (size_t i = 0; i < (size_t)n; i++) {
        if (!reply_is(reply_at(reply_at(r, i), 1), "added"))
            return false;
    }
    for (size_t i = n > RECENTS_MAX ? (size_t)(n - RECENTS_MAX) : 0; i < (size_t)n; i++)
        keep_id(a->arg, reply_str(reply_at(reply_at(r, i), 0)));
    return true;
}

static void note_ids(const struct adding *l, struct cli *cli)
{
    uint64_t n = l->nids < RECENTS_MAX ? l->nids : RECENTS_MAX;
    const char *ids[RECENTS_MAX];

    for (uint64_t i = 0; i < n; i++)
        ids[i] = l->id[(l->nids - n + i) % RECENTS_MAX];
    if (!ask_is_broken(&cli->server))
        recents_note(cli, ids, n);
}

static void too_long(struct adds *a, size_t size, struct err *err)
{
    unsigned long long line = a->next.first;
    size_t bytes = size > 0 ? size : a->max;
    const char *more = size > 0 ? "" : "more than ";

    if (a->max < LINE_MAX_BYTES)
        err_fill(err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %s%zu bytes, queue %s takes %zu (max_payload)", line,
                 more, bytes, queue_of(a), a->max);
    else
        err_fill(err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %s%zu bytes; --from takes lines of %zu, and no longer "
                 "ones than the queue (max_payload)",
                 line, more, bytes, a->max);
}

static uint64_t name_error(struct adds *a, const struct adds_call *c, struct err *err)
{
    /* The limit was lowered meanwhile, or we may not read it. Some line of the call is over it, so
     * the longest one certainly is. */
    if (ask_is_refusal(err, "ELATER_SIZE")) {
        err_fill(err, ERR_REFUSED,
                 "ELATER_SIZE line %llu has %zu bytes, more than queue %s takes (max_payload)",
                 (unsigned long long)c->longest, c->longest_bytes, queue_of(a));
        return c->longest;
    }
    /* A refusal of the very first call is about the options, not about a line. */
    if (c->first > 1 || err->code != ERR_REFUSED)
        adds_name_line(err, c->first);
    return c->first;
}

/* Read the queue's max_payload, to find a longer line before the lines after it are sent. If we may
 * not read it, the library refuses the line. 0 or -1. */
static int find_max(struct adds *a, struct err *err)
{
    CLEANUP_FREE char *key = mem_printf("later:{%s}:config", a->cli->server.target.ns);
    CLEANUP_FREE char *of_queue = mem_printf("max_payload:%s", queue_of(a));
    const char *const ask[] = {"HMGET", key, of_queue, "max_payload"};
    struct reply *r = client_call(a->cli->server.client, 4, ask, NULL, err);
    int64_t max = PAYLOAD_DEFAULT;

    a->max = LINE_MAX_BYTES;
    if (r == NULL)
        return client_is_broken(a->cli->server.client) ? -1 : 0;
    if (text_parse_int(reply_str(reply_at(r, 0)), 0, INT64_MAX, &max) < 0)
        (void)text_parse_int(reply_str(reply_at(r, 1)), 0, INT64_MAX, &max);
    if (max < PAYLOAD_LEAST)
        max = PAYLOAD_LEAST;
    if (max < (int64_t)LINE_MAX_BYTES)
        a->max = (size_t)max;
    reply_free(r);
    return 0;
}

int add_from(struct cli *cli, const struct ask_call *front, const char *path, struct err *err)
{
    static const struct adds_face face = {"later_add_many", ADDS_CALL_LINES, take,      send,
                                          is_good,          too_long,        name_error};
    struct adding l = {.front = front};
    struct adds a;
    int status = -1;

    if (adds_open(&a, cli, &face, &l, path, err) == 0 && find_max(&a, err) == 0) {
        unsigned long long added;

        adds_run(&a);
        added = a.tally.count[LINE_ADDED];
        note_ids(&l, cli);
        status = adds_tell(&a);
        if (cli->json)
            json_print(adds_json(&a, queue_of(&a)));
        else
            out_printf("%llu %s added\n", added, added == 1 ? "job" : "jobs");
        if (status == 0 && added > 0)
            queue_name_warn(cli, queue_of(&a), "the jobs wait");
    }
    adds_done(&a);
    return status;
}
