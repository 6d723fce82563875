/* cli/bulk/job_json and json/base64: a job as a line of JSON, as anybody may write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bulk/job_json.h"
#include "json/base64.h"

/* The words of a line, each followed by |. A + in front: the job needs a call of its own. */
static const char *words_how(const char *line, const struct import_how *how)
{
    static char text[1024];
    struct call_args w = {.n = 0};
    struct err err = ERR_INIT;
    bool is_alone;
    size_t at = 0;

    if (job_from_json(line, strlen(line), how, &w, &is_alone, &err) < 0) {
        assert_int_equal(err.code, ERR_FORMAT);
        (void)snprintf(text, sizeof(text), "!%s", err.text);
        call_args_done(&w);
        return text;
    }
    if (is_alone)
        text[at++] = '+';
    call_args_argv(&w, "q", w.n);
    for (size_t i = 1; i <= w.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s|", (int)w.lens[i], w.argv[i]);
    call_args_done(&w);
    return text;
}

static const char *words_of(const char *line, bool is_once)
{
    return words_how(line, &(struct import_how){.is_once = is_once});
}

static void test_lines(void **state)
{
    static const struct {
        const char *line, *words;
    } lines[] = {
        {"{\"payload\":\"x\"}", "00|x|"},
        {"{\"payload\":\"\",\"priority\":5,\"due_ms\":0}", "01|due|0||"},
        {"{\"priority\":0,\"payload_base64\":\"YWI=\"}", "01|priority|0|ab|"},
        {"{\"id\":\"j1\",\"state\":\"dead\",\"starts\":3,\"outcome\":{},\"key\":\"k\","
         "\"timeout_ms\":5000,\"payload\":\"\\u00e4\"}",
         "02|key|k|timeout|5000ms|\xc3\xa4|"},
        {"{\"key_base64\":\"/w==\",\"payload\":\"p\"}", "01|key|\xff|p|"},
        {"{\"then\":\"b,c\",\"on_dead\":\"d\",\"parent\":\"j0\",\"reason\":\"50% "
         "off\",\"payload\":\"p\"}",
         "04|then|b,c|on_dead|d|parent|j0|reason|50% off|p|"},
        {"{\"unique\":\"u\",\"payload\":\"p\"}", "+01|unique|u|p|"},
        {"{\"token\":\"t\",\"payload\":\"p\"}", "+01|token|t|p|"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_string_equal(words_of(lines[i].line, false), lines[i].words);
}

static void test_once(void **state)
{
    (void)state;
    assert_string_equal(words_of("{\"id\":\"j1\",\"payload\":\"x\"}", true),
                        "+01|token|import:j1|x|");
    assert_string_equal(words_of("{\"id\":\"j1\",\"token\":\"t\",\"payload\":\"x\"}", true),
                        "+01|token|t|x|");
    assert_string_equal(words_of("{\"raw\":true,\"payload\":\"a\"}", true),
                        "+01|token|import:af63dc4c8601ec8c|a|");
    assert_string_equal(words_of("{\"payload\":\"x\"}", true),
                        "!--once needs an id or a token in it");
}

/* The line of a dead job as an export wrote it, and as people write it. */
static void test_dead(void **state)
{
    static const struct import_how how = {.keeps_dead = true};

    (void)state;
    assert_string_equal(
        words_how(
            "{\"id\":\"j1\",\"state\":\"dead\",\"died_ms\":7,\"starts\":4,\"attempt\":3,"
            "\"crashes\":1,\"outcome\":{\"state\":\"dead\",\"code\":65,\"when_ms\":7,"
            "\"start\":4,\"text\":\"no\\nuser\",\"output_base64\":\"YQpi\"},\"payload\":\"x\"}",
            &how),
        "+02|dead|dead 65 7 4 no user\na\nb|tries|4 3 1|x|");
    assert_string_equal(words_how("{\"state\":\"dead\",\"died_ms\":7,\"payload\":\"x\"}", &how),
                        "+02|dead|dead 0 7 0 \n|tries|0 0 0|x|");
    assert_string_equal(words_how("{\"state\":\"done\",\"payload\":\"x\"}", &how), "00|x|");
    assert_string_equal(words_how("{\"state\":5,\"payload\":\"x\"}", &how), "00|x|");
    assert_string_equal(words_how("{\"state\":\"dead\",\"payload\":\"x\"}", &how),
                        "!it is dead and has no died_ms");
    assert_string_equal(words_how("{\"state\":\"dead\",\"died_ms\":1,\"outcome\":{\"text\":1},"
                                  "\"payload\":\"x\"}",
                                  &how),
                        "!text is no text");
}

static void test_refused(void **state)
{
    static const struct {
        const char *line, *says;
    } lines[] = {
        {"", "!it is no JSON"},
        {"{", "!it is no JSON"},
        {"{} {}", "!it is no JSON"},
        {"[1]", "!it is no JSON object"},
        {"{}", "!it has no payload"},
        {"{\"payload\":1}", "!payload is no text"},
        {"{\"payload\":\"a\",\"payload_base64\":\"YQ==\"}", "!it has two payloads"},
        {"{\"payload\":\"a\",\"payload\":\"b\"}", "!it is no JSON: duplicate"},
        {"{\"payload_base64\":\"YQ=\"}", "!payload_base64 is not in base 64"},
        {"{\"payload\":\"a\",\"due_ms\":\"1\"}", "!due_ms is no whole number from 0 on"},
        {"{\"payload\":\"a\",\"due_ms\":-1}", "!due_ms is no whole number"},
        {"{\"payload\":\"a\",\"due_ms\":1.5}", "!due_ms is no whole number"},
        {"{\"payload\":\"a\",\"due_ms_base64\":\"MQ==\"}", "!due_ms is no whole number"},
        {"{\"payload\":\"a\",\"priorty\":1}",
         "!there is no 'priorty' of a job: did you mean priority?"},
        {"{\"payload\":\"a\",\"\\u001b[2J\":1}", "!there is no '\\x1b[2J' of a job"},
        {"{\"payload\":\"\xff\"}", "!it is no JSON"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (strncmp(words_of(lines[i].line, false), lines[i].says, strlen(lines[i].says)) != 0)
            fail_msg("%s: %s", lines[i].line, words_of(lines[i].line, false));
    }
}

static void test_base64(void **state)
{
    static const char *const bad[] = {"Y",    "YQ",    "YQ=",  "YQ===", "YR==",     "YWJ=", "=QQ=",
                                      "Y=Q=", "YQ\n=", "YQ=a", "====",  "YQ==YQ==", "____"};

    (void)state;
    for (size_t n = 0; n < 300; n++) {
        CLEANUP_BUF struct buf bytes = BUF_INIT, there = BUF_INIT, back = BUF_INIT;

        for (size_t i = 0; i < n; i++) {
            char c = (char)(i * 7 + n);

            buf_add(&bytes, &c, 1);
        }
        base64_put(&there, bytes.data, n);
        assert_int_equal(base64_get(&back, buf_str(&there), there.len), 0);
        assert_int_equal(back.len, n);
        assert_true(n == 0 || memcmp(back.data, bytes.data, n) == 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CLEANUP_BUF struct buf out = BUF_INIT;

        if (base64_get(&out, bad[i], strlen(bad[i])) == 0)
            fail_msg("%s passes", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_once),   cmocka_unit_test(test_dead),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
