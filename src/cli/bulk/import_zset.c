#include "cli/bulk/import_zset.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/meter.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define PAGE "128" /* as many jobs as in a call of `later add --from` */

/* Elements of the reply of later_v1_adopt. */
enum { ADDED, LEFT, SCORE, MEMBER, WHY, ONE };

struct source {
    struct cli *cli;
    const char *unit;
    struct meter meter;
    int64_t added, left;
    struct buf score, member; /* the cursor: the last member handled */
    struct buf why, one;      /* of the first member that cannot be a job */
};

static void set(struct buf *b, const struct reply *r)
{
    buf_clear(b);
    buf_add(b, reply_str(r), reply_len(r));
}

static void put_call(struct ask_call *call, struct source *s)
{
    const char *hash = cli_value(s->cli, "hash");

    *call = (struct ask_call){.n = 0};
    ask_call_puts(call, s->cli->argv[0]);
    ask_call_puts(call, cli_value(s->cli, "zset"));
    ask_call_puts(call, hash != NULL ? hash : "");
    ask_call_puts(call, s->unit);
    ask_call_puts(call, cli_value(s->cli, "remove") != NULL ? "1" : "0");
    ask_call_add(call, buf_str(&s->score), s->score.len);
    ask_call_add(call, buf_str(&s->member), s->member.len);
    ask_call_puts(call, PAGE);
}

/* Whether the cursor moved on. Otherwise we would ask for ever. */
static bool has_moved(const struct source *s, const struct reply *r)
{
    const struct reply *score = reply_at(r, SCORE), *member = reply_at(r, MEMBER);

    return reply_len(score) != s->score.len || reply_len(member) != s->member.len ||
           memcmp(reply_str(score), s->score.data, s->score.len) != 0 ||
           memcmp(reply_str(member), s->member.data, s->member.len) != 0;
}

/* Add one page. 1: there may be more. 0: that was the end. -1 with err. */
static int add_page(struct source *s, struct err *err)
{
    bool is_first = s->score.len == 0;
    struct ask_call call;
    struct reply *r;
    int goes_on;

    put_call(&call, s);
    r = ask_fcall(&s->cli->server, "later_v1_adopt", &call, err);
    if (r == NULL)
        return -1;
    s->added += reply_int(reply_at(r, ADDED));
    if (s->left == 0 && reply_int(reply_at(r, LEFT)) > 0) {
        set(&s->why, reply_at(r, WHY));
        set(&s->one, reply_at(r, ONE));
    }
    s->left += reply_int(reply_at(r, LEFT));
    goes_on = reply_len(reply_at(r, SCORE)) > 0;
    if (goes_on && !is_first && !has_moved(s, r))
        goes_on = err_set(err, ERR_DATA, "the pages of the set came with a bad cursor");
    set(&s->score, reply_at(r, SCORE));
    set(&s->member, reply_at(r, MEMBER));
    reply_free(r);
    meter_show(&s->meter, (uint64_t)s->added, (uint64_t)(s->added + s->left));
    return goes_on;
}

/* The size of the set, for the meter only. */
static uint64_t count(struct source *s)
{
    const char *const ask[] = {"ZCARD", cli_value(s->cli, "zset")};
    struct err ignored = ERR_INIT;
    struct reply *r = client_call(s->cli->server.client, 2, ask, NULL, &ignored);
    int64_t n = reply_int(r);

    reply_free(r);
    return n > 0 ? (uint64_t)n : 0;
}

static void tell(struct source *s)
{
    const char *key = cli_value(s->cli, "zset");

    if (s->cli->json) {
        json_t *line = json_object();

        json_put_text(line, "queue", s->cli->argv[0], strlen(s->cli->argv[0]));
        json_put_text(line, "zset", key, strlen(key));
        json_put_int(line, "added", s->added);
        json_put_int(line, "left", s->left);
        json_print(line);
        return;
    }
    out_printf("%lld %s added\n", (long long)s->added, s->added == 1 ? "job" : "jobs");
}

/* Members that cannot be jobs do not stop the import, but end it with an error. */
static int judge(struct source *s, struct err *err)
{
    CLEANUP_BUF struct buf one = BUF_INIT;

    if (s->left == 0)
        return 0;
    text_escape(&one, buf_str(&s->one), s->one.len);
    text_cut(&one, 48);
    return err_set(err, ERR_DATA, "%lld %s no job and %s left there; the first is '%s': %.120s",
                   (long long)s->left, s->left == 1 ? "member is" : "members are",
                   s->left == 1 ? "was" : "were", buf_str(&one), buf_str(&s->why));
}

int import_zset(struct cli *cli, struct err *err)
{
    struct source s = {.cli = cli, .unit = cli_value(cli, "unit")};
    int result;

    if (s.unit == NULL || (strcmp(s.unit, "s") != 0 && strcmp(s.unit, "ms") != 0))
        return err_set(err, ERR_USAGE,
                       "what are the scores of that set? --unit s: seconds since 1970, --unit ms: "
                       "milliseconds");
    if (ask_connect(&cli->server, err) < 0)
        return -1;
    meter_init(&s.meter, !cli->json, 0);
    s.meter.size = s.meter.is_shown ? count(&s) : 0;
    do {
        result = add_page(&s, err);
    } while (result > 0);
    meter_wipe(&s.meter);
    if (result == 0 || s.added > 0)
        tell(&s);
    if (result == 0 && s.added > 0)
        queue_name_warn(cli, cli->argv[0], "the jobs wait");
    if (result == 0)
        result = judge(&s, err);
    buf_done(&s.score);
    buf_done(&s.member);
    buf_done(&s.why);
    buf_done(&s.one);
    return result;
}
