/*
 * What the library refuses, and that a refusal changes nothing: hostile arguments, keys of a
 * foreign type, corrupt contents, a server that is full, lacks its replicas or is a replica. Also
 * what producers can do with raw commands, repeated tokens and odd names: these tests have the
 * names of their lines in the fault catalogue.
 *
 * LATER_ONLY=PATTERN runs the tests of that name; LATER_FULL=1 runs more of the long ones.
 *
 * Reason for its length: all tests go through one table of calls, on the same namespace.
 */
#include "../../lua/fixture.h"
#include "../../support/env.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WORDS_MAX 40

/* ---- an empty server with its first settings */

static int fx_calm(void **state)
{
    (void)redis("REPLICAOF NO ONE");
    (void)redis("CONFIG SET maxmemory 0 min-replicas-to-write 0");
    return fx_clear(state);
}

#define CALM_TEST(f) cmocka_unit_test_setup_teardown(f, fx_calm, fx_forget)

/* ---- the world: a namespace with one of everything */

/* Words that stand for an id or an epoch of the world. */
static struct {
    char name[8], value[24];
} names[32];
static size_t nnames;

static const char *name_as(const char *name, const char *value)
{
    (void)snprintf(names[nnames].name, sizeof(names[0].name), "%s", name);
    (void)snprintf(names[nnames].value, sizeof(names[0].value), "%s", value);
    return names[nnames++].value;
}

static const char *meant(const char *word)
{
    for (size_t i = 0; i < nnames; i++)
        if (strcmp(names[i].name, word) == 0)
            return names[i].value;
    return word;
}

/* A suspect: a job whose worker died twice while running it. */
static void suspect(const char *w)
{
    const char *id = add("mail keep 1h suspect");

    for (int i = 0; i < 2; i++) {
        const char *victim = worker();

        assert_string_equal(claim(victim, "mail", 1), id);
        assert_starts(fcall("later_v1_reap %s %s 1 5 100", w, victim), "[clear 1]");
    }
    (void)name_as("$X", id);
}

static void running(const char *name, const char *w, const char *options)
{
    const char *id = name_as(name, add("sms %s running", options));

    assert_string_equal(claim(w, "sms", 1), id);
}

/*
 * A job with two gates, and one job waiting at each; a granted job that is not claimed yet; a
 * paused queue that stands aside; callers and a program that hold or wait for gates; unique jobs.
 */
static void make_gates(const char *w1, const char *w2)
{
    const char *id;

    (void)fcall("later_limit_set smtp semaphore 1 on_lost kill");
    (void)fcall("later_limit_set slow rate 5/1h burst 5");
    (void)fcall("later_limit_set log rate 5/1h algorithm sliding");
    (void)fcall("later_limit_set t:{key} semaphore 1");
    (void)redis("HSET R:queues keyed lock=user:{key}");
    id = name_as("$L", add("gate lock door sem smtp unique u keep 1h x"));
    assert_string_equal(claim(w1, "gate", 1), id);
    (void)name_as("$P", add("gate lock door unique v x"));
    (void)name_as("$Q", add("gate sem smtp rate slow x"));
    (void)fcall("later_lock other ann");
    (void)name_as("$N", add("gate lock other rate log x"));
    assert_string_equal(claim(w1, "gate", 9), "nil");
    (void)redis("HSET R:worker:%s queues gate places 9 room 9", w2);
    (void)fcall("later_unlock other ann");
    assert_starts(redis("ZCARD R:granted:gate"), "1");
    (void)fcall("later_lock third ann");
    (void)add("aside lock third x");
    assert_string_equal(claim(w1, "aside", 1), "nil");
    (void)fcall("later_pause aside");
    (void)fcall("later_unlock third ann");
    assert_string_equal(redis("SCARD R:aside:aside"), "1");
    (void)fcall("later_lock door bob wait 1h");
    (void)fcall("later_lock mine ann ttl 1h");
    (void)fcall("later_sem_acquire t:a ann ttl 1h");
    assert_starts(fcall("later_v1_enter %s lock:beside", w2), "[1 ");
    (void)fcall("later_throttle slow");
    (void)fcall("later_throttle log");
}

static void make_world(void)
{
    const char *w1, *w2, *id;
    char *large = mem_new(20001);

    (void)redis("FLUSHALL");
    (void)fx_forget(NULL);
    nnames = 0;
    w1 = name_as("$W1", worker());
    w2 = name_as("$W2", worker());
    (void)fcall("later_v1_beat %s mail,sms", w1);
    id = name_as("$D", add("mail dead"));
    (void)claim(w1, "mail", 1);
    assert_string_equal(settle(w1, id, 1, "dead", 100), "ok");
    id = name_as("$K", add("mail kept"));
    (void)claim(w1, "mail", 1);
    assert_string_equal(settle(w1, id, 1, "done", 3600000), "ok");
    suspect(w1);
    running("$R1", w1, "keep 1h key k");
    running("$R2", w1, "attempts 3");
    running("$R3", w2, "timeout 5s");
    running("$R4", w2, "priority 3");
    running("$C", w1, "then mail then sms on_dead mail");
    (void)redis("ZADD R:running 77 %s", meant("$R4"));
    (void)fcall("later_cancel %s", meant("$R2"));
    assert_string_equal(settle(w1, meant("$R1"), 1, "progress", 0), "ok");
    assert_string_equal(fcall("later_v1_keep %s %s 1 charge tx-1", w1, meant("$R1")),
                        "[kept tx-1]");
    (void)name_as("$A", add("mail key a keep 1h waiting"));
    (void)name_as("$B", add("mail priority 0 in 1h later"));
    (void)name_as("$S", add("sms other"));
    (void)name_as("$T", add("mail token tk x"));
    memset(large, 'g', 20000);
    assert_starts(fcall_bytes("later_add mail", large, 20000), "[j");
    (void)name_as("$G", at(0, -1));
    free(large);
    (void)redis("ZADD R:due:mail 1767225600000 raw");
    (void)fcall("later_v1_await %s", meant("$A"));
    (void)fcall("later_batch b finally sms on_dead mail pay");
    /* The first record over 64 bytes turns R:jobs from a list into a table, which nothing undoes.
     */
    assert_starts(fcall("later_add far in 1h batch b %070d", 1), "[j");
    (void)fcall("later_batch ended keep 0s");
    (void)fcall("later_batch_seal ended");
    (void)fcall("later_v1_note stray-key later:x");
    (void)fcall("later_pause held by me");
    assert_starts(fcall("later_pause soon by me for 1h"), "paused");
    (void)redis("HSET R:unserved mail 1767225600000");
    (void)redis("HSET R:config max_payload 1048576");
    (void)fcall("later_seen keys a for 1h error 0.001 capacity 1000");
    (void)fcall("later_seen full a capacity 1");
    (void)fcall("later_seen full b");
    make_gates(w1, w2);
}

/* Every function with well-formed arguments, more than once if it has more than one way. */
static const char *const CALLS[] = {
    "later_add mail x",
    "later_add sms in 5m priority 0 key k attempts 3 timeout 1s expire 1m keep 1h trace " TRACE
    " y",
    "later_add mail at 2030-01-31T09:00:00Z token t2 x",
    "later_add mail token tk x",
    "later_add_many mail a b c",
    "later_add_many sms priority 7 expire 1ms -- a b",
    "later_add mail then sms then mail on_dead mail expire 1ms x",
    "later_add_many mail then sms on_dead sms a b",
    "later_v1_import mail 4 then sms,mail on_dead sms parent $D reason why x",
    "later_v1_import mail 1 then sms x 2 parent $D reason %~ y",
    "later_cancel $A",
    "later_cancel $R1",
    "later_cancel $S waiting",
    "later_run_now $B",
    "later_reschedule $B +5m",
    "later_reschedule $T @1767225600.5",
    "later_retry $D",
    "later_show $G",
    "later_show $R1",
    "later_explain $A",
    "later_explain $B",
    "later_explain $D",
    "later_explain $K",
    "later_explain $R2",
    "later_explain $R4",
    "later_explain $X",
    "later_explain $N",
    "later_explain $P",
    "later_explain $Q",
    "later_explain gate@u",
    "later_result $K",
    "later_result $D",
    "later_batch new then mail finally sms on_dead far keep 1h pay",
    "later_batch b finally sms on_dead mail pay",
    "later_batch_seal b",
    "later_batch_show b",
    "later_batch_jobs b live 0",
    "later_batch_cancel b",
    "later_batch_cancel b $A",
    "later_v1_batches 0",
    "later_add mail batch b x",
    "later_add_many mail batch b -- x y",
    "later_v1_audit batches '' 100",
    "later_v1_audit members '' 100 members:b",
    "later_v1_repair members '' 100 members:b",
    "later_bulk retry mail dead to new by me why because",
    "later_bulk cancel mail due key k rate 5/s",
    "later_bulk reschedule gate parked at +1h",
    "later_bulk purge mail due",
    "later_bulk_show",
    "later_pause mail by me reason why for 5m",
    "later_pause new",
    "later_resume mail at +5m",
    "later_resume mail",
    "later_v1_known mail",
    "later_v1_forget mail",
    "later_v1_forget soon",
    "later_stats",
    "later_stats mail",
    "later_version",
    "later_v1_list mail due '' 10",
    "later_v1_list mail due 3:1 1",
    "later_v1_list sms running '' 200",
    "later_v1_list mail dead 1:0 5",
    "later_v1_list mail done '' 5",
    "later_v1_queues '' 100",
    "later_v1_queues mail 1",
    "later_v1_queues .0:0 100",
    "later_v1_running",
    "later_v1_summary",
    "later_v1_reasons mail '' 500",
    "later_v1_reasons mail '' 500 1767225600000 7200000",
    "later_v1_ahead mail 1767225600000 60000 60",
    "later_v1_gate_names '' 250",
    "later_v1_note stray-key x",
    "later_v1_note raw-queue mail",
    "later_v1_await $B",
    "later_v1_await $D",
    "later_v1_workers",
    "later_v1_suspects",
    "later_v1_bulk $W1",
    "later_v1_quiet $W1 on",
    "later_v1_quiet * off",
    "later_v1_beat $W1",
    "later_v1_beat $W1 mail,sms",
    "later_v1_sync $W1 1 2 0 0 2 mail 10 1048576 sms 10 1048576 0",
    "later_v1_sync $W1 1 2 10 1 $R1 1 progress sms 0 0 half '' 0 0",
    "later_v1_sync $W1 1 2 10 1 $R1 1 checkpoint sms 0 0 '' page-7 0 0",
    "later_v1_keep $W1 $R1 1 charge",
    "later_v1_keep $W1 $C 1 ship",
    "later_v1_keep $W1 $R1 1 ship box-9",
    "later_v1_sync $W1 1 0 10 2 $R1 1 done sms 1000 0 T O $R2 1 retry sms 500 7 T O 1 sms 5 100 0",
    "later_v1_sync $W2 1 0 10 1 $R3 1 retry sms 500 7 T O 2 mail 5 1048576 sms 5 1048576 0",
    "later_v1_sync $W1 1 2 10 0 2 mail 10 1048576 sms 10 1048576 0",
    "later_v1_sync $W1 1 0 10 0 0 2 sms 1 2 $R1 $R3 gate 1 2 $L j00000000000",
    "later_v1_sync $W1 1 0 10 1 $R1 1 progress sms 0 0 half '' 1 sms 5 1048576 1 sms 1 2 $R2 $R1",
    "later_v1_sync $W1 1 0 10 1 $C 1 result sms 0 0 T new 1 mail 5 1048576 0",
    "later_v1_sync $W1 1 0 10 1 $C 1 done sms 9000 0 T O 1 mail 5 1048576 1 sms 1 1 $R1",
    "later_v1_sync $W1 1 0 10 1 $C 1 dead sms 5 7 T O 2 mail 5 1048576 sms 1 100 0",
    "later_v1_sync $W1 1 0 10 0 1 mail 5 1048576 1 sms 1 2 $C $R1",
    "later_v1_reconcile $W1 1 1 $R1 1",
    "later_v1_reconcile $W1 1 1 $R1 1 1767225600000000",
    "later_v1_health 2000",
    "later_v2_look 2000 mail sms",
    "later_v1_rights",
    "later_v1_audit jobs '' 100",
    "later_v1_audit keys '' 100 heads zset big:$G string",
    "later_v1_repair queue '' 100 mail sms",
    "later_v1_tidy $W1 2 mail 0 sms 604800000",
    "later_v1_tidy $W1 1 mail 0 2 unsent 3 limits mail=2",
    "later_v1_register 0 inst9 1 0 2 host h queues mail,sms 1 max_payload 5000 1 $R4 1",
    "later_v1_register 0 inst8 1 $W1 0 0 2 $R1 1 $R2 1",
    "later_add gate lock door sem smtp rate slow x",
    "later_add keyed key 7 unique k unique_for 5m x",
    "later_add gate unique u unique_mode replace y",
    "later_add gate unique v unique_mode move in 5m y",
    "later_add_many gate sem smtp a b",
    "later_cancel gate@v",
    "later_run_now $Q",
    "later_lock door ann wait 1m",
    "later_lock mine ann ttl 1m",
    "later_lock new ann",
    "later_unlock mine ann token t",
    "later_unlock door bob",
    "later_renew mine ann ttl 2h",
    "later_sem_acquire t:a bob wait 1m",
    "later_sem_release t:a ann",
    "later_throttle slow quota 2",
    "later_throttle log",
    "later_limit_set smtp semaphore 3",
    "later_limit_set new rate 5/1s burst 2 algorithm gcra missing",
    "later_limit_set u:{key} semaphore 1",
    "later_limit_del t:{key}",
    "later_limits",
    "later_fence_check door 5",
    "later_show $Q",
    "later_explain $Q",
    "later_v1_gates lock:door sem:smtp rate:slow rate:log sem:t:a",
    "later_v1_list gate parked '' 10",
    "later_v1_enter $W1 lock:door wait",
    "later_v1_enter $W2 lock:beside",
    "later_v1_sync $W1 1 0 10 1 $L 1 done gate 0 0 T O 3 gate 10 1048576 aside 5 100 keyed 5 100 0",
    "later_v1_sync $W2 1 0 10 0 2 gate 10 1048576 aside 5 100 0",
    "later_resume aside",
    "later_cancel $N",
    "later_reschedule $P +5m",
    "later_v1_exit $W2",
    "later_v1_reap $W2 77 ? 5 100",
    "later_v1_reap $W2 $W1 2 2 100",
    "later_v1_leave $W2",
    "later_seen keys a for 1h",
    "later_seen keys b error 0.001 capacity 1000",
    "later_seen full c",
    "later_seen new a for 1d error 1e-4 capacity 100",
    "later_seen_del keys",
    "later_seen_list",
    "later_v1_audit seen '' 100"};

/* ---- judges */

/*
 * One hash of every key, its content, its encoding and when it expires. Contents without an order
 * in Redis are sorted; DUMP covers the rest.
 */
static const char FINGERPRINT[] =
    "local all = {}\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local kind, content = redis.call('TYPE', key).ok, nil\n"
    "  if kind == 'hash' or kind == 'set' then\n"
    "    local raw = redis.call(kind == 'hash' and 'HGETALL' or 'SMEMBERS', key)\n"
    "    local rows = {}\n"
    "    for i = 1, #raw, kind == 'hash' and 2 or 1 do\n"
    "      rows[#rows + 1] = redis.sha1hex(raw[i]) .. (kind == 'hash' and redis.sha1hex(raw[i + "
    "1]) "
    "or '')\n"
    "    end\n"
    "    table.sort(rows)\n"
    "    content = table.concat(rows) .. redis.call('OBJECT', 'ENCODING', key)\n"
    "  else\n"
    "    content = redis.call('DUMP', key)\n"
    "  end\n"
    "  all[#all + 1] = redis.sha1hex(key .. kind .. content ..\n"
    "                                string.format('%.0f', redis.call('PEXPIRETIME', key)))\n"
    "end\n"
    "table.sort(all)\n"
    "return redis.sha1hex(table.concat(all))";

static const char *fingerprint(void)
{
    static char prints[2][48];
    static int turn;
    const char *argv[] = {"EVAL_RO", FINGERPRINT, "0"};

    turn = !turn;
    (void)snprintf(prints[turn], sizeof(prints[0]), "%s", send_args(3, argv, NULL));
    assert_int_equal(strlen(prints[turn]), 40);
    return prints[turn];
}

/*
 * I8: every record is in exactly one set, everything in a set has a record, what runs has been
 * started, every large payload has a record and the reverse, and every key is ours.
 */
static const char ONE_SET[] =
    "local root, seen, bad = 'later:{t}:', {}, {}\n"
    "local alone = {jobs = 1, running = 1, workers = 1, tries = 1, errors = 1, failures = 1, "
    "results = 1,\n"
    "  heads = 1, names = 1, prio = 1, paused = 1, clock = 1, config = 1, stats = 1, cancel = 1,\n"
    "  progress = 1, await = 1, notes = 1, unserved = 1, parked = 1, holds = 1, timers = 1,\n"
    "  limits = 1, queues = 1, batches = 1, series = 1, seen = 1, index = 1, bulks = 1,\n"
    "  resume = 1}\n"
    "local more = {due = 1, q = 1, solo = 1, big = 1, worker = 1, dead = 1, done = 1, token = 1,\n"
    "  parked = 1, granted = 1, aside = 1, line = 1, wait = 1, lock = 1, sem = 1, rate = 1, uniq = "
    "1,\n  members = 1, batch = 1, bulk = 1, m = 1, h = 1, total = 1, keys = 1, top = 1,\n  seen = "
    "1, index = 1, steps = 1}\n"
    "local function say(what) bad[#bad + 1] = what end\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local name = string.sub(key, 1, #root) == root and string.sub(key, #root + 1) or '?'\n"
    "  local first = string.match(name, '^(%a+):.')\n"
    "  if not alone[name] and not more[first or ''] then\n"
    "    say('stray ' .. key)\n"
    "  end\n"
    "  if name == 'running' or first == 'q' or first == 'solo' or first == 'dead' or first == "
    "'done' or first == 'parked' then\n"
    "    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do\n"
    "      if seen[id] then say(id .. ' in ' .. seen[id] .. ' and ' .. name) end\n"
    "      seen[id] = name\n"
    "      if redis.call('HEXISTS', root .. 'jobs', id) == 0 then say(id .. ' has no record') end\n"
    "      if name == 'running' and redis.call('HEXISTS', root .. 'tries', id) == 0 then\n"
    "        say(id .. ' runs and never started')\n"
    "      end\n"
    "    end\n"
    "  elseif first == 'big' and redis.call('HEXISTS', root .. 'jobs', string.sub(name, 5)) == 0 "
    "then\n"
    "    say('payload without record ' .. name)\n"
    "  end\n"
    "end\n"
    "local all = redis.call('HGETALL', root .. 'jobs')\n"
    "for i = 1, #all, 2 do\n"
    "  if not seen[all[i]] then say(all[i] .. ' is nowhere') end\n"
    "  if string.sub(all[i + 1], 1, 1) == '+' and string.sub(seen[all[i]] or '', 1, 5) ~= 'dead:' "
    "and\n"
    "     redis.call('EXISTS', root .. 'big:' .. all[i]) == 0 then say(all[i] .. ' lost its "
    "payload') end\n"
    "end\n"
    "return table.concat(bad, ', ')";

static void assert_one_set(const char *after)
{
    const char *argv[] = {"EVAL_RO", ONE_SET, "0"};
    const char *bad = send_args(3, argv, NULL);

    if (bad[0] != '\0')
        fail_msg("after %.300s: %s", after, bad);
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* ---- calls as words that may contain any bytes */

struct word {
    const char *p;
    size_t n;
};

struct call_args {
    struct word word[WORDS_MAX];
    int n;
};

static void split(const char *call, struct call_args *w)
{
    char *rest = mem_strdup(call), *word;

    (void)keep(rest);
    w->n = 0;
    while ((word = strsep(&rest, " ")) != NULL) {
        const char *value = strcmp(word, "''") == 0 ? "" : meant(word);

        w->word[w->n++] = (struct word){value, strlen(value)};
    }
}

static const char *send_words(const struct call_args *w)
{
    const char *argv[WORDS_MAX + 4] = {"FCALL", w->word[0].p, "1", ROOT};
    size_t lens[WORDS_MAX + 4] = {5, w->word[0].n, 1, sizeof(ROOT) - 1};

    for (int i = 1; i < w->n; i++) {
        argv[3 + i] = w->word[i].p;
        lens[3 + i] = w->word[i].n;
    }
    return send_args(3 + w->n, argv, lens);
}

static const char *show_words(const struct call_args *w)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < w->n; i++) {
        buf_puts(&b, i > 0 ? " " : "");
        for (size_t k = 0; k < w->word[i].n && k < 40; k++) {
            unsigned char c = (unsigned char)w->word[i].p[k];

            if (c <= 32 || c > 126)
                buf_printf(&b, "\\x%02x", c);
            else
                buf_add(&b, &c, 1);
        }
        if (w->word[i].n == 0 || w->word[i].n > 40)
            buf_printf(&b, w->word[i].n == 0 ? "''" : "…(%zu)", w->word[i].n);
    }
    return keep(buf_take(&b));
}

/*
 * Call. An error must be one of our refusals (also: one more code, NULL for none) and must have
 * changed nothing. Returns whether the call was refused.
 */
static bool call_and_judge(const struct call_args *w, const char *also, const char *where)
{
    const char *before = fingerprint();
    const char *got = send_words(w);

    if (fx.last != NULL)
        return false;
    if ((!starts(got, "!ELATER_") || starts(got, "!ELATER_BUG")) &&
        (also == NULL || !starts(got + 1, also)))
        fail_msg("%s: %.400s: \"%.300s\"", where, show_words(w), got);
    if (strcmp(before, fingerprint()) != 0)
        fail_msg("%s: %.400s: refused (%.200s), and yet it wrote", where, show_words(w), got);
    return true;
}

/* ---- hostile arguments */

static uint64_t rnd = 1;

static uint64_t rnd_next(void)
{
    uint64_t z = rnd += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static struct word hostile(void)
{
#define W(s)                                                                                       \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }
    static const struct word words[] = {W(""),
                                        W("nan"),
                                        W("-nan"),
                                        W("inf"),
                                        W("-inf"),
                                        W("0x10"),
                                        W("1e3"),
                                        W("1e300"),
                                        W("1.5"),
                                        W(" 1"),
                                        W("1 "),
                                        W("-1"),
                                        W("-0"),
                                        W("0"),
                                        W("1"),
                                        W("+1"),
                                        W("007"),
                                        W("9007199254740991"),
                                        W("9007199254740992"),
                                        W("9007199254740993"),
                                        W("99999999999999999999999999"),
                                        W("1\0"),
                                        W("\0"),
                                        W("\0\0\0\0"),
                                        W("1\n"),
                                        W("\n"),
                                        W("?"),
                                        W("*"),
                                        W("--"),
                                        W("{}"),
                                        W("{t}"),
                                        W("../x"),
                                        W("%s%n%d"),
                                        W("later:{t}:jobs"),
                                        W("j00000000000"),
                                        W("mail@x"),
                                        W("\xff\xfe"),
                                        W("\xd9\xa1"),
                                        W("nil"),
                                        W("true"),
                                        W("token"),
                                        W("in"),
                                        W("at"),
                                        W("unique"),
                                        W("5m"),
                                        W("1000000000d"),
                                        W("1767225600"),
                                        W("2030-01-31"),
                                        W("2030-13-99T99:99:99Z"),
                                        W("@1e9"),
                                        W("dead"),
                                        W("done"),
                                        W("a b"),
                                        W("99:99999999999999999999"),
                                        W("1:99999999999999999999")};
#undef W
    static char large[1048576];

    if (large[0] == '\0')
        memset(large, '7', sizeof(large));
    if (rnd_next() % 100 < 3)
        return (struct word){large, rnd_next() % 2 == 0 ? sizeof(large) : 400};
    return words[rnd_next() % COUNT(words)];
}

/* One to three changes: an argument removed, replaced or added, or two swapped. */
static void spoil(struct call_args *w)
{
    int changes = 1 + (int)(rnd_next() % 3);

    while (changes-- > 0) {
        int i = w->n > 1 ? 1 + (int)(rnd_next() % (uint64_t)(w->n - 1)) : 1;

        switch (rnd_next() % (w->n > 1 ? 6 : 1)) {
        case 0:
            if (w->n < WORDS_MAX) {
                memmove(&w->word[i + 1], &w->word[i], (size_t)(w->n - i) * sizeof(w->word[0]));
                w->word[i] = hostile();
                w->n++;
            }
            break;
        case 1:
            w->n--;
            memmove(&w->word[i], &w->word[i + 1], (size_t)(w->n - i) * sizeof(w->word[0]));
            break;
        case 2:
            w->n = i;
            break;
        case 3: {
            struct word first = w->word[1];

            w->word[1] = w->word[i];
            w->word[i] = first;
            break;
        }
        default:
            w->word[i] = hostile();
            break;
        }
    }
}

static void test_hostile_arguments(void **state)
{
    int rounds = test_is_long() ? 3000 : 12, refused = 0, called = 0;

    (void)state;
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < COUNT(CALLS); i++) {
            struct call_args w;

            if (called++ % 40 == 0)
                make_world();
            split(CALLS[i], &w);
            spoil(&w);
            if (call_and_judge(&w, NULL, "hostile"))
                refused++;
            else
                assert_one_set(show_words(&w));
        }
    assert_true(refused > called / 4);
    printf("%d hostile calls, %d refused, nothing changed by those\n", called, refused);
}

/* Arguments that random words seldom hit. */
static void test_odd_arguments(void **state)
{
    char *large = mem_new(1100001);

    (void)state;
    make_world();
    assert_refused("ELATER_ARGS", "later_v1_list mail due 1:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_queues .0:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 5 0 99999999999999999999");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 99999999999999999999 1000 5");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 0 9007199254740991 60");
    assert_refused("ELATER_ARGS", "later_v1_gate_names 5:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_list mail due 99999999999999999999:1 5");
    assert_refused("ELATER_ARGS", "later_v1_list mail dead 1:9007199254740993 5");
    /* As a number this is a worker that lives, as a name it is none. */
    assert_refused("ELATER_ARGS", "later_v1_reap %s 0%s ? 5 100", meant("$W2"), meant("$W1"));
    memset(large, 'x', 1100000);
    (void)redis("HSET R:config max_payload nan");
    assert_starts(fcall_bytes("later_add mail", large, 1100000), "!ELATER_SIZE ");
    (void)redis("HSET R:config max_payload 2000 max_payload:mail inf");
    assert_starts(fcall_bytes("later_add mail", large, 1100000), "!ELATER_SIZE ");
    free(large);
}

/* The root: one key, in braces, of bounded length. */
static void test_roots(void **state)
{
    static const char *const roots[] = {
        "",           "later",      "later:t",        "later:{}",   "later:{t}x",  "later:{t",
        "Later:{t}",  "xlater:{t}", "later:{t}:jobs", "later:{.t}", "later:{a b}", "later:{a*}",
        "later:{{t}}"};
    char longest[80] = "later:{", longer[80];

    (void)state;
    (void)memset(longest + 7, 'a', 64);
    (void)strcpy(longest + 71, "}");
    (void)memset(longer, 0, sizeof(longer));
    (void)strcpy(longer, "later:{");
    (void)memset(longer + 7, 'a', 65);
    (void)strcpy(longer + 72, "}");
    for (size_t i = 0; i < COUNT(roots); i++) {
        const char *argv[] = {"FCALL", "later_add", "1", roots[i], "mail", "x"};

        assert_starts(send_args(6, argv, NULL), "!ELATER_ROOT ");
    }
    assert_starts(redis("FCALL later_add 1 %s mail x", longest), "[j");
    (void)redis("FLUSHALL");
    assert_starts(redis("FCALL later_add 1 %s mail x", longer), "!ELATER_ROOT ");
    assert_starts(redis("FCALL later_add 0 mail x"), "!ELATER_ROOT ");
    assert_starts(redis("FCALL later_add 2 %s %s mail x", ROOT, ROOT), "!ELATER_ROOT ");
    assert_string_equal(redis("DBSIZE"), "0");
}

/* Lists of any length from a hostile caller: all of it is done, or nothing. */
static void test_long_lists(void **state)
{
    static const char *const forms[] = {"0 long 1 0 N", "0 long 1 0 0 N", "0 long 1 0 0 0 N"};
    enum { PAIRS = 4500 };
    const char **argv = mem_new((2 * PAIRS + 16) * sizeof(*argv));

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        char *rest, *word;
        const char *before;
        int argc = 4;

        make_world();
        argv[0] = "FCALL";
        argv[1] = "later_v1_register";
        argv[2] = "1";
        argv[3] = ROOT;
        rest = mem_strdup(forms[i]);
        (void)keep(rest);
        while ((word = strsep(&rest, " ")) != NULL)
            argv[argc++] = strcmp(word, "N") == 0 ? text("%d", PAIRS) : word;
        for (int k = 0; k < PAIRS; k++) {
            argv[argc++] = text("max_payload:%d", k);
            argv[argc++] = "1";
        }
        for (size_t k = i; k < 2; k++)
            argv[argc++] = "0";
        before = fingerprint();
        if (starts(send_args(argc, argv, NULL), "!"))
            assert_string_equal(before, fingerprint());
        else
            assert_int_equal(strlen(redis("HGET R:worker:%s inst", at(1, -1))), 4);
        assert_one_set(forms[i]);
    }
    free(argv);
}

/* ---- foreign types */

static const struct {
    const char *key, *type;
} KEYS[] = {{"jobs", "hash"},
            {"running", "zset"},
            {"workers", "hash"},
            {"tries", "hash"},
            {"errors", "hash"},
            {"failures", "hash"},
            {"results", "hash"},
            {"heads", "zset"},
            {"names", "set"},
            {"prio", "hash"},
            {"paused", "hash"},
            {"clock", "string"},
            {"config", "hash"},
            {"stats", "hash"},
            {"cancel", "hash"},
            {"progress", "hash"},
            {"await", "hash"},
            {"notes", "hash"},
            {"seen", "hash"},
            {"unserved", "hash"},
            {"due:mail", "zset"},
            {"q:mail:5", "zset"},
            {"q:mail:0", "zset"},
            {"q:sms:5", "zset"},
            {"q:sms:3", "zset"},
            {"solo:mail", "zset"},
            {"solo:sms", "zset"},
            {"dead:mail", "zset"},
            {"dead:sms", "zset"},
            {"done:mail", "zset"},
            {"done:sms", "zset"},
            {"token:tk", "string"},
            {"token:t2", "string"},
            {"big:$G", "string"},
            {"worker:$W1", "hash"},
            {"worker:$W2", "hash"},
            {"lock:door", "hash"},
            {"lock:other", "hash"},
            {"lock:beside", "hash"},
            {"lock:new", "hash"},
            {"sem:smtp", "zset"},
            {"sem:t:a", "zset"},
            {"rate:gcra:slow", "string"},
            {"rate:sliding:log", "zset"},
            {"wait:lock:door", "zset"},
            {"wait:lock:other", "zset"},
            {"wait:sem:smtp", "zset"},
            {"line:gate:lock:door", "zset"},
            {"line:gate:sem:smtp", "zset"},
            {"line:gate:rate:slow", "zset"},
            {"line:aside:lock:third", "zset"},
            {"parked", "hash"},
            {"parked:gate", "zset"},
            {"holds", "hash"},
            {"timers", "zset"},
            {"limits", "hash"},
            {"queues", "hash"},
            {"index", "zset"},
            {"index:state", "hash"},
            {"granted:gate", "zset"},
            {"aside:aside", "set"},
            {"aside:gate", "set"},
            {"uniq:gate:u", "string"},
            {"uniq:gate:v", "string"},
            {"uniq:keyed:k", "string"}};

static const struct {
    const char *type, *verb, *rest;
} TYPES[] = {{"string", "SET", "foreign"}, {"list", "RPUSH", "x"},  {"hash", "HSET", "f v"},
             {"set", "SADD", "x"},         {"zset", "ZADD", "1 x"}, {"stream", "XADD", "* f v"}};

static const char *full_key(const char *key)
{
    const char *dollar = strchr(key, '$');

    if (dollar == NULL)
        return text(ROOT ":%s", key);
    return text(ROOT ":%.*s%s", (int)(dollar - key), key, meant(dollar));
}

/* Move the key away and put a foreign one instead. */
static void make_foreign(const char *key, size_t type)
{
    (void)redis("RENAME %s aside", key);
    assert_true(redis("%s %s %s", TYPES[type].verb, key, TYPES[type].rest)[0] != '!');
}

static void end_foreign(const char *key)
{
    (void)redis("DEL %s", key);
    (void)redis("RENAME aside %s", key);
}

/*
 * A key of a foreign type instead of each key in turn: a call is refused or done as a whole, and
 * loses no job.
 */
static void R15_wrong_types(void **state)
{
    bool is_full = test_is_long();
    int refused = 0, called = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++)
        for (size_t t = 0; t < COUNT(TYPES); t++) {
            const char *key;

            if (strcmp(KEYS[i].type, TYPES[t].type) == 0 || (!is_full && (i + t) % 3 != 0))
                continue;
            make_world();
            key = full_key(KEYS[i].key);
            make_foreign(key, t);
            for (size_t c = 0; c < COUNT(CALLS); c++) {
                struct call_args w;

                if (!is_full && (c + i + t / 3) % 4 != 0)
                    continue;
                split(CALLS[c], &w);
                called++;
                refused += call_and_judge(&w, NULL, text("%s is a %s", key, TYPES[t].type));
            }
            end_foreign(key);
            assert_one_set(text("%s was a %s", key, TYPES[t].type));
        }
    printf("figure R15: %zu keys, %d calls with a foreign type in the way, %d refused, none half "
           "done\n",
           COUNT(KEYS), called, refused);
}

static void claim_beside(const char *key, size_t type)
{
    const char *w, *solo = strstr(key, "solo");
    const char *before;

    (void)redis("FLUSHALL");
    (void)fx_forget(NULL);
    w = worker();
    (void)add("mail x");
    (void)add("mail priority 0 x");
    (void)add("mail expire 1ms at 1767225600000 x");
    (void)add("sms y");
    (void)redis("ZADD R:due:mail 1 raw");
    if (solo != NULL)
        (void)redis("HSET R:prio mail s");
    if (strstr(key, "dead") != NULL)
        (void)redis("ZADD R:due:mail 1e9 bad");
    (void)redis("DEL R:%s", key);
    (void)redis("%s R:%s %s", TYPES[type].verb, key, TYPES[type].rest);
    before = redis("HGETALL R:jobs");
    assert_starts(fcall_sync("%s 1 0 10 0 2 mail 10 1048576 sms 10 1048576", w), "[");
    assert_int_equal(count_claimed(), 1);
    assert_string_equal(claimed(0, CLAIM_QUEUE), "sms");
    assert_int_equal(len_at(6, -1), 2);
    assert_string_equal(at(6, 0, -1), "mail");
    assert_starts(at(5, 0, -1), "-1");
    assert_string_equal(before, redis("HGETALL R:jobs"));
    assert_string_equal(redis("ZCARD R:running"), "1");
}

/* A queue with a foreign key is the only one that stops, and the sync says so. */
static void R15_one_queue_stops_alone(void **state)
{
    static const char *const keys[] = {"due:mail", "q:mail:5", "q:mail:0", "solo:mail",
                                       "dead:mail"};

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t t = 0; t < COUNT(TYPES); t++)
            if (strcmp(TYPES[t].type, "zset") != 0)
                claim_beside(keys[i], t);
}

/* ---- a server that refuses */

/* Calls that take memory without being needed to end a job. */
static bool is_add(const char *call)
{
    static const char *const takers[] = {"later_add",         "later_batch ",    "later_lock ",
                                         "later_sem_acquire", "later_throttle",  "later_limit_set",
                                         "later_v1_enter",    "later_v1_import", "later_seen "};

    for (size_t i = 0; i < COUNT(takers); i++)
        if (starts(call, takers[i]))
            return true;
    return false;
}

static bool only_reads(const char *call)
{
    static const char *const readers[] = {
        "later_show",        "later_explain",       "later_v1_gates",    "later_result",
        "later_stats",       "later_version",       "later_v1_list",     "later_v1_workers",
        "later_v1_suspects", "later_limits",        "later_fence_check", "later_v1_health",
        "later_v1_rights",   "later_v1_audit",      "later_v2_look",     "later_v1_known",
        "later_batch_show",  "later_batch_jobs",    "later_v1_batches",  "later_seen_list",
        "later_v1_queues",   "later_v1_running",    "later_v1_summary",  "later_v1_reasons",
        "later_v1_ahead",    "later_v1_gate_names", "later_bulk_show",   "later_v1_tenants"};

    for (size_t i = 0; i < COUNT(readers); i++)
        if (starts(call, readers[i]))
            return true;
    return false;
}

/* A full server: adds are refused, everything else works as usual. */
static void test_full_server(void **state)
{
    (void)state;
    make_world();
    (void)redis("CONFIG SET maxmemory 1");
    for (size_t i = 0; i < COUNT(CALLS); i++) {
        struct call_args w;
        bool refused;

        split(CALLS[i], &w);
        refused = call_and_judge(&w, is_add(CALLS[i]) ? "OOM" : NULL, "full");
        if (is_add(CALLS[i]))
            assert_true(refused);
    }
    assert_one_set("a full server");
    (void)fx_calm(NULL);
    make_world();
    (void)redis("CONFIG SET maxmemory 1");
    assert_string_equal(fcall("later_cancel %s", meant("$A")), "cancelled");
    assert_string_equal(settle(meant("$W2"), meant("$R3"), 1, "done", 0), "ok");
    assert_starts(fcall("later_v1_reap %s 77 ? 5 100", meant("$W1")), "[clear 1]");
    assert_starts(fcall("later_v1_tidy %s 1 mail 0", meant("$W1")), "[[");
    assert_string_equal(redis("EXISTS R:dead:mail"), "0");
    assert_int_equal(strlen(claim(meant("$W1"), "sms", 5)), 12);
    (void)redis("CONFIG SET maxmemory 0");
    assert_one_set("a full server");
}

/* Without its replicas, and as a replica: writing calls are refused as a whole, reading calls
 * work. */
static void refuse_writers(const char *code)
{
    for (size_t i = 0; i < COUNT(CALLS); i++) {
        struct call_args w;

        split(CALLS[i], &w);
        if (only_reads(CALLS[i])) {
            assert_false(call_and_judge(&w, NULL, code));
        } else {
            assert_true(call_and_judge(&w, code, code));
        }
    }
}

static void test_no_replicas(void **state)
{
    (void)state;
    make_world();
    (void)redis("CONFIG SET min-replicas-to-write 1");
    refuse_writers("NOREPLICAS");
    (void)redis("CONFIG SET min-replicas-to-write 0");
}

static void test_read_only_replica(void **state)
{
    (void)state;
    make_world();
    (void)redis("REPLICAOF 127.0.0.1 1");
    refuse_writers("READONLY");
    (void)redis("REPLICAOF NO ONE");
    assert_one_set("a replica");
}

/* ---- corrupt contents */

static const struct {
    const char *command, *key, *field; /* field NULL: a string */
} SPOTS[] = {{"HSET", "jobs", "$A"},
             {"HSET", "jobs", "$X"},
             {"HSET", "jobs", "$R1"},
             {"HSET", "jobs", "$D"},
             {"HSET", "jobs", "$G"},
             {"HSET", "tries", "$A"},
             {"HSET", "tries", "$X"},
             {"HSET", "tries", "$R1"},
             {"HSET", "tries", "$R3"},
             {"HSET", "workers", "$W1"},
             {"HSET", "workers", "$W2"},
             {"HSET", "workers", "nonsense"},
             {"HSET", "worker:$W1", "link"},
             {"HSET", "worker:$W1", "quiet"},
             {"HSET", "worker:$W1", "places"},
             {"HSET", "worker:$W1", "limits"},
             {"HSET", "worker:$W1", "room"},
             {"HSET", "worker:$W1", "beat_ms"},
             {"HSET", "worker:$W1", "host"},
             {"HSET", "worker:$W2", "seq"},
             {"HSET", "worker:$W2", "queues"},
             {"HSET", "paused", "mail"},
             {"HSET", "paused", "gate"},
             {"HSET", "prio", "mail"},
             {"HSET", "config", "max_payload"},
             {"HSET", "config", "max_payload:mail"},
             {"SET", "clock", NULL},
             {"SET", "token:tk", NULL},
             {"HSET", "errors", "$D"},
             {"HSET", "results", "$K"},
             {"HSET", "cancel", "$R1"},
             {"HSET", "cancel", "nonsense"},
             {"HSET", "await", "$A"},
             {"HSET", "progress", "$R1"},
             {"HSET", "notes", "nonsense"},
             {"HSET", "unserved", "mail"},
             {"HSET", "stats", "done:mail"},
             {"HSET", "stats", "dead:mail"},
             {"HSET", "jobs", "$P"},
             {"HSET", "jobs", "$N"},
             {"HSET", "parked", "$P"},
             {"HSET", "parked", "$N"},
             {"HSET", "parked", "=bob\nlock:door"},
             {"HSET", "holds", "$L"},
             {"HSET", "holds", "$N"},
             {"HSET", "lock:door", "until"},
             {"HSET", "lock:door", "fence"},
             {"HSET", "lock:door", "holder"},
             {"HSET", "lock:door", "since"},
             {"HSET", "lock:mine", "depth"},
             {"HSET", "lock:other", "holder"},
             {"HSET", "limits", "smtp"},
             {"HSET", "limits", "slow"},
             {"HSET", "limits", "{}"},
             {"HSET", "queues", "gate"},
             {"HSET", "worker:$W2", "gate"},
             {"SET", "rate:gcra:slow", NULL},
             {"SET", "uniq:gate:u", NULL},
             {"SET", "uniq:gate:v", NULL}};

static const char *const GARBAGE[] = {"",
                                      "x",
                                      "nan",
                                      "inf",
                                      "-1",
                                      "0x10",
                                      "1e300",
                                      "1.5",
                                      "9007199254740993",
                                      "99999999999999999999",
                                      "1 1 0",
                                      "99999999999999999999 1 1 1",
                                      "1 1 1 1e300",
                                      "-mail 5 x=nan\nx",
                                      "-mail 5",
                                      "+mail 5\nx",
                                      "-other 5\nx",
                                      "-mail 5 a=-1 t=inf\nx",
                                      "dead x 1 2",
                                      "\xff\n\xff",
                                      "5555ss"};

static void put_garbage(size_t spot, const char *garbage)
{
    const char *argv[4] = {SPOTS[spot].command, full_key(SPOTS[spot].key), NULL, NULL};
    int argc = 2;

    if (SPOTS[spot].field != NULL)
        argv[argc++] = meant(SPOTS[spot].field);
    argv[argc++] = garbage;
    assert_true(send_args(argc, argv, NULL)[0] != '!');
}

/* Untouched jobs of the world must still have a record. */
static void assert_kept(const char *where)
{
    static const char *const kept[] = {"$B", "$S", "$T"};

    for (size_t i = 0; i < COUNT(kept); i++)
        if (strcmp(redis("HEXISTS R:jobs %s", meant(kept[i])), "1") != 0)
            fail_msg("%s: %s is lost", where, kept[i]);
}

/* Calls that end a job which assert_kept checks. */
static bool ends_a_kept_job(const char *call)
{
    return strstr(call, "later_cancel $S") != NULL ||
           strcmp(call, "later_bulk purge mail due") == 0; /* which $B is */
}

/*
 * Garbage in everything that Redis holds: it causes no error in the library's code, a refusal
 * changes nothing, and the other jobs are still there, each in one set.
 */
static void test_corrupt_contents(void **state)
{
    size_t every = test_is_long() ? 1 : 16;
    int called = 0;

    (void)state;
    for (size_t s = 0; s < COUNT(SPOTS); s++)
        for (size_t g = s % every; g < COUNT(GARBAGE); g += every) {
            const char *where = text("%s %s %s", SPOTS[s].key,
                                     SPOTS[s].field != NULL ? SPOTS[s].field : "", GARBAGE[g]);
            char name[200];

            (void)snprintf(name, sizeof(name), "%s", where);
            make_world();
            put_garbage(s, GARBAGE[g]);
            for (size_t c = 0; c < COUNT(CALLS); c++) {
                struct call_args w;

                if (ends_a_kept_job(CALLS[c]) ||
                    (every > 1 && (c + s / every + g / every) % 2 == 0))
                    continue;
                split(CALLS[c], &w);
                called++;
                (void)call_and_judge(&w, NULL, name);
            }
            assert_kept(name);
        }
    printf("%d calls on corrupt contents\n", called);
}

/* Adds after garbage in the clock: each new job has an id of its own. */
static void test_corrupt_clock(void **state)
{
    static const char *const clocks[] = {"",
                                         "x",
                                         "nan",
                                         "-nan",
                                         "inf",
                                         "-inf",
                                         "1e300",
                                         "0x10",
                                         "-5",
                                         "9007199254740991",
                                         "9007199254740992",
                                         "99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < COUNT(clocks); i++) {
        const char *argv[] = {"SET", ROOT ":clock", clocks[i]};

        (void)redis("FLUSHALL");
        (void)send_args(3, argv, NULL);
        for (int k = 0; k < 5; k++)
            assert_int_equal(strlen(add("mail %d", k)), 12);
        assert_starts(fcall("later_add_many mail a b c"), "[[j");
        if (strcmp(redis("HLEN R:jobs"), "8") != 0)
            fail_msg("clock '%s': %s of 8 jobs are there", clocks[i], redis("HKEYS R:jobs"));
        assert_one_set(clocks[i]);
    }
}

/* A worker may say that it knows a high number, but none that leaves no numbers above. */
static void test_clock_told_by_a_worker(void **state)
{
    (void)state;
    (void)fcall("later_v1_register 9007199254740991 i 1 0 0 0 0");
    for (int k = 0; k < 3; k++)
        (void)add("mail %d", k);
    assert_string_equal(redis("HLEN R:jobs"), "3");
    assert_one_set("a high clock");
}

/* Garbage in tries: a waiting job is buried, a running one comes back when its worker is gone. */
static void test_corrupt_tries(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(GARBAGE); g++) {
        const char *a = (fx_clear(NULL), worker()), *b = worker(), *id = add("mail x");
        const char *argv[] = {"HSET", ROOT ":tries", id, GARBAGE[g]};

        (void)send_args(4, argv, NULL);
        assert_starts(fcall_sync("%s 1 0 10 0 1 mail 10 100", a), "[");
        assert_int_equal(count_claimed(), 0);
        assert_string_equal(redis("ZCARD R:dead:mail"), "1");
        id = add("mail y");
        argv[2] = id;
        assert_string_equal(claim(a, "mail", 1), id);
        (void)send_args(4, argv, NULL);
        assert_starts(fcall("later_v1_reap %s %s 1 5 100", b, a), "[clear 1]");
        assert_string_equal(redis("ZCARD R:running"), "0");
        assert_one_set(GARBAGE[g]);
    }
}

/* A worker with a garbage entry is none: it registers again under a new epoch and gets work. */
static void test_corrupt_worker(void **state)
{
    static const char *const links[] = {"", "x", "nan", "-1", "1e3", "99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < COUNT(links); i++) {
        const char *w = (fx_clear(NULL), worker()), *v = worker();
        const char *link[] = {"HSET", text(ROOT ":worker:%s", w), "link", links[i]};
        const char *counter[] = {"HSET", ROOT ":workers", v, links[i]};

        (void)send_args(4, link, NULL);
        (void)send_args(4, counter, NULL);
        assert_starts(fcall("later_v1_beat %s", w), "[");
        assert_string_equal(at(1, -1), "unknown");
        assert_starts(fcall("later_v1_beat %s", v), "[");
        assert_string_equal(at(1, -1), "unknown");
        assert_string_equal(redis("HGET R:workers %s", w), "1");
    }
}

/* A garbage epoch is not listed to be watched: its reap would be refused again and again. */
static void test_foreign_worker(void **state)
{
    const char *w = worker(), *v = worker();

    (void)state;
    (void)redis("HSET R:workers nonsense 5 -1 5 1e9 5 '' 5");
    assert_starts(fcall("later_v1_beat %s", w), "[");
    assert_string_equal(at(5, -1), text("[%s 1]", v));
    assert_refused("ELATER_ARGS", "later_v1_reap %s nonsense 5 5 100", w);
}

/* ---- producers: the lines of the catalogue */

/* Claim one job of a queue with an idle worker. Returns its payload, whose length is *n. */
static const char *take_payload(const char *w, const char *queue, size_t *n)
{
    const struct reply *record;
    const char *lf;

    assert_starts(fcall_sync("%s 1 0 1 0 1 %s 1 1048576", w, queue), "[");
    assert_int_equal(count_claimed(), 1);
    record = claimed_node(0, CLAIM_RECORD);
    lf = memchr(reply_str(record), '\n', reply_len(record));
    assert_non_null(lf);
    if (reply_str(record)[0] == '+') {
        (void)redis("GET R:big:%s", claimed(0, CLAIM_ID));
        *n = reply_len(fx.last);
        return reply_str(fx.last);
    }
    *n = reply_len(record) - (size_t)(lf + 1 - reply_str(record));
    return lf + 1;
}

/* Payloads that would trouble a JSON reader: nobody reads them, and both kinds of add keep every
 * byte. */
static void P4_payloads_are_opaque(void **state)
{
    static const char *const texts[] = {"1e308",        "-1e999", "{\"a\":1,\"a\":2}", "NaN",
                                        "\xed\xa0\x80", "[1,",    "\"\\ud800\""};
    char *deep = mem_new(200001);
    const char *w = worker(), *got;
    size_t n;

    (void)state;
    memset(deep, '[', 100000);
    memset(deep + 100000, ']', 100000);
    for (size_t i = 0; i <= COUNT(texts); i++) {
        const char *payload = i < COUNT(texts) ? texts[i] : deep;
        const char *argv[] = {"ZADD", ROOT ":due:mail", "1", payload};

        assert_starts(fcall_bytes("later_add mail", payload, strlen(payload)), "[j");
        got = take_payload(w, "mail", &n);
        assert_int_equal(n, strlen(payload));
        assert_memory_equal(got, payload, n);
        (void)send_args(4, argv, NULL);
        got = take_payload(w, "mail", &n);
        assert_int_equal(n, strlen(payload));
        assert_memory_equal(got, payload, n);
    }
    free(deep);
    assert_one_set("odd payloads");
    printf(
        "figure P4: nothing parses a payload; 100,000 levels of JSON pass untouched both ways\n");
}

/* What becomes of a raw member with this score after a sync and a tidy: run, wait, bury, refuse. */
static const char *fate_of(const char *score)
{
    const char *w = (fx_clear(NULL), worker());

    if (starts(redis("ZADD R:due:mail %s x", score), "!"))
        return "refused";
    assert_starts(fcall_sync("%s 1 0 1 0 1 mail 1 1048576", w), "[");
    if (count_claimed() == 1)
        return "runs";
    (void)fcall("later_v1_tidy %s 1 mail 604800000", w);
    assert_one_set(score);
    if (strcmp(redis("ZCARD R:dead:mail"), "1") == 0)
        return redis("EXISTS R:due:mail")[0] == '0' ? "buried" : "twice";
    return strcmp(redis("ZCARD R:due:mail"), "1") == 0 ? "waits" : "lost";
}

static void P5_scores(void **state)
{
    static const struct {
        const char *score, *want;
    } rows[] = {{"nan", "refused"},
                {"text", "refused"},
                {"''", "refused"},
                {"inf", "buried"},
                {"-inf", "buried"},
                {"-1", "runs"},
                {"0", "runs"},
                {"1e308", "buried"},
                {"-1e308", "runs"},
                {"9007199254740993", "buried"},
                {"1767225600", "buried"},
                {"0x10", "runs"},
                {"0x19B76CAC000", "runs"},
                {"4102444800000", "waits"},
                {"1e14", "waits"},
                {"100000000000001", "buried"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(fate_of(rows[i].score), rows[i].want);
}

static void P6_delays(void **state)
{
    static const char *const refused[] = {"in -1s",
                                          "in 36526d",
                                          "in 1e3s",
                                          "in 5",
                                          "in nan",
                                          "at 1e400",
                                          "at -5",
                                          "at 1767225600",
                                          "at 100000000000001",
                                          "in 999999999999999999999d"};
    int64_t due, hundred_years = INT64_C(36525) * 86400000;

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_refused("ELATER_TIME", "later_add mail %s x", refused[i]);
    (void)add("mail in 36525d x");
    due = int_at(2, -1);
    assert_time(due, hundred_years - 60000, hundred_years);
    (void)add("mail in 0ms x");
    assert_time(int_at(2, -1), -60000, 0);
    (void)add("mail at 0 x");
    assert_time(int_at(2, -1), -60000, 0);
    (void)add("mail at 1999-01-01T00:00:00Z x");
    assert_time(int_at(2, -1), -60000, 0);
    assert_string_equal(redis("ZCARD R:q:mail:5"), "4");
}

/* The same token, and the same raw bytes: while it waits, while it runs, after its success. */
static void P7_duplicates(void **state)
{
    const char *w = worker(), *id = add("mail token t x"), *first, *second;

    (void)state;
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_string_equal(claim(w, "mail", 9), id);
    assert_int_equal(count_claimed(), 1);
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_starts(fcall("later_add mail token t x"), text("[%s repeated ", id));
    assert_refused("ELATER_TOKEN", "later_add mail token t other");
    assert_refused("ELATER_TOKEN", "later_add sms token t x");
    assert_string_equal(redis("HLEN R:jobs"), "0");
    (void)redis("ZADD R:due:mail 1 x");
    (void)redis("ZADD R:due:mail 2 x");
    first = claim(w, "mail", 9);
    assert_int_equal(count_claimed(), 1);
    (void)redis("ZADD R:due:mail 1 x");
    second = claim(w, "mail", 9);
    assert_int_equal(count_claimed(), 1);
    assert_string_not_equal(first, second);
    assert_string_equal(settle(w, first, 1, "done", 0), "ok");
    assert_string_equal(settle(w, first, 1, "done", 0), "settled");
    assert_string_equal(settle(w, second, 1, "done", 0), "ok");
    (void)redis("ZADD R:due:mail 1 x");
    assert_string_not_equal(claim(w, "mail", 9), "nil");
    assert_one_set("duplicates");
}

/* Ids without records, and records without ids, are buried with a reason, and cause no loop. */
static void P10_dangling(void **state)
{
    static const char *const sets[] = {"q:mail:5", "q:mail:0", "solo:mail"};
    static const char *const records[] = {
        "", "x", "-", "-mail", "-mail 5", "-mail x\nx", "-sms 5\nx", "-mail 5 x=inf\nx", "\n"};

    (void)state;
    for (size_t s = 0; s < COUNT(sets); s++)
        for (size_t r = 0; r <= COUNT(records); r++) {
            const char *w = (fx_clear(NULL), worker());
            const char *argv[] = {"HSET", ROOT ":jobs", "j00000000001", NULL};

            (void)redis("ZADD R:%s 1 j00000000001", sets[s]);
            (void)redis("HSET R:prio mail 0s");
            if (r < COUNT(records)) {
                argv[3] = records[r];
                (void)send_args(4, argv, NULL);
            }
            assert_starts(fcall_sync("%s 1 0 9 0 1 mail 9 100", w), "[");
            assert_int_equal(count_claimed(), 0);
            assert_string_equal(redis("ZRANGE R:dead:mail 0 -1"), "[j00000000001]");
            assert_non_null(strstr(redis("HGET R:errors j00000000001"), "its record is "));
            assert_one_set(sets[s]);
        }
    fx_clear(NULL);
    (void)redis("HSET R:jobs j00000000001 -mail");
    assert_refused("ELATER_NOJOB", "later_show j00000000001");
    (void)redis("ZADD R:running 5 j00000000002");
    assert_starts(fcall("later_v1_reap %s 5 ? 5 100", worker()), "[clear 1]");
    assert_string_equal(redis("EXISTS R:running"), "0"); /* unknown, so removed */
}

/* A record with more than a producer may say: known names are checked, unknown ones ignored. */
static void P11_privileged_fields(void **state)
{
    const char *w = worker(), *id = add("mail attempts 2 x");
    const char *argv[] = {"HSET", ROOT ":jobs", id,
                          "-mail 5 a=2 starts=9 uid=0 w=root cwd=/ E=LD_PRELOAD=x o=7\nx"};

    (void)state;
    (void)send_args(4, argv, NULL);
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(text("%s %s %s", claimed(0, CLAIM_START), claimed(0, CLAIM_ATTEMPT),
                             claimed(0, CLAIM_CRASHES)),
                        "1 1 0");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("starts"), "1");
    assert_string_equal(named("attempt"), "1");
    assert_string_equal(named("worker"), w);
    assert_string_equal(named("timeout_ms"), "nil");
    /* Options that a producer may not give. */
    assert_refused("ELATER_OPTION", "later_add mail start 5 x");
    assert_refused("ELATER_OPTION", "later_add mail uid 0 x");
    assert_refused("ELATER_OPTION", "later_add mail env PATH=/ x");
    assert_refused("ELATER_OPTION", "later_add mail attempts 1000001 x");
    assert_refused("ELATER_TIME", "later_add mail timeout 1000000d x");
    assert_refused("ELATER_KEY", "later_add mail key %s x", "a\nT=b");
    assert_refused("ELATER_OPTION", "later_add mail trace %s x", "a\nb");
}

static void P14_names(void **state)
{
    static const char *const queues[] = {"{",   "}",    "*",   ":",   "a*",      "a:b", "mail:5",
                                         "{t}", "a{b}", "?",   "[a]", "mail}",   "..",  "-a",
                                         "_a",  "",     "a b", "a\n", "\xc3\xa4"};
    static const char *const texts[] = {"{t}", "*", "a:b", "}:jobs", "[x]", "?"};
    static const char *const chains[] = {"then", "on_dead"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < COUNT(queues); i++) {
        const char *argv[] = {"FCALL", "later_add", "1", ROOT, queues[i], "x"};
        const char *before = fingerprint();

        assert_starts(send_args(6, argv, NULL), "!ELATER_QUEUE ");
        argv[1] = "later_pause";
        assert_starts(send_args(5, argv, NULL), "!ELATER_QUEUE ");
        for (size_t k = 0; k < COUNT(chains); k++) {
            const char *chain[] = {"FCALL", "later_add", "1",       ROOT,
                                   "mail",  chains[k],   queues[i], "x"};

            assert_starts(send_args(8, chain, NULL), "!ELATER_QUEUE ");
        }
        assert_string_equal(before, fingerprint());
    }
    /* Where any text is allowed, it stays a mere text. */
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *id = add("mail token %s key %s %s", texts[i], texts[i], texts[i]);

        assert_starts(fcall("later_add mail token %s key k %s", texts[i], texts[i]),
                      text("[%s repeated", id));
        assert_string_equal(claim(w, "mail", 9), id);
        assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    }
    (void)redis("ZADD R:due:a* 1 x"); /* not a legal queue name */
    assert_refused("ELATER_QUEUE", "later_v1_note raw-queue a*");
    assert_refused("ELATER_QUEUE", "later_v1_sync %s 1 0 1 0 1 a* 1 1 0", w);
    (void)redis("DEL R:due:a*");
    assert_one_set("odd names");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CALM_TEST(test_hostile_arguments),
                                       CALM_TEST(test_odd_arguments),
                                       CALM_TEST(test_roots),
                                       CALM_TEST(test_long_lists),
                                       CALM_TEST(R15_wrong_types),
                                       CALM_TEST(R15_one_queue_stops_alone),
                                       CALM_TEST(test_full_server),
                                       CALM_TEST(test_no_replicas),
                                       CALM_TEST(test_read_only_replica),
                                       CALM_TEST(test_corrupt_contents),
                                       CALM_TEST(test_corrupt_clock),
                                       CALM_TEST(test_clock_told_by_a_worker),
                                       CALM_TEST(test_corrupt_tries),
                                       CALM_TEST(test_corrupt_worker),
                                       CALM_TEST(test_foreign_worker),
                                       CALM_TEST(P4_payloads_are_opaque),
                                       CALM_TEST(P5_scores),
                                       CALM_TEST(P6_delays),
                                       CALM_TEST(P7_duplicates),
                                       CALM_TEST(P10_dangling),
                                       CALM_TEST(P11_privileged_fields),
                                       CALM_TEST(P14_names)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
