/*
 * The head of an HTTP request, as bytes, before anybody else reads them: the request line and the
 * headers. What two readers could understand differently is refused, so that a proxy before us and
 * the HTTP library behind us see the same request (RFC 9112; request smuggling). Pure.
 */
#ifndef LATER_WEB_HEAD_H
#define LATER_WEB_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#define HEAD_MAX 8192       /* bytes of a head */
#define HEAD_BODY_MAX 65536 /* bytes that Content-Length may say */
#define HEAD_TARGET_MAX 2048

struct head_rules {
    const char *const *hosts; /* NULL-ended: what Host may be, HOST or HOST:PORT, in lower case */
    bool any_host;            /* a socket file: the proxy before it has judged the Host */
};

/* Why a request is refused. */
struct head_refusal {
    unsigned status;  /* of HTTP */
    const char *text; /* a sentence */
};

enum head_state { HEAD_MORE, HEAD_GOOD, HEAD_REFUSED };

/* Check the n bytes that have come so far. MORE: the head is not complete. ret is filled if it is
 * refused. */
enum head_state head_check(const char *p, size_t n, const struct head_rules *rules,
                           struct head_refusal *ret);

#endif
