/*
 * Garbage of the right type in what the library parses: a token fuzz over the values of all hashes,
 * and over the strings that are read as words or rows. After each mutation the jobs of another
 * queue run on, no call meets an error of Lua, no job is lost, and fsck comes to its end. What it
 * has repaired is not found again.
 *
 * LATER_FULL=1 makes a hundred times as many; LATER_SEED=N begins elsewhere.
 */
#include "base/cleanup.h"
#include "stand.h"

enum { CASES = 60, OF_A_HASH = 10, OF_A_KIND = 4, FAULTS_SHOWN = 20, VALUE_MAX = 24000 };

struct word {
    const char *p;
    size_t n;
};
#define W(s)                                                                                       \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

static char very_long[5000];
static const struct word garbage[] = {W(""),
                                      W("nan"),
                                      W("-nan"),
                                      W("inf"),
                                      W("-1"),
                                      W("1e400"),
                                      W("9007199254740993"),
                                      W("99999999999999999999"),
                                      W("0"),
                                      W("0x10"),
                                      W("1.5"),
                                      W("x"),
                                      W("1767225600000x"),
                                      W("\0"),
                                      W("\xff\xfe"),
                                      W("="),
                                      W("a b=c\nd,e:f"),
                                      {very_long, sizeof(very_long)}};

/* A value of the town. field: NULL for a string */
static struct cell {
    const struct reply *key, *field, *value;
} cells[1500];
static size_t ncells;
static struct reply *all_cells;
static uint64_t dice;

static size_t roll(size_t n)
{
    uint64_t z = dice += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (size_t)((z ^ (z >> 31)) % n);
}

/* ---- the values */

/*
 * All values, {key, field or '', value}*: a few keys of each kind, and of a hash whose fields are
 * alike a few. What is in rows and bits is a string: its kinds are named.
 */
static const char READ_CELLS[] =
    "local keys, out, of_kind, most = redis.call('KEYS', 'later:{t}:*'), {}, {}, "
    "tonumber(ARGV[1])\n"
    "local own = {worker = true, lock = true, schedule = true, index = true}\n"
    "local strings = {clock = 1, rate = 1, token = 1, uniq = 1, m = 1, h = 1, total = 1}\n"
    "table.sort(keys)\n"
    "for _, key in ipairs(keys) do\n"
    "  local name = string.sub(key, 11)\n"
    "  local kind, is = string.match(name, '^%a+'), redis.call('TYPE', key).ok\n"
    "  of_kind[kind] = (of_kind[kind] or 0) + 1\n"
    "  if of_kind[kind] <= most and is == 'string' and strings[kind] then\n"
    "    for _, v in ipairs({key, '', redis.call('GET', key)}) do out[#out + 1] = v end\n"
    "  elseif of_kind[kind] <= most and is == 'hash' then\n"
    "    local fields = redis.call('HKEYS', key)\n"
    "    table.sort(fields)\n"
    "    local step = own[kind] and 1 or math.ceil(#fields / (2 * most))\n"
    "    for i = 1, #fields, step do\n"
    "      for _, v in ipairs({key, fields[i], redis.call('HGET', key, fields[i])}) do\n"
    "        out[#out + 1] = v\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return out\n";

/* Its damage stops our own worker, or a job of the queue beside it: that is its own harm. */
static bool is_own(const char *name, const char *field)
{
    struct stand_job *job = find_job(field);

    return (strcmp(name, "workers") == 0 && strcmp(field, meant("$w")) == 0) ||
           (strcmp(name, text("worker:%s", meant("$w"))) == 0 && strcmp(field, "link") == 0) ||
           (job != NULL && strcmp(job->queue, "beside") == 0);
}

static void read_cells(void)
{
    const char *argv[] = {"EVAL", READ_CELLS, "0", test_is_long() ? "1000" : text("%d", OF_A_KIND)};

    (void)send_args(4, argv, NULL);
    all_cells = fx.last;
    fx.last = NULL;
    for (size_t i = 0; i + 2 < reply_count(all_cells); i += 3) {
        struct cell *c = &cells[ncells];

        *c = (struct cell){reply_at(all_cells, i), reply_at(all_cells, i + 1),
                           reply_at(all_cells, i + 2)};
        if (reply_len(c->value) <= VALUE_MAX &&
            !is_own(reply_str(c->key) + sizeof(ROOT), reply_str(c->field)))
            assert_true(++ncells < COUNT(cells));
    }
}

/* ---- mutations */

static bool is_between(char c)
{
    return c == '\0' || strchr(" =\n,:;", c) != NULL;
}

/* The token at this place or behind it; *ret_n: its length. */
static size_t token_at(const char *p, size_t n, size_t from, size_t *ret_n)
{
    size_t end;

    while (from > 0 && !is_between(p[from - 1]))
        from--;
    for (end = from; end < n && !is_between(p[end]); end++)
        ;
    *ret_n = end - from;
    return from;
}

/* One mutation of a value. -> what was done, for messages */
static const char *mutate(const char *p, size_t n, struct buf *out)
{
    const struct word *g = &garbage[roll(COUNT(garbage))];
    size_t len, at = token_at(p, n, n > 0 ? roll(n) : 0, &len), cut = n > 0 ? roll(n) : 0;
    size_t how = roll(10);

    buf_add(out, p, how < 6 ? at : how < 8 ? cut : how == 8 ? n : 0);
    if (how < 4) { /* another token */
        buf_add(out, g->p, g->n);
        buf_add(out, p + at + len, n - at - len);
    } else if (how == 4) { /* without it, and without what is behind it */
        buf_add(out, p + at + len + (at + len < n), n - at - len - (at + len < n));
    } else if (how == 5) { /* another separator behind it */
        buf_add(out, p + at, len);
        buf_add(out, &"=\n \0,x"[roll(6)], at + len < n);
        buf_add(out, p + at + len + (at + len < n), n - at - len - (at + len < n));
    } else if (how == 6) { /* more in the middle */
        buf_add(out, g->p, g->n);
        buf_add(out, p + cut, n - cut);
    } else if (how >= 8) { /* more at its end, or nothing else */
        buf_add(out, g->p, g->n);
    } /* else: cut */
    buf_add(out, "", 0);
    return how < 4    ? "token"
           : how == 4 ? "removed"
           : how == 5 ? "separator"
           : how == 6 ? "inserted"
           : how == 7 ? "cut"
           : how == 8 ? "appended"
                      : "replaced";
}

static void put_cell(const struct cell *c, const char *p, size_t n)
{
    bool is_string = reply_len(c->field) == 0;
    const char *argv[] = {is_string ? "SET" : "HSET", reply_str(c->key),
                          is_string ? p : reply_str(c->field), p};
    size_t lens[] = {strlen(argv[0]), reply_len(c->key), is_string ? n : reply_len(c->field), n};

    assert_true(send_args(is_string ? 3 : 4, argv, lens)[0] != '!');
}

static const char *readable(const char *p, size_t n)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < n && i < 160; i++)
        if (p[i] > 31 && p[i] < 127)
            buf_add(&b, p + i, 1);
        else
            buf_printf(&b, "\\x%02x", (unsigned char)p[i]);
    buf_add(&b, "", 0);
    return keep(buf_take(&b));
}

/* ---- one case */

static void complain(const char *what)
{
    print_message("%s: %s\n", stand_what, what);
    stand_faults++;
}

/* What was repaired is not found again. */
static void assert_mends(void)
{
    static struct stand_finding mended[COUNT(stand_findings)];
    size_t n = stand_nfindings;

    memcpy(mended, stand_findings, sizeof(mended));
    stand_fsck("audit");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; mended[i].is_repaired && k < stand_nfindings; k++)
            if (strcmp(mended[i].kind, stand_findings[k].kind) == 0 &&
                strcmp(mended[i].name, stand_findings[k].name) == 0)
                complain(
                    text("%s %s is found again behind its repair", mended[i].kind, mended[i].name));
}

/* What looks at the damaged entry itself. */
static void ask_for(const struct cell *c)
{
    static const struct {
        const char *hash, *call;
    } asks[] = {{"schedules", "schedules"},
                {"schedules", "schedule_run"},
                {"schedules", "v1_schedules 0"},
                {"cursors", "schedules"},
                {"batches", "batch_show"},
                {"batches", "batch_seal"},
                {"jobs", "explain"},
                {"jobs", "show"},
                {"parked", "explain"},
                {"tries", "explain"},
                {"errors", "explain"},
                {"topics", "publish"}};
    const char *name = reply_str(c->key) + sizeof(ROOT), *field = reply_str(c->field);

    for (size_t i = 0; i < COUNT(asks); i++)
        if (strcmp(asks[i].hash, name) == 0)
            (void)stand_call(strchr(asks[i].call, ' ') != NULL
                                 ? asks[i].call
                                 : text("%s %s%s", asks[i].call, field,
                                        strcmp(name, "topics") == 0 ? " x" : ""));
}

/* No job has gone without having run, but the one of the damaged value. */
static void assert_none_lost(const struct cell *c)
{
    for (size_t i = 0; i < stand_njobs; i++) {
        struct stand_job *job = &stand_jobs[i];

        if (!job->has_run && !job->has_ended && strcmp(reply_str(c->field), job->id) != 0 &&
            strcmp(redis("HEXISTS R:jobs %s", job->id), "1") != 0)
            complain(text("%s of %s is lost", job->id, job->queue));
    }
}

static void try_value(const struct cell *c, const char *how, const char *p, size_t n)
{
    stand_restore();
    stand_what = text("%s %s: %s: %s", reply_str(c->key),
                      readable(reply_str(c->field), reply_len(c->field)), how, readable(p, n));
    put_cell(c, p, n);
    for (int round = 0; round < 2; round++) {
        int got = stand_sync(1, BESIDE_ROOM);

        if (got < BESIDE_ROOM)
            complain(got < 0 ? stand_said
                             : text("%d of the jobs beside it ran: %s", got, at(6, -1)));
        STAND_CALLS(stand_work);
        if (round == 0) {
            STAND_CALLS(stand_reads);
            ask_for(c);
        }
        still_set(still_clock->fixed_us + 1500000);
    }
    stand_fsck("repair");
    assert_mends();
    stand_drain();
    assert_none_lost(c);
}

static void try_any(const struct cell *c)
{
    struct buf b = BUF_INIT;
    const char *how = mutate(reply_str(c->value), reply_len(c->value), &b);

    try_value(c, how, buf_str(&b), b.len);
    buf_done(&b);
}

/* The next value of this hash, at random. */
static const struct cell *cell_of(const char *hash)
{
    size_t at = roll(ncells);

    for (size_t i = 0; i < ncells; i++, at++)
        if (strcmp(reply_str(cells[at % ncells].key) + sizeof(ROOT), hash) == 0)
            return &cells[at % ncells];
    fail_msg("the town has no %s", hash);
    return NULL;
}

static void test_tokens(void **state)
{
    /* What is read word by word. */
    static const char *const hashes[] = {"batches", "schedules", "cursors",   "schedules", "limits",
                                         "queues",  "parked",    "schedules", "holds",     "paused",
                                         "topics",  "seen",      "jobs",      "tries"};
    const char *seed = getenv("LATER_SEED");
    int factor = test_is_long() ? 100 : 1;

    (void)state;
    memset(very_long, '7', sizeof(very_long));
    dice = seed != NULL ? (uint64_t)atoll(seed) : 1;
    stand_restore();
    read_cells();
    for (int i = 0; i < OF_A_HASH * factor; i++)
        for (size_t h = 0; h < COUNT(hashes) && stand_faults < FAULTS_SHOWN; h++)
            try_any(cell_of(hashes[h]));
    for (int i = 0; i < CASES * factor && stand_faults < FAULTS_SHOWN; i++)
        try_any(&cells[roll(ncells)]);
    printf("%zu mutations of %zu values\n", (size_t)factor * (CASES + OF_A_HASH * COUNT(hashes)),
           ncells);
    reply_free(all_cells);
    assert_int_equal(stand_faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_tokens, fx_forget)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, stand_open, close_rig);
}
