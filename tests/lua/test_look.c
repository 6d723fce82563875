/* What a worker with many queues asks: which of them a step has to name. */
#include "fixture.h"

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that are told, each once, in their order. */
static const char *looked(void)
{
    struct buf b = BUF_INIT;
    const char **names;
    const char *out;
    size_t n;

    assert_starts(fcall("later_v1_look"), "[0");
    n = (size_t)len_at(-1);
    names = mem_new(n * sizeof(*names));
    for (size_t i = 1; i < n; i++)
        names[i - 1] = at((int)i, -1);
    qsort(names, n - 1, sizeof(*names), compare_words);
    for (size_t i = 0; i + 1 < n; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            buf_printf(&b, "%s ", names[i]);
    }
    out = text("%s", buf_str(&b));
    buf_done(&b);
    free(names);
    return out;
}

static void test_what_is_told(void **state)
{
    const char *before;

    (void)state;
    assert_string_equal(looked(), "");
    (void)add("q0 in 1h later");
    (void)add("q1 in 2s soon");
    (void)add("q2 now");
    (void)redis("ZADD R:due:q3 4000000000000 raw");
    (void)add("q4 in 1h later");
    (void)fcall("later_pause q4");
    (void)add("q5 in 1h priority 2 marked");
    (void)add("q6 in 3s not-yet");
    (void)fcall("later_pause q2");
    before = snapshot();
    assert_string_equal(looked(), "q1 q2 q4 q5 ");
    assert_string_equal(fcall("later_v1_look q6 q5 q4 q0 q1 q9"), "[0 q5 q4 q1]");
    assert_string_equal(fcall("later_v1_look q0"), "[0]");
    assert_string_equal(snapshot(), before);
    (void)redis("SET R:paused foreign");
    assert_refused("ELATER_TYPE", "later_v1_look");
    assert_refused("ELATER_TYPE", "later_v1_look q0");
}

/* So many of a kind that to tell them would be long: they are asked for by name, not all at once.
 */
static void test_too_many(void **state)
{
    static const char *const keys[] = {"HSET R:prio", "HSET R:paused", "ZADD R:heads"};
    struct buf b = BUF_INIT;

    (void)state;
    for (int k = 0; k < 3; k++) {
        buf_clear(&b);
        buf_puts(&b, keys[k]);
        for (int i = 0; i < 1024; i++)
            buf_printf(&b, k < 2 ? " q%d 0" : " 0 q%d", i);
        (void)redis("%s", buf_str(&b));
        assert_starts(fcall("later_v1_look"), "[0 ");
        assert_int_equal(len_at(-1), 1025);
        (void)redis(k < 2 ? "%s more 0" : "%s 0 more", keys[k]);
        assert_string_equal(fcall("later_v1_look"), "[1]");
        assert_string_equal(fcall("later_v1_look q1023 q1024 more"), "[0 q1023 more]");
        (void)redis("DEL %s", strchr(keys[k], 'R'));
    }
    buf_clear(&b);
    for (int i = 0; i < 1024; i++)
        buf_printf(&b, " q%d", i);
    assert_string_equal(fcall("later_v1_look%s", buf_str(&b)), "[0]");
    assert_refused("ELATER_ARGS", "later_v1_look%s more", buf_str(&b));
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_what_is_told), FX_TEST(test_too_many)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
