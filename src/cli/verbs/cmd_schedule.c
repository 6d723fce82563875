/* later schedule: what adds jobs again and again. One function for each of its subcommands. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask/schedules.h"
#include "ask/shards.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/args/recents.h"
#include "cli/args/subcommands.h"
#include "cli/args/thens.h"
#include "cli/args/when.h"
#include "cli/args/whoami.h"
#include "cli/bulk/import_crontab.h"
#include "cli/each_shard.h"
#include "cli/show/calendar.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/schedule.h"
#include "cli/show/status.h"
#include "cli/show/table.h"
#include "schedule/catch_up.h"

#define NEXT_STANDARD 5
#define NEXT_MOST 10000

/* Call the function with the name of the schedule. The caller frees the reply; NULL with err. */
static struct reply *call_named(struct cli *cli, const char *function, struct err *err)
{
    return ask_words(&cli->server, err, function, cli->argv[1], NULL);
}

/* Show [NAME, status], and free it. 0, or -1 if it is NULL. */
static int show_status(const struct cli *cli, struct reply *r)
{
    if (r == NULL)
        return -1;
    status_show_again(cli, "schedule", cli->argv[1], reply_str(reply_at(r, 1)), "is not paused");
    reply_free(r);
    return 0;
}

/* The wall clock of this machine; only `next`, which need not ask Redis, goes by it. */
static int64_t local_now_ms(void)
{
    return wall_skew_ms(0);
}

/* ---- add */

static void add_renamed(struct ask_call *call, const struct cli *cli, const char *option,
                        const char *name)
{
    if (cli_value(cli, option) == NULL)
        return;
    ask_call_puts(call, name);
    ask_call_puts(call, cli_value(cli, option));
}

/* Without --queue the name is the queue, and may have letters that a queue has not: say so. */
static void name_is_no_queue(const struct cli *cli, struct err *err)
{
    if (!ask_is_refusal(err, "ELATER_QUEUE") || cli_value(cli, "queue") != NULL ||
        text_is_queue_name(cli->argv[1], strlen(cli->argv[1])))
        return;
    err_fill(err, ERR_REFUSED,
             "ELATER_QUEUE the schedule would have a queue of its name, which is no queue name "
             "(letters, digits, _ and -, at most 64): give --queue QUEUE");
}

static int run_add(struct cli *cli, struct err *err)
{
    static const char *const names[] = {
        "tz",       "queue",   "overlap", "splay", "from", "until", "priority", "key",
        "attempts", "timeout", "expire",  "keep",  "lock", "sem",   "rate",     NULL};
    CLEANUP_FREE char *thens = NULL;
    const char *tz = cli_value(cli, "tz"), *queue = cli_value(cli, "queue");
    struct ask_call call = {.n = 0};
    struct reply *r;

    if (schedules_check(cli->argv[2], cli->argv[3], tz != NULL ? tz : "UTC", err) < 0)
        return -1;
    ask_call_puts(&call, cli->argv[1]);
    ask_call_puts(&call, cli->argv[2]);
    ask_call_puts(&call, cli->argv[3]);
    cli_call_options(&call, cli, names);
    add_renamed(&call, cli, "catch-up", "catch_up");
    add_renamed(&call, cli, "catch-up-window", "catch_up_window");
    add_renamed(&call, cli, "on-dead", "on_dead");
    if (thens_add(&call, cli, &thens, err) < 0)
        return -1;
    ask_call_puts(&call, cli->argc > 4 ? cli->argv[4] : "");
    r = ask_fcall(&cli->server, "later_schedule_set", &call, err);
    if (r == NULL)
        name_is_no_queue(cli, err);
    if (show_status(cli, r) < 0)
        return -1;
    queue_name_warn(cli, queue != NULL ? queue : cli->argv[1], "its jobs wait");
    return 0;
}

/* ---- ls, show */

struct listing {
    const struct cli *cli;
    struct table table;
};

static bool put_row(void *arg, const struct reply *row, int64_t now_ms)
{
    struct listing *l = arg;

    schedule_put_row(l->cli, &l->table, row, now_ms);
    return !out_has_failed();
}

static int list_all(struct cli *cli, struct err *err)
{
    struct listing l = {.cli = cli};
    int rc;

    schedule_table_columns(&l.table);
    rc = schedules_each(&cli->server, put_row, &l, err);
    if (rc == 0 && !cli->json)
        table_flush(&l.table);
    table_done(&l.table);
    return rc;
}

static int run_ls(struct cli *cli, struct err *err)
{
    return each_shard(cli, list_all, err);
}

static int run_show(struct cli *cli, struct err *err)
{
    struct reply *r = call_named(cli, "later_schedules", err);

    if (r == NULL)
        return -1;
    schedule_show(cli, r, ask_now_ms(&cli->server));
    reply_free(r);
    return 0;
}

/* ---- next */

/* What `next` is about: a schedule in Redis, or an expression. */
struct subject {
    char *when, *tz; /* owned */
    int64_t from_ms, until_ms;
};

static void subject_done(struct subject *of)
{
    free(of->when);
    free(of->tz);
}

/* The schedule of this name. 0, or -1 with err. */
static int find_schedule(struct cli *cli, struct subject *ret, struct err *err)
{
    struct reply *r = call_named(cli, "later_schedules", err);

    if (r == NULL)
        return -1;
    ret->when = mem_strdup(reply_str(reply_named(r, "when")));
    ret->tz = mem_strdup(reply_str(reply_named(r, "tz")));
    ret->from_ms = reply_named_int(r, "from_ms", 0);
    ret->until_ms = reply_named_int(r, "until_ms", TIMING_NEVER);
    reply_free(r);
    return 0;
}

/* A schedule or an expression: this has a space or begins with @, a name has neither. 0, or -1 with
 * err. */
static int find_subject(struct cli *cli, struct subject *ret, struct err *err)
{
    const char *text = cli->argv[1], *tz = cli_value(cli, "tz");

    if (strchr(text, ' ') != NULL || text[0] == '@') {
        ret->when =
            strncmp(text, "every ", 6) == 0 ? mem_strdup(text) : mem_printf("cron %s", text);
        ret->tz = mem_strdup(tz != NULL ? tz : "UTC");
        ret->from_ms = 0;
        ret->until_ms = TIMING_NEVER;
        return 0;
    }
    if (tz != NULL)
        return err_set(err, ERR_USAGE, "--tz goes with an expression: a schedule has its own");
    return find_schedule(cli, ret, err);
}

/* When it is due. -> its zone, which the rule needs and the caller frees; NULL with err */
static struct zone *subject_rule(const struct subject *of, struct catch_up_rule *ret,
                                 struct err *err)
{
    struct zone *zone = zone_new(of->tz, err);

    *ret = (struct catch_up_rule){.from_ms = of->from_ms, .until_ms = of->until_ms};
    if (zone == NULL || timing_parse_when(of->when, zone, &ret->timing, err) < 0) {
        zone_free(zone);
        return NULL;
    }
    ret->timing.anchor_ms = of->from_ms;
    return zone;
}

static int put_next(const struct cli *cli, const struct subject *of, int64_t after_ms, int64_t n,
                    struct err *err)
{
    struct catch_up_rule rule;
    struct zone *zone = subject_rule(of, &rule, err);
    int64_t now_ms = local_now_ms();

    if (zone == NULL)
        return -1;
    for (; n > 0 && (after_ms = catch_up_first(&rule, after_ms)) != TIMING_NEVER; n--)
        schedule_put_occurrence(cli, zone, after_ms, now_ms);
    zone_free(zone);
    if (n > 0 && of->until_ms == TIMING_NEVER)
        return err_set(err, ERR_FORMAT, "'%.100s' has no occurrence in the nine years behind that",
                       of->when);
    return 0;
}

static int run_next(struct cli *cli, struct err *err)
{
    int64_t n = NEXT_STANDARD, after_ms = local_now_ms();
    const char *after = cli_value(cli, "after"), *count = cli_value(cli, "count");
    struct subject of;
    int result;

    if (count != NULL && text_parse_int(count, 1, NEXT_MOST, &n) < 0)
        return err_set(err, ERR_USAGE, "-n %.20s: write 1 to %d", count, NEXT_MOST);
    if (after != NULL && when_read_machine(after, after_ms, &after_ms) < 0)
        return err_set(err, ERR_USAGE,
                       "--after %.40s: write ms, 2030-01-31T09:00:00Z or a time as 09:00", after);
    if (find_subject(cli, &of, err) < 0)
        return -1;
    result = put_next(cli, &of, after_ms, n, err);
    subject_done(&of);
    return result;
}

/* ---- rm, pause, resume, run-now */

static int run_rm(struct cli *cli, struct err *err)
{
    return show_status(cli, call_named(cli, "later_schedule_del", err));
}

static int run_pause(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"by", "reason", "for", NULL};
    struct ask_call call = {.n = 0};
    char who[192];

    ask_call_puts(&call, cli->argv[1]);
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "by") == NULL) {
        whoami(who, sizeof(who));
        ask_call_puts(&call, "by");
        ask_call_puts(&call, who);
    }
    return show_status(cli, ask_fcall(&cli->server, "later_schedule_pause", &call, err));
}

static int run_resume(struct cli *cli, struct err *err)
{
    return show_status(cli, call_named(cli, "later_schedule_resume", err));
}

static int run_now(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"at", NULL};
    struct ask_call call = {.n = 0};
    char text[SHARDS_ID];
    const char *id;
    struct reply *r;
    bool is_added;

    ask_call_puts(&call, cli->argv[1]);
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "force") != NULL)
        ask_call_puts(&call, "force");
    r = ask_fcall(&cli->server, "later_schedule_run", &call, err);
    if (r == NULL)
        return -1;
    is_added = reply_is(reply_at(r, 1), "added");
    id = shards_show_id(&cli->server, reply_str(reply_at(r, 0)), text);
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "id", id, strlen(id));
        json_put_text(line, "status", reply_str(reply_at(r, 1)), reply_len(reply_at(r, 1)));
        json_put_int(line, "due_ms", reply_int(reply_at(r, 2)));
        json_print(line);
    } else if (is_added) {
        out_text(id, strlen(id));
        out_printf("\n");
    } else {
        (void)fprintf(stderr, "later: not added: the last job of this schedule has not ended, and "
                              "its overlap keeps another one out (--force adds it)\n");
    }
    if (is_added)
        recents_note(cli, &id, 1);
    reply_free(r);
    return is_added ? 0 : 1;
}

/* ---- backfill */

#define BACKFILL_STANDARD 1000
#define BACKFILL_MOST 100000

/* Which occurrences get a job again, and how far apart these are due. */
struct backfill {
    int64_t from_ms, to_ms, spread_ms, limit;
};

static int read_range(struct cli *cli, struct backfill *ret, struct err *err)
{
    const char *from = cli_value(cli, "from"), *to = cli_value(cli, "to");
    int64_t now_ms;

    if (ask_connect(&cli->server, err) < 0)
        return -1;
    now_ms = ask_now_ms(&cli->server);
    if (now_ms == 0)
        now_ms = local_now_ms();
    if (from == NULL || when_read_machine(from, now_ms, &ret->from_ms) < 0 || to == NULL ||
        when_read_machine(to, now_ms, &ret->to_ms) < 0)
        return err_set(err, ERR_USAGE, "write --from TIME --to TIME, as 2030-01-31T09:00:00Z");
    if (ret->to_ms > now_ms)
        return err_set(err, ERR_FORMAT,
                       "--to is in the future: what is to come the schedule adds itself; write "
                       "--to now");
    if (ret->from_ms > ret->to_ms)
        return err_set(err, ERR_USAGE, "--from is later than --to");
    return 0;
}

static int read_backfill(struct cli *cli, struct backfill *ret, struct err *err)
{
    const char *limit = cli_value(cli, "limit");

    *ret = (struct backfill){.limit = BACKFILL_STANDARD};
    if (limit != NULL && text_parse_int(limit, 1, BACKFILL_MOST, &ret->limit) < 0)
        return err_set(err, ERR_USAGE, "--limit %.20s: write 1 to %d", limit, BACKFILL_MOST);
    if (cli_duration(cli, "spread", &ret->spread_ms, err) < 0)
        return -1;
    if (ret->spread_ms > TIMING_EVERY_MAX_MS)
        return err_set(err, ERR_USAGE, "--spread is longer than 100 years");
    return read_range(cli, ret, err);
}

/* The occurrences of the range, which the caller frees. -1 with err: there are more than fit. */
static int64_t *list_occurrences(const struct catch_up_rule *rule, const struct backfill *b,
                                 size_t *ret_n, struct err *err)
{
    int64_t *all = NULL, at = catch_up_first(rule, b->from_ms - 1);

    for (*ret_n = 0; at <= b->to_ms && at != TIMING_NEVER; at = catch_up_first(rule, at)) {
        if (*ret_n == (size_t)b->limit) {
            free(all);
            err_fill(err, ERR_USAGE,
                     "there are more than %" PRId64 " occurrences: raise --limit, "
                     "or take a shorter time",
                     b->limit);
            return NULL;
        }
        all = mem_grow(all, *ret_n + 1, sizeof(*all));
        all[(*ret_n)++] = at;
    }
    return all != NULL ? all : mem_new(1);
}

/* Add the job of an occurrence, due delay_ms from now. 0 or -1. */
static int add_past(struct cli *cli, int64_t at_ms, int64_t delay_ms, struct err *err)
{
    char occurrence[24], due[24];
    struct reply *r;

    (void)snprintf(occurrence, sizeof(occurrence), "%" PRId64, at_ms);
    (void)snprintf(due, sizeof(due), "+%" PRId64 "ms", delay_ms);
    r = ask_words(&cli->server, err, "later_schedule_run", cli->argv[1], "for", occurrence, "at",
                  due, "force", NULL);
    reply_free(r);
    return r != NULL ? 0 : -1;
}

static int add_all(struct cli *cli, const struct subject *of, const struct backfill *b,
                   struct err *err)
{
    struct catch_up_rule rule;
    struct zone *zone = subject_rule(of, &rule, err);
    CLEANUP_FREE int64_t *all = NULL;
    size_t n = 0, added = 0;

    if (zone == NULL)
        return -1;
    all = list_occurrences(&rule, b, &n, err);
    zone_free(zone);
    if (all == NULL)
        return -1;
    while (added < n &&
           add_past(cli, all[added], b->spread_ms * (int64_t)added / (int64_t)n, err) == 0)
        added++;
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "schedule", cli->argv[1], strlen(cli->argv[1]));
        json_put_int(line, "added", (int64_t)added);
        json_print(line);
    } else {
        out_printf("%zu %s added\n", added, added == 1 ? "job" : "jobs");
    }
    return added == n ? 0 : -1;
}

static int run_backfill(struct cli *cli, struct err *err)
{
    struct backfill b;
    struct subject of;
    int result;

    if (read_backfill(cli, &b, err) < 0 || find_schedule(cli, &of, err) < 0)
        return -1;
    result = add_all(cli, &of, &b, err);
    subject_done(&of);
    return result;
}

/* ---- calendar */

/* 0, or -1 with err: there is no such schedule. */
static int need_schedule(struct cli *cli, struct err *err)
{
    struct reply *r = call_named(cli, "later_schedules", err);
    int rc = r != NULL ? 0 : -1;

    reply_free(r);
    return rc;
}

static int run_calendar(struct cli *cli, struct err *err)
{
    const char *text = cli_value(cli, "year");
    int64_t now_s = local_now_ms() / 1000, year;
    time_t at = (time_t)now_s;
    struct reply *r;
    char number[24];
    struct tm tm;

    (void)gmtime_r(&at, &tm);
    year = tm.tm_year + 1900;
    if (text != NULL && text_parse_int(text, 1970, 9998, &year) < 0)
        return err_set(err, ERR_USAGE, "--year %.20s: write it as 2026", text);
    (void)snprintf(number, sizeof(number), "%" PRId64, year);
    r = ask_words(&cli->server, err, "later_schedule_calendar", cli->argv[1], number, NULL);
    if (r == NULL)
        return -1;
    if (reply_len(r) == 0 && need_schedule(cli, err) < 0) {
        reply_free(r);
        return -1;
    }
    /* A zone may be a day ahead. */
    calendar_show(cli, cli->argv[1], (int)year, reply_str(r), reply_len(r), now_s / 86400 + 1);
    reply_free(r);
    return 0;
}

/* ---- the verb */

static const char *const of_add[] = {
    "tz",    "queue",    "overlap", "catch-up", "catch-up-window", "splay",  "from",
    "until", "priority", "key",     "attempts", "timeout",         "expire", "keep",
    "lock",  "sem",      "rate",    "then",     "on-dead",         NULL};

static const struct subcommand subcommands[] = {
    {"add", 3, 4, "NAME cron EXPRESSION|every D [PAYLOAD]", of_add, run_add},
    {"ls", 0, 0, "no operands", (const char *const[]){NULL}, run_ls},
    {"show", 1, 1, "one NAME", (const char *const[]){NULL}, run_show},
    {"next", 1, 1, "one NAME or 'EXPRESSION'", (const char *const[]){"count", "after", "tz", NULL},
     run_next},
    {"backfill", 1, 1, "one NAME", (const char *const[]){"from", "to", "spread", "limit", NULL},
     run_backfill},
    {"calendar", 1, 1, "one NAME", (const char *const[]){"year", NULL}, run_calendar},
    {"import", 1, 1, "one CRONTAB (-: standard input)",
     (const char *const[]){"queue", "tz", "prefix", "system", "dry-run", NULL}, import_crontab},
    {"rm", 1, 1, "one NAME", (const char *const[]){NULL}, run_rm},
    {"pause", 1, 1, "one NAME", (const char *const[]){"by", "reason", "for", NULL}, run_pause},
    {"resume", 1, 1, "one NAME", (const char *const[]){NULL}, run_resume},
    {"run-now", 1, 1, "one NAME", (const char *const[]){"at", "force", NULL}, run_now},
    {NULL, 0, 0, NULL, NULL, NULL},
};

static const struct cli_option options[] = {
    {"tz", "ZONE", "add, next, import: time zone of a cron expression (default: UTC)"},
    {"queue", "QUEUE",
     "add: where its jobs go (default: NAME); import: whose handler runs the commands"},
    {"overlap", "allow|skip|queue|replace",
     "add: while the last job has not ended (default: allow)"},
    {"catch-up", "none|last|all", "add: occurrences that no worker was there for (default: last)"},
    {"catch-up-window", "D", "add: those that are older are missed (default: 1d)"},
    {"splay", "D", "add: jobs are due up to so much later, always the same"},
    {"from", "TIME", "add: the first time; backfill: from then on"},
    {"to", "TIME", "backfill: until then, at most until now"},
    {"spread", "D", "backfill: the jobs are due one after the other, over this time"},
    {"limit", "N", "backfill: at most so many (default: 1000)"},
    {"until", "TIME", "add: the last time"},
    {"priority", "0-9", "add: 0 goes first (default: 5)"},
    {"key", "KEY", "add: the job's key"},
    {"attempts", "N", "add: how often it is tried"},
    {"timeout", "D", "add: how long one attempt may take"},
    {"expire", "D", "add: dead if not started within this time"},
    {"keep", "D", "add: how long the outcome of a done job stays"},
    {"lock", "NAME", "add: lock that the job holds while it runs"},
    {"sem", "NAME", "add: semaphore of which it holds a permit"},
    {"rate", "NAME", "add: rate that it counts against"},
    {"then", "QUEUE,...", "add: when it is done, go on there"},
    {"on-dead", "QUEUE", "add: gets a job when it dies"},
    {"prefix", "PREFIX", "import: what names begin with (default: the name of the file)"},
    {"system", NULL, "import: a system's crontab, with users"},
    {"dry-run", NULL, "import: only say what would be"},
    {"count", "N", "next: how many (default: 5)"},
    {"after", "TIME", "next: those behind this time (default: now)"},
    {"year", "N", "calendar: this year (default: the present one)"},
    {"reason", "TEXT", "pause: why"},
    {"for", "D", "pause: only this long"},
    {"by", "WHO", "pause: who (default: USER@HOST)"},
    {"at", "TIME", "run-now: due then"},
    {"force", NULL, "run-now: even if the last job has not ended"},
    {NULL, NULL, NULL},
};

static int run(struct cli *cli, struct err *err)
{
    return subcommands_run(cli, subcommands, err);
}

const struct cli_verb cmd_schedule = {
    "schedule",
    "add NAME cron EXPRESSION|every D [PAYLOAD] | ls | show NAME | next NAME|'EXPRESSION' | "
    "backfill NAME --from TIME --to TIME | calendar NAME | import CRONTAB --queue QUEUE | "
    "rm NAME | pause NAME | resume NAME | "
    "run-now NAME",
    "add jobs again and again: cron without a leader",
    "A schedule adds a job with PAYLOAD at each of its occurrences, exactly once, as long as\n"
    "any laterd of the namespace runs.\n"
    "\n"
    "  later schedule add nightly cron '30 2 * * *' --tz Europe/Berlin --queue backup\n"
    "  later schedule add pulse every 90s --overlap skip\n"
    "  later schedule next '30 2 * * *' --tz Europe/Berlin --after 2026-03-28T00:00:00Z\n"
    "\n"
    "EXPRESSION has five fields: minute hour day month weekday, or six with the second\n"
    "first:\n"
    "\n"
    "  *  5  1-5  */10  1,15  10-50/20   all, one, a range, steps, lists\n"
    "  jan-dec  sun-sat  0 and 7         names; Sunday\n"
    "  L                                 as the day: the last one of the month\n"
    "  5#2  5L                           the second Friday, the last Friday\n"
    "  @hourly @daily @weekly @monthly @yearly\n"
    "\n"
    "If both day and weekday are limited, a day that fits either one counts. An expression\n"
    "that allows all 24 hours follows the clock; any other names times of day, and each\n"
    "happens exactly once, also on the days on which the clock changes. `every` counts real\n"
    "time from 1970, or from --from.\n"
    "\n"
    "add: makes or changes it. next: when it is due; also of an expression. backfill: adds\n"
    "the jobs of past occurrences. calendar: on which days of the year it went well. import:\n"
    "makes schedules of the lines of a crontab; a queue whose handler is a shell runs the\n"
    "commands. rm: removes it, its jobs stay. pause: its occurrences add no jobs. run-now:\n"
    "one job more, now; exits 1 if the last one keeps it out. With --at it is added for then.",
    1,
    5,
    false,
    options,
    run,
};
