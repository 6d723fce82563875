/*
 * How many bytes one call moves, where it meets the most that is documented: what it reads and
 * writes, what it copies, what it hashes. Bytes and commands are counted, not the time: the library
 * is loaded with a wrapper around `redis` that counts them.
 *
 * A call that ends or lists much does a part, and the next one the rest; what belongs together (the
 * end of a job and what it causes) stays in one call.
 */
#include "fixture.h"

#include "lua/lua_lib.h"

#define MIB 1048576
#define PAGE 16384 /* the largest payload in a record, of a schedule and of a batch */

static char *big; /* MIB bytes */

/* `redis` is another table while a library is loaded than in a call. */
static const char counter[] =
    "local moved, copies, commands = 0, 0, 0\n"
    "local function real(name) return redis[name] end\n"
    "local function size(x)\n"
    "  if type(x) ~= 'table' then return type(x) == 'string' and #x or 0 end\n"
    "  local n = 0\n"
    "  for _, value in ipairs(x) do n = n + size(value) end\n"
    "  return n\n"
    "end\n"
    "local function counted(how)\n"
    "  return function(...)\n"
    "    local command, key = ...\n"
    "    commands = commands + 1\n"
    "    if command == 'COPY' then copies = copies + real('call')('STRLEN', key) end\n"
    "    local reply = real(how)(...)\n"
    "    moved = moved + size({...}) + size(reply)\n"
    "    return reply\n"
    "  end\n"
    "end\n"
    "local redis = {register_function = redis.register_function}\n"
    "redis.call, redis.pcall = counted('call'), counted('pcall')\n"
    "redis.acl_check_cmd = function(...) return real('acl_check_cmd')(...) end\n"
    "redis.sha1hex = function(text) moved = moved + #text return real('sha1hex')(text) end\n"
    "redis.register_function{function_name = 'counted', flags = {'no-writes'}, callback = "
    "function()\n"
    "  local out = {moved, copies, commands}\n"
    "  moved, copies, commands = 0, 0, 0\n"
    "  return out\n"
    "end}\n";

static int open_counted(void **state)
{
    const char *argv[] = {"FUNCTION", "LOAD", "REPLACE", NULL};
    const char *behind = strchr(lua_lib_text, '\n') + 1;
    int rc = fx_open(state);

    argv[3] = text("%.*s%s%s", (int)(behind - lua_lib_text), lua_lib_text, counter, behind);
    assert_string_equal(send_args(4, argv, NULL), "laterd");
    big = mem_new(MIB + 1);
    memset(big, 'x', MIB);
    return rc;
}

static int close_counted(void **state)
{
    free(big);
    return fx_close(state);
}

/* Forget what was counted so far. */
static void begin_count(void)
{
    (void)redis("FCALL counted 0");
}

/* The calls since begin_count() copied and moved no more than that. */
static void assert_moved(const char *what, int64_t copies, int64_t bytes, int64_t commands)
{
    struct reply *last = fx.last;

    fx.last = NULL;
    (void)redis("FCALL counted 0");
    print_message("figure %s: %lld bytes copied, %lld moved, %lld commands\n", what,
                  (long long)int_at(1, -1), (long long)int_at(0, -1), (long long)int_at(2, -1));
    assert_in_range(int_at(1, -1), 0, copies);
    assert_in_range(int_at(0, -1), 0, bytes);
    assert_in_range(int_at(2, -1), 0, commands);
    reply_free(fx.last);
    fx.last = last;
}

/* A job of queue q with a payload of n bytes. */
static void add_large(const char *options, size_t n)
{
    assert_starts(fcall_bytes(text("later_add q%s", options), big, n), "[j");
}

struct held {
    const char *worker;
    const char *ids[1024];
    int n;
};

/* A worker that holds n jobs. */
static struct held hold(int n, const char *options, size_t bytes)
{
    struct held h = {.worker = worker()};

    for (int i = 0; i < n; i++)
        add_large(options, bytes);
    while (h.n < n) {
        assert_starts(fcall("later_v1_sync %s 1 0 512 0 1 q 512 67108864 0", h.worker), "[");
        for (int g = 0; g < len_at(3, -1); g++)
            for (int k = 6; k < len_at(3, g, -1); k += 3)
                h.ids[h.n++] = at(3, g, k, -1);
    }
    return h;
}

/* Tell a result of each, and again what is answered `later`. Each call copies and moves no more
 * than that. -> how many calls it took */
static int settle_all(const char *what, struct held *h, const char *result, int64_t copies,
                      int64_t bytes)
{
    int calls = 0;

    while (h->n > 0) {
        struct buf line = BUF_INIT;
        int left = 0;

        buf_printf(&line, "later_v1_sync %s 1 0 0 %d", h->worker, h->n);
        for (int i = 0; i < h->n; i++)
            buf_printf(&line, " %s 1 %s", h->ids[i], result);
        buf_puts(&line, " 0 0");
        begin_count();
        assert_starts(call_line(keep(buf_take(&line))), "[");
        assert_moved(what, copies, bytes, 20000);
        assert_string_equal(at(2, 0, -1), "ok");
        for (int i = 0; i < h->n; i++) {
            const char *answer = at(2, i, -1);

            if (strcmp(answer, "ok") != 0) {
                assert_string_equal(answer, "later");
                h->ids[left++] = h->ids[i];
            }
        }
        h->n = left;
        calls++;
    }
    return calls;
}

/* ---- ends */

/* Each death copies the payload for the job that tells of it. */
static void test_deaths_that_are_told(void **state)
{
    struct held h = hold(10, " on_dead alert", MIB);

    (void)state;
    assert_int_equal(settle_all("deaths", &h, "dead q 100 7 T O", MIB, MIB), 10);
    assert_string_equal(redis("ZCARD R:dead:q"), "10");
    assert_string_equal(redis("ZCARD R:q:alert:5"), "10");
    assert_string_equal(redis("EXISTS R:running"), "0");
}

static void test_kept_jobs_that_are_followed(void **state)
{
    struct held h = hold(10, " then next", MIB);

    (void)state;
    assert_int_equal(settle_all("kept", &h, "done q 3600000 0 ok O", MIB, MIB), 10);
    assert_string_equal(redis("ZCARD R:done:q"), "10");
    assert_string_equal(redis("ZCARD R:q:next:5"), "10");
}

/* A payload that is moved to the next job costs nothing. */
static void test_a_payload_is_handed_on(void **state)
{
    struct held h = hold(10, " then next", MIB);

    (void)state;
    assert_int_equal(settle_all("handed on", &h, "done q 0 0 ok ''", 0, MIB), 1);
    assert_string_equal(redis("ZCARD R:q:next:5"), "10");
}

/* What is in the record is moved, too. */
static void test_large_records(void **state)
{
    struct held h = hold(500, " then next", PAGE);

    (void)state;
    assert_in_range(settle_all("records", &h, "done q 3600000 0 ok O", 0, 2 * MIB), 8, 50);
    assert_string_equal(redis("ZCARD R:q:next:5"), "500");
}

/* As many ends as a sync takes, each of which ends a batch with two callbacks. */
static void test_many_batches_end(void **state)
{
    struct held h = {.worker = worker()};
    int calls = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_starts(fcall_bytes(text("later_batch b%d finally told then told", i), big, PAGE),
                      "[");
        assert_starts(fcall("later_add q batch b%d x", i), "[j");
        assert_starts(fcall("later_batch_seal b%d", i), "[");
    }
    assert_starts(fcall("later_v1_sync %s 1 0 512 0 1 q 512 1048576 0", h.worker), "[");
    for (int k = 6; k < len_at(3, 0, -1); k += 3)
        h.ids[h.n++] = at(3, 0, k, -1);
    assert_int_equal(h.n, 200);
    for (int left = 0; h.n > 0; h.n = left, left = 0, calls++) {
        struct buf line = BUF_INIT;

        buf_printf(&line, "later_v1_sync %s 1 0 0 0 0 1 q 1 %d", h.worker, h.n);
        for (int i = 0; i < h.n; i++)
            buf_printf(&line, " %s", h.ids[i]);
        begin_count();
        assert_starts(call_line(keep(buf_take(&line))), "[");
        assert_moved("batches", 0, 2 * MIB, 1000);
        for (int i = 0; i < len_at(9, -1); i += 2) {
            assert_string_equal(at(9, i + 1, -1), "later");
            h.ids[left++] = h.ids[int_at(9, i, -1) - 1];
        }
    }
    assert_in_range(calls, 3, 50);
    assert_string_equal(redis("ZCARD R:q:told:5"), "400");
}

/* A result with its children stays whole; the next one waits. */
static void test_children_of_two_results(void **state)
{
    struct held h = hold(2, "", 1);
    struct buf line = BUF_INIT;

    (void)state;
    buf_printf(&line,
               "later_v1_sync %s 1 0 0 2 %s 1 done q 0 0 ok '' %s 1 done q 0 0 ok '' 0 0 0 2",
               h.worker, h.ids[0], h.ids[1]);
    for (int k = 1; k <= 2; k++) {
        buf_printf(&line, " %d 600", k);
        for (int i = 0; i < 600; i++)
            buf_puts(&line, " 2 child x");
    }
    assert_starts(call_line(keep(buf_take(&line))), "[");
    assert_string_equal(at(2, -1), "[ok later]");
    assert_string_equal(redis("ZCARD R:q:child:5"), "600");
}

/* A child that is refused, by any of its words, counts like the others. */
static void test_refused_children_count(void **state)
{
    static const char *const bad[] = {"-b", "child priority 77", "child sem none",
                                      "child batch none"};

    (void)state;
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        struct held h = hold(100, "", 1);
        struct buf line = BUF_INIT;

        buf_printf(&line, "later_v1_sync %s 1 0 0 100", h.worker);
        for (int i = 0; i < h.n; i++)
            buf_printf(&line, " %s 1 done q 0 0 ok ''", h.ids[i]);
        buf_puts(&line, " 0 0 0 100");
        for (int i = 1; i <= h.n; i++)
            buf_printf(&line, " %d 1 %d %s %.*s", i, k == 0 ? 2 : 4, bad[k], PAGE, big);
        assert_starts(call_line(keep(buf_take(&line))), "[");
        for (int i = 0; i < h.n; i++)
            assert_starts(at(2, i, -1), i < 57 ? "refused child 1: ELATER_" : "later");
    }
}

static void test_reap_of_large_jobs(void **state)
{
    struct held h = hold(10, " on_dead alert", MIB);
    const char *other = worker(), *seen = "1";
    int calls = 0;

    (void)state;
    do {
        begin_count();
        assert_starts(fcall("later_v1_reap %s %s %s 1 100", other, h.worker, seen), "[");
        assert_moved("reap", MIB, MIB, 2000);
        seen = "?";
        calls++;
    } while (strcmp(at(0, -1), "more") == 0);
    assert_int_equal(calls, 10);
    assert_string_equal(redis("ZCARD R:dead:q"), "10");
    assert_string_equal(redis("ZCARD R:q:alert:5"), "10");
}

/* Jobs that end by it count like those that wait again. */
static void test_reap_of_cancelled_jobs(void **state)
{
    struct held h = hold(100, "", PAGE);
    const char *other = worker();

    (void)state;
    for (int i = 0; i < h.n; i++)
        (void)fcall("later_cancel %s", h.ids[i]);
    assert_starts(fcall("later_v1_reap %s %s 1 1 100", other, h.worker), "[more 64]");
    assert_string_equal(fcall("later_v1_reap %s %s ? 1 100", other, h.worker), "[clear 36]");
}

/* ---- claims */

/* Only as many records are read as may be claimed, and some. */
static void test_claims_of_large_records(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 400; i++)
        add_large("", PAGE);
    begin_count();
    assert_starts(fcall("later_v1_sync %s 1 0 400 0 1 q 400 1048576 0", w), "[");
    assert_moved("claims", 0, 2 * MIB, 200);
    assert_int_equal((len_at(3, 0, -1) - 6) / 3, 64);
}

/* ---- copies of a payload */

static void test_tokens_of_many_copies(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_starts(fcall("later_subscribe t q%d", i), "[");
    for (int i = 0; i < 2; i++) {
        begin_count();
        assert_starts(fcall_bytes("later_publish t token k", big, PAGE), "[100 ");
        /* Written once for each, and never hashed as a whole again. */
        assert_moved("publish", 0, (i == 0 ? 100 : 0) * (PAGE + 2048) + MIB / 4, 2000);
        assert_string_equal(at(1, 2, -1), i == 0 ? "added" : "repeated");
    }
    assert_refused("ELATER_TOKEN", "later_publish t token k x");
}

/* A token of a library that hashed each copy is known still. */
static void test_older_token_of_a_copy(void **state)
{
    const char *sha;

    (void)state;
    assert_starts(fcall("later_subscribe t q"), "[");
    (void)redis("EVAL return\tredis.sha1hex('q\\nt\\nx') 0");
    sha = at(-1);
    (void)send_args(
        4, (const char *[]){"SET", text("%s:token:k q", ROOT), text("j1 5 %s", sha), "KEEPTTL"},
        NULL);
    assert_string_equal(fcall("later_publish t token k x"), "[1 [q j1 repeated]]");
}

/* ---- lists */

static void test_schedules_come_in_pages(void **state)
{
    int n = 0;
    const char *cursor = "0";

    (void)state;
    assert_starts(fcall_bytes("later_schedule_set s every 1h queue q", big, PAGE), "[s ");
    assert_starts(fcall("later_schedules"), "[[schedule s ");
    assert_starts(redis("EVAL "
                        "local\tv=redis.call('HGET','" ROOT ":schedules','s')for\ti=2,1001\tdo\t"
                        "redis.call('HSET','" ROOT ":schedules','s'..i,v)end\treturn\t1 0"),
                  "1");
    assert_refused("ELATER_FULL", "later_schedules");
    do {
        begin_count();
        assert_starts(fcall("later_schedules cursor %s", cursor), "[");
        assert_moved("schedules", 0, MIB, 400);
        n += len_at(-1) - 1;
        cursor = at(0, -1);
    } while (strcmp(cursor, "0") != 0);
    assert_in_range(n, 1001, 1100);
    assert_refused("ELATER_ARGS", "later_schedules cursor x");
    assert_refused("ELATER_ARGS", "later_schedules page 0");
}

/* A few large ones are as many bytes. */
static void test_large_schedules_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++)
        assert_starts(fcall_bytes(text("later_schedule_set s%d every 1h queue q", i), big, PAGE),
                      "[s");
    begin_count();
    assert_refused("ELATER_FULL", "later_schedules");
    assert_moved("all schedules", 0, 8 * MIB, 4000);
}

static void test_names_of_several_kinds(void **state)
{
    (void)state;
    assert_refused("ELATER_OPTION", "later_find '' limit 1001");
    assert_refused("ELATER_OPTION", "later_find '' limit 1001 kind gate");
    assert_string_equal(fcall("later_find '' limit 1000"), "[]");
    assert_string_equal(fcall("later_find '' limit 10000 kind QUEUE"), "[]");
}

/* ---- what is over */

static void test_tidy_of_large_payloads(void **state)
{
    struct held h = hold(300, "", PAGE + 1);

    (void)state;
    (void)settle_all("dead", &h, "dead q 1000 7 T O", 0, 8 * MIB);
    (void)redis("DEBUG SLEEP 0.002");
    assert_starts(fcall("later_v1_tidy %s 1 q 0", h.worker), "[");
    assert_string_equal(redis("ZCARD R:dead:q"), "200");
    for (int i = 0; i < 2; i++)
        assert_starts(fcall("later_v1_tidy %s 1 q 0", h.worker), "[");
    assert_string_equal(redis("EXISTS R:dead:q R:jobs"), "0");
}

/* Who counts what runs reads no more than 4 MiB, and else does not know. */
static void test_count_of_large_running_jobs(void **state)
{
    (void)state;
    (void)hold(400, "", PAGE);
    begin_count();
    assert_starts(fcall("later_stats"), "[");
    assert_moved("stats", 0, 6 * MIB, 200);
    assert_string_equal(at(7, -1), "[ 0]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_deaths_that_are_told),
        FX_TEST(test_kept_jobs_that_are_followed),
        FX_TEST(test_a_payload_is_handed_on),
        FX_TEST(test_large_records),
        FX_TEST(test_many_batches_end),
        FX_TEST(test_children_of_two_results),
        FX_TEST(test_refused_children_count),
        FX_TEST(test_reap_of_large_jobs),
        FX_TEST(test_reap_of_cancelled_jobs),
        FX_TEST(test_claims_of_large_records),
        FX_TEST(test_tokens_of_many_copies),
        FX_TEST(test_older_token_of_a_copy),
        FX_TEST(test_schedules_come_in_pages),
        FX_TEST(test_large_schedules_are_counted),
        FX_TEST(test_names_of_several_kinds),
        FX_TEST(test_tidy_of_large_payloads),
        FX_TEST(test_count_of_large_running_jobs),
    };

    return cmocka_run_group_tests(tests, open_counted, close_counted);
}
