/*
 * A key of a foreign type in the place of each of ours.
 *
 * LATER_ONLY=PATTERN runs the tests of that name; LATER_FULL=1 runs more of the long ones.
 */
#include "../../support/env.h"
#include "everything.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {CALM_TEST(R15_wrong_types),
                                       CALM_TEST(R15_one_queue_stops_alone)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
