/*
 * Jobs in line for a gate, as all other functions see them; and rates and fences on a clock or a
 * Redis that went back.
 */
#include "fixture.h"

/* A step of an idle worker that has this room in mail; -> the claims' ids. */
static const char *claims(const char *w, int room)
{
    struct buf b = BUF_INIT;

    assert_starts(fcall("later_v1_step %s 1 0 128 0 1 mail %d 1048576", w, room), "[");
    assert_string_equal(at(1, -1), "ok");
    for (int i = 0; i < len_at(3, -1); i++)
        buf_printf(&b, "%s%s", i > 0 ? " " : "", at(3, i, 0, -1));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static const char *state(const char *id)
{
    (void)fcall("later_show %s", id);
    return named("state");
}

/* One job has the lock, the next one stands in line for it. */
static const char *stand(const char *w, const char *options)
{
    const char *first = add("mail lock door x"), *next = add("mail lock door %sx", options);

    assert_string_equal(claims(w, 10), first);
    assert_string_equal(state(next), "parked");
    return next;
}

/* ---- seen from elsewhere */

static void test_awaited(void **cmocka_state)
{
    const char *w = worker(), *id = stand(w, "keep 1h ");

    (void)cmocka_state;
    assert_string_equal(fcall("later_v1_await %s", id), "[parked     ]");
    assert_string_equal(redis("HEXISTS R:await %s", id), "1");
    assert_string_equal(fcall("later_result %s", id), "[parked     ]");
}

/* What a dead job died of is not how it stands when it waits again. */
static void test_result_of_a_retried(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door x");

    (void)cmocka_state;
    assert_string_equal(claims(w, 1), id);
    assert_string_equal(settle(w, id, 1, "dead", 10), "ok");
    (void)fcall("later_lock door ann");
    assert_starts(fcall("later_retry %s", id), "[");
    assert_string_equal(claims(w, 1), "");
    assert_string_equal(state(id), "parked");
    assert_starts(fcall("later_result %s", id), "[failed ");
}

/* ---- adoption */

/* A worker says it runs a job that stands in line: without its lock it may not, and nothing is
 * lost. */
static void test_not_adopted(void **cmocka_state)
{
    const char *w = worker(), *id = stand(w, "");

    (void)cmocka_state;
    assert_starts(fcall("later_v1_register 0 other 1 0 0 0 1 %s 1", id), "[");
    assert_string_equal(at(4, 0, -1), "taken");
    assert_string_equal(state(id), "parked");
    assert_string_equal(redis("ZCARD R:line:mail:lock:door"), "1");
}

/* One that was granted its lock meanwhile goes on with it. */
static void test_adopted_with_its_grant(void **cmocka_state)
{
    const char *w = worker(), *id = add("mail lock door unique k x");

    (void)cmocka_state;
    (void)fcall("later_lock door ann");
    assert_string_equal(claims(w, 1), "");
    (void)fcall("later_unlock door ann");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_starts(fcall("later_v1_register 0 other 1 0 0 0 1 %s 1", id), "[");
    assert_string_equal(at(4, 0, -1), "adopted");
    w = at(1, -1);
    assert_string_equal(state(id), "running");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("EXISTS R:lock:door R:holds R:uniq:mail:k R:parked"), "0");
}

/* The rate was passed when it was started: that it is shut now is no reason to end it. */
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

/* A program under a lock that enters again under the same name has not the lock of its former life.
 */
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

/* ---- outsiders */

/* Where no worker steps, a wait that is over does not shut the gate to those who only ask. */
static void test_forgotten_wait(void **state)
{
    (void)state;
    (void)fcall("later_lock door ann ttl 1ms");
    (void)fcall("later_lock door bob wait 1ms");
    (void)redis("DEBUG SLEEP 0.005");
    assert_starts(fcall("later_lock door cid"), "[1 ");
}

/* Nobody is called when a lease ends before its time. */
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

/* Who asked in vain and does not wait may ask for another gate. */
static void test_entered_in_vain(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_lock door ann");
    assert_starts(fcall("later_v1_enter %s lock:door", w), "[0 ");
    assert_starts(fcall("later_v1_enter %s lock:window", w), "[1 ");
}

/* ---- unique keys */

/* `replace` leaves the due time as it is, `drop` tells it. */
static void test_unique_in_line(void **cmocka_state)
{
    const char *w = worker(), *id = stand(w, "unique k at 2020-01-31T09:00:00Z "), *due;

    (void)cmocka_state;
    (void)fcall("later_show %s", id);
    due = named("due_ms");
    assert_string_equal(fcall("later_add mail unique k in 1h y"), text("[%s dropped %s]", id, due));
    assert_string_equal(fcall("later_add mail unique k unique_mode replace in 1h y"),
                        text("[%s replaced %s]", id, due));
    assert_string_equal(state(id), "waiting");
    assert_string_equal(named("due_ms"), due);
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

/* The clock was set back: what was started then counts as of now, not as never. */
static void test_rates_ahead(void **state)
{
    int64_t ahead = (now_ms() + 3600000) * 1000;

    (void)state;
    (void)fcall("later_limit_set r rate 2/1m algorithm sliding");
    (void)redis("ZADD R:rate:sliding:r %lld 1 %lld 2", (long long)ahead, (long long)ahead);
    assert_starts(fcall("later_throttle r"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 1, 60001);
    (void)fcall("later_limit_set f rate 2/1m algorithm fixed");
    (void)send_args(3,
                    (const char *[]){"SET", ROOT ":rate:fixed:f",
                                     text("%lld 2", (long long)(ahead / 60000000))},
                    NULL);
    assert_starts(fcall("later_throttle f"), "[1 2 0 ");
    assert_in_range(int_at(3, -1), 1, 60001);
}

/* ---- fences */

/* Redis lost its last writes, and the worker tells what it saw: what is handed on has a higher
 * fence. */
static void test_fence_after_a_loss(void **cmocka_state)
{
    const char *w = worker(), *id = stand(w, "");
    int64_t seen = (now_ms() + 3600000) * 1000;

    (void)cmocka_state;
    assert_starts(fcall("later_v1_reconcile %s 1 0 %lld", w, (long long)seen), "[");
    assert_string_equal(redis("HGET R:lock:door holder"), id);
    assert_true(strtoll(redis("HGET R:lock:door fence"), NULL, 10) > seen);
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
        FX_TEST(test_unique_in_line),
        FX_TEST(test_throttle_of_many),
        FX_TEST(test_rates_ahead),
        FX_TEST(test_fence_after_a_loss),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
