/* What an overview of a namespace is made of: queues by page, a summary, dead jobs by reason, gates
 * by page, when waiting jobs are due. */
#include "fixture.h"

#include "cli/show/groups.h"

/* ---- later_v1_queues */

/* All pages behind `after`, of `count` at most: "a b | c", the pages with " | " between them. */
static const char *pages(const char *after, int count)
{
    const char *out = "", *next = after;

    do {
        assert_starts(fcall("later_v1_queues %s %d", next[0] == '\0' ? "''" : next, count), "[");
        assert_int_equal(len_at(2, -1), 5 * len_at(3, -1));
        for (int i = 0; i < len_at(2, -1); i += 10)
            out = text("%s%s ", out, at(2, i, -1));
        next = at(1, -1);
        out = next[0] == '\0' ? out : text("%s| ", out);
    } while (next[0] != '\0');
    return out;
}

/* A page has what later_stats tells of the same queues, but who runs. */
static void test_pages_are_those_of_stats(void **state)
{
    const char *w = worker(), *rows, *before;

    (void)state;
    (void)add("mail priority 2 in 1h x");
    (void)redis("ZADD R:due:mail 4102444800000 raw");
    (void)fcall("later_broadcast mail x");
    (void)add("sms lock L x");
    (void)add("sms lock L x");
    (void)claim(w, "sms", 2);
    (void)fcall("later_pause web by me reason why");
    before = snapshot();
    (void)fcall("later_stats");
    rows = at(5, -1);
    assert_string_equal(at(7, -1), "[0 0 1 1 0 0]");
    (void)fcall("later_v1_queues '' 100");
    assert_string_equal(at(2, -1), rows);
    assert_string_equal(at(3, -1), "[ 0  1  0]");
    assert_string_equal(at(1, -1), "");
    assert_string_equal(snapshot(), before);
    assert_starts(fcall("later_v1_running"), "[");
    assert_string_equal(at(1, -1), "[sms 1]");
    (void)redis("EVAL for\ti=1,1000\tdo\tredis.call('ZADD',KEYS[1],1,'j'..i)\tend 1 R:running");
    (void)fcall("later_v1_running");
    assert_string_equal(at(1, -1), "");
}

/* Records are read up to about a mebibyte; one that names no queue counts for none. */
static void test_running_reads_so_many_bytes(void **state)
{
    static char payload[60001];

    (void)state;
    memset(payload, 'x', sizeof(payload) - 1);
    for (int i = 0; i < 25; i++) {
        (void)redis("ZADD R:running 1 j%011d", i);
        (void)redis("HSET R:jobs j%011d -mail\n%s", i, payload);
    }
    (void)redis("ZADD R:running 1 j00000000099");
    (void)fcall("later_v1_running");
    assert_string_equal(at(1, -1), "");
    (void)redis("ZREM R:running j00000000024");
    (void)redis("HSET R:jobs j00000000000 -mail\t5");
    (void)fcall("later_v1_running");
    assert_string_equal(at(1, -1), "[mail 23]");
    (void)redis("DEL R:running");
    (void)redis("SET R:running x");
    assert_refused("ELATER_TYPE", "later_v1_running");
}

static void test_pages_follow_each_other(void **state)
{
    (void)state;
    assert_string_equal(pages("", 1), "");
    for (const char *q = "dbXa0"; *q != '\0'; q++)
        (void)add("%c in 1h x", *q);
    assert_string_equal(pages("", 100), "0 X a b d ");
    assert_string_equal(pages("", 2), "0 X | a b | d ");
    assert_string_equal(pages("", 5), "0 X a b d | ");
    assert_string_equal(pages("a", 1), "b | d | ");
    assert_string_equal(pages("c", 9), "d ");
    assert_string_equal(pages("zz", 9), "");
    assert_refused("ELATER_ARGS", "later_v1_queues");
    assert_refused("ELATER_ARGS", "later_v1_queues ''");
    assert_refused("ELATER_ARGS", "later_v1_queues '' 0");
    assert_refused("ELATER_ARGS", "later_v1_queues '' 101");
    (void)redis("ZADD R:index 0 queue:a: 0 queue:b.x 0 queue:d/ 0 queue:~"); /* by hand */
    for (int count = 1; count < 9; count++) {
        const char *all = pages("", count);

        for (const char *q = "0Xabd"; *q != '\0'; q++)
            assert_non_null(strstr(all, text("%c ", *q)));
        assert_null(strpbrk(all, ":./~"));
    }
    assert_refused("ELATER_ARGS", "later_v1_queues %0257d 9", 1);
    assert_refused("ELATER_ARGS", "later_v1_queues .0 9");
    assert_refused("ELATER_ARGS", "later_v1_queues .0:9999999 9");
}

/* Queues that the index of names lacks come behind the others, each once. */
static void test_pages_without_an_index(void **state)
{
    const char *all;
    size_t bytes = strlen("b | ");

    (void)state;
    for (int i = 0; i < 300; i++)
        (void)redis("SADD R:names q%d", i);
    (void)add("b in 1h x");
    all = pages("", 70);
    assert_starts(all, "b | ");
    for (int i = 0; i < 300; i++) {
        const char *word = text(" q%d ", i);

        assert_non_null(strstr(all, word));
        bytes += strlen(word) - 1;
    }
    for (const char *bar = strstr(all, " | ") + 1; (bar = strstr(bar, " | ")) != NULL; bar++)
        bytes += 2;
    assert_int_equal(strlen(all), bytes);
    /* A foreign index is one without names. */
    (void)redis("SET R:index x");
    assert_starts(pages("", 70), "| ");
    assert_non_null(strstr(pages("", 70), " b "));
}

/* A page ends early where its queues have much to tell, and goes on there. */
static void test_a_page_has_a_bound(void **state)
{
    const char *all;

    (void)state;
    for (int i = 100; i < 200; i++) {
        (void)redis("SADD R:names q%d", i);
        (void)redis("ZADD R:index 0 queue:q%d", i);
        for (int p = 0; p < 10; p++)
            (void)redis("ZADD R:q:q%d:%d %d x", i, p, p);
    }
    (void)fcall("later_v1_queues '' 100");
    assert_in_range(len_at(2, -1), 10, 900);
    assert_string_equal(at(2, 1, -1), "10");
    all = pages("", 100);
    for (int i = 100; i < 200; i++)
        assert_non_null(strstr(all, text("q%d ", i)));
}

/* A foreign key counts as empty and hides nothing else. */
static void test_foreign_keys_of_a_queue(void **state)
{
    static const char *const keys[] = {"due:", "parked:", "dead:", "done:", "solo:", "pins:"};

    (void)state;
    (void)add("mail in 1h x");
    (void)add("sms priority 9 in 1h x");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        (void)redis("SET R:%ssms x", keys[i]);
    (void)redis("SET R:q:sms:5 x");
    (void)fcall("later_v1_queues '' 9");
    assert_string_equal(text("%s %s", at(2, 0, -1), at(2, 1, -1)), "mail 1");
    assert_string_equal(text("%s %s", at(2, 10, -1), at(2, 11, -1)), "sms 1");
    (void)redis("DEL R:paused");
    (void)redis("SET R:paused x");
    assert_refused("ELATER_TYPE", "later_v1_queues '' 9");
}

/* ---- later_v1_summary */

static void test_summary(void **state)
{
    const char *w = worker(), *before;
    int64_t now;

    (void)state;
    (void)add("mail lock L x");
    (void)add("mail lock L x");
    (void)claim(w, "mail", 2);
    (void)fcall("later_pause off");
    (void)add("off in 1h x");
    (void)redis("HSET R:unserved mail 1 off 2");
    before = snapshot();
    (void)fcall("later_v1_summary");
    now = int_at(0, -1);
    assert_string_equal(text("%s %s %s %s %s %s %s", at(1, -1), at(2, -1), at(3, -1), at(4, -1),
                             at(5, -1), at(6, -1), at(7, -1)),
                        "1 1 3 2 1 1 2");
    assert_string_equal(text("%s%s %s %s", at(8, -1), at(9, -1), at(10, -1), at(11, -1)), " [] []");
    assert_string_equal(snapshot(), before);
    /* The head of a queue may be earlier than its first job, and is not believed. */
    (void)redis("ZADD R:heads 1 off 2 sms 3 web 4 new");
    (void)redis("ZADD R:q:sms:5 %lld j00000000001", (long long)now - 20000);
    (void)redis("ZADD R:q:web:3 %lld j00000000002", (long long)now - 30000);
    (void)redis("ZADD R:q:new:3 %lld j00000000002", (long long)now - 1);
    (void)fcall("later_v1_summary");
    assert_string_equal(text("%s %s", at(8, -1), at(9, -1)),
                        text("web %lld", (long long)now - 30000));
    assert_int_equal(len_at(10, -1), 20);
    assert_string_equal(text("%s %s", at(10, 0, -1), at(10, 10, -1)), "web sms");
    assert_string_equal(at(11, -1), "[ 0  0]");
    for (int i = 0; i < 40; i++) {
        (void)redis("ZADD R:heads %d q%d", i + 1, i);
        (void)redis("ZADD R:q:q%d:5 %d j00000000001", i, i + 1);
    }
    (void)fcall("later_v1_summary");
    assert_string_equal(at(8, -1), "q0");
    assert_int_equal(len_at(10, -1), 100);
    assert_int_equal(len_at(11, -1), 20);
}

static void test_summary_with_foreign_keys(void **state)
{
    static const char *const keys[] = {"workers", "running", "jobs",    "names",
                                       "parked",  "paused",  "unserved"};

    (void)state;
    assert_starts(fcall("later_v1_summary"), "[1");
    assert_string_equal(at(9, -1), "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)redis("SET R:%s x", keys[i]);
        (void)fcall("later_v1_summary");
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            assert_string_equal(at((int)k + 1, -1), k <= i ? "" : "0");
    }
    (void)redis("SET R:heads x");
    assert_starts(fcall("later_v1_summary"), "[1");
}

/* ---- later_v1_reasons */

static void bury(int64_t ms, int n, const char *reason)
{
    const char *id = text("j%011d", n);
    const char *outcome = text("dead 1 %lld 3 %s\nout 1\n", (long long)ms, reason);
    const char *argv[] = {"HSET", ROOT ":errors", id, outcome};
    size_t lens[] = {4, sizeof(ROOT ":errors") - 1, strlen(id), strlen(outcome)};

    (void)redis("ZADD R:dead:mail %lld %s", (long long)ms, id);
    (void)send_args(4, argv, lens);
}

static void test_reasons(void **state)
{
    const char *before;

    (void)state;
    assert_string_equal(fcall("later_v1_reasons mail '' 500"), "[ 0]");
    bury(1000, 1, "no route to host 1");
    bury(2000, 2, "exit status 7: order 5");
    bury(3000, 3, "no route to host 22");
    bury(3000, 4, "no route to host 3");
    (void)redis("ZADD R:dead:mail 4000 j00000000005");
    (void)redis("HSET R:errors j00000000006 junk");
    (void)redis("ZADD R:dead:mail 5000 j00000000006");
    before = snapshot();
    assert_string_equal(fcall("later_v1_reasons mail '' 500"),
                        "[ 6 [no route to host * 3 1000 3000 j00000000004] "
                        "[exit status 7: order * 1 2000 2000 j00000000002]]");
    assert_string_equal(fcall("later_v1_reasons mail '' 3"),
                        "[3000 j00000000004 3 [no route to host * 1 3000 3000 j00000000004]]");
    /* In which step of a second each died; 1000 is before the first one. */
    assert_string_equal(fcall("later_v1_reasons mail '' 500 2000 1000"),
                        "[ 6 [no route to host * 3 1000 3000 j00000000004 [1 2]] "
                        "[exit status 7: order * 1 2000 2000 j00000000002 [0 1]]]");
    assert_string_equal(fcall("later_v1_reasons mail '' 4 3001 1"),
                        "[3000 j00000000003 4 [no route to host * 2 3000 3000 j00000000004 []]]");
    (void)redis("ZADD R:dead:mail 9000 j00000000007"); /* a new one is not met on the way */
    assert_starts(send_line("FCALL later_v1_reasons 1 " ROOT " mail '' 1"),
                  "[9000 j00000000007 1]");
    (void)redis("ZREM R:dead:mail j00000000007");
    assert_string_equal(snapshot(), before);
    assert_refused("ELATER_ARGS", "later_v1_reasons mail");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 0");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 501");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail junk 9");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 9 0");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 9 0 0");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 9 -1 5");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 9 x 5");
    assert_refused("ELATER_QUEUE", "later_v1_reasons a:b '' 9");
    (void)redis("SET R:dead:mail x");
    assert_refused("ELATER_TYPE", "later_v1_reasons mail '' 9");
}

/* However the times of their outcomes jump, a page tells no more pairs than it has jobs. */
static void test_deaths_out_of_order(void **state)
{
    int64_t died = 0;

    (void)state;
    for (int i = 0; i < 500; i++) {
        bury(1000 * (i % 2), i, "full");
        (void)redis("ZADD R:dead:mail %d j%011d", i, i);
    }
    (void)fcall("later_v1_reasons mail '' 500 0 1000");
    for (int i = 0; i < 500; i++) {
        assert_int_equal(int_at(2, 5, 2 * i, -1), (i + 1) % 2);
        died += int_at(2, 5, 2 * i + 1, -1);
    }
    assert_int_equal(died, 500);
}

/* The pages behind this cursor, of two jobs each: how many jobs are seen, and in how many pages. */
static const char *walk_reasons(const char *cursor)
{
    int64_t seen = 0;
    int n = 0;

    do {
        const char *argv[] = {"FCALL", "later_v1_reasons", "1", ROOT, "mail", cursor, "2"};

        assert_starts(send_args(7, argv, NULL), "[");
        cursor = at(0, -1);
        seen += int_at(1, -1);
        n++;
    } while (cursor[0] != '\0');
    return text("%lld %d", (long long)seen, n);
}

/* A page begins where the one before ended, whatever was removed or moved meanwhile. */
static void test_pages_of_reasons(void **state)
{
    (void)state;
    for (int i = 1; i <= 7; i++)
        bury(1000 * (i / 2), i, "full"); /* two of them have one time */
    assert_string_equal(walk_reasons(""), "7 4");
    assert_string_equal(walk_reasons("3000 j00000000006"), "5 3");
    assert_string_equal(walk_reasons("3000 j00000000007"), "6 3");
    (void)redis("ZREM R:dead:mail j00000000006");
    assert_string_equal(walk_reasons("3000 j00000000006"), "5 3");
    (void)redis("ZADD R:dead:mail 9000 j00000000005");
    assert_string_equal(walk_reasons("2000 j00000000005"), "4 2");
    assert_string_equal(walk_reasons("1 j"), "1 1");
    assert_string_equal(walk_reasons("0 i"), "0 1");
}

/* Outcomes with large outputs: a page reads about 512 KiB of them, and one at least. */
static void test_reasons_with_outputs(void **state)
{
    static char output[600001];

    (void)state;
    memset(output, 'x', sizeof(output) - 1);
    for (int i = 1; i <= 200; i++)
        bury(1000 + i, i, text("full\n%.*s", 16384, output));
    (void)fcall("later_v1_reasons mail '' 500");
    assert_in_range(int_at(1, -1), 16, 60);
    assert_string_equal(at(2, 0, -1), "full");
    bury(5000, 201, text("empty\n%s", output));
    bury(6000, 202, text("empty\n%s", output));
    assert_starts(walk_reasons(""), "202 ");
}

static uint32_t any(uint32_t n)
{
    static uint32_t x = 20251128;

    x = x * 1664525U + 1013904223U;
    return (x >> 8) % n;
}

/* The library folds as `later ls --by reason` does. */
static void test_both_fold_alike(void **state)
{
    static const char *const pieces[] = {
        "1",        "42",       "0",  " ",    "x",   "*",    "exit status ", "exit status",
        "signal ",  " signal ", "ex", "exit", "it ", "s",    "%d",           "\xc3\xa9",
        "signal\t", "status 7", "-3", ": ",   "1.5", "0x1f", "Exit status "};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct buf folded = BUF_INIT;
        const char *reason = "";

        for (uint32_t n = any(9); n > 0; n--)
            reason = text("%s%s", reason, pieces[any(sizeof(pieces) / sizeof(pieces[0]))]);
        groups_fold(reason, strlen(reason), &folded);
        bury(1000, 1, reason);
        (void)fcall("later_v1_reasons mail '' 1");
        assert_string_equal(at(2, 0, -1), buf_str(&folded));
        buf_done(&folded);
    }
}

/* ---- later_v1_ahead */

static void test_ahead(void **state)
{
    const char *before, *w = worker();

    (void)state;
    assert_string_equal(fcall("later_v1_ahead mail 4102444800000 1000 3"), "[0 0 0]");
    (void)add("mail at 4102444799999 x");
    (void)add("mail at 4102444800000 x");
    (void)add("mail at 4102444800999 priority 9 x");
    (void)add("mail at 4102444801000 x");
    (void)add("mail at 4102444803000 x");
    (void)redis("ZADD R:due:mail 4102444802000 a 4102444802999.5 b 5000000000000 c");
    (void)redis("ZADD R:solo:mail 4102444802000 j00000000001");
    (void)redis("SADD R:pins:mail w%s", w);
    (void)redis("ZADD R:pin:mail:w%s 4102444802001 j00000000002", w);
    before = snapshot();
    assert_string_equal(fcall("later_v1_ahead mail 4102444800000 1000 3"), "[2 1 4]");
    assert_string_equal(fcall("later_v1_ahead mail 4102444800000 3000 1"), "[7]");
    assert_string_equal(fcall("later_v1_ahead mail 0 1 1"), "[0]");
    assert_string_equal(snapshot(), before);
    (void)redis("SET R:q:mail:3 x");
    (void)redis("SET R:pins:mail x");
    assert_string_equal(fcall("later_v1_ahead mail 4102444800000 1000 3"), "[2 1 3]");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 0 1000");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 0 0 1");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 0 1000 61");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail x 1000 1");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 99999999999999 1000 1");
    assert_refused("ELATER_QUEUE", "later_v1_ahead a:b 0 1000 1");
}

/* Every minute has its own count, wherever the jobs are. */
static void test_ahead_by_the_minute(void **state)
{
    int want[60] = {0};

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint32_t at_ms = any(3600000);

        (void)redis("ZADD R:q:mail:%u %llu j%011d", any(10), 4102444800000ULL + at_ms, i);
        want[at_ms / 60000]++;
    }
    (void)fcall("later_v1_ahead mail 4102444800000 60000 60");
    for (int i = 0; i < 60; i++)
        assert_int_equal(int_at(i, -1), want[i]);
}

/* Counting large raw members takes long, so some spans share what is in them. */
static void test_ahead_of_large_members(void **state)
{
    static char member[300001];

    (void)state;
    memset(member, 'x', sizeof(member) - 1);
    for (int i = 0; i < 8; i++)
        (void)redis("ZADD R:due:mail %llu %d%s", 4102444800000ULL + (unsigned)i * 1000, i, member);
    (void)fcall("later_v1_ahead mail 4102444800000 1000 8");
    assert_string_equal(at(-1), "[1 1 1 1 1 1 1 1]");
    (void)redis("ZADD R:due:mail 4102444800000 %s", member);
    (void)fcall("later_v1_ahead mail 4102444800000 1000 8");
    assert_int_equal(int_at(0, -1) + int_at(1, -1) + int_at(2, -1) + int_at(3, -1), 5);
}

/* ---- later_v1_gate_names */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of all pages, sorted, each once. */
static const char *gates(int count)
{
    const char *names[500], *cursor = "''", *out = "";
    size_t n = 0;

    do {
        assert_starts(fcall("later_v1_gate_names %s %d", cursor, count), "[");
        for (int i = 1; i < len_at(-1); i++)
            names[n++] = at(i, -1);
        cursor = at(0, -1);
    } while (cursor[0] != '\0');
    qsort(names, n, sizeof(names[0]), by_name);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            out = text("%s%s ", out, names[i]);
    return out;
}

static void test_gates(void **state)
{
    const char *w = worker(), *p = worker(), *before;

    (void)state;
    assert_string_equal(gates(250), "");
    (void)fcall("later_limit_set smtp semaphore 1");
    (void)fcall("later_limit_set slow rate 1/1h");
    (void)fcall("later_limit_set t:{key} semaphore 1");
    assert_string_equal(gates(250), "rate:slow sem:smtp ");
    (void)add("mail lock L unique u x");
    (void)add("mail lock L x");
    (void)add("mail sem t:a x");
    (void)claim(w, "mail", 3);
    (void)fcall("later_v1_enter %s lock:prog", p);
    (void)fcall("later_lock mine ann");
    (void)fcall("later_lock theirs ann");
    (void)fcall("later_lock theirs bob wait 1h");
    before = snapshot();
    for (int count = 1; count < 20; count++)
        assert_string_equal(gates(count),
                            "lock:L lock:prog lock:theirs rate:slow sem:smtp sem:t:a ");
    assert_string_equal(snapshot(), before);
    /* A foreign key hides what only it has. */
    (void)redis("DEL R:limits");
    (void)redis("SET R:limits x");
    (void)redis("SET R:worker:%s x", w);
    assert_string_equal(gates(250), "lock:L lock:prog lock:theirs sem:t:a ");
    (void)redis("SET R:holds x");
    (void)redis("SET R:workers x");
    assert_string_equal(gates(250), "lock:L lock:theirs ");
    (void)redis("SET R:parked x");
    assert_string_equal(gates(250), "lock:theirs ");
    (void)redis("SET R:timers x");
    assert_string_equal(gates(250), "");
    assert_refused("ELATER_ARGS", "later_v1_gate_names");
    assert_refused("ELATER_ARGS", "later_v1_gate_names '' 0");
    assert_refused("ELATER_ARGS", "later_v1_gate_names '' 251");
    assert_refused("ELATER_ARGS", "later_v1_gate_names 6:0 9");
    assert_refused("ELATER_ARGS", "later_v1_gate_names 0:0 9");
    assert_refused("ELATER_ARGS", "later_v1_gate_names junk 9");
    assert_refused("ELATER_ARGS", "later_v1_gate_names 5:99999999999999999999 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_pages_are_those_of_stats),
                                       FX_TEST(test_running_reads_so_many_bytes),
                                       FX_TEST(test_pages_follow_each_other),
                                       FX_TEST(test_pages_without_an_index),
                                       FX_TEST(test_a_page_has_a_bound),
                                       FX_TEST(test_foreign_keys_of_a_queue),
                                       FX_TEST(test_summary),
                                       FX_TEST(test_summary_with_foreign_keys),
                                       FX_TEST(test_reasons),
                                       FX_TEST(test_deaths_out_of_order),
                                       FX_TEST(test_pages_of_reasons),
                                       FX_TEST(test_reasons_with_outputs),
                                       FX_TEST(test_both_fold_alike),
                                       FX_TEST(test_ahead),
                                       FX_TEST(test_ahead_by_the_minute),
                                       FX_TEST(test_ahead_of_large_members),
                                       FX_TEST(test_gates)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
