/* The log names an unserved queue when it becomes one, and once an hour while it stays one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "daemon/unserved.h"

static char told[200];

static void tell(void *arg, const char *queue)
{
    size_t n = strlen(told);

    (void)arg;
    (void)snprintf(told + n, sizeof(told) - n, "%s ", queue);
}

/* What is told of these queues, s seconds after the start. */
static const char *take(struct unserved *u, int64_t s, const char *a, const char *b)
{
    const char *names[] = {a, b};
    size_t n = (a != NULL) + (b != NULL);

    told[0] = '\0';
    unserved_take(u, names, n, (struct mono){(1000 + s) * 1000000}, tell, NULL);
    return told;
}

static void test_once(void **state)
{
    struct unserved u = {.n = 0};

    (void)state;
    assert_string_equal(take(&u, 0, NULL, NULL), "");
    assert_string_equal(take(&u, 10, "sms", "mail"), "sms mail ");
    for (int64_t s = 20; s < 3610; s += 10)
        assert_string_equal(take(&u, s, "mail", "sms"), "");
    assert_string_equal(take(&u, 3610, "mail", "sms"), "mail sms ");
    assert_string_equal(take(&u, 3620, "web", "mail"), "web ");
    assert_string_equal(take(&u, 3630, "web", "sms"), "sms ");
    assert_string_equal(take(&u, 3640, NULL, NULL), "");
    assert_string_equal(take(&u, 3650, "web", NULL), "web ");
    unserved_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
