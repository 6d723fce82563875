#include "ask/shards.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/shard.h"
#include "base/text.h"

int shards_count(const struct ask_server *s)
{
    return s->target.shards > 0 ? s->target.shards : 1;
}

void shards_use(struct ask_server *s, int shard)
{
    if (s->target.shards == 0 || shard == s->shard)
        return;
    if (s->target.url.nodes[0] != '\0') {
        s->others[s->shard] = s->client;
        s->client = s->others[shard];
        s->others[shard] = NULL;
    }
    s->shard = shard;
    target_use_shard(&s->target, shard);
    ask_go_on(s);
}

void shards_use_name(struct ask_server *s, const void *text, size_t n)
{
    if (s->target.shards > 0)
        shards_use(s, shard_of(text, n, s->target.shards));
}

enum shards_by shards_by(const char *function)
{
    static const struct {
        const char *function;
        enum shards_by by;
    } known[] = {{"later_add", SHARDS_BY_ADD},
                 {"later_add_many", SHARDS_BY_ADD},
                 {"later_publish", SHARDS_BY_ADD},
                 {"later_batch", SHARDS_BY_NAME},
                 {"later_batch_cancel", SHARDS_BY_NAME},
                 {"later_batch_jobs", SHARDS_BY_NAME},
                 {"later_batch_seal", SHARDS_BY_NAME},
                 {"later_batch_show", SHARDS_BY_NAME},
                 {"later_schedule_calendar", SHARDS_BY_NAME},
                 {"later_schedule_del", SHARDS_BY_NAME},
                 {"later_schedule_pause", SHARDS_BY_NAME},
                 {"later_schedule_resume", SHARDS_BY_NAME},
                 {"later_schedule_run", SHARDS_BY_NAME},
                 {"later_schedule_set", SHARDS_BY_NAME},
                 {"later_schedules", SHARDS_BY_NAME},
                 {"later_seen", SHARDS_BY_NAME},
                 {"later_seen_del", SHARDS_BY_NAME},
                 {"later_throttle", SHARDS_BY_NAME},
                 {"later_bulk_abort", SHARDS_BY_BULK},
                 {"later_bulk_show", SHARDS_BY_BULK},
                 {"later_cancel", SHARDS_BY_JOB},
                 {"later_explain", SHARDS_BY_JOB},
                 {"later_reschedule", SHARDS_BY_JOB},
                 {"later_retry", SHARDS_BY_JOB},
                 {"later_run_now", SHARDS_BY_JOB},
                 {"later_show", SHARDS_BY_JOB}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].function, function) == 0)
            return known[i].by;
    return SHARDS_PRESENT;
}

/* Words have a length, and no NUL behind them. */
static bool is_word(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* The arguments of an add: the queue, pairs of options, and behind them one payload, or -- and
 * several. -> the value's index; 0: it is not given */
static int option(const char *name, int argc, const char *const *argv, const size_t *lens)
{
    int found = 0;

    for (int i = 1; i + 2 < argc && !is_word(argv[i], lens[i], "--"); i += 2)
        if (is_word(argv[i], lens[i], name))
            found = i + 1;
    return found;
}

bool shards_is_any(int argc, const char *const *argv, const size_t *lens)
{
    return option("key", argc, argv, lens) == 0 && option("unique", argc, argv, lens) == 0 &&
           option("token", argc, argv, lens) == 0 && option("batch", argc, argv, lens) == 0;
}

/* One by chance, and then in turn, so that many calls fill all evenly. */
static void use_any(struct ask_server *s)
{
    if (!s->has_turn)
        (void)getrandom(&s->turn, sizeof(s->turn), GRND_NONBLOCK);
    s->has_turn = true;
    shards_use(s, (int)(s->turn++ % (unsigned)s->target.shards));
}

/* Of "jABC.3" the shard, and the id in ret_id; -1: it names none. */
static int take_shard(const struct ask_server *s, const char *text, char ret_id[SHARDS_ID])
{
    const char *dot = strrchr(text, '.');
    int64_t shard;

    if (dot == NULL || strchr(text, '@') != NULL || dot - text >= SHARDS_ID ||
        text_parse_int(dot + 1, 0, s->target.shards - 1, &shard) < 0)
        return -1;
    memcpy(ret_id, text, (size_t)(dot - text));
    ret_id[dot - text] = '\0';
    return (int)shard;
}

/* `later import --once` makes the token import:jABC.3: there, and nowhere else, the job would meet
 * itself. -1: it is another token. */
static int shard_of_token(const struct ask_server *s, const char *token, size_t n)
{
    static const char front[] = "import:";
    const size_t len = sizeof(front) - 1;
    char text[SHARDS_ID], id[SHARDS_ID];

    if (n <= len || n - len >= sizeof(text) || memcmp(token, front, len) != 0)
        return -1;
    memcpy(text, token + len, n - len);
    text[n - len] = '\0';
    return take_shard(s, text, id);
}

static int choose_for_add(struct ask_server *s, int argc, const char *const *argv,
                          const size_t *lens, struct err *err)
{
    int batch = option("batch", argc, argv, lens), at = option("key", argc, argv, lens);
    int token = option("token", argc, argv, lens), n = s->target.shards, shard = -1;

    if (at == 0)
        at = option("unique", argc, argv, lens);
    if (batch != 0 && at != 0) {
        int its = shard_of(argv[at], lens[at], n), other = shard_of(argv[batch], lens[batch], n);

        if (its != other)
            return err_set(err, ERR_USAGE,
                           "batch %.*s is in shard %d and the key of the job in shard %d: members "
                           "of a batch have no key where there are shards, or one of its shard",
                           (int)(lens[batch] < 80 ? lens[batch] : 80), argv[batch], other, its);
    }
    at = at != 0 ? at : batch;
    if (at == 0 && token != 0)
        shard = shard_of_token(s, argv[token], lens[token]);
    at = at != 0 ? at : token;
    if (shard >= 0)
        shards_use(s, shard);
    else if (at != 0)
        shards_use_name(s, argv[at], lens[at]);
    else
        use_any(s);
    return 0;
}

bool shards_take_id(struct ask_server *s, const char *text, char ret_id[SHARDS_ID])
{
    int shard = take_shard(s, text, ret_id);

    if (shard >= 0)
        shards_use(s, shard);
    return shard >= 0;
}

/* 1: the present shard has it. 0: it has not, with err. -1 with err: it cannot be asked. */
static int has(struct ask_server *s, const char *function, const char *id, struct err *err)
{
    struct reply *r;

    *err = (struct err)ERR_INIT;
    r = ask_present_one(s, function, id, err);
    reply_free(r);
    if (r != NULL)
        return 1;
    return ask_is_refusal(err, "ELATER_NOJOB") || ask_is_refusal(err, "ELATER_NOBULK") ? 0 : -1;
}

/* Look in each; err tells of the last one where none has it. */
static int find(struct ask_server *s, const char *function, const char *id, struct err *err)
{
    const char *key = strchr(id, '@');
    int found = -1, first = s->shard;

    for (int i = 0; i < s->target.shards; i++) {
        int shard = (first + i) % s->target.shards, there;

        shards_use(s, shard);
        there = has(s, function, id, err);
        if (there < 0)
            return -1;
        if (there == 1 && found >= 0)
            return err_set(err, ERR_FORMAT,
                           "%.80s is in shard %d and in shard %d: name one, as ID.%d", id, found,
                           shard, found);
        found = there == 1 ? shard : found;
    }
    /* A unique key may be held by a job that has ended, which `later cancel` frees. */
    if (found < 0 && key == NULL)
        return -1;
    if (found >= 0)
        shards_use(s, found);
    else
        shards_use_name(s, key + 1, strlen(key + 1));
    *err = (struct err)ERR_INIT;
    return 0;
}

int shards_choose(struct ask_server *s, enum shards_by by, int argc, const char *const *argv,
                  const size_t *lens, char ret_id[SHARDS_ID], struct err *err)
{
    if (s->target.shards == 0 || by == SHARDS_PRESENT || argc == 0)
        return 0;
    if (by == SHARDS_BY_ADD)
        return choose_for_add(s, argc, argv, lens, err);
    if (by == SHARDS_BY_NAME) {
        shards_use_name(s, argv[0], lens[0]);
        return 0;
    }
    if (shards_take_id(s, argv[0], ret_id))
        return 0;
    return find(s, by == SHARDS_BY_JOB ? "later_show" : "later_bulk_show", argv[0], err);
}

const char *shards_show_id(const struct ask_server *s, const char *id, char out[SHARDS_ID])
{
    if (s->target.shards == 0)
        (void)snprintf(out, SHARDS_ID, "%s", id);
    else
        (void)snprintf(out, SHARDS_ID, "%.16s.%d", id, s->shard);
    return out;
}
