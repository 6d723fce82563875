/* later explain: what one job waits for. The library makes the sentence (later_explain). A queue is
 * explained by the job that would be its next. */
#include "cli/cli.h"

#include <string.h>

#include "ask/next_job.h"
#include "ask/replies.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "job/job.h"
#include "json/explain.h"

/* The instants that a reply may have, in the order they are shown. */
static const struct {
    const char *name, *label;
} instants[] = {
    {"added_ms", "added"},
    {"due_ms", "due"},
    {"granted_ms", "let in"},
    {"since_ms", "since"},
    {"held_since_ms", "held since"},
    {"unserved_since_ms", "unserved since"},
    {"beat_ms", "last heartbeat"},
    {"cancelling_ms", "cancelling since"},
    {"died_ms", "died"},
    {"ended_ms", "ended"},
    {"until_ms", "until"},
};

static void put(const struct reply *value)
{
    out_text(reply_str(value), reply_len(value));
}

static void show_instants(const struct reply *r, int64_t now_ms)
{
    char instant[48], when[48];

    for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
        const struct reply *value = reply_named(r, instants[i].name);

        if (value == NULL)
            continue;
        out_label(instants[i].label);
        out_printf("%s (%s)\n", out_instant(reply_int(value), instant),
                   out_when(reply_int(value), now_ms, when));
    }
}

static void show_holders(const struct reply *list, int64_t now_ms)
{
    char when[48];

    for (size_t i = 0; i + EXPLAIN_HOLDER <= reply_count(list); i += EXPLAIN_HOLDER) {
        const struct reply *who = reply_at(list, i), *queue = reply_at(list, i + 1);
        const struct reply *host = reply_at(list, i + 2), *until = reply_at(list, i + 3);
        bool is_caller = reply_str(who)[0] == '=';

        out_label(i == 0 ? "held by" : "");
        out_text(reply_str(who) + is_caller, reply_len(who) - is_caller);
        if (reply_len(queue) > 0) {
            out_printf(" of queue ");
            put(queue);
        }
        if (reply_len(host) > 0) {
            out_printf(" on ");
            put(host);
        }
        if (reply_int(until) > 0)
            out_printf(" until its lease ends, %s", out_when(reply_int(until), now_ms, when));
        out_printf("\n");
    }
}

static void show_workers(const struct reply *list)
{
    for (size_t i = 0; i + EXPLAIN_WORKER <= reply_count(list); i += EXPLAIN_WORKER) {
        /* It may have claimed more than it has places. */
        int64_t held = reply_int(reply_at(list, i + 4)), places = reply_int(reply_at(list, i + 5));

        out_label(i == 0 ? "workers" : "");
        put(reply_at(list, i));
        out_printf(" on ");
        put(reply_at(list, i + 1));
        out_printf(" (pid ");
        put(reply_at(list, i + 2));
        out_printf("): ");
        put(reply_at(list, i + 3));
        out_printf(", %lld of %lld places\n", (long long)(held < places ? held : places),
                   (long long)places);
    }
}

static void show(const struct reply *r)
{
    int64_t now_ms = reply_int(reply_named(r, "now_ms"));

    out_printf("%s", out_style(OUT_BOLD));
    put(reply_named(r, "id"));
    out_printf("%s (", out_style(OUT_PLAIN));
    put(reply_named(r, "queue"));
    out_printf(", ");
    put(reply_named(r, "state"));
    out_printf("): ");
    put(reply_named(r, "text"));
    out_printf("\n");
    show_instants(r, now_ms);
    show_holders(reply_named(r, "holders"), now_ms);
    show_workers(reply_named(r, "workers"));
}

/* ---- a queue */

/* What an operator counts. stats: later_stats of the queue. */
static const struct count {
    const char *name, *word;
} counts[] = {
    {"waiting", "waiting"}, {"parked", "of them parked"}, {"running", "running"}, {"dead", "dead"}};

static int64_t count_of(const struct reply *stats, size_t i)
{
    const struct reply *row = reply_at(stats, STATS_QUEUES), *more = reply_at(stats, STATS_STATES);

    return i == 0   ? reply_int(reply_at(row, QUEUE_WAITING)) + reply_int(reply_at(row, QUEUE_RAW))
           : i == 1 ? reply_int(reply_at(more, 1))
           : i == 2 ? reply_int(reply_at(more, 0))
                    : reply_int(reply_at(row, QUEUE_DEAD));
}

#define COUNTS (sizeof(counts) / sizeof(counts[0]))

static void show_queue(const struct cli *cli, const struct reply *stats,
                       const struct next_job *next, const struct reply *first)
{
    json_t *line = json_object();

    json_put_text(line, "queue", cli->argv[0], strlen(cli->argv[0]));
    for (size_t i = 0; i < COUNTS; i++)
        json_put_int(line, counts[i].name, count_of(stats, i));
    if (first != NULL && cli->json)
        (void)json_object_set_new(line, "next", explain_to_json(first));
    if (cli->json) {
        json_print(line);
        return;
    }
    json_decref(line);
    out_printf("%s%s%s:", out_style(OUT_BOLD), cli->argv[0], out_style(OUT_PLAIN));
    for (size_t i = 0; i < COUNTS; i++)
        out_printf("%s %lld %s", i > 0 ? "," : "", (long long)count_of(stats, i), counts[i].word);
    if (!next->is_there)
        out_printf("; no job waits\n");
    else if (first == NULL)
        out_printf(
            "; the next one was written by ZADD and has no id yet (later workers: who serves "
            "the queue?)\n");
    else
        out_printf("; the next one:\n");
    if (first != NULL)
        show(first);
}

static int explain_queue(struct cli *cli, struct err *err)
{
    struct next_job next;
    struct reply *stats, *first = NULL;
    int64_t now_ms;
    int rc;

    if (queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    stats = ask_words(&cli->server, err, "later_stats", cli->argv[0], NULL);
    if (stats == NULL)
        return -1;
    now_ms = reply_int(reply_at(stats, STATS_NOW));
    rc = next_job_find(&cli->server, cli->argv[0], now_ms, &next, err);
    if (rc == 0 && next.id[0] != '\0') {
        first = ask_present_one(&cli->server, "later_explain", next.id, err);
        rc = first != NULL ? 0 : -1;
    }
    if (rc == 0)
        show_queue(cli, stats, &next, first);
    reply_free(first);
    reply_free(stats);
    return rc;
}

static int run(struct cli *cli, struct err *err)
{
    const char *what = cli->argv[0];
    struct reply *r;

    if (!job_is_id(what, strlen(what)) && text_is_queue_name(what, strlen(what)))
        return each_shard(cli, explain_queue, err);
    r = ask_words(&cli->server, err, "later_explain", what, NULL);
    if (r == NULL)
        return -1;
    if (cli->json)
        json_print(explain_to_json(r));
    else
        show(r);
    reply_free(r);
    return 0;
}

const struct cli_verb cmd_explain = {
    "explain",
    "ID|QUEUE",
    "why a job or a queue does not run: the one thing it waits for",
    "Name the one thing that a job waits for: that it is due, its queue to be resumed, a\n"
    "lock (who holds it, where, since when), a semaphore (how full, who holds it), a rate\n"
    "(when the next one passes), with how many are before it; a worker that serves its\n"
    "queue, or room in one; or its turn. A running job is explained by where it runs, a\n"
    "dead one by what it died of and what `later retry` would do.\n"
    "\n"
    "Of a QUEUE its jobs are counted, and the one that would start next is explained. ID may be\n"
    "QUEUE@UNIQUE. With --json the facts by name: waits_for is one of time pause\n"
    "lock semaphore rate worker room alone turn handler retry nothing (doc/protocol.md).",
    1,
    1,
    false,
    NULL,
    run,
};
