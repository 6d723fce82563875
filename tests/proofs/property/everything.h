/*
 * A namespace with one of everything, and calls of every function there.
 */
#ifndef LATER_TESTS_PROPERTY_EVERYTHING_H
#define LATER_TESTS_PROPERTY_EVERYTHING_H

#include "judges.h"

#define WORDS_MAX 40

/* ---- the world: a namespace with one of everything */

/* Words that stand for an id or an epoch of the world. */
static struct {
    char name[8], value[24];
} names[32];
static size_t nnames;

static inline const char *name_as(const char *name, const char *value)
{
    (void)snprintf(names[nnames].name, sizeof(names[0].name), "%s", name);
    (void)snprintf(names[nnames].value, sizeof(names[0].value), "%s", value);
    return names[nnames++].value;
}

static inline const char *meant(const char *word)
{
    for (size_t i = 0; i < nnames; i++)
        if (strcmp(names[i].name, word) == 0)
            return names[i].value;
    return word;
}

/* A suspect: a job whose worker died twice while running it. */
static inline void suspect(const char *w)
{
    const char *id = add("mail keep 1h suspect");

    for (int i = 0; i < 2; i++) {
        const char *victim = worker();

        assert_string_equal(claim(victim, "mail", 1), id);
        assert_starts(fcall("later_v1_reap %s %s 1 5 100", w, victim), "[clear 1]");
    }
    (void)name_as("$X", id);
}

static inline void running(const char *name, const char *w, const char *options)
{
    const char *id = name_as(name, add("sms %s running", options));

    assert_string_equal(claim(w, "sms", 1), id);
}

/*
 * A job with two gates, and one job waiting at each; a granted job that is not claimed yet; a
 * paused queue that stands aside; callers and a program that hold or wait for gates; unique jobs.
 */
static inline void make_gates(const char *w1, const char *w2)
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

static inline void make_world(void)
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

/* ---- calls as words that may contain any bytes */

struct word {
    const char *p;
    size_t n;
};

struct call_args {
    struct word word[WORDS_MAX];
    int n;
};

static inline void split(const char *call, struct call_args *w)
{
    char *rest = mem_strdup(call), *word;

    (void)keep(rest);
    w->n = 0;
    while ((word = strsep(&rest, " ")) != NULL) {
        const char *value = strcmp(word, "''") == 0 ? "" : meant(word);

        w->word[w->n++] = (struct word){value, strlen(value)};
    }
}

static inline const char *send_words(const struct call_args *w)
{
    const char *argv[WORDS_MAX + 4] = {"FCALL", w->word[0].p, "1", ROOT};
    size_t lens[WORDS_MAX + 4] = {5, w->word[0].n, 1, sizeof(ROOT) - 1};

    for (int i = 1; i < w->n; i++) {
        argv[3 + i] = w->word[i].p;
        lens[3 + i] = w->word[i].n;
    }
    return send_args(3 + w->n, argv, lens);
}

static inline const char *show_words(const struct call_args *w)
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
static inline bool call_and_judge(const struct call_args *w, const char *also, const char *where)
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

static inline const char *full_key(const char *key)
{
    const char *dollar = strchr(key, '$');

    if (dollar == NULL)
        return text(ROOT ":%s", key);
    return text(ROOT ":%.*s%s", (int)(dollar - key), key, meant(dollar));
}

/* Move the key away and put a foreign one instead. */

#endif
