/*
 * later_v1_declare: what a worker's configuration says of limits and of the gates of queues.
 */
#include "fixture.h"

/* "1" if `later health` has this note. name: KIND:NAME. */
static const char *note(const char *name)
{
    return redis("HEXISTS R:notes %s", name);
}

static const char *declare_queue(const char *w, const char *queue, const char *gates)
{
    const char *line = text("later_v1_declare %s 0 1 %s", w, queue);

    return fcall_bytes(line, gates, strlen(gates));
}

static const char *declare_limit(const char *w, const char *name, const char *definition)
{
    const char *argv[] = {"FCALL", "later_v1_declare", "1", ROOT, w, "1", name, definition, "0"};

    return send_args(9, argv, NULL);
}

static void test_fills_what_lacks(void **state)
{
    const char *w = worker();

    (void)state;
    assert_string_equal(declare_limit(w, "smtp", "semaphore 20 kill"), "[]");
    assert_string_equal(redis("HGET R:limits smtp"), "semaphore 20 kill");
    assert_string_equal(declare_limit(w, "gateway", "rate gcra 100 60000 20"), "[]");
    assert_string_equal(redis("HGET R:limits gateway"), "rate gcra 100 60000 20");
    assert_string_equal(declare_limit(w, "smtp", "semaphore 20 kill"), "[]");
    assert_string_equal(redis("EXISTS R:notes"), "0");
}

static void test_differing_is_told_and_kept(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_limit_set smtp semaphore 5");
    assert_string_equal(declare_limit(w, "smtp", "semaphore 20 keep"), "[[smtp semaphore 5 keep]]");
    assert_string_equal(redis("HGET R:limits smtp"), "semaphore 5 keep");
    assert_string_equal(note("limit-differs:smtp"), "1");
}

static void test_templates(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_limit_set a:{key} semaphore 1");
    assert_string_equal(declare_limit(w, "b:{key}", "semaphore 2 keep"), "[]");
    assert_string_equal(declare_limit(w, "b:{key}", "semaphore 2 keep"), "[]");
    assert_string_equal(redis("HGET R:limits {}"), "a:{key}\\nb:{key}");
    assert_starts(fcall("later_sem_acquire b:42 ann"), "[1 ");
}

/* A job waits at a gate whose template was removed: it goes on when a new template is declared. */
static void test_template_opens_its_gates(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_limit_set b:{key} semaphore 1");
    id = add("mail key 42 sem b:{key} x");
    (void)fcall("later_limit_del b:{key}");
    assert_string_equal(claim(w, "mail", 1), "nil");
    (void)serving("mail", 16);
    assert_string_equal(declare_limit(w, "b:{key}", "semaphore 2 keep"), "[]");
    assert_int_not_equal(strcmp(redis("ZSCORE R:sem:b:42 %s", id), "nil"), 0);
    assert_string_equal(redis("EXISTS R:granted:mail"), "1");
}

/* A job that waits for a limit that nobody has defined goes on once it is declared. */
static void test_opens_the_gate(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    assert_string_equal(declare_queue(w, "mail", "sem=smtp"), "[]");
    id = add("mail in 0s x");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_string_equal(redis("ZCARD R:parked:mail"), "1");
    assert_string_equal(declare_limit(w, "smtp", "semaphore 1 keep"), "[]");
    assert_string_equal(claim(w, "mail", 1), id);
}

static void test_queues(void **state)
{
    const char *a = worker(), *b = worker();

    (void)state;
    assert_string_equal(declare_queue(a, "mail", "lock=user:{key} sem=smtp rate=gateway"), "[]");
    assert_string_equal(redis("HGET R:queues mail"), "lock=user:{key} sem=smtp rate=gateway");
    assert_string_equal(declare_queue(a, "mail", "lock=user:{key}"), "[]"); /* it was a's */
    assert_string_equal(redis("HGET R:queues mail"), "lock=user:{key}");
    assert_string_equal(declare_queue(b, "mail", "lock=user:{key}"), "[]"); /* the same */
    assert_string_equal(note("queue-gates:mail"), "0");
    assert_string_equal(declare_queue(b, "mail", "sem=smtp"), "[]");
    assert_string_equal(declare_queue(a, "mail", "lock=user:{key}"), "[]"); /* it was b's */
    assert_string_equal(redis("HGET R:queues mail"), "lock=user:{key}");
    assert_string_equal(note("queue-gates:mail"), "1");
}

static void test_queue_without_gates(void **state)
{
    const char *a = worker(), *b = worker();

    (void)state;
    assert_string_equal(declare_queue(a, "mail", ""), "[]");
    assert_string_equal(redis("EXISTS R:queues"), "0");
    (void)declare_queue(a, "mail", "sem=smtp");
    assert_string_equal(declare_queue(a, "mail", ""), "[]");
    assert_string_equal(redis("EXISTS R:queues"), "0");
    assert_string_equal(note("queue-gates:mail"), "0");
    (void)declare_queue(a, "mail", "sem=smtp");
    assert_string_equal(declare_queue(b, "mail", ""), "[]");
    assert_string_equal(redis("EXISTS R:queues"), "0");
    assert_string_equal(note("queue-gates:mail"), "1");
}

static void assert_refuses(const char *code, const char *got, const char *before)
{
    assert_starts(got, text("!%s ", code));
    assert_string_equal(before, snapshot());
}

static void test_refusals(void **state)
{
    const char *w = worker(), *before = snapshot();
    static const char *const definitions[] = {"",
                                              "semaphore",
                                              "semaphore 1",
                                              "semaphore 1 stay",
                                              "semaphore -1 keep",
                                              "semaphore 1000001 keep",
                                              "semaphore 1 keep ",
                                              "rate gcra 1 0 1",
                                              "rate gcra 1 1000 0",
                                              "rate funnel 1 1000 1",
                                              "rate gcra 1 1000"};
    static const char *const gates[] = {"lock",           "lock=",         "lock=a lock=b",
                                        "sem=a lock=b",   "lock=a  sem=b", " lock=a",
                                        "semaphore=smtp", "lock=a\nsem=b"};

    (void)state;
    for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
        assert_refuses("ELATER_ARGS", declare_limit(w, "smtp", definitions[i]), before);
    for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++)
        assert_refuses("ELATER_ARGS", declare_queue(w, "mail", gates[i]), before);
    assert_refuses("ELATER_GATE", declare_limit(w, "{key}", "semaphore 1 keep"), before);
    assert_refuses("ELATER_GATE", declare_limit(w, "a b", "semaphore 1 keep"), before);
    assert_refuses("ELATER_QUEUE", declare_queue(w, "_", ""), before);
    assert_refuses("ELATER_WORKER", declare_limit("17", "smtp", "semaphore 1 keep"), before);
    assert_refuses("ELATER_ARGS", fcall("later_v1_declare %s 1 smtp", w), before);
    assert_refuses("ELATER_ARGS", fcall("later_v1_declare %s 0", w), before);
    (void)redis("SET R:limits x");
    before = snapshot();
    assert_refuses("ELATER_TYPE", declare_limit(w, "smtp", "semaphore 1 keep"), before);
}

/* Declare the gates of `count` numbered queues. */
static const char *many(const char *w, int count)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "later_v1_declare %s 0 %d", w, count);
    for (int i = 0; i < count; i++)
        buf_printf(&b, " q%d sem=s", i);
    buf_add(&b, NULL, 0);
    return call_line(keep(buf_take(&b)));
}

static void test_bounds(void **state)
{
    const char *w = worker();

    (void)state;
    assert_string_equal(many(w, 2000), "[]");
    assert_string_equal(redis("HLEN R:queues"), "2000");
    assert_starts(many(w, 2001), "!ELATER_ARGS ");
}

static void test_no_more_fit(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 1000; i++)
        (void)redis("HSET R:limits s%d semaphore.1.keep", i);
    assert_string_equal(declare_limit(w, "smtp", "semaphore 1 keep"), "[[smtp ]]");
    assert_string_equal(redis("HEXISTS R:limits smtp"), "0");
    assert_string_equal(note("limit-differs:smtp"), "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_fills_what_lacks),
        FX_TEST(test_differing_is_told_and_kept),
        FX_TEST(test_templates),
        FX_TEST(test_template_opens_its_gates),
        FX_TEST(test_opens_the_gate),
        FX_TEST(test_queues),
        FX_TEST(test_queue_without_gates),
        FX_TEST(test_refusals),
        FX_TEST(test_bounds),
        FX_TEST(test_no_more_fit),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
