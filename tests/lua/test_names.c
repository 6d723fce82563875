/* The index of names, later_find, and the lists of the jobs that somebody added last. */
#include "fixture.h"

#define FIND_ALL "later_find '' limit 1000"

/* The names of one kind. */
static const char *of_kind(const char *kind)
{
    return fcall(FIND_ALL " kind %s", kind);
}

/* Members of R:index, however they came there. */
static int size_of_index(void)
{
    (void)redis("ZCARD R:index");
    return (int)int_at(-1);
}

static void tidy(const char *w)
{
    (void)redis("HDEL R:index:state ms"); /* as if enough time had passed */
    assert_starts(fcall("later_v1_tidy %s 0", w), "[[");
}

static void test_arguments(void **state)
{
    (void)state;
    assert_string_equal(fcall("later_find ''"), "[]");
    assert_refused("ELATER_ARGS", "later_find");
    assert_refused("ELATER_ARGS", "later_find %s", text("%0257d", 1));
    assert_string_equal(fcall("later_find %s", text("%0256d", 1)), "[]");
    assert_refused("ELATER_ARGS", "later_find a kind");
    assert_refused("ELATER_OPTION", "later_find a kind job");
    assert_refused("ELATER_OPTION", "later_find a kind ''");
    assert_refused("ELATER_OPTION", "later_find a kind queue KIND queue");
    assert_refused("ELATER_OPTION", "later_find a limit 1 limit 2");
    assert_refused("ELATER_OPTION", "later_find a limit 0");
    assert_refused("ELATER_OPTION", "later_find a limit 10001");
    assert_refused("ELATER_OPTION", "later_find a limit -1");
    assert_refused("ELATER_OPTION", "later_find a limit 1e3");
    assert_refused("ELATER_OPTION", "later_find a how many");
    assert_string_equal(redis("KEYS *"), "[]");
}

static void test_kinds(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("mail x");
    (void)add("mailing priority 3 x");
    (void)fcall("later_limit_set mta semaphore 2");
    (void)fcall("later_limit_set ma{key} rate 1/1s");
    (void)fcall("later_v1_declare %s 0 1 mail lock=ma", w);
    (void)fcall("later_schedule_set mailer every 1h queue other x");
    (void)fcall("later_batch mass x");
    (void)fcall("later_subscribe ma.* mail");
    assert_string_equal(fcall("later_find ma"),
                        "[batch mass lock ma queue mail queue mailing rate ma{key} "
                        "schedule mailer topic ma.*]");
    assert_string_equal(fcall("later_find ma kind gate"), "[lock ma rate ma{key}]");
    assert_string_equal(fcall("later_find m kind gate"), "[lock ma rate ma{key} sem mta]");
    assert_string_equal(fcall("later_find mail"), "[queue mail queue mailing schedule mailer]");
    assert_string_equal(fcall("later_find mail limit 1"), "[queue mail schedule mailer]");
    assert_string_equal(fcall("later_find mail KIND Queue LIMIT 5"), "[queue mail queue mailing]");
    assert_string_equal(fcall("later_find maili"), "[queue mailing]");
    assert_string_equal(fcall("later_find nothing"), "[]");
    assert_string_equal(fcall("later_find queue"), "[]"); /* a kind is no name */
}

/* Redis compares bytes; what follows a prefix may be any of them. */
static void test_every_byte(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        char name[3] = {'x', (char)c, '\0'};

        if (c <= ' ' || c == 127)
            continue;
        assert_string_equal(fcall("later_limit_set %s semaphore 1", name), "set");
    }
    (void)fcall("later_limit_set \xff semaphore 1");
    (void)fcall("later_limit_set \xff\xff semaphore 1");
    (void)fcall("later_find x kind sem limit 1000");
    assert_int_equal(reply_count(fx.last), 2 * 222);
    assert_string_equal(at(1, -1), "x!");
    assert_string_equal(at(2 * 222 - 1, -1), "x\xff");
    assert_string_equal(fcall("later_find \xff"), "[sem \xff sem \xff\xff]");
    assert_string_equal(fcall("later_find \xff\xff"), "[sem \xff\xff]");
    assert_string_equal(fcall("later_find x\xff"), "[sem x\xff]");
    (void)fcall_bytes("later_find", "x\0", 2);
    assert_int_equal(reply_count(fx.last), 0);
    assert_string_equal(fcall("later_find ["), "[]");
    assert_string_equal(fcall("later_find +"), "[]");
}

/* Names go where what they name goes. */
static void test_removal(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_limit_set g semaphore 1");
    (void)fcall("later_limit_set g rate 1/1s");
    assert_string_equal(of_kind("gate"), "[rate g]");
    (void)fcall("later_limit_del g");
    assert_string_equal(of_kind("gate"), "[]");
    (void)fcall("later_schedule_set s every 1h queue q x");
    (void)fcall("later_schedule_set s every 2h queue q x");
    assert_string_equal(of_kind("schedule"), "[schedule s]");
    (void)fcall("later_schedule_del s");
    assert_string_equal(of_kind("schedule"), "[]");
    (void)fcall("later_subscribe t a");
    (void)fcall("later_subscribe t b");
    (void)fcall("later_unsubscribe t a");
    assert_string_equal(of_kind("topic"), "[topic t]");
    (void)fcall("later_unsubscribe t b");
    assert_string_equal(of_kind("topic"), "[]");
    (void)fcall("later_batch b keep 1ms");
    (void)fcall("later_batch_seal b");
    assert_string_equal(of_kind("batch"), "[batch b]");
    while (fcall("later_batch_show b")[0] != '!')
        (void)fcall("later_v1_tidy %s 0", w);
    assert_string_equal(of_kind("batch"), "[]");
    assert_string_equal(of_kind("queue"), "[queue a queue b queue q]");
    assert_string_equal(fcall("later_v1_forget a"), "forgotten");
    assert_string_equal(of_kind("queue"), "[queue b queue q]");
    /* A lock stays while any queue declares it. */
    (void)fcall("later_v1_declare %s 0 2 p lock=both q lock=both", w);
    (void)fcall("later_v1_declare %s 0 1 p lock=other", w);
    assert_string_equal(of_kind("gate"), "[lock both lock other]");
    (void)fcall("later_v1_declare %s 0 1 q sem=s", w);
    assert_string_equal(of_kind("gate"), "[lock other]");
    /* With thousands of queues that have gates, the call does not look at all of them. */
    (void)redis(
        "EVAL for\ti=1,2000\tdo\tredis.call('HSET',KEYS[1],'f'..i,'sem=s')\tend 1 R:queues");
    (void)fcall("later_v1_declare %s 0 1 p ''", w);
    assert_string_equal(of_kind("gate"), "[lock other]");
}

/* The ways in which a queue gets its name. */
static void test_queues(void **state)
{
    const char *id, *job;

    (void)state;
    (void)fcall("later_v1_register 0 inst 1 0 2 host h1 queues served,idle 0 0");
    id = at(1, -1);
    (void)fcall("later_v1_beat %s served,more", id);
    (void)fcall("later_add_many many x y");
    (void)fcall("later_pause paused");
    (void)add("first token t x");
    (void)add("plain x");
    (void)fcall("later_v1_import brought 1 due 5 x");
    assert_string_equal(of_kind("queue"),
                        "[queue brought queue first queue idle queue many queue more queue paused "
                        "queue plain queue served]");
    /* A counter that comes back brings the name. */
    job = add("late x");
    assert_string_equal(claim(id, "late", 1), job);
    (void)redis("SREM R:names late");
    (void)redis("ZREM R:index queue:late");
    assert_string_equal(settle(id, job, 1, "done", 0), "ok");
    (void)fcall("later_find late kind queue");
    assert_string_equal(at(1, -1), "late");
}

/* What an add costs, once its queues have names. */
static void test_no_command_for_a_job(void **state)
{
    const char *before, *after;

    (void)state;
    (void)add("mail x");
    (void)redis("CONFIG RESETSTAT");
    (void)add("mail x");
    before = redis("INFO commandstats");
    assert_null(strstr(before, "cmdstat_zcard"));
    assert_null(strstr(before, "cmdstat_sadd"));
    (void)redis("CONFIG RESETSTAT");
    (void)add("other x");
    after = redis("INFO commandstats");
    assert_non_null(strstr(after, "cmdstat_zcard:calls=1,"));
    assert_int_equal(size_of_index(), 2);
    (void)redis("CONFIG RESETSTAT");
    (void)add("mail then other x");
    assert_null(strstr(redis("INFO commandstats"), "cmdstat_zcard"));
}

/* A key that cannot be written, or too many names, harm nothing. */
static void test_hint(void **state)
{
    const char *w = worker();

    (void)state;
    (void)redis("SET R:index foreign");
    (void)add("mail x");
    (void)add("other priority 3 x");
    assert_string_equal(fcall("later_limit_set g semaphore 1"), "set");
    assert_string_equal(fcall("later_limit_del g"), "1");
    tidy(w);
    assert_string_equal(redis("GET R:index"), "foreign");
    assert_refused("ELATER_TYPE", "later_find ''");
    (void)redis("DEL R:index");
    (void)redis("SET R:index:state foreign");
    tidy(w);
    (void)redis("DEL R:index:state");
    tidy(w);
    assert_string_equal(of_kind("queue"), "[queue mail queue other]");
    /* Full: nothing more is added, and what goes makes room. */
    (void)redis("EVAL for\ti=1,400000-redis.call('ZCARD',KEYS[1])\tdo\tredis.call('ZADD',KEYS[1],0,"
                "'topic:n'..i)\tend 1 R:index");
    (void)add("third x");
    (void)fcall("later_limit_set g semaphore 1");
    assert_int_equal(size_of_index(), 400000);
    assert_string_equal(fcall("later_find third"), "[]");
    tidy(w);
    tidy(w);
    assert_string_equal(fcall("later_find third"), "[queue third]");
    assert_string_equal(of_kind("sem"), "[sem g]");
}

/* A full server: what may be called there is done, and its names go or come with it. */
static void test_out_of_memory(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("mail x");
    (void)fcall("later_limit_set g semaphore 1");
    (void)redis("CONFIG SET maxmemory 1");
    assert_starts(fcall("later_add other x"), "!");
    assert_starts(fcall("later_v1_recent me@host j00000000001"), "!");
    assert_string_equal(fcall("later_limit_del g"), "1");
    assert_string_equal(fcall("later_find ''"), "[queue mail]");
    (void)redis("DEL R:index");
    tidy(w);
    assert_string_equal(fcall("later_find ''"), "[queue mail]");
    assert_string_equal(fcall("later_v1_recents me@host"), "[]");
    (void)redis("CONFIG SET maxmemory 0");
}

static void make_all(const char *w)
{
    for (int i = 0; i < 5; i++) {
        (void)add("q%d x", i);
        (void)fcall("later_limit_set sem%d semaphore 1", i);
        (void)fcall("later_limit_set rate%d rate 1/1s", i);
        (void)fcall("later_v1_declare %s 0 1 q%d lock=lock%d", w, i, i);
        (void)fcall("later_schedule_set sch%d every 1h queue q x", i);
        (void)fcall("later_batch open%d x", i);
        (void)fcall("later_batch ended%d x", i);
        (void)fcall("later_batch_seal ended%d", i);
        (void)fcall("later_subscribe topic%d q", i);
    }
}

/* A namespace of a library without an index, and one whose index was written by others. */
static void test_mending(void **state)
{
    const char *w = worker(), *was;

    (void)state;
    make_all(w);
    was = fcall(FIND_ALL);
    assert_int_equal(size_of_index(), 5 * 8 + 1 + 5 * 2); /* ten uses of queue q */
    (void)redis("DEL R:index");
    tidy(w);
    assert_string_equal(fcall(FIND_ALL), was);
    (void)redis("ZADD R:index 0 queue:gone 0 sem:rate1 0 rate:gone 0 lock:gone 0 schedule:gone 0 "
                "batch:gone 0 topic:gone 0 names:q1 0 junk 0 '' 5 queue:q2 0 queues:q1");
    tidy(w);
    tidy(w); /* what had a wrong score is gone now, and comes back */
    assert_string_equal(fcall(FIND_ALL), was);
    assert_int_equal(size_of_index(), 5 * 8 + 1 + 5 * 2); /* ten uses of queue q */
    /* A source of a foreign type does not keep the others from being mended. */
    (void)redis("DEL R:index");
    (void)redis("RENAME R:topics R:aside");
    (void)redis("SET R:topics x");
    tidy(w);
    assert_int_equal(size_of_index(), 5 * 7 + 1 + 5);
    (void)redis("DEL R:topics");
    (void)redis("RENAME R:aside R:topics");
    tidy(w);
    assert_string_equal(fcall(FIND_ALL), was);
}

/* However many workers tidy, and however many names there are. */
static void test_mending_is_slow(void **state)
{
    const char *w = worker();
    int rounds = 0;

    (void)state;
    (void)redis(
        "EVAL for\ti=1,3000\tdo\tredis.call('HSET',KEYS[1],'n'..i,'q')\tredis.call('HSET',"
        "KEYS[2],'n'..i,'then=q')\tredis.call('ZADD',KEYS[3],9e13+i,'n'..i)\tend 3 R:topics "
        "R:batches R:batch:ended");
    (void)fcall("later_v1_tidy %s 0", w);
    assert_in_range(size_of_index(), 1, 400);
    (void)fcall("later_v1_tidy %s 0", w); /* it ran just now */
    assert_in_range(size_of_index(), 1, 400);
    while (size_of_index() < 6000 && rounds++ < 1000)
        tidy(w);
    assert_in_range(rounds, 15, 200);
    /* The clock may have been set back. */
    (void)redis("DEL R:index");
    (void)redis("HSET R:index:state ms 99999999999999");
    (void)fcall("later_v1_tidy %s 0", w);
    assert_in_range(size_of_index(), 1, 400);
}

static void test_recents(void **state)
{
    const char *id[3] = {"j00000000001", "j00000000002", "j00000000003"};
    struct buf ids = BUF_INIT;

    (void)state;
    assert_string_equal(fcall("later_v1_recents me@host"), "[]");
    assert_string_equal(fcall("later_v1_recent me@host %s %s", id[0], id[1]), "noted");
    assert_string_equal(fcall("later_v1_recent other@host %s", id[2]), "noted");
    assert_string_equal(fcall("later_v1_recents me@host"), "[j00000000002 j00000000001]");
    (void)fcall("later_v1_recent me@host %s %s", id[0], id[0]);
    assert_string_equal(fcall("later_v1_recents me@host"), "[j00000000001 j00000000002]");
    assert_string_equal(fcall("later_v1_recents other@host"), "[j00000000003]");
    (void)redis("PTTL R:recent:me@host");
    assert_in_range(int_at(-1), 29LL * 86400000, 30LL * 86400000);
    for (int i = 0; i < 100; i++)
        buf_printf(&ids, " j%011d", i);
    (void)fcall("later_v1_recent me@host%s", buf_str(&ids));
    (void)fcall("later_v1_recent me@host jzzzzzzzzzzz");
    (void)fcall("later_v1_recents me@host");
    assert_int_equal(reply_count(fx.last), 100);
    assert_string_equal(at(0, -1), "jzzzzzzzzzzz");
    assert_string_equal(at(99, -1), "j00000000001");
    assert_refused("ELATER_ARGS", "later_v1_recent");
    assert_refused("ELATER_ARGS", "later_v1_recent me@host");
    assert_refused("ELATER_ARGS", "later_v1_recent me@host j00000000000%s", buf_str(&ids));
    assert_refused("ELATER_ARGS", "later_v1_recent '' %s", id[0]);
    assert_refused("ELATER_ARGS", "later_v1_recent %s %s", text("%0321d", 1), id[0]);
    assert_refused("ELATER_ARGS", "later_v1_recents a%cb", '\n');
    assert_refused("ELATER_NOJOB", "later_v1_recent me@host mail@key");
    assert_refused("ELATER_NOJOB", "later_v1_recent me@host %s J0", id[0]);
    buf_done(&ids);
}

static void test_lists_are_limited(void **state)
{
    (void)state;
    for (int i = 0; i < 1010; i++)
        (void)fcall("later_v1_recent u%d j00000000001", i);
    assert_string_equal(redis("ZCARD R:recents"), "1000");
    assert_string_equal(redis("EXISTS R:recent:u0 R:recent:u1 R:recent:u1009"), "1");
    /* Lists that are over. */
    (void)redis("ZADD R:recents 5 u1008 6 u1007");
    (void)redis("ZREMRANGEBYRANK R:recents 2 500");
    (void)fcall("later_v1_recent new j00000000001");
    assert_string_equal(redis("EXISTS R:recent:u1008 R:recent:u1007"), "0");
    /* Keys of foreign types are left alone. */
    (void)redis("SET R:recent:foreign x");
    assert_string_equal(fcall("later_v1_recent foreign j00000000001"), "noted");
    assert_string_equal(redis("GET R:recent:foreign"), "x");
    assert_refused("ELATER_TYPE", "later_v1_recents foreign");
    (void)redis("DEL R:recents");
    (void)redis("SET R:recents x");
    assert_string_equal(fcall("later_v1_recent me j00000000001"), "noted");
    assert_string_equal(fcall("later_v1_recents me"), "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_arguments),  FX_TEST(test_kinds),
        FX_TEST(test_every_byte), FX_TEST(test_removal),
        FX_TEST(test_queues),     FX_TEST(test_no_command_for_a_job),
        FX_TEST(test_hint),       FX_TEST(test_out_of_memory),
        FX_TEST(test_mending),    FX_TEST(test_mending_is_slow),
        FX_TEST(test_recents),    FX_TEST(test_lists_are_limited),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
