/* scripts/stream-check accepts the example workers and tells what is wrong with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"

#include "../support/env.h"
#include "../support/shell.h"
#include "examples.h"

#define CHECK "\"$SOURCE\"/scripts/stream-check "
#define SHELL_WORKER "\"$SOURCE\"/handlers/examples/stream.sh"

static void test_passes_the_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAM_EXAMPLES; i++) {
        CLEANUP_FREE char *path = stream_example_path(&stream_examples[i]);
        CLEANUP_FREE char *line = mem_printf(CHECK "'%s'", path);

        if (stream_example_can_run(&stream_examples[i]))
            test_says(line, 0, "keeps to the protocol: ");
    }
}

static void test_own_payloads(void **state)
{
    (void)state;
    test_says("f=$(mktemp); echo dead >$f; " CHECK "-p $f -p $f " SHELL_WORKER
              "; s=$?; rm $f; exit $s",
              0, "dead j00000000003 never\nkeeps to the protocol: 3 jobs, at most 1 at once");
    test_says(CHECK, 64, "usage: stream-check");
}

static void test_greetings(void **state)
{
    (void)state;
    test_says(CHECK "-t 1 sleep 100", 1, "no greeting in 1 s: ");
    test_says(CHECK "true", 1, "no greeting in ");
    test_says(CHECK "sh -c 'echo hello; cat'", 1, "the first line is no greeting: hello");
    test_says(CHECK "sh -c 'echo later-stream 1 inflight=0; cat'", 1, "says inflight=0");
    test_says(CHECK "sh -c 'echo later-stream 1 fast; cat'", 1, "the greeting says fast");
    test_says(CHECK "sh -c 'echo later-stream 2; cat'", 1, "no greeting: later-stream 2");
}

static void test_answers(void **state)
{
    (void)state;
    test_says(CHECK "sh -c 'echo later-stream 1; read -r x; exit 3'", 1,
              "without an answer to j00000000001");
    test_says(CHECK "-t 1 sh -c 'echo later-stream 1; sleep 100'", 1,
              "ended after 1 s, without an answer to j00000000001");
    test_says(CHECK "sh -c 'echo later-stream 1; read -r x; echo ok jx; cat'", 1,
              "it answers jx, which is not in flight: ok jx");
    test_says(CHECK "sh -c '\"$0\" | sed -u p' " SHELL_WORKER, 1,
              "is not in flight: ok j00000000001 0 words in 0 bytes");
}

static void test_ends(void **state)
{
    (void)state;
    test_says(CHECK "sh -c '\"$0\"; exit 3' " SHELL_WORKER, 1, "it ends with status 3");
    test_says(CHECK "-t 2 sh -c '\"$0\"; sleep 100' " SHELL_WORKER, 1, "it does not end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_the_examples),
        cmocka_unit_test(test_own_payloads),
        cmocka_unit_test(test_greetings),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_ends),
    };

    (void)setenv("SOURCE", test_source_dir(), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
