/*
 * HTTP on our loop: each request that the door lets in becomes a call of a function, and what that
 * function says becomes the answer. libmicrohttpd reads and writes; nobody else names it. One
 * thread.
 */
#ifndef LATER_WEB_HTTP_H
#define LATER_WEB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "loop/loop.h"

#define HTTP_SEGMENTS_MAX 8 /* of a path; longer ones name nothing here */

struct http_request {
    bool is_post;
    bool is_head;                           /* only what stands before the body is wanted */
    const char *target;                     /* path and query, as they were sent */
    size_t n;                               /* segments of the path, */
    const char *segment[HTTP_SEGMENTS_MAX]; /* decoded */
    struct buf *body;                       /* of a POST */
    void *connection;
};

/* The value of ?name=, decoded; "" if it is not there. It lives as long as the request. */
const char *http_query(const struct http_request *r, const char *name);
/* A header; "" if it is not there, or there more than once: a proxy may have added its own behind
 * one of the client. */
const char *http_header(const struct http_request *r, const char *name);

/*
 * A body without an end, which somebody adds to. The client that does not take it is left behind:
 * more than HTTP_STREAM_MAX bytes do not wait for him.
 */
#define HTTP_STREAM_MAX 262144
struct http_stream;
/* gone: called once, when the connection has ended. The stream is freed then. */
struct http_stream *http_stream_new(void (*gone)(void *arg, struct http_stream *s), void *arg);
/* False: there is no room for it, and nothing was added. */
bool http_stream_add(struct http_stream *s, const void *p, size_t n);
void http_stream_end(struct http_stream *s);

struct http_answer {
    unsigned status;
    const char *type;       /* media type */
    const char *attachment; /* name of a file; NULL: it is shown */
    const char *etag;       /* NULL: it is not kept by anybody */
    const void *constant;   /* in place of body: bytes that stay */
    size_t constant_len;
    struct http_stream *stream; /* in place of body */
    struct buf body;
};

typedef void http_f(void *arg, const struct http_request *r, struct http_answer *a);

struct http;
/* left: called each time a connection has ended. NULL: the library cannot start. */
struct http *http_new(struct loop *loop, http_f *answer, void (*left)(void *arg), void *arg);
void http_free(struct http *h);
/* Serve one request on this descriptor. False: that failed, and it is closed. */
bool http_take(struct http *h, int fd);

#endif
