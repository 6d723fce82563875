/*
 * Gates: locks, semaphores and rates by the bare functions and in the claim, and unique jobs.
 */
#include "fixture.h"

/* As claims(), with the end of one job of mail in it. -> the id of the first claim, or "" */
static const char *end_and_claim(const char *w, const char *id, int start, const char *verb,
                                 int room)
{
    assert_starts(fcall_sync("%s 1 0 128 1 %s %d %s mail %d 0 '' '' 1 mail %d 1048576", w, id,
                             start, verb, strcmp(verb, "dead") == 0 ? 10 : 0, room),
                  "[");
    assert_string_equal(at(2, 0, -1), "ok");
    return count_claimed() > 0 ? claimed(0, CLAIM_ID) : "";
}

/* No key of any gate is left. */
static void assert_no_gates(void)
{
    assert_string_equal(redis("EXISTS R:holds R:parked R:parked:mail R:granted:mail R:aside:mail "
                              "R:timers"),
                        "0");
    assert_string_equal(redis("KEYS later:{t}:wait:*"), "[]");
    assert_string_equal(redis("KEYS later:{t}:line:*"), "[]");
    assert_string_equal(redis("KEYS later:{t}:lock:*"), "[]");
}

/* ---- locks and semaphores by the bare functions */

static void test_lock(void **state)
{
    int64_t fence;

    (void)state;
    assert_starts(fcall("later_lock door ann"), "[1 ");
    fence = int_at(1, -1);
    assert_time(int_at(2, -1), 25000, 30000);
    assert_string_equal(fcall("later_lock door bob"), "[0 0 0 0 =ann]");
    assert_string_equal(fcall("later_unlock door bob"), "not-held");
    assert_string_equal(redis("HGET R:lock:door holder"), "=ann");
    assert_string_equal(fcall("later_fence_check door %lld", (long long)fence), "1");
    assert_string_equal(fcall("later_unlock door ann"), "released");
    assert_string_equal(fcall("later_unlock door ann"), "not-held");
    assert_string_equal(redis("EXISTS R:lock:door"), "0");
    assert_starts(fcall("later_lock door bob"), "[1 ");
    assert_true(int_at(1, -1) > fence);
    assert_string_equal(fcall("later_fence_check door %lld", (long long)fence), "0");
}

static void test_lock_twice(void **state)
{
    int64_t fence;

    (void)state;
    (void)fcall("later_lock door ann ttl 10s");
    fence = int_at(1, -1);
    assert_starts(fcall("later_lock door ann ttl 1m"), "[1 ");
    assert_int_equal(int_at(1, -1), fence);
    assert_time(int_at(2, -1), 55000, 60000);
    assert_string_equal(fcall("later_unlock door ann token T1"), "kept");
    assert_string_equal(fcall("later_unlock door ann token T1"), "kept"); /* its reply was lost */
    assert_string_equal(fcall("later_unlock door ann token T2"), "released");
    assert_no_gates();
}

static void test_renew(void **state)
{
    (void)state;
    (void)fcall("later_lock door ann ttl 10s");
    assert_starts(fcall("later_renew door ann ttl 1h"), "[");
    assert_time(int_at(1, -1), 3595000, 3600000);
    (void)redis("HSET R:lock:door until 1000");
    assert_refused("ELATER_LOST", "later_renew door ann");
    assert_refused("ELATER_LOST", "later_renew door bob");
    assert_starts(fcall("later_lock door bob"), "[1 ");
    assert_refused("ELATER_LOST", "later_renew door ann");
}

static void test_waiters_of_a_lock(void **state)
{
    struct client *c = listen_to(ROOT ":wake");

    (void)state;
    (void)fcall("later_lock door ann");
    assert_string_equal(fcall("later_lock door bob wait 1m"), "[0 0 0 0 =ann]");
    assert_string_equal(fcall("later_lock door cid wait 1m"), "[0 0 0 1 =ann]");
    assert_string_equal(fcall("later_lock door bob wait 1m"), "[0 0 0 0 =ann]");
    assert_string_equal(fcall("later_unlock door ann"), "released");
    assert_string_equal(heard(c, ROOT ":wake"), "=bob");
    assert_string_equal(fcall("later_lock door ann"), "[0 0 0 0 =bob]");
    assert_starts(fcall("later_lock door bob"), "[1 ");
    assert_string_equal(redis("HGET R:lock:door depth"), "1");
    assert_string_equal(fcall("later_unlock door bob"), "released");
    assert_string_equal(fcall("later_unlock door cid"), "released"); /* gives it up */
    assert_no_gates();
    client_close(c);
}

/* A caller that went away while it waited is passed over: at once if its wait is over, else when
 * its permit was kept in vain. */
static void test_waiters_that_are_gone(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_lock door ann");
    (void)fcall("later_lock door bob wait 1ms");
    (void)fcall("later_lock door cid wait 1m");
    (void)fcall("later_lock door dan wait 1m");
    (void)redis("DEBUG SLEEP 0.005");
    (void)fcall("later_unlock door ann");
    assert_string_equal(redis("HGET R:lock:door holder"), "=cid");
    (void)redis("HSET R:lock:door until 1000"); /* the five seconds are over */
    (void)redis("ZADD R:timers 1000 gate:lock:door");
    (void)claims(w, 1);
    assert_string_equal(redis("HGET R:lock:door holder"), "=dan");
}

static void test_semaphore(void **state)
{
    (void)state;
    assert_refused("ELATER_LIMIT", "later_sem_acquire smtp ann");
    assert_string_equal(fcall("later_limit_set smtp semaphore 2"), "set");
    assert_starts(fcall("later_sem_acquire smtp ann ttl 1m"), "[1 0 ");
    assert_starts(fcall("later_sem_acquire smtp bob ttl 1h"), "[1 0 ");
    assert_string_equal(fcall("later_sem_acquire smtp cid"), "[0 0 0 0 ]");
    assert_starts(fcall("later_sem_acquire smtp ann ttl 1m"), "[1 0 "); /* its lease is renewed */
    assert_string_equal(redis("ZCARD R:sem:smtp"), "2");
    assert_string_equal(fcall("later_sem_acquire smtp cid wait 1m"), "[0 0 0 0 ]");
    assert_string_equal(fcall("later_limit_set smtp semaphore 1"), "set");
    assert_string_equal(fcall("later_sem_release smtp ann"), "released");
    assert_string_equal(redis("ZCARD R:sem:smtp"), "1"); /* one too many is gone */
    assert_string_equal(fcall("later_limit_set smtp semaphore 2"), "set");
    assert_string_equal(redis("ZRANGE R:sem:smtp 0 -1"), "[=cid =bob]");
    assert_starts(fcall("later_renew smtp cid kind sem ttl 2h"), "[0 ");
    (void)redis("ZADD R:sem:smtp 1000 =bob"); /* its lease is over */
    assert_refused("ELATER_LOST", "later_renew smtp bob kind sem");
    assert_starts(fcall("later_sem_acquire smtp dan"), "[1 0 ");
}

static void test_fenced(void **state)
{
    int64_t old, fence;

    (void)state;
    (void)fcall("later_lock door ann");
    old = int_at(1, -1);
    (void)fcall("later_unlock door ann");
    (void)fcall("later_lock door bob");
    fence = int_at(1, -1);
    assert_refused("ELATER_STALE", "later_fenced door %lld SET colour red", (long long)old);
    assert_string_equal(fcall("later_fenced door %lld SET colour blue", (long long)fence), "OK");
    assert_string_equal(redis("GET colour"), "blue");
    (void)fcall("later_unlock door bob");
    assert_refused("ELATER_STALE", "later_fenced door %lld SET colour red", (long long)fence);
}

static void test_bad_gates(void **state)
{
    static const struct {
        const char *line, *code;
    } rows[] = {{"later_lock", "ELATER_GATE"},
                {"later_lock door", "ELATER_ARGS"},
                {"later_lock door ann ttl", "ELATER_ARGS"},
                {"later_lock door ann ttl 0s", "ELATER_TIME"},
                {"later_lock door ann ttl 8d", "ELATER_TIME"},
                {"later_lock door ann ttl 5", "ELATER_TIME"},
                {"later_lock door ann patience 5s", "ELATER_OPTION"},
                {"later_lock door ann ttl 5s TTL 5s", "ELATER_OPTION"},
                {"later_lock do\tor ann", "ELATER_GATE"},
                {"later_renew door ann kind rate", "ELATER_OPTION"},
                {"later_limit_set smtp", "ELATER_ARGS"},
                {"later_limit_set smtp semaphore", "ELATER_OPTION"},
                {"later_limit_set smtp semaphore -1", "ELATER_OPTION"},
                {"later_limit_set smtp semaphore 1000001", "ELATER_OPTION"},
                {"later_limit_set smtp semaphore 5 burst 5", "ELATER_OPTION"},
                {"later_limit_set smtp semaphore 5 on_lost run", "ELATER_OPTION"},
                {"later_limit_set smtp rate 5", "ELATER_OPTION"},
                {"later_limit_set smtp rate 5/1", "ELATER_TIME"},
                {"later_limit_set smtp rate 5/0s", "ELATER_TIME"},
                {"later_limit_set smtp rate 5/1s burst 0", "ELATER_OPTION"},
                {"later_limit_set smtp rate 5/1s algorithm leaky", "ELATER_OPTION"},
                {"later_limit_set smtp rate 5/1s algorithm fixed burst 2", "ELATER_OPTION"},
                {"later_limit_set smtp rate 10001/1s algorithm sliding", "ELATER_OPTION"},
                {"later_limit_set {key} semaphore 1", "ELATER_GATE"},
                {"later_limit_set a{key}{key} semaphore 1", "ELATER_GATE"},
                {"later_limit_set {} semaphore 1", "ELATER_GATE"},
                {"later_throttle smtp", "ELATER_LIMIT"},
                {"later_throttle smtp quota 0", "ELATER_OPTION"},
                {"later_fence_check door x", "ELATER_ARGS"},
                {"later_v1_enter 5 rate:x", "ELATER_ARGS"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused_line(rows[i].code, rows[i].line);
}

/* To define it as what was asked for would take it from those who use it as what it is. */
static void test_limit_of_the_other_kind(void **state)
{
    static const char *const want_sem[] = {"later_sem_acquire gw ann", "later_add mail sem gw x"};
    static const char *const want_rate[] = {"later_throttle smtp", "later_add mail rate smtp x"};
    const char *w = worker();

    (void)state;
    (void)fcall("later_limit_set gw rate 5/1s");
    (void)fcall("later_limit_set smtp semaphore 5");
    for (int i = 0; i < 2; i++) {
        assert_starts(fcall("%s", want_sem[i]), "!ELATER_LIMIT 'gw' is a rate and no semaphore");
        assert_starts(fcall("%s", want_rate[i]), "!ELATER_LIMIT 'smtp' is a semaphore and no rate");
    }
    assert_starts(fcall("later_v1_enter %s sem:gw", w), "!ELATER_LIMIT 'gw' is a rate and no ");
    assert_starts(fcall("later_v1_enter %s sem:none", w),
                  "!ELATER_LIMIT there is no semaphore 'none': later_limit_set defines it");
    assert_starts(fcall("later_throttle none"),
                  "!ELATER_LIMIT there is no rate 'none': later_limit_set defines it");
    /* A worker that holds it may ask again, as after a failover. */
    assert_starts(fcall("later_v1_enter %s sem:smtp", w), "[1 ");
    (void)fcall("later_limit_set smtp rate 5/1s");
    assert_starts(fcall("later_v1_enter %s sem:smtp", w), "[1 ");
}

/* ---- rates */

static void test_throttle(void **state)
{
    (void)state;
    (void)fcall("later_limit_set api rate 10/1s burst 3");
    assert_starts(fcall("later_throttle api"), "[0 3 2 -1 ");
    assert_in_range(int_at(4, -1), 90, 100);
    assert_starts(fcall("later_throttle api quota 2"), "[0 3 0 -1 ");
    assert_starts(fcall("later_throttle api"), "[1 3 0 ");
    assert_in_range(int_at(3, -1), 1, 101);
    assert_in_range(int_at(4, -1), 200, 300);
    (void)fcall("later_limit_set api rate 2/1m algorithm sliding");
    assert_starts(fcall("later_throttle api quota 2"), "[0 2 0 -1 ");
    assert_starts(fcall("later_throttle api"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 59000, 60001);
    (void)fcall("later_limit_set api rate 2/1m algorithm fixed");
    assert_starts(fcall("later_throttle api quota 2"), "[0 2 0 -1 ");
    assert_starts(fcall("later_throttle api"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 1, 60000);
    (void)fcall("later_limit_set shut rate 0/1s");
    assert_starts(fcall("later_throttle shut"), "[1 ");
    (void)fcall("later_limit_set shut rate 0/1s algorithm sliding");
    assert_starts(fcall("later_throttle shut"), "[1 ");
}

static void test_rate_of_jobs(void **state)
{
    const char *w = worker(), *id[3];

    (void)state;
    (void)fcall("later_limit_set api rate 10/1s burst 2");
    for (int i = 0; i < 3; i++)
        id[i] = add("mail rate api %d", i);
    assert_string_equal(claims(w, 10), text("%s %s", id[0], id[1]));
    assert_time(int_at(8, -1), 1, 101); /* when to sync again */
    assert_string_equal(claims(w, 10), "");
    (void)redis("DEBUG SLEEP 0.11");
    assert_string_equal(claims(w, 10), id[2]);
    assert_string_equal(at(8, -1), "-1");
    assert_no_gates();
}

/* A rate that is made longer remembers what it has let through. */
static void test_a_longer_rate_remembers(void **state)
{
    (void)state;
    (void)fcall("later_limit_set api rate 1/100ms algorithm sliding");
    (void)fcall("later_throttle api");
    assert_int_equal(int_at(0, -1), 0);
    (void)fcall("later_limit_set api rate 1/1h algorithm sliding");
    (void)redis("PTTL R:rate:sliding:api");
    assert_in_range(int_at(-1), 3500000, 3602000);
    (void)fcall("later_throttle api");
    assert_int_equal(int_at(0, -1), 1);
}

/* ---- jobs */

static void test_lock_of_jobs(void **cmocka_state)
{
    const char *w = worker(), *a = add("mail lock door a"), *b = add("mail lock door b"),
               *c = add("mail lock door c"), *free_one = add("mail d");
    int64_t fence;

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), text("%s %s", a, free_one));
    fence = atoll(claimed(0, CLAIM_FENCE));
    assert_string_equal(redis("HGET R:lock:door holder"), a);
    assert_string_equal(fcall("later_fence_check door %lld", (long long)fence), "1");
    assert_string_equal(state_of(b), "parked");
    assert_string_equal(named("gate"), "lock:door");
    assert_string_equal(claims(w, 10), "");
    assert_string_equal(at(5, -1), "[-1]"); /* parked jobs need no sync */
    assert_string_equal(end_and_claim(w, a, 1, "done", 10), b);
    assert_true(atoll(claimed(0, CLAIM_FENCE)) > fence);
    assert_string_equal(redis("HGET R:lock:door fence"), claimed(0, CLAIM_FENCE));
    assert_string_equal(end_and_claim(w, b, 1, "retry", 10), c);
    assert_string_equal(end_and_claim(w, c, 1, "dead", 10), b);
    assert_string_equal(end_and_claim(w, b, 2, "done", 0), "");
    assert_no_gates();
}

static void test_semaphore_of_jobs(void **state)
{
    const char *w = worker(), *id[4];

    (void)state;
    (void)fcall("later_limit_set smtp semaphore 2");
    for (int i = 0; i < 4; i++)
        id[i] = add("mail sem smtp %d", i);
    assert_string_equal(claims(w, 10), text("%s %s", id[0], id[1]));
    assert_string_equal(end_and_claim(w, id[1], 1, "done", 10), id[2]);
    (void)fcall("later_limit_set smtp semaphore 3");
    assert_string_equal(claims(w, 10), id[3]);
}

/* A job takes all its gates or none, and its neighbours do not wait for it. */
static void test_all_or_none(void **cmocka_state)
{
    const char *w = worker(), *both, *other;

    (void)cmocka_state;
    (void)serving("mail", 16);
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)fcall("later_sem_acquire smtp ann");
    both = add("mail lock door sem smtp x");
    assert_string_equal(claims(w, 10), "");
    assert_string_equal(named("gate"), "nil");
    assert_string_equal(state_of(both), "parked");
    assert_string_equal(named("gate"), "sem:smtp");
    assert_string_equal(redis("EXISTS R:lock:door"), "0");
    other = add("mail lock door y");
    assert_string_equal(claims(w, 10), other);
    (void)fcall("later_sem_release smtp ann");
    assert_string_equal(state_of(both), "parked");
    assert_string_equal(named("gate"), "lock:door");
    assert_string_equal(redis("ZCARD R:sem:smtp"), "0");
    assert_string_equal(end_and_claim(w, other, 1, "done", 10), both);
    assert_string_equal(redis("ZCARD R:sem:smtp"), "1");
    assert_string_equal(end_and_claim(w, both, 1, "done", 10), "");
    assert_no_gates();
}

static void test_gates_of_a_queue(void **state)
{
    const char *w = worker(), *a, *b;

    (void)state;
    (void)redis("HSET R:queues mail lock=user:{key}");
    assert_refused("ELATER_KEY", "later_add mail x");
    a = add("mail key 7 x");
    (void)add("mail key 7 y");
    b = add("mail key 8 x");
    assert_string_equal(claims(w, 10), text("%s %s", a, b));
    (void)redis("ZADD R:due:mail 1 raw");
    assert_string_equal(claims(w, 10), "");
    assert_string_equal(redis("ZCARD R:dead:mail"), "1");
}

/* The permits of a reaped worker go to the waiters. A parked job can be cancelled and moved. */
static void test_reaped(void **cmocka_state)
{
    const char *w = worker(), *x = worker(), *a = add("mail lock door a"),
               *b = add("mail lock door b"), *c = add("mail lock door c");

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), a);
    assert_string_equal(fcall("later_cancel %s", b), "cancelled");
    assert_string_equal(fcall("later_v1_reap %s %s 1 3 100", x, w), "[clear 1]");
    assert_string_equal(state_of(c), "parked");
    assert_string_equal(claims(x, 10), c);
    assert_string_equal(state_of(a), "parked");
    assert_starts(fcall("later_reschedule %s +1h", a), text("[%s moved ", a));
    assert_string_equal(state_of(a), "waiting");
    assert_string_equal(end_and_claim(x, c, 1, "done", 10), "");
    assert_no_gates();
}

/* A grant that nobody claims goes on to the next waiter. */
static void test_unclaimed_grant(void **cmocka_state)
{
    const char *w = worker(), *a = add("mail lock door a"), *b = add("mail lock door b"), *other;

    (void)cmocka_state;
    (void)serving("mail", 16);
    assert_string_equal(claims(w, 10), a);
    assert_string_equal(claims(w, 10), "");
    other = add("sms lock door c");
    (void)fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w);
    assert_string_equal(state_of(other), "parked");
    assert_string_equal(end_and_claim(w, a, 1, "done", 0), "");
    assert_string_equal(redis("HGET R:lock:door holder"), b);
    (void)redis("ZADD R:granted:mail 1000 %s", b);
    (void)redis("ZADD R:timers 1000 granted:mail");
    (void)fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w);
    assert_string_equal(claimed(0, CLAIM_ID), other);
    assert_string_equal(state_of(b), "parked");
    assert_string_equal(claims(w, 1), "");
    assert_starts(fcall_sync("%s 1 0 128 1 %s 1 done sms 0 0 '' '' 1 mail 1 1048576", w, other),
                  "[");
    assert_string_equal(claimed(0, CLAIM_ID), b);
}

/* The jobs of a queue whose worker is frozen wait for a semaphore, each with a free lock of its
 * own. They cost the others the time of one grant, not of all. */
static void test_unclaimed_at_all_gates(void **state)
{
    const char *w = worker(), *first, *other;

    (void)state;
    (void)serving("mail", 16);
    (void)fcall("later_limit_set s semaphore 1");
    (void)fcall("later_sem_acquire s ann");
    first = add("mail lock l0 sem s x");
    (void)add("mail lock l1 sem s x");
    (void)add("mail lock l2 sem s x");
    assert_string_equal(claims(w, 10), "");
    other = add("sms sem s x");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w), "[");
    (void)fcall("later_sem_release s ann");
    assert_string_equal(redis("HGET R:lock:l0 holder"), first);
    (void)redis("ZADD R:granted:mail 1000 %s", first);
    (void)redis("ZADD R:timers 1000 granted:mail");
    (void)fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w);
    assert_string_equal(claimed(0, CLAIM_ID), other);
    assert_string_equal(redis("ZCARD R:line:mail:sem:s"), "2");
}

static void test_paused_while_parked(void **cmocka_state)
{
    const char *w = worker(), *a = add("mail lock door a"), *b = add("mail lock door b"), *other;

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), a);
    other = add("sms lock door c");
    (void)fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w);
    (void)fcall("later_pause mail");
    assert_starts(fcall_sync("%s 1 0 128 1 %s 1 done mail 0 0 '' '' 2 mail 1 1048576 sms "
                             "1 1048576",
                             w, a),
                  "[");
    assert_string_equal(claimed(0, CLAIM_ID), other);
    (void)fcall("later_resume mail");
    assert_string_equal(claims(w, 10), "");
    assert_starts(fcall_sync("%s 1 0 128 1 %s 1 done sms 0 0 '' '' 1 mail 1 1048576", w, other),
                  "[");
    assert_string_equal(claimed(0, CLAIM_ID), b);
}

/* A queue stood aside at more gates than one call handles. Later jobs do not overtake those that
 * are offered nothing yet, and the next sync is needed at once. */
static void test_aside_at_many_gates(void **state)
{
    const char *w = worker(), *first[100], *second[100];

    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)fcall("later_lock l%d ann", i);
        first[i] = add("mail lock l%d 1", i);
    }
    assert_string_equal(claims(w, 128), "");
    (void)fcall("later_pause mail");
    for (int i = 0; i < 100; i++) {
        (void)fcall("later_unlock l%d ann", i);
        second[i] = add("mail lock l%d 2", i);
    }
    assert_string_equal(redis("SCARD R:aside:mail"), "100");
    (void)fcall("later_resume mail");
    (void)claims(w, 128);
    assert_int_equal(count_claimed(), 64);
    assert_true(int_at(8, -1) > 0 && int_at(8, -1) <= now_ms());
    (void)claims(w, 128);
    assert_int_equal(count_claimed(), 36);
    assert_string_equal(redis("EXISTS R:aside:mail"), "0");
    for (int i = 0; i < 100; i++) {
        assert_string_equal(redis("HGET R:lock:l%d holder", i), first[i]);
        assert_string_equal(redis("ZSCORE R:line:mail:lock:l%d %s", i, second[i]),
                            redis("ZSCORE R:parked:mail %s", second[i]));
    }
}

/* Many permits without waiters are given back in one sync, after which nothing is left to do. */
static void test_many_without_waiters(void **state)
{
    const char *w = worker(), *id[200];
    struct buf b = BUF_INIT;

    (void)state;
    for (int i = 0; i < 200; i++)
        id[i] = add("mail lock l%d x", i);
    (void)claims(w, 100);
    assert_int_equal(count_claimed(), 100);
    (void)claims(w, 100);
    assert_int_equal(count_claimed(), 100);
    for (int i = 0; i < 200; i++)
        buf_printf(&b, "%s 1 done mail 0 0 '' '' ", id[i]);
    buf_add(&b, NULL, 0);
    assert_starts(fcall_sync("%s 1 0 128 200 %s1 mail 1 1048576", w, keep(buf_take(&b))), "[");
    assert_string_equal(at(8, -1), "-1");
    assert_no_gates();
}

/* Two gates are never free together: a job that was passed over 16 times takes them one by one. */
static void test_bounded_overtaking(void **cmocka_state)
{
    const char *w = worker(), *both;
    int ends = 0;

    (void)cmocka_state;
    (void)add("mail lock door x");
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)add("mail sem smtp x");
    (void)claims(w, 10);
    both = add("mail lock door sem smtp x");
    for (int i = 0; i < 30; i++)
        (void)add("mail %s x", i % 2 == 0 ? "lock door" : "sem smtp");
    assert_string_equal(claims(w, 128), "");
    while (strcmp(state_of(both), "running") != 0) {
        const char *holder;

        (void)redis("ZRANGE R:sem:smtp 0 -1");
        holder = ends % 2 == 1 ? at(0, -1) : redis("HGET R:lock:door holder");
        if (strcmp(holder, both) != 0)
            (void)end_and_claim(w, holder, 1, "done", 10);
        assert_true(ends++ < 40);
    }
    assert_in_range(ends, 16, 20);
}

static void test_worker_beside(void **state)
{
    const char *w = worker(), *x = worker(), *id = add("mail lock door a");

    (void)state;
    assert_starts(fcall("later_v1_enter %s lock:door", w), "[1 ");
    assert_string_equal(at(2, -1), "0");
    assert_string_equal(fcall("later_v1_enter %s lock:door wait", x), text("[0 0 0 0 @%s]", w));
    assert_string_equal(claims(x, 1), "");
    assert_starts(fcall("later_v1_reap %s %s 1 3 100", x, w), "[clear 0]");
    assert_string_equal(redis("HGET R:lock:door holder"), text("@%s", x));
    assert_starts(fcall("later_v1_enter %s lock:door", x), "[1 ");
    assert_string_equal(redis("HGET R:lock:door until"), "0");
    assert_string_equal(fcall("later_v1_exit %s", x), "released");
    assert_string_equal(fcall("later_v1_exit %s", x), "not-held");
    assert_string_equal(claims(x, 1), id);
}

/* ---- unique jobs */

static void test_unique(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail unique k in 1h one");

    (void)cmocka_state;
    assert_starts(fcall("later_add mail unique k two"), text("[%s dropped ", id));
    assert_starts(fcall("later_add sms unique k two"), "[j");
    assert_starts(fcall("later_add mail unique k unique_mode replace two"),
                  text("[%s replaced ", id));
    assert_string_equal(state_of("mail@k"), "waiting");
    assert_string_equal(named("payload"), "two");
    assert_starts(fcall("later_add mail unique k unique_mode move priority 3 three"),
                  text("[%s moved ", id));
    assert_string_equal(claims(w, 10), id);
    assert_starts(fcall("later_add mail unique k four"), text("[%s dropped ", id));
    assert_string_equal(end_and_claim(w, id, 1, "done", 0), "");
    assert_string_equal(redis("EXISTS R:uniq:mail:k"), "0");
    assert_refused("ELATER_NOJOB", "later_cancel mail@k");
    assert_no_gates();
}

static void test_unique_successor(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail unique k one"), *next;

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), id);
    next = add("mail unique k unique_mode replace in 1h two");
    assert_string_not_equal(next, id);
    assert_starts(fcall("later_add mail unique k unique_mode replace in 2h three"),
                  text("[%s replaced ", next));
    assert_string_equal(end_and_claim(w, id, 1, "done", 0), "");
    assert_string_equal(redis("GET R:uniq:mail:k"), next);
    assert_string_equal(fcall("later_cancel mail@k"), "cancelled");
    assert_string_equal(redis("EXISTS R:uniq:mail:k"), "0");
}

static void test_unique_dies(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail unique k one"), *other;

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), id);
    assert_string_equal(end_and_claim(w, id, 1, "dead", 0), "");
    other = add("mail unique k two");
    assert_refused("ELATER_UNIQUE", "later_retry %s", id);
    assert_string_equal(fcall("later_cancel %s", other), "cancelled");
    assert_starts(fcall("later_retry %s", id), text("[%s retried ", id));
    assert_string_equal(redis("GET R:uniq:mail:k"), id);
}

static void test_unique_for(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail unique k unique_for 1h one");

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), id);
    assert_string_equal(end_and_claim(w, id, 1, "done", 0), "");
    assert_starts(fcall("later_add mail unique k unique_mode move two"), text("[%s dropped ", id));
    (void)redis("PTTL R:uniq:mail:k");
    assert_in_range(reply_int(fx.last), 3590000, 3600000);
}

/* later_cancel QUEUE@KEY frees a key whose job has ended: forgotten, kept or dead. */
static void test_unique_freed(void **cmocka_state)
{
    static const struct {
        const char *options, *verb;
    } rows[] = {{"", "done"}, {" keep 1h", "done"}, {"", "dead"}};

    (void)cmocka_state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *w = worker();
        const char *id = add("mail unique k unique_for 1h%s one", rows[i].options);

        assert_string_equal(claims(w, 10), id);
        assert_string_equal(end_and_claim(w, id, 1, rows[i].verb, 1000), "");
        assert_string_equal(fcall("later_cancel mail@k"), "freed");
        assert_refused("ELATER_NOJOB", "later_cancel mail@k");
        assert_string_equal(redis("EXISTS R:uniq:mail:k"), "0");
    }
}

/* The unique key of a dead job goes when its time is over. If the job is retried, it has the key
 * until it ends. */
static void test_unique_for_retried(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail unique k unique_for 1h one");

    (void)cmocka_state;
    assert_string_equal(claims(w, 10), id);
    assert_string_equal(end_and_claim(w, id, 1, "dead", 10), "");
    (void)redis("PTTL R:uniq:mail:k");
    assert_in_range(reply_int(fx.last), 3590000, 3600000);
    (void)fcall("later_retry %s", id);
    assert_string_equal(redis("PTTL R:uniq:mail:k"), "-1");
}

/* ---- holders and waiters */

static void test_gates_shown(void **cmocka_state)
{
    const char *w = worker(), *a, *limit = "semaphore 1 keep";
    int64_t since, opens, waits_since, ann_since, held_since;

    (void)cmocka_state;
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)fcall("later_limit_set api rate 1/1h");
    a = add("mail lock door sem smtp rate api a");
    (void)add("mail lock door b");
    (void)add("mail rate api c");
    (void)claims(w, 10);
    (void)fcall("later_lock door ann wait 1m");
    (void)fcall("later_v1_gates lock:door sem:smtp rate:api lock:other");
    assert_string_equal(at(0, 0, -1), "lock:door");
    assert_string_equal(at(0, 2, -1), "1");
    assert_string_equal(at(0, 3, 0, -1), a);
    since = int_at(0, 3, 1, -1);
    opens = int_at(2, 6, -1);
    assert_string_equal(at(0, 4, -1), "2");
    assert_string_equal(at(0, 5, 0, -1), "mail");
    assert_string_equal(at(0, 5, 1, -1), "1");
    waits_since = int_at(0, 5, 2, -1);
    assert_string_equal(at(0, 5, 3, -1), "=ann");
    assert_string_equal(at(0, 5, 4, -1), "1");
    ann_since = int_at(0, 5, 5, -1);
    assert_string_equal(at(1, 1, -1), limit);
    assert_string_equal(at(1, 3, 0, -1), a);
    held_since = int_at(1, 3, 1, -1);
    assert_string_equal(at(1, 3, 2, -1), "0");
    assert_string_equal(at(2, 1, -1), "rate gcra 1 3600000 1");
    assert_string_equal(at(2, 5, 0, -1), "mail");
    assert_string_equal(at(3, -1), "[lock:other  0 [] 0 [] 0]");
    assert_time(since, -5000, 0);
    assert_time(waits_since, -5000, 0);
    assert_time(ann_since, -5000, 0);
    assert_time(held_since, -5000, 0);
    assert_time(opens, 3590000, 3600001);
    assert_refused("ELATER_GATE", "later_v1_gates door");
    assert_refused("ELATER_GATE", "later_lock ~unique:mail:k ann");
    assert_refused("ELATER_GATE", "later_add mail lock ~unique:mail:k x");
    assert_refused("ELATER_ARGS", "later_v1_gates");
}

/* ---- the audit */

/* Audit or repair one phase; -> the kinds of its findings, joined. */
static const char *audit(const char *function, const char *phase, const char *names)
{
    struct buf b = BUF_INIT;

    assert_starts(
        fcall("later_v1_%s %s 0 200%s%s", function, phase, *names != '\0' ? " " : "", names), "[");
    for (int i = 2; i < len_at(-1); i++)
        buf_printf(&b, "%s%s", i > 2 ? " " : "", at(i, 0, -1));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static void assert_all_sound(void)
{
    assert_string_equal(audit("audit", "set", "parked:mail"), "");
    assert_string_equal(audit("audit", "jobs", ""), "");
    assert_string_equal(audit("audit", "parked", ""), "");
    assert_string_equal(audit("audit", "holds", ""), "");
    assert_string_equal(audit("audit", "queue", "mail"), "");
    assert_string_equal(audit("audit", "gates", "lock:door sem:smtp wait:lock:door granted:mail"),
                        "");
}

/* The line with an id instead of the word ID. */
static const char *with_id(const char *line, const char *id)
{
    const char *at_id = strstr(line, "ID");

    return at_id == NULL ? line : text("%.*s%s%s", (int)(at_id - line), line, id, at_id + 2);
}

/* A sound namespace has a holder and a parked job; then one thing is broken. The phase finds it
 * and says what it is, and after the repair all is sound again. */
static void test_audit(void **cmocka_state)
{
    static const struct {
        const char *breaks, *phase, *names, *kind;
    } rows[] = {{"HDEL R:parked ID", "jobs", "", "lost-waiter"},
                {"HSET R:parked ID junk", "jobs", "", "lost-waiter"},
                {"DEL R:line:mail:lock:door", "jobs", "", "lost-waiter"},
                {"DEL R:wait:lock:door", "jobs", "", "lost-waiter"},
                {"HDEL R:jobs ID", "set", "parked:mail", "no-record"},
                {"HSET R:holds j00000000000 lock:door", "holds", "", "leftover"},
                {"HSET R:parked j00000000000 junk", "parked", "", "leftover"},
                {"ZADD R:granted:mail 5 j00000000000", "gates", "granted:mail", "leftover"},
                {"ZADD R:wait:lock:door 5 sms", "gates", "wait:lock:door", "leftover"},
                {"ZADD R:sem:smtp 1e300 j00000000000", "gates", "sem:smtp", "stale-holder"},
                {"ZADD R:sem:smtp inf @77", "gates", "sem:smtp", "stale-holder"},
                {"SADD R:rate:granted:r j00000000000", "gates", "rate:granted:r", "stale-holder"},
                {"HSET R:lock:door holder j00000000000", "gates", "lock:door", "stale-holder"}};

    (void)cmocka_state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *w, *parked;

        (void)redis("FLUSHALL");
        w = worker();
        (void)fcall("later_limit_set smtp semaphore 5");
        (void)add("mail lock door sem smtp a");
        parked = add("mail lock door b");
        (void)claims(w, 10);
        assert_all_sound();
        (void)send_line(with_id(rows[i].breaks, parked));
        assert_string_equal(audit("audit", rows[i].phase, rows[i].names), rows[i].kind);
        assert_string_equal(audit("repair", rows[i].phase, rows[i].names), rows[i].kind);
        (void)audit("repair", "gates", "wait:lock:door");
        assert_all_sound();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_lock),
        FX_TEST(test_lock_twice),
        FX_TEST(test_renew),
        FX_TEST(test_waiters_of_a_lock),
        FX_TEST(test_waiters_that_are_gone),
        FX_TEST(test_semaphore),
        FX_TEST(test_fenced),
        FX_TEST(test_bad_gates),
        FX_TEST(test_limit_of_the_other_kind),
        FX_TEST(test_throttle),
        FX_TEST(test_rate_of_jobs),
        FX_TEST(test_a_longer_rate_remembers),
        FX_TEST(test_lock_of_jobs),
        FX_TEST(test_semaphore_of_jobs),
        FX_TEST(test_all_or_none),
        FX_TEST(test_gates_of_a_queue),
        FX_TEST(test_reaped),
        FX_TEST(test_unclaimed_grant),
        FX_TEST(test_unclaimed_at_all_gates),
        FX_TEST(test_paused_while_parked),
        FX_TEST(test_aside_at_many_gates),
        FX_TEST(test_many_without_waiters),
        FX_TEST(test_bounded_overtaking),
        FX_TEST(test_worker_beside),
        FX_TEST(test_unique),
        FX_TEST(test_unique_successor),
        FX_TEST(test_unique_dies),
        FX_TEST(test_unique_for),
        FX_TEST(test_unique_freed),
        FX_TEST(test_unique_for_retried),
        FX_TEST(test_gates_shown),
        FX_TEST(test_audit),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
