/* web/head: which requests are let in, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "web/head.h"

static const char *const hosts[] = {"127.0.0.1:8377", "localhost:8377", NULL};
static const struct head_rules rules = {hosts, false};

/* The status that these bytes get; 200 when they are let in, 100 while more must come. */
static unsigned status_n(const char *head, size_t n)
{
    struct head_refusal refusal;

    switch (head_check(head, n, &rules, &refusal)) {
    case HEAD_GOOD:
        return 200;
    case HEAD_MORE:
        return 100;
    case HEAD_REFUSED:
    default:
        assert_non_null(refusal.text);
        return refusal.status;
    }
}

static unsigned status(const char *head)
{
    return status_n(head, strlen(head));
}

#define HOST "Host: 127.0.0.1:8377\r\n"
#define JSON "Content-Type: application/json\r\n"

static void test_a_usual_request_is_let_in(void **state)
{
    static const char *const good[] = {
        "GET / HTTP/1.1\r\n" HOST "\r\n",
        "GET /x/api/v1/default/queues?after=a%2Fb&count=20 HTTP/1.1\r\nhost:\tLOCALHOST:8377 "
        "\r\nAccept: */*\r\n\r\n",
        "HEAD /style.css HTTP/1.1\r\n" HOST "Sec-Fetch-Site: none\r\n\r\n",
        "POST /api HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n\r\n{}",
        "POST /api HTTP/1.1\r\n" HOST JSON
        "Content-Length: 65536\r\nSec-Fetch-Site: same-origin\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(status(good[i]), 200);
}

static void test_what_two_readers_could_read_differently_is_refused(void **state)
{
    static const struct {
        unsigned status;
        const char *head;
    } bad[] = {
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8377.evil.example\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: localhost6:8377\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: localhost.localdomain:8377\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost: [::1]:8377\r\n\r\n"},
        {421, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : 127.0.0.1:8377\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"},
        {400, "GET / HTTP/1.1\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8377\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "nocolon\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nContent-Length: 2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: +2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 0x2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 2, 2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 99999999999\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 1073741824\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 65537\r\n\r\n"},
        {411, "POST / HTTP/1.1\r\n" HOST JSON "\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"},
        {400,
         "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\n\r\n"},
        {415, "POST / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n"},
        {415, "POST / HTTP/1.1\r\n" HOST "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n"},
        {403,
         "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nSec-Fetch-Site: cross-site\r\n\r\n"},
        {403,
         "POST / HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nSec-Fetch-Site: same-site\r\n\r\n"},
        {400, "GET http://127.0.0.1:8377/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET  HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET HTTP/1.1\r\n" HOST "\r\n"},
        {505, "GET / HTTP/1.0\r\n" HOST "\r\n"},
        {505, "GET / http/1.1\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n\r\n"},
        {505, "GET /\r\n\r\n"},
        {400, "GET /a b HTTP/1.1\r\n" HOST "\r\n"},
        {405, "PUT / HTTP/1.1\r\n" HOST "\r\n"},
        {405, "get / HTTP/1.1\r\n" HOST "\r\n"},
        {405, "PRI * HTTP/1.1\r\n\r\n"},
        {400, "GET /../etc/passwd HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a/.. HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /./a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%2e%2e/etc HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a% HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a\\b HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET //a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a%00 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "\r\nGET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "\x16\x03\x01\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsigned is = status(bad[i].head);

        if (is != bad[i].status)
            fail_msg("%u, not %u: %s", is, bad[i].status, bad[i].head);
    }
    assert_int_equal(status_n("GET / HTTP/1.1\r\nX: \0\r\n\r\n", 24), 400);
}

/* However the bytes come in pieces, a head is judged the same. */
static void test_a_head_may_come_in_pieces(void **state)
{
    static const char head[] = "POST /x HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n\r\n{}";
    size_t whole = sizeof(head) - 3;

    (void)state;
    for (size_t n = 0; n < sizeof(head); n++)
        assert_int_equal(status_n(head, n), n < whole ? 100 : 200);
}

static void test_a_head_without_end_is_refused(void **state)
{
    CLEANUP_BUF struct buf head = BUF_INIT;

    (void)state;
    buf_puts(&head, "GET / HTTP/1.1\r\n" HOST);
    while (head.len < HEAD_MAX)
        buf_puts(&head, "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
    assert_int_equal(status_n(head.data, HEAD_MAX - 1), 100);
    assert_int_equal(status_n(head.data, head.len), 431);
    buf_clear(&head);
    buf_puts(&head, "GET /");
    while (head.len < HEAD_TARGET_MAX + 5)
        buf_puts(&head, "a");
    buf_puts(&head, " HTTP/1.1\r\n");
    assert_int_equal(status_n(head.data, head.len), 414);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_usual_request_is_let_in),
        cmocka_unit_test(test_what_two_readers_could_read_differently_is_refused),
        cmocka_unit_test(test_a_head_may_come_in_pieces),
        cmocka_unit_test(test_a_head_without_end_is_refused),
    };

    return cmocka_run_group_tests_name("web_head", tests, NULL, NULL);
}
