/*
 * Parked jobs, as all other functions see them; and rates, grants and fences after the clock was
 * set back or Redis lost its last writes.
 */
#include "fixture.h"

/* One job takes the lock, the next one is parked; -> the parked one. */
static const char *park(const char *w, const char *options)
{
    const char *first = add("mail lock door x"), *next = add("mail lock door %sx", options);

    assert_string_equal(claims(w, 10), first);
    assert_string_equal(state_of(next), "parked");
    return next;
}

/* ---- other functions */

static void test_awaited(void **cmocka_state)
{
    const char *w = worker(), *id = park(w, "keep 1h ");

    (void)cmocka_state;
    assert_string_equal(fcall("later_v1_await %s", id), "[parked     ]");
    assert_string_equal(redis("HEXISTS R:await %s", id), "1");
    assert_string_equal(fcall("later_result %s", id), "[parked     ]");
}

/* A dead job that was retried waits again: its result is not dead any more. */
static void test_result_of_a_retried(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door x");

    (void)cmocka_state;
    assert_string_equal(claims(w, 1), id);
    assert_string_equal(settle(w, id, 1, "dead", 10), "ok");
    (void)fcall("later_lock door ann");
    assert_starts(fcall("later_retry %s", id), "[");
    assert_string_equal(claims(w, 1), "");
    assert_string_equal(state_of(id), "parked");
    assert_starts(fcall("later_result %s", id), "[failed ");
}

/* ---- adoption */

/* A worker says that it runs a parked job. Without its lock the job may not run, so it is not
 * adopted, and it is not lost. */
static void test_not_adopted(void **cmocka_state)
{
    const char *w = worker(), *id = park(w, "");

    (void)cmocka_state;
    assert_starts(fcall("later_v1_register 0 other 1 0 0 0 1 %s 1", id), "[");
    assert_string_equal(at(4, 0, -1), "taken");
    assert_string_equal(state_of(id), "parked");
    assert_string_equal(redis("ZCARD R:line:mail:lock:door"), "1");
}

/* A job that was granted its lock meanwhile is adopted with it. */
static void test_adopted_with_its_grant(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door unique k x");

    (void)cmocka_state;
    (void)serving("mail", 16);
    (void)fcall("later_lock door ann");
    assert_string_equal(claims(w, 1), "");
    (void)fcall("later_unlock door ann");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_starts(fcall("later_v1_register 0 other 1 0 0 0 1 %s 1", id), "[");
    assert_string_equal(at(4, 0, -1), "adopted");
    w = at(1, -1);
    assert_string_equal(state_of(id), "running");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("EXISTS R:lock:door R:holds R:uniq:mail:k R:parked"), "0");
}

/* The job passed its rate when it was started: that the rate is shut now is no reason to end it. */
static void test_adopted_past_a_rate(void **cmocka_state)
{
    const char *w = worker(), *id;

    (void)cmocka_state;
    (void)fcall("later_limit_set slow rate 1/1h");
    id = add("mail rate slow x");
    (void)fcall("later_throttle slow");
    assert_string_equal(claims(w, 1), "");
    assert_starts(fcall("later_v1_register 0 other 1 0 0 0 1 %s 1", id), "[");
    assert_string_equal(at(4, 0, -1), "adopted");
}

/* A program that registers again under the same name does not have its former lock. */
static void test_ghost_lets_go(void **cmocka_state)
{
    const char *w, *id = add("mail lock door x"), *x = worker();

    (void)cmocka_state;
    assert_starts(fcall("later_v1_register 0 program 1 0 0 0 0"), "[");
    w = at(1, -1);
    assert_starts(fcall("later_v1_enter %s lock:door", w), "[1 ");
    assert_string_equal(claims(x, 1), "");
    assert_starts(fcall("later_v1_register 0 program 2 0 0 0 0"), "[");
    assert_string_equal(claims(x, 1), id);
}

/* ---- callers */

/* Where no worker syncs, a wait that is over does not shut the gate to others that only ask. */
static void test_forgotten_wait(void **state)
{
    (void)state;
    (void)fcall("later_lock door ann ttl 1ms");
    (void)fcall("later_lock door bob ttl 1ms wait 1ms");
    (void)redis("DEBUG SLEEP 0.005");
    assert_starts(fcall("later_lock door cid"), "[1 ");
}

/* A lease is not shortened, since nobody would be called at its earlier end. */
static void test_lease_is_not_shortened(void **state)
{
    int64_t until;

    (void)state;
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)fcall("later_sem_acquire smtp ann ttl 1h");
    until = int_at(2, -1);
    (void)fcall("later_sem_acquire smtp ann ttl 1ms");
    assert_int_equal(int_at(2, -1), until);
    (void)fcall("later_renew smtp ann ttl 1ms kind sem");
    assert_int_equal(int_at(1, -1), until);
    (void)fcall("later_lock door ann ttl 1h");
    until = int_at(2, -1);
    (void)fcall("later_renew door ann ttl 1ms");
    assert_int_equal(int_at(1, -1), until);
    assert_string_equal(redis("HGET R:lock:door until"), text("%lld", (long long)until));
}

/* A worker that asked in vain and does not wait may ask for another gate. */
static void test_entered_in_vain(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_lock door ann");
    assert_starts(fcall("later_v1_enter %s lock:door", w), "[0 ");
    assert_starts(fcall("later_v1_enter %s lock:window", w), "[1 ");
}

/* ---- jobs that take their gates one by one */

static void end_job(const char *w, const char *id, const char *queues)
{
    assert_starts(fcall_sync("%s 1 0 128 1 %s 1 done mail 0 0 '' '' %s", w, id, queues), "[");
    assert_string_equal(at(2, 0, -1), "ok");
}

/* A job that takes its gates one by one lets others pass while its queue is paused. */
static void test_paused_reservation(void **cmocka_state)
{
    const char *w = worker(), *both, *other;

    (void)cmocka_state;
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)add("mail lock door x");
    (void)add("mail sem smtp x");
    (void)claims(w, 10);
    both = add("mail lock door sem smtp x");
    for (int i = 0; i < 40; i++)
        (void)add("mail %s x", i % 2 == 0 ? "lock door" : "sem smtp");
    (void)claims(w, 128);
    for (int ends = 0; strcmp(redis("HGET R:lock:door holder"), both) != 0; ends++) {
        (void)redis("ZRANGE R:sem:smtp 0 -1");
        end_job(w, ends % 2 == 1 ? at(0, -1) : redis("HGET R:lock:door holder"),
                "1 mail 10 1048576");
        assert_true(ends < 40);
    }
    assert_string_equal(state_of(both), "parked");
    assert_string_equal(named("gate"), "sem:smtp");
    other = add("sms lock door x");
    (void)fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w);
    assert_string_equal(state_of(other), "parked");
    (void)fcall("later_pause mail");
    (void)redis("ZRANGE R:sem:smtp 0 -1");
    end_job(w, at(0, -1), "1 sms 1 1048576");
    assert_string_equal(claimed(0, CLAIM_ID), other);
    (void)fcall("later_resume mail");
    end_job(w, other, "1 mail 1 1048576");
    assert_string_equal(claimed(0, CLAIM_ID), both);
}

/* A job that takes its gates one by one has a start of a rate that is deleted meanwhile. The sync
 * that gives it its last gate must not claim it. */
static void test_rate_that_goes(void **cmocka_state)
{
    const char *w = worker(), *id, *spot;
    const char *set[] = {"HSET", ROOT ":parked", NULL, NULL};
    int syncs = 0;

    (void)cmocka_state;
    (void)redis("HSET R:queues mail rate=slow");
    (void)fcall("later_limit_set own rate 10/1s");
    (void)fcall("later_limit_set slow rate 1/100ms");
    (void)add("mail x");
    assert_int_equal(strlen(claims(w, 1)), 12);
    id = add("mail rate own x");
    assert_string_equal(claims(w, 1), "");
    /* As if it was passed over often enough. */
    spot = redis("HGET R:parked %s", id);
    assert_non_null(strstr(spot, " 2\\nrate:own\\nrate:slow"));
    set[2] = id;
    set[3] = text("%.*s 17 1000 2\nrate:own\nrate:slow", (int)strcspn(spot, " "), spot);
    assert_string_equal(send_args(4, set, NULL), "0");
    (void)redis("SADD R:rate:granted:own %s", id);
    (void)redis("HSET R:holds %s rate:own", id);
    assert_string_equal(fcall("later_limit_del own"), "1");
    do {
        assert_string_equal(claims(w, 1), "");
        assert_string_equal(at(6, -1), "[]");
        assert_true(syncs++ < 2000);
        assert_string_equal(state_of(id), "parked");
    } while (strcmp(named("gate"), "rate:own") != 0);
    (void)fcall("later_limit_set own rate 10/1s");
    while (strcmp(claims(w, 1), id) != 0)
        assert_true(syncs++ < 2000);
}

/* ---- unique keys */

/* For a parked job, `replace` keeps its due time, and `drop` tells it. */
static void test_unique_while_parked(void **cmocka_state)
{
    const char *w = worker(), *id = park(w, "unique k at 2020-01-31T09:00:00Z "), *due;

    (void)cmocka_state;
    (void)fcall("later_show %s", id);
    due = named("due_ms");
    assert_string_equal(fcall("later_add mail unique k in 1h y"), text("[%s dropped %s]", id, due));
    assert_string_equal(fcall("later_add mail unique k unique_mode replace in 1h y"),
                        text("[%s replaced %s]", id, due));
    assert_string_equal(state_of(id), "waiting");
    assert_string_equal(named("due_ms"), due);
}

/* ---- keys of a foreign type */

/* A job behind it cannot be claimed: the lock of the first must not stay taken. */
static void test_foreign_lock_in_a_claim(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door x");

    (void)cmocka_state;
    (void)add("mail lock window x");
    (void)redis("SET R:lock:window foreign");
    assert_starts(fcall_sync("%s 1 0 10 0 1 mail 10 1048576", w), "[");
    assert_string_equal(at(6, 0, -1), "mail");
    assert_string_equal(redis("EXISTS R:lock:door R:parked"), "0");
    assert_starts(redis("HKEYS R:notes"), "[bad-queue:mail key ");
    (void)redis("DEL R:lock:window");
    assert_starts(claims(w, 10), id);
}

/* The end of a job gives back what it can, and the sync goes on. Who waits at the lock starts when
 * its key is put right. */
static void test_foreign_lock_at_the_end(void **cmocka_state)
{
    const char *w = worker(), *id, *waits;

    (void)cmocka_state;
    (void)fcall("later_limit_set smtp semaphore 1");
    id = add("mail lock door sem smtp x");
    assert_string_equal(claims(w, 1), id);
    waits = add("mail lock door x");
    assert_string_equal(claims(w, 1), "");
    assert_string_equal(state_of(waits), "parked");
    (void)redis("DEL R:lock:door");
    (void)redis("SET R:lock:door foreign");
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("EXISTS R:sem:smtp R:holds R:running"), "0");
    (void)redis("DEL R:lock:door");
    assert_time(strtoll(redis("ZSCORE R:timers gate:lock:door"), NULL, 10), 5000, 10000);
    (void)redis("ZADD R:timers 1 gate:lock:door");
    assert_string_equal(claims(w, 1), waits);
}

/* A gate that could not be opened for a foreign key is tried again later, when the key is gone. */
static void test_foreign_granted(void **cmocka_state)
{
    const char *w = worker(), *id = park(w, "");

    (void)cmocka_state;
    (void)redis("SET R:granted:mail foreign");
    assert_starts(fcall_sync("%s 1 0 10 1 %s 1 done mail 0 0 '' '' 0", w,
                             redis("ZRANGE R:running 0 0") != NULL ? at(0, -1) : ""),
                  "[");
    assert_string_equal(at(2, 0, -1), "ok");
    assert_string_equal(state_of(id), "parked");
    assert_string_equal(redis("EXISTS R:lock:door"), "0");
    (void)redis("DEL R:granted:mail");
    assert_time(strtoll(redis("ZSCORE R:timers gate:lock:door"), NULL, 10), 5000, 10000);
    (void)redis("ZADD R:timers 1 gate:lock:door");
    assert_string_equal(claims(w, 1), id);
}

/* ---- rates */

static void test_throttle_of_many(void **state)
{
    (void)state;
    (void)fcall("later_limit_set r rate 1/1s burst 3");
    assert_starts(fcall("later_throttle r quota 2"), "[0 3 1 -1 ");
    assert_starts(fcall("later_throttle r quota 2"), "[1 3 1 ");
    assert_in_range(int_at(3, -1), 1, 1001);
    assert_starts(fcall("later_throttle r quota 4"), "[1 3 1 -1 ");
    (void)fcall("later_limit_set r rate 0/1s");
    assert_string_equal(fcall("later_throttle r"), "[1 1 0 -1 0]");
}

/* A granted job has not started: the rate keeps a start for it, and counts it at the claim. */
static void test_rate_is_spent_at_the_claim(void **cmocka_state)
{
    const char *w = worker(), *id;

    (void)cmocka_state;
    (void)serving("mail", 16);
    (void)fcall("later_limit_set r rate 1/1h algorithm sliding");
    (void)fcall("later_lock door ann");
    id = add("mail lock door rate r x");
    assert_string_equal(claims(w, 1), "");
    (void)fcall("later_unlock door ann");
    assert_string_equal(redis("SMEMBERS R:rate:granted:r"), keep(mem_printf("[%s]", id)));
    assert_string_equal(redis("EXISTS R:rate:sliding:r"), "0");
    assert_starts(fcall("later_throttle r"), "[1 1 0 ");
    assert_string_equal(claims(w, 1), id);
    assert_string_equal(redis("EXISTS R:rate:granted:r"), "0");
    assert_string_equal(redis("ZCARD R:rate:sliding:r"), "1");
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("EXISTS R:holds"), "0");
    assert_string_equal(redis("ZCARD R:rate:sliding:r"), "1");
}

/* A granted job that never starts has cost its rate nothing. */
static void test_rate_of_a_lost_grant(void **cmocka_state)
{
    const char *w = worker(), *id;

    (void)cmocka_state;
    (void)serving("mail", 16);
    (void)fcall("later_limit_set r rate 1/1h");
    (void)fcall("later_lock door ann");
    id = add("mail lock door rate r x");
    assert_string_equal(claims(w, 1), "");
    (void)fcall("later_unlock door ann");
    assert_string_equal(redis("SCARD R:rate:granted:r"), "1");
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    assert_string_equal(redis("EXISTS R:rate:granted:r R:holds"), "0");
    assert_starts(fcall("later_throttle r"), "[0 1 0 ");
}

/* Rates are taken last: a start kept for a job that waits for a lock would keep all others out. */
static void test_rates_are_taken_last(void **cmocka_state)
{
    const char *w = worker(), *id;

    (void)cmocka_state;
    (void)fcall("later_limit_set a rate 1/1h");
    (void)fcall("later_limit_set z semaphore 0");
    id = add("mail rate a sem z lock y x");
    assert_string_equal(claims(w, 1), "");
    assert_string_equal(
        redis("HGET R:parked %s", id),
        keep(mem_printf("%s 0 %s 2\\nlock:y\\nsem:z\\nrate:a", redis("ZSCORE R:parked:mail %s", id),
                        (fcall("later_show %s", id), named("due_ms")))));
}

/* A queue that cannot use the free permits leaves them to others. A call that knows only of room
 * somewhere grants one job of a queue; a sync grants no more than it has room for. */
static void test_full_queue_leaves_places(void **cmocka_state)
{
    const char *w = worker(), *id = NULL;

    (void)cmocka_state;
    (void)serving("mail,sms", 16);
    (void)fcall("later_limit_set s semaphore 0");
    for (int i = 0; i < 5; i++)
        id = add("mail sem s x");
    assert_string_equal(claims(w, 8), "");
    for (int i = 0; i < 5; i++)
        (void)add("sms sem s x");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 8 1048576", w), "[");
    (void)fcall("later_limit_set s semaphore 4");
    assert_string_equal(redis("ZCARD R:granted:mail"), "1");
    assert_string_equal(redis("ZCARD R:granted:sms"), "1");
    assert_string_equal(redis("ZCARD R:sem:s"), "2");
    assert_int_equal(strlen(claims(w, 1)), strlen(id));
    assert_string_equal(redis("ZCARD R:granted:mail"), "0");
    assert_string_equal(redis("ZCARD R:sem:s"), "2");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 8 1048576", w), "[");
    assert_int_equal(count_claimed(), 3);
    assert_string_equal(redis("ZCARD R:sem:s"), "4");
}

/* A queue is granted nothing that no worker would take: it stands aside. */
static void test_nobody_has_room(void **cmocka_state)
{
    static const struct {
        const char *what, *fields;
        bool is_granted;
    } rows[] = {
        {"serves other queues", "queues sms places 4 room 4", false},
        {"has room", "queues sms,mail places 4 room 4", true},
        {"has not said yet", "queues mail places 4", true},
        {"says it has none", "queues mail places 4 room 0", false},
        {"is quiet", "queues mail places 4 room 4 quiet 1", false},
        {"is silent", "queues mail places 4 room 4 beat_ms 1000", false},
        {"is full", "queues mail places 1 room 1", false},
        {"is at the limit of the queue", "queues mail places 4 room 3 limits sms=9,mail=1", false},
        {"is below it", "queues mail places 4 room 3 limits sms=1,mail=2", true},
        {"never said a thing", "host web1", false},
    };

    (void)cmocka_state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *w = worker(), *id;

        assert_int_equal(strlen(claims(w, 1)), 0);
        (void)add("mail runs");
        assert_int_not_equal(strlen(claims(w, 1)), 0);
        (void)fcall("later_lock door ann");
        id = add("mail lock door x");
        assert_string_equal(claims(w, 1), "");
        (void)redis("HSET R:worker:%s %s", w, rows[i].fields);
        (void)fcall("later_unlock door ann");
        if (strcmp(redis("ZCARD R:granted:mail"), rows[i].is_granted ? "1" : "0") != 0 ||
            strcmp(redis("SCARD R:aside:mail"), rows[i].is_granted ? "0" : "1") != 0)
            fail_msg("its worker %s: wrongly %s", rows[i].what,
                     rows[i].is_granted ? "aside" : "granted");
        assert_string_equal(claims(w, 1), id);
        (void)redis("FLUSHALL");
    }
}

/* The worker of the queue has a free place now and then, but never when the lock is given back. Its
 * job still gets its turn, after as many others as a job may be passed over. */
static void test_busy_worker_comes_to_its_turn(void **cmocka_state)
{
    const char *busy = serving("mail", 1), *idle = serving("sms", 16), *id, *other;
    int turns = 0;

    (void)cmocka_state;
    (void)fcall("later_lock door ann");
    id = add("mail lock door x");
    assert_string_equal(claims(busy, 1), "");
    (void)add("mail priority 0 long");
    assert_int_not_equal(strlen(claims(busy, 1)), 0);
    for (int i = 0; i < 30; i++)
        (void)add("sms lock door x");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 16 1048576", idle), "[");
    (void)fcall("later_unlock door ann");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 16 1048576", idle), "[");
    other = claimed(0, CLAIM_ID);
    while (strcmp(redis("HGET R:lock:door holder"), id) != 0 && turns++ < 25) {
        /* The busy worker has a free place for a moment. */
        assert_string_equal(claims(busy, 1), "");
        assert_starts(
            fcall_sync("%s 1 0 128 1 %s 1 done sms 0 0 '' '' 1 sms 16 1048576", idle, other), "[");
        other = count_claimed() > 0 ? claimed(0, CLAIM_ID) : "";
    }
    assert_in_range(turns, 10, 17);
    assert_string_equal(claims(busy, 1), id);
}

/* The job of mail, which waits for the semaphore s and the rate r, was passed over as often as it
 * may be. */
static void pass_over(const char *id)
{
    const char *ticket = redis("ZSCORE R:parked:mail %s", id);
    const char *due = (fcall("later_show %s", id), named("due_ms"));

    (void)send_args(4,
                    (const char *[]){"HSET", ROOT ":parked", id,
                                     text("%s 16 %s 1\nsem:s\nrate:r", ticket, due)},
                    NULL);
}

/* Only the first job of a queue keeps the gates that it has taken: when the queue stands aside, no
 * call checks the jobs behind the first. */
static void test_reserves_behind_others(void **cmocka_state)
{
    const char *w = serving("mail", 200), *id;

    (void)cmocka_state;
    (void)fcall("later_limit_set r rate 1/1h");
    (void)fcall("later_limit_set s semaphore 1");
    (void)fcall("later_throttle r");
    (void)fcall("later_sem_acquire s ann");
    for (int i = 0; i < 70; i++)
        (void)add("mail rate r x");
    id = add("mail sem s rate r x");
    assert_string_equal(claims(w, 100), "");
    pass_over(id);
    (void)fcall("later_sem_release s ann");
    assert_string_equal(redis("ZCARD R:line:mail:rate:r"), "71");
    (void)fcall("later_pause mail");
    (void)fcall("later_limit_set r rate 1000/1s algorithm sliding");
    assert_string_equal(redis("SCARD R:aside:mail"), "1");
    assert_string_equal(redis("ZCARD R:sem:s"), "0");
}

/* A job that keeps gates makes way when older jobs of its queue come to wait before it. */
static void test_makes_way(void **cmocka_state)
{
    const char *w = serving("mail", 200), *id;

    (void)cmocka_state;
    (void)fcall("later_limit_set r rate 1/1h");
    (void)fcall("later_limit_set s semaphore 1");
    (void)fcall("later_limit_set t semaphore 0");
    (void)fcall("later_throttle r");
    (void)fcall("later_sem_acquire s ann");
    for (int i = 0; i < 70; i++)
        (void)add("mail sem t rate r x");
    id = add("mail sem s rate r x");
    assert_string_equal(claims(w, 100), "");
    pass_over(id);
    (void)fcall("later_sem_release s ann");
    assert_string_equal(redis("ZCARD R:sem:s"), "1");
    (void)fcall("later_limit_set t semaphore 100");
    assert_string_equal(claims(w, 100), "");
    assert_string_equal(redis("ZCARD R:line:mail:rate:r"), "71");
    assert_string_equal(redis("ZCARD R:sem:s"), "0");
    (void)fcall("later_limit_set r rate 1000/1s algorithm sliding");
    assert_int_equal(strlen(claims(w, 100)), 65 * 12 + 64); /* as many as one call offers */
    assert_int_equal(strlen(claims(w, 100)), 6 * 12 + 5);
}

/* A sync has room for one job, and the semaphore for more: a wake tells the other workers. */
static void test_more_places_than_room(void **cmocka_state)
{
    const char *w = worker();
    struct client *wakes = listen_to(ROOT ":wake");

    (void)cmocka_state;
    (void)fcall("later_limit_set s semaphore 0");
    for (int i = 0; i < 5; i++)
        (void)add("mail sem s x");
    assert_string_equal(claims(w, 8), "");
    (void)fcall("later_limit_set s semaphore 4");
    (void)heard(wakes, ROOT ":wake");
    assert_int_equal(strlen(claims(w, 1)), 12);
    assert_string_equal(heard(wakes, ROOT ":wake"), "mail");
    assert_int_equal(strlen(claims(w, 8)), 3 * 12 + 2);
    client_close(wakes);
}

/* Only an idle worker can claim granted suspects. A busy worker with room must not make sync after
 * sync for the many other gates where the queue stands aside. */
static void test_suspects_at_many_gates(void **cmocka_state)
{
    const char *w = worker();
    int syncs = 0;

    (void)cmocka_state;
    for (int i = 0; i < 140; i++) {
        (void)fcall("later_lock k%d ann", i);
        (void)send_args(4,
                        (const char *[]){"HSET", ROOT ":tries", add("mail lock k%d x", i),
                                         "1 1 2 1767225600000"},
                        NULL);
    }
    (void)fcall_sync("%s 1 1 128 0 1 mail 2 1048576", w);
    (void)fcall("later_pause mail");
    for (int i = 0; i < 140; i++)
        (void)fcall("later_unlock k%d ann", i);
    (void)fcall("later_resume mail");
    do
        (void)fcall_sync("%s 1 1 128 0 1 mail 2 1048576", w);
    while (int_at(8, -1) >= 0 && int_at(8, -1) <= int_at(0, -1) / 1000 && ++syncs < 20);
    assert_in_range(syncs, 0, 5);
    assert_string_equal(redis("ZCARD R:granted:mail"), "2");
}

/* ---- definitions that change */

static void test_template_that_changes(void **cmocka_state)
{
    const char *w = worker(), *a, *b;

    (void)cmocka_state;
    (void)fcall("later_limit_set t:{key} semaphore 0");
    (void)fcall("later_limit_set t:b semaphore 0");
    a = add("mail sem t:a x");
    b = add("mail sem t:b x");
    assert_string_equal(claims(w, 2), "");
    (void)fcall("later_limit_set t:{key} semaphore 1");
    assert_string_equal(claims(w, 2), a);
    /* Without a definition of its own the name fits the template. */
    assert_string_equal(fcall("later_limit_del t:b"), "1");
    assert_string_equal(claims(w, 2), b);
    assert_string_equal(redis("EXISTS R:timers R:parked"), "0");
}

/* A gate that only a call can open gets a timer in the far future, which asks for no sync. */
static void test_gate_that_never_opens(void **cmocka_state)
{
    const char *w = worker(), *id;

    (void)cmocka_state;
    (void)fcall("later_limit_set s semaphore 0");
    id = add("mail sem s x");
    assert_string_equal(claims(w, 1), "");
    assert_string_equal(at(8, -1), "-1");
    assert_string_equal(redis("ZSCORE R:timers gate:sem:s"), "100000000000000");
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    assert_string_equal(redis("EXISTS R:timers"), "0");
}

/* The clock was set back: starts that are later than it count as of now, not as never. */
static void test_rates_ahead(void **state)
{
    int64_t late = (now_ms() + 3600000) * 1000;

    (void)state;
    (void)fcall("later_limit_set r rate 2/1m algorithm sliding");
    (void)redis("ZADD R:rate:sliding:r %lld 1 %lld 2", (long long)late, (long long)late);
    assert_starts(fcall("later_throttle r"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 1, 60001);
    (void)fcall("later_limit_set f rate 2/1m algorithm fixed");
    (void)send_args(
        3,
        (const char *[]){"SET", ROOT ":rate:fixed:f", text("%lld 2", (long long)(late / 60000000))},
        NULL);
    assert_starts(fcall("later_throttle f"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 1, 120001);
}

/* The clock was set back behind the end of a window: the window after it, which has its starts
 * already, is not used twice. */
static void test_a_border_passed_twice(void **state)
{
    const char *next;
    int64_t index;

    (void)state;
    (void)fcall("later_limit_set f rate 2/1h algorithm fixed");
    index = now_ms() / 3600000;
    next = text("%lld 2", (long long)(index + 1));
    (void)send_args(3, (const char *[]){"SET", ROOT ":rate:fixed:f", next}, NULL);
    assert_starts(fcall("later_throttle f"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 3600000, 7200001);
    assert_string_equal(redis("GET R:rate:fixed:f"), next);
}

/* Starts are later than a clock that was set back: a call that meets them shuts the rate for no
 * longer than its own time. */
static void test_rates_ahead_pass(void **state)
{
    int64_t late = (now_ms() + 3600000) * 1000;

    (void)state;
    (void)fcall("later_limit_set g rate 2/20ms burst 2");
    (void)fcall("later_limit_set f rate 2/20ms algorithm fixed");
    (void)send_args(
        3, (const char *[]){"SET", ROOT ":rate:gcra:g", text("%lld 1", (long long)late)}, NULL);
    (void)send_args(
        3, (const char *[]){"SET", ROOT ":rate:fixed:f", text("%lld 2", (long long)(late / 20000))},
        NULL);
    assert_starts(fcall("later_throttle g"), "[1 2 0 ");
    assert_starts(fcall("later_throttle f"), "[1 2 0 ");
    (void)redis("DEBUG SLEEP 0.045");
    assert_starts(fcall("later_throttle g"), "[0 2 ");
    assert_starts(fcall("later_throttle f"), "[0 2 ");
}

/* A grant that nobody claims is from before the clock was set back. It does not keep its permit for
 * as long as the clock was set back. */
static void test_grant_too_late(void **cmocka_state)
{
    const char *w = worker(), *id, *other;
    int64_t late = now_ms() + 3600000;

    (void)cmocka_state;
    (void)fcall("later_lock door ann");
    id = add("sms lock door x");
    assert_starts(fcall_sync("%s 1 0 128 0 1 sms 1 1048576", w), "[");
    other = add("mail lock door x");
    assert_string_equal(claims(w, 1), "");
    (void)fcall("later_unlock door ann");
    (void)redis("ZADD R:granted:sms %lld %s", (long long)late, id);
    (void)redis("ZADD R:timers %lld granted:sms", (long long)late + 1000);
    (void)fcall("later_v1_tidy %s 0", w);
    (void)redis("DEBUG SLEEP 1.01");
    assert_string_equal(claims(w, 1), other);
    assert_string_equal(state_of(id), "parked");
}

/* ---- suspects */

/* An idle worker takes a granted suspect before the jobs of other queues. Otherwise they would shut
 * the suspect out again, however often the worker is idle. */
static void test_granted_suspect_first(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door x");

    (void)cmocka_state;
    (void)fcall("later_lock door ann");
    assert_string_equal(claims(w, 1), "");
    (void)send_args(4, (const char *[]){"HSET", ROOT ":tries", id, "2 2 2 1000"}, NULL);
    (void)fcall("later_unlock door ann");
    (void)add("sms x");
    assert_starts(fcall_sync("%s 1 1 128 0 2 sms 4 1048576 mail 4 1048576", w), "[");
    /* A worker without room for it hears of it as well: so it will be idle at some time. */
    assert_starts(fcall_sync("%s 1 1 128 0 1 mail 0 1048576", w), "[");
    assert_int_equal(int_at(7, -1), 1);
    (void)add("sms x");
    assert_starts(fcall_sync("%s 1 0 128 0 2 sms 4 1048576 mail 4 1048576", w), "[");
    assert_int_equal(count_claimed(), 1);
    assert_string_equal(claimed(0, CLAIM_ID), id);
}

/* ---- fences */

/* Redis lost its last writes, and the worker tells the highest number that it saw: a lock that is
 * handed on has a higher fence. */
static void test_fence_after_a_loss(void **cmocka_state)
{
    const char *w = worker(), *id = park(w, "");
    int64_t seen = (now_ms() + 3600000) * 1000;

    (void)cmocka_state;
    (void)serving("mail", 16);
    assert_starts(fcall("later_v1_reconcile %s 1 0 %lld", w, (long long)seen), "[");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_true(strtoll(redis("HGET R:lock:door fence"), NULL, 10) > seen);
}

/* Two permits come free in a sync, one job waits and another is new: both start. */
static void test_more_permits_than_waiters(void **cmocka_state)
{
    const char *w = worker(), *one, *two, *parked, *fresh;

    (void)cmocka_state;
    (void)fcall("later_limit_set s semaphore 2");
    one = add("mail sem s x");
    two = add("mail sem s x");
    (void)claims(w, 2);
    parked = add("mail sem s x");
    assert_string_equal(claims(w, 2), "");
    assert_string_equal(state_of(parked), "parked");
    fresh = add("mail sem s x");
    assert_starts(
        fcall("later_v1_sync %s 1 0 128 0 1 mail 8 1048576 1 mail 1 2 %s %s 0", w, one, two), "[");
    assert_string_equal(state_of(parked), "running");
    assert_string_equal(state_of(fresh), "running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_awaited),
        FX_TEST(test_result_of_a_retried),
        FX_TEST(test_not_adopted),
        FX_TEST(test_adopted_with_its_grant),
        FX_TEST(test_adopted_past_a_rate),
        FX_TEST(test_ghost_lets_go),
        FX_TEST(test_forgotten_wait),
        FX_TEST(test_lease_is_not_shortened),
        FX_TEST(test_entered_in_vain),
        FX_TEST(test_paused_reservation),
        FX_TEST(test_rate_that_goes),
        FX_TEST(test_unique_while_parked),
        FX_TEST(test_foreign_lock_in_a_claim),
        FX_TEST(test_foreign_lock_at_the_end),
        FX_TEST(test_foreign_granted),
        FX_TEST(test_throttle_of_many),
        FX_TEST(test_rate_is_spent_at_the_claim),
        FX_TEST(test_rate_of_a_lost_grant),
        FX_TEST(test_rates_are_taken_last),
        FX_TEST(test_full_queue_leaves_places),
        FX_TEST(test_more_permits_than_waiters),
        FX_TEST(test_nobody_has_room),
        FX_TEST(test_busy_worker_comes_to_its_turn),
        FX_TEST(test_more_places_than_room),
        FX_TEST(test_reserves_behind_others),
        FX_TEST(test_makes_way),
        FX_TEST(test_suspects_at_many_gates),
        FX_TEST(test_template_that_changes),
        FX_TEST(test_gate_that_never_opens),
        FX_TEST(test_rates_ahead),
        FX_TEST(test_a_border_passed_twice),
        FX_TEST(test_rates_ahead_pass),
        FX_TEST(test_grant_too_late),
        FX_TEST(test_granted_suspect_first),
        FX_TEST(test_fence_after_a_loss),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
