/* What later_explain answers: for each thing that a job can wait for, and in which order. */
#include "fixture.h"

/* A sync with this room in queue mail, of a worker that says it holds nothing. */
static void sync_mail(const char *w, int room)
{
    assert_starts(fcall_sync("%s 1 0 128 0 1 mail %d 1048576", w, room), "[");
    assert_string_equal(at(1, -1), "ok");
}

/* Wait, so that a minute that was just set is not a whole minute any more. */
static void two_ms_later(void)
{
    (void)redis("DEBUG SLEEP 0.002");
}

/* The job waits for this, and the sentence has these words. */
static void explains(const char *id, const char *waits_for, const char *words)
{
    const char *got;

    assert_starts(fcall("later_explain %s", id), text("[id %s", id[0] == 'j' ? id : "j"));
    got = named("text");
    if (strcmp(named("waits_for"), waits_for) != 0 || strstr(got, words) == NULL)
        fail_msg("waits for %s: \"%s\"; want %s: \"%s\"", named("waits_for"), got, waits_for,
                 words);
}

/* ---- not yet, and no more */

static void test_not_due(void **state)
{
    const char *w = serving("mail", 4), *id = add("mail in 3m x");

    (void)state;
    two_ms_later();
    explains(id, "time", "it is not due for 2 m 5");
    assert_string_equal(named("state"), "waiting");
    (void)fcall("later_explain %s", id);
    assert_time(reply_int(reply_named(fx.last, "due_ms")), 179000, 180000);
    (void)fcall("later_pause mail");
    explains(id, "time", "it is not due for ");
    (void)fcall("later_resume mail");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "retry", 60000), "ok");
    explains(id, "time", "; attempt 1 failed ");
    explains(id, "time", " ago (exit status 7): T");
}

static void test_expired(void **state)
{
    const char *id = add("mail at 1767225600000 expire 5s x");

    (void)state;
    (void)redis("ZADD R:q:mail:5 1767225600000 %s", id);
    explains(id, "nothing", "it was not started within 5.0 s of its due time");
    /* A job that can never pass: its queue has a gate with {key}, and the job has no key. */
    id = add("mail x");
    (void)redis("HSET R:queues mail lock=user:{key}");
    explains(id, "nothing", "its queue wants the lock user:{key}, and it has no key");
    explains(add("mail key k x"), "worker", "");
}

static void test_ended(void **state)
{
    const char *w = serving("mail", 4), *id = add("mail keep 1h x");

    (void)state;
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "done", 3600000), "ok");
    two_ms_later();
    explains(id, "nothing", "it was done ");
    explains(id, "nothing", "; it is forgotten in 59 m 5");
    id = add("mail keep 1h x");
    (void)fcall("later_cancel %s", id);
    explains(id, "nothing", "it was cancelled ");
    id = add("mail unique k x");
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "dead", 100), "ok");
    explains(id, "retry",
             ", after 1 attempt (exit status 7): T; later retry runs it again at once");
    assert_string_equal(named("code"), "7");
    w = add("mail unique k x");
    explains(id, "retry", text("later retry is refused while job %s has its unique key", w));
    assert_string_equal(named("unique_owner"), w);
    explains("mail@k", "nothing", "");
    assert_string_equal(named("id"), w);
    assert_refused("ELATER_NOJOB", "later_explain j00000000000");
    assert_refused("ELATER_NOJOB", "later_explain mail@other");
    assert_refused("ELATER_NOJOB", "later_explain x");
    assert_refused("ELATER_ARGS", "later_explain");
}

/* ---- running */

static void test_running(void **state)
{
    const char *w = serving("mail", 4), *id = add("mail x");
    int64_t since_ms;

    (void)state;
    (void)claim(w, "mail", 1);
    explains(id, "handler", "it runs on web1 (pid 77); attempt 1");
    assert_string_equal(named("since_ms"), "nil");
    assert_string_equal(named("worker"), w);
    (void)settle(w, id, 1, "progress", 0);
    explains(id, "handler", "; it says: T");
    (void)fcall("later_cancel %s", id);
    explains(id, "handler", "; a cancel has been under way for ");
    (void)redis("HSET R:worker:%s beat_ms %lld", w, (long long)now_ms() - 15000);
    explains(id, "handler", ", which has been silent for 15.");
    (void)redis("HSET R:workers %s dead", w);
    explains(id, "handler", "its worker on web1 (pid 77) was given up: it is being put back");
    (void)redis("DEL R:workers R:worker:%s", w);
    explains(id, "handler", text("its worker %s is not registered", w));
    /* Its worker says since when it runs. */
    w = serving("mail", 4);
    id = add("mail x");
    (void)claim(w, "mail", 1);
    since_ms = now_ms() - 60000;
    (void)redis("EVAL return\tredis.call('HSET',KEYS[1],'runs','j00000000000\\032"
                "5,%s\\032%lld,') 1 "
                "R:worker:%s",
                id, (long long)since_ms, w);
    explains(id, "handler", "it runs on web1 (pid 77) for 1 m");
    assert_int_equal(atoll(named("since_ms")), since_ms);
    (void)fcall("later_show %s", id);
    assert_int_equal(atoll(named("started_ms")), since_ms);
}

/* ---- a worker */

static void test_nobody_serves(void **state)
{
    const char *id = add("mail x"), *w;

    (void)state;
    explains(id, "worker", "no live worker serves queue mail: there is no live worker at all");
    assert_string_equal(named("workers_live"), "0");
    (void)worker(); /* like later lock, it serves no queue */
    explains(id, "worker", ": there is no live worker at all");
    w = serving("sms", 4);
    explains(id, "worker", "no live worker serves queue mail (1 other worker in the namespace)");
    (void)redis("HSET R:unserved mail %lld", (long long)now_ms() - 120500);
    explains(id, "worker", "no live worker serves queue mail, for 2 m at least (1 other");
    (void)redis("HSET R:worker:%s queues mail", w);
    (void)redis("HSET R:workers %s dead", w);
    explains(id, "worker", "the one on web1 (pid 77) did, and was given up");
}

/* All else waits until a suspect has ended: it has to be found. */
static void test_behind_a_suspect(void **state)
{
    const char *w = serving("mail", 4), *suspect = add("mail x"), *id;
    const char *tries[] = {"HSET", ROOT ":tries", suspect, "3 3 2 0"};

    (void)state;
    sync_mail(w, 1);
    id = add("mail x");
    (void)redis("HSET R:worker:%s room 0", w);
    explains(id, "room", "web1 (pid 77) said within ten seconds that it has none");
    (void)send_args(4, tries, NULL);
    explains(id, "room",
             text("no worker that serves queue mail has room: web1 (pid 77) runs only job %s, "
                  "under which its worker died 2 times",
                  suspect));
}

static void test_no_room(void **state)
{
    const char *w = serving("mail", 2), *id, *v;

    (void)state;
    (void)add("mail x");
    (void)add("mail x");
    sync_mail(w, 2);
    (void)add("mail priority 0 x");
    (void)redis("ZADD R:due:mail 1 raw");
    id = add("mail priority 7 x");
    explains(id, "room",
             "no worker that serves queue mail has room: web1 (pid 77) is full: 2 of 2 places are "
             "taken; 2 due jobs of the queue before it");
    assert_string_equal(named("ahead"), "2");
    assert_string_equal(named("workers"), text("[%s web1 77 full 2 2]", w));
    (void)redis("HSET R:worker:%s places 3 limits sms=1,mail=2", w);
    explains(id, "room", "web1 (pid 77) runs 2 of 2 jobs of this queue");
    (void)redis("HSET R:worker:%s limits '' room 0", w);
    explains(id, "room", "web1 (pid 77) said within ten seconds that it has none");
    (void)redis("HSET R:worker:%s beat_ms %lld", w, (long long)now_ms() - 15000);
    explains(id, "room", "web1 (pid 77) is silent for 15.");
    (void)redis("HSET R:worker:%s beat_ms %lld", w, (long long)now_ms());
    (void)fcall("later_v1_quiet %s on", w);
    explains(id, "room", "web1 (pid 77) was told to be quiet");
    v = serving("sms,mail", 1);
    explains(id, "turn", "2 due jobs of queue mail stand before it; web1 (pid 77) has room");
    (void)redis("HDEL R:worker:%s room", v); /* it has not told its room yet */
    explains(id, "turn", "2 due jobs of queue mail stand before it");
    explains(add("sms x"), "nothing", "it is about to start: due for ");
}

/* A job has been due for long, although a worker has room. */
static void test_due_waiting(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)serving("mail", 2);
    (void)redis("ZADD R:q:mail:5 %lld %s", (long long)now_ms() - 40500, id);
    explains(id, "nothing", "due for 40.");
    explains(id, "nothing", "if that stays so, that worker is in trouble");
}

static void test_suspect(void **state)
{
    const char *w = serving("mail", 4), *id = add("mail x"), *other;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *victim = worker();

        assert_string_equal(claim(victim, "mail", 1), id);
        assert_starts(fcall("later_v1_reap %s %s 1 5 100", w, victim), "[clear 1]");
    }
    (void)redis("ZADD R:solo:mail 1767225600000 %s", id);
    explains(id, "nothing", "web1 (pid 77) has room");
    other = add("mail x");
    assert_starts(fcall_sync("%s 1 1 1 0 1 mail 1 1048576", w), "["); /* it runs something else */
    assert_string_equal(claimed(0, CLAIM_ID), other);
    explains(id, "alone",
             "its worker died 2 times under it, so it starts only where nothing else runs: web1 "
             "(pid 77) runs 1 job");
    (void)fcall("later_pause mail");
    explains(id, "pause", "");
}

static void test_paused(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)fcall("later_pause mail by ann reason broken for 10m");
    two_ms_later();
    explains(id, "pause", "its queue mail is paused by ann for ");
    explains(id, "pause", ", for another 9 m 5");
    explains(id, "pause", " (broken)");
    assert_string_equal(named("paused_by"), "ann");
    assert_string_equal(named("reason"), "broken");
    (void)fcall("later_pause mail");
    explains(id, "pause", ", until later resume");
    assert_string_equal(named("paused_by"), "nil");
    (void)redis("HSET R:paused mail x");
    explains(id, "pause", "its queue mail is paused, until later resume");
    (void)redis("HSET R:paused mail '1 1 x'");
    (void)fcall("later_resume mail");
    explains(id, "worker", "");
}

/* ---- gates */

static void test_lock(void **state)
{
    const char *w = serving("mail,sms", 4), *holder = add("mail lock door x"), *second, *id, *v;

    (void)state;
    sync_mail(w, 1);
    second = add("mail lock door x");
    id = add("mail lock door x");
    sync_mail(w, 1);
    explains(second, "lock",
             text("lock door is held by job %s of queue mail on web1 (pid 77), for ", holder));
    explains(second, "lock", "; nobody waits before it");
    assert_string_equal(named("gate"), "lock:door");
    assert_string_equal(named("holders"), text("[%s mail web1 0]", holder));
    assert_string_equal(named("ahead"), "0");
    explains(id, "lock", "; 1 waits before it: 1 of queue mail");
    assert_string_equal(named("ahead_queue"), "1");
    /* No worker serves its queue any more; still the gate is what it waits for. */
    (void)redis("HSET R:worker:%s queues sms", w);
    explains(id, "lock", "");
    (void)fcall("later_pause mail by ann");
    explains(id, "pause", "paused by ann");
    (void)fcall("later_resume mail");
    (void)redis("HSET R:worker:%s queues mail", w);
    assert_string_equal(settle(w, holder, 1, "done", 0), "ok");
    (void)redis("HSET R:worker:%s queues sms", w);
    explains(second, "worker", "it was let in at lock:door ");
    explains(id, "lock",
             text("lock door is held by job %s of queue mail (let in, about to start)", second));
    /* A program holds the lock, and two callers wait, one of which has waited long enough. */
    (void)redis("FLUSHALL");
    w = serving("mail", 4);
    v = serving("", 0);
    assert_starts(fcall("later_v1_enter %s lock:door", v), "[1 ");
    (void)fcall("later_lock door ann wait 1h");
    (void)fcall("later_lock door bob wait 1ms");
    id = add("mail lock door x");
    sync_mail(w, 1);
    (void)redis("DEBUG SLEEP 0.003");
    explains(id, "lock", "lock door is held by a program on web1 (pid 77), for ");
    explains(id, "lock", "; 1 waits before it: caller ann");
    assert_string_equal(named("holders"), text("[@%s  web1 0]", v));
}

static void test_lease(void **state)
{
    const char *w = serving("mail", 4), *id = add("mail lock door x");

    (void)state;
    (void)fcall("later_lock door ann ttl 1m");
    sync_mail(w, 1);
    two_ms_later();
    explains(id, "lock", "lock door is held by caller ann (its lease ends in 59.");
    assert_true(strtoll(named("until_ms"), NULL, 10) > 0);
    (void)fcall("later_lock door bob wait 1h");
    (void)redis("ZADD R:wait:lock:door 1 =bob");
    (void)fcall("later_unlock door ann");
    explains(id, "lock", "lock door is kept for caller bob (its lease ends in ");
    (void)redis("HSET R:lock:door until 1");
    explains(id, "nothing", "lock:door is free again, and nobody waits before it");
    (void)redis("HSET R:worker:%s queues x", w);
    explains(id, "worker", "lock:door is free again, and nobody waits before it; no live worker");
    (void)redis("DEL R:lock:door");
    (void)redis("HSET R:lock:door holder jaaaaaaaaaaa fence 5 depth 1 until 0 since 5");
    explains(id, "lock", "job jaaaaaaaaaaa (which does not run: see later fsck)");
}

/* All 22 permits are taken: more holders than the sentence names, and than the reply has. */
static void test_semaphore(void **state)
{
    const char *w = serving("mail", 100), *id;

    (void)state;
    (void)fcall("later_limit_set smtp semaphore 22");
    for (int i = 0; i < 22; i++)
        (void)add("mail sem smtp x");
    sync_mail(w, 22);
    for (int i = 0; i < 11; i++)
        id = add("mail sem smtp x");
    (void)redis("HSET R:worker:%s queues mail,sms", w);
    sync_mail(w, 11);
    explains(id, "semaphore", "semaphore smtp is full, 22 of 22 permits: job j");
    explains(id, "semaphore", " and 19 more; 10 wait before it: 10 of queue mail");
    assert_string_equal(named("held"), "22");
    assert_string_equal(named("limit"), "22");
    assert_int_equal(reply_count(reply_named(fx.last, "holders")), 80);
    /* A job of another queue is before it. When that queue is paused, its job does not count. */
    (void)add("sms sem smtp x");
    assert_starts(fcall_sync("%s 1 0 9 0 1 sms 9 1048576", w), "[");
    id = add("mail sem smtp x");
    sync_mail(w, 1);
    explains(id, "semaphore", "; 12 wait before it: 11 of queue mail, 1 of queue sms");
    (void)fcall("later_pause sms");
    explains(id, "semaphore", "; 11 wait before it: 11 of queue mail");
    (void)fcall("later_limit_del smtp");
    explains(id, "semaphore",
             "no semaphore smtp is defined (later limits set defines one); 11 wait ");
    assert_string_equal(named("limit"), "nil");
    (void)fcall("later_limit_set smtp rate 1/1s");
    explains(id, "semaphore", "smtp is defined as a rate, and as no semaphore; ");
    (void)fcall("later_limit_set smtp semaphore 0");
    explains(id, "semaphore", "semaphore smtp is closed: its limit is 0 ");
}

static void test_rate(void **state)
{
    static const char *const forms[] = {"1/1h", "1/1h algorithm sliding",
                                        "1/100000h algorithm fixed"};
    const char *id;

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const char *w = (fx_clear(NULL), serving("mail", 4));

        (void)fcall("later_limit_set api rate %s", forms[i]);
        (void)add("mail rate api x");
        (void)add("mail rate api x");
        id = add("mail rate api x");
        sync_mail(w, 1);
        sync_mail(w, 2);
        two_ms_later();
        explains(id, "rate", "rate api is used up, the next start passes in ");
        explains(id, "rate", i < 2 ? "in 59 m 5" : " d");
        explains(id, "rate", "; 1 waits before it: 1 of queue mail");
        (void)fcall("later_explain %s", id);
        if (i < 2)
            assert_time(reply_int(reply_named(fx.last, "until_ms")), 3590000, 3600002);
    }
    (void)fcall("later_limit_set api rate 0/1h");
    explains(id, "rate", "rate api is closed: its limit is 0 ");
    (void)fcall("later_limit_del api");
    explains(id, "rate", "no rate api is defined ");
    (void)fcall("later_limit_set api rate 1/1h");
    explains(id, "rate",
             "rate api is used up, its starts are kept for 1 job let in and not claimed");
    assert_string_equal(named("until_ms"), "nil");
    /* With a burst, the next start passes long before the whole burst could again. */
    (void)fcall("later_limit_set fast rate 60/1h burst 10");
    (void)fcall("later_throttle fast quota 10");
    (void)fcall("later_v1_gates rate:fast");
    assert_time(int_at(0, 6, -1), 50000, 60002);
}

/* A granted job is not claimed within a second: its queue stands aside until a worker has room. */
static void test_aside(void **state)
{
    const char *w = serving("mail", 1), *id = add("mail lock door x");

    (void)state;
    (void)fcall("later_lock door ann");
    sync_mail(w, 1);
    (void)add("mail priority 0 x");
    sync_mail(w, 1);
    (void)redis("HSET R:worker:%s places 2", w);
    (void)fcall("later_unlock door ann");
    explains(id, "nothing", "it was let in at lock:door ");
    explains(id, "nothing", "; it is about to start, web1 (pid 77) has room");
    assert_true(strtoll(named("granted_ms"), NULL, 10) > 0);
    (void)redis("HSET R:worker:%s places 1", w);
    explains(id, "room", "web1 (pid 77) is full: 1 of 1 places are taken");
    (void)redis("ZADD R:granted:mail 1 %s", id);
    (void)redis("ZADD R:timers 1 granted:mail");
    sync_mail(w, 0);
    explains(id, "room", "its queue stands aside at lock:door until a worker has room for it; no ");
    assert_string_equal(named("aside"), "1");
    (void)redis("HSET R:worker:%s places 2", w);
    (void)fcall("later_lock door ann");
    explains(id, "lock", "lock door is held by caller ann");
    (void)fcall("later_unlock door ann");
    explains(id, "nothing", "lock:door is free again, and nobody waits before it");
}

/* Spots that cannot be read, and a key of a foreign type. */
static void test_broken(void **state)
{
    const char *w = serving("mail", 1), *id = add("mail lock door x");

    (void)state;
    (void)fcall("later_lock door ann");
    sync_mail(w, 1);
    (void)redis("HSET R:parked %s x", id);
    explains(id, "nothing", "its spot is lost: later fsck");
    (void)redis("HDEL R:parked %s", id);
    explains(id, "nothing", "its spot is lost: later fsck");
    (void)redis("DEL R:parked");
    (void)redis("SET R:parked x");
    assert_refused("ELATER_TYPE", "later_explain %s", id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_not_due),          FX_TEST(test_expired),       FX_TEST(test_ended),
        FX_TEST(test_running),          FX_TEST(test_nobody_serves), FX_TEST(test_no_room),
        FX_TEST(test_behind_a_suspect), FX_TEST(test_due_waiting),   FX_TEST(test_suspect),
        FX_TEST(test_paused),           FX_TEST(test_lock),          FX_TEST(test_lease),
        FX_TEST(test_semaphore),        FX_TEST(test_rate),          FX_TEST(test_aside),
        FX_TEST(test_broken),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
