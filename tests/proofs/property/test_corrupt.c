/*
 * Corrupt contents of each key: a record, a clock, tries, a worker.
 *
 * LATER_ONLY=PATTERN runs the tests of that name; LATER_FULL=1 runs more of the long ones.
 */
#include "../../support/env.h"
#include "everything.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALM_TEST(test_corrupt_contents),       CALM_TEST(test_corrupt_clock),
        CALM_TEST(test_clock_told_by_a_worker), CALM_TEST(test_corrupt_tries),
        CALM_TEST(test_corrupt_worker),         CALM_TEST(test_foreign_worker)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
