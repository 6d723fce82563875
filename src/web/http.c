#include "web/http.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "web/head.h"

#define IDLE_S 10u        /* without a byte in either direction */
#define REQUEST_MS 30000  /* from the end of the head to the end of the answer */
#define MEMORY_MAX 32768u /* of a connection, for the head: door.h lets in a quarter of it */
#define QUERIES_MAX 16    /* values of a query that are decoded */

/*
 * Under `default-src 'none'` and Trusted Types nothing runs or loads but our files, whatever a
 * job's text holds. Answers of the API are never shown by a browser.
 */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "        \
    "'self'; "                                                                                     \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* A connection that was let in, with its one request. */
struct visit {
    struct http *http;
    struct visit *next;
    int fd;
    struct mono until;
    bool has_begun;
    struct http_stream *stream; /* its answer, or NULL */
    struct buf target, path, body;
    struct buf query[QUERIES_MAX];
    size_t nqueries;
};

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct loop_fd *watch;
    struct loop_timer *timer, *deadline;
    struct visit *visits;
    http_f *answer;
    void (*left)(void *arg);
    void *arg;
};

/* ---- what a request says */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Append p to out with %XX decoded. */
static void decode(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_code = p[i] == '%' && n - i > 2 && digit(p[i + 1]) >= 0 && digit(p[i + 2]) >= 0;
        char c = is_code ? (char)(digit(p[i + 1]) * 16 + digit(p[i + 2])) : p[i];

        buf_add(out, &c, 1);
        i += is_code ? 2 : 0;
    }
}

/* The library's own decoding is switched off: segments are cut before they are decoded. */
static size_t keep_encoded(void *arg, struct MHD_Connection *c, char *text)
{
    (void)arg;
    (void)c;
    return strlen(text);
}

static struct visit *visit_of(struct MHD_Connection *c)
{
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

const char *http_query(const struct http_request *r, const char *name)
{
    struct visit *v = visit_of(r->connection);
    const char *value = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
    struct buf *to;

    if (value == NULL || v->nqueries == QUERIES_MAX)
        return "";
    to = &v->query[v->nqueries++];
    decode(to, value, strlen(value));
    return buf_str(to);
}

/* The headers of one name. */
struct same {
    const char *name, *value;
    int n;
};

static enum MHD_Result take_same(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct same *s = arg;

    (void)kind;
    if (strcasecmp(name, s->name) == 0) {
        s->value = value;
        s->n++;
    }
    return MHD_YES;
}

const char *http_header(const struct http_request *r, const char *name)
{
    struct same s = {.name = name};

    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, take_same, &s);
    return s.n == 1 && s.value != NULL ? s.value : "";
}

/* Cut the path at its slashes and decode what is between them. */
static void read_path(struct http_request *r, struct buf *to, const char *url)
{
    size_t begin[HTTP_SEGMENTS_MAX], n = 0;

    while (*url == '/' && n < HTTP_SEGMENTS_MAX) {
        size_t len = strcspn(url + 1, "/");

        begin[n++] = to->len;
        decode(to, url + 1, len);
        buf_add(to, "", 1);
        url += len + 1;
    }
    r->n = *url == '\0' ? n : HTTP_SEGMENTS_MAX + 1;
    for (size_t i = 0; i < n; i++)
        r->segment[i] = to->data + begin[i];
}

/* ---- a body without an end */

#define STREAM_BLOCK 4096

struct http_stream {
    struct visit *visit; /* NULL until it is an answer */
    struct MHD_Connection *connection;
    bool is_suspended, has_ended;
    struct buf bytes;
    void (*gone)(void *arg, struct http_stream *s);
    void *arg;
};

struct http_stream *http_stream_new(void (*gone)(void *arg, struct http_stream *s), void *arg)
{
    struct http_stream *s = mem_new(sizeof(*s));

    s->gone = gone;
    s->arg = arg;
    return s;
}

static void go_on(struct http_stream *s)
{
    if (!s->is_suspended || s->visit == NULL)
        return;
    s->is_suspended = false;
    MHD_resume_connection(s->connection);
    loop_timer_set(s->visit->http->timer, 0);
}

bool http_stream_add(struct http_stream *s, const void *p, size_t n)
{
    if (s->bytes.len + n > HTTP_STREAM_MAX)
        return false;
    buf_add(&s->bytes, p, n);
    go_on(s);
    return true;
}

void http_stream_end(struct http_stream *s)
{
    s->has_ended = true;
    go_on(s);
}

static ssize_t read_stream(void *arg, uint64_t at, char *to, size_t max)
{
    struct http_stream *s = arg;
    size_t n = s->bytes.len < max ? s->bytes.len : max;

    (void)at;
    if (n == 0 && s->has_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        s->is_suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    memcpy(to, s->bytes.data, n);
    buf_drop(&s->bytes, n);
    return (ssize_t)n;
}

static void free_stream(void *arg)
{
    struct http_stream *s = arg;

    if (s->visit != NULL)
        s->visit->stream = NULL;
    s->gone(s->arg, s);
    buf_done(&s->bytes);
    free(s);
}

/* ---- what it is answered */

static void add(struct MHD_Response *r, const char *name, const char *value)
{
    (void)MHD_add_response_header(r, name, value);
}

static struct MHD_Response *make_response(struct http_answer *a)
{
    size_t n = a->body.len;
    struct MHD_Response *r =
        a->stream != NULL ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                              read_stream, a->stream, free_stream)
        : a->constant != NULL
            ? MHD_create_response_from_buffer(a->constant_len, (void *)(uintptr_t)a->constant,
                                              MHD_RESPMEM_PERSISTENT)
            : MHD_create_response_from_buffer(n, n > 0 ? buf_take(&a->body) : NULL,
                                              n > 0 ? MHD_RESPMEM_MUST_FREE
                                                    : MHD_RESPMEM_PERSISTENT);
    char disposition[96];

    if (r == NULL)
        return NULL;
    add(r, "Content-Type", a->type);
    add(r, "X-Content-Type-Options", "nosniff");
    add(r, "Content-Security-Policy",
        a->attachment != NULL ? "sandbox; default-src 'none'" : POLICY);
    add(r, "Referrer-Policy", "no-referrer");
    add(r, "Cross-Origin-Opener-Policy", "same-origin");
    add(r, "Cross-Origin-Resource-Policy", "same-origin");
    add(r, "Cache-Control", a->etag != NULL ? "no-cache" : "no-store");
    if (a->etag != NULL)
        add(r, "ETag", a->etag);
    if (a->attachment != NULL) {
        (void)snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"",
                       a->attachment);
        add(r, "Content-Disposition", disposition);
    }
    /* The next request must come through the door, too. */
    add(r, "Connection", "close");
    return r;
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct http_answer *a)
{
    struct MHD_Response *r = make_response(a);
    enum MHD_Result result;

    buf_done(&a->body);
    if (r == NULL)
        return MHD_NO;
    result = MHD_queue_response(c, a->status, r);
    MHD_destroy_response(r);
    return result;
}

/* Called before the target is cut. */
static void *on_target(void *arg, const char *target, struct MHD_Connection *c)
{
    struct visit *v = visit_of(c);

    (void)arg;
    buf_clear(&v->target);
    buf_puts(&v->target, target);
    return NULL;
}

static enum MHD_Result answer(struct visit *v, struct MHD_Connection *c, const char *url,
                              const char *method)
{
    struct http_request r = {.is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0,
                             .is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0,
                             .target = buf_str(&v->target),
                             .body = &v->body,
                             .connection = c};
    struct http_answer a = {.status = 500, .type = "text/plain", .body = BUF_INIT};

    read_path(&r, &v->path, url);
    v->http->answer(v->http->arg, &r, &a);
    if (a.stream != NULL) {
        v->stream = a.stream;
        v->until = MONO_NEVER;
        a.stream->visit = v;
        a.stream->connection = c;
    }
    return send_answer(c, &a);
}

/* ---- the library calls */

/* First the head, then the body in pieces, then its end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    struct visit *v = visit_of(c);

    (void)arg;
    (void)version;
    (void)state;
    if (!v->has_begun) {
        v->has_begun = true;
        return MHD_YES;
    }
    if (*n == 0)
        return answer(v, c, url, method);
    /* The head was let in with a length that is not too long. */
    if (v->body.len + *n > HEAD_BODY_MAX)
        return MHD_NO;
    buf_add(&v->body, data, *n);
    *n = 0;
    return MHD_YES;
}

static void end_visit(struct visit *v)
{
    struct visit **at = &v->http->visits;

    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    if (v->stream != NULL)
        v->stream->visit = NULL;
    buf_done(&v->target);
    buf_done(&v->path);
    buf_done(&v->body);
    for (size_t i = 0; i < v->nqueries; i++)
        buf_done(&v->query[i]);
    v->http->left(v->http->arg);
    free(v);
}

static void on_connection(void *arg, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = arg;
    struct visit *v;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        end_visit(*context);
        return;
    }
    v = mem_new(sizeof(*v));
    v->http = h;
    v->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    v->until = mono_add_ms(mono_now(), REQUEST_MS);
    v->next = h->visits;
    h->visits = v;
    *context = v;
    if (!loop_timer_is_set(h->deadline))
        loop_timer_set(h->deadline, REQUEST_MS);
}

/* ---- the loop */

static void run(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;

    (void)MHD_run(h->daemon);
    if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        loop_timer_set(h->timer, ms < REQUEST_MS ? (int64_t)ms : REQUEST_MS);
    else
        loop_timer_stop(h->timer);
}

static void on_readable(void *arg, int events)
{
    (void)events;
    run(arg);
}

static void on_timer(void *arg)
{
    run(arg);
}

/* A client that takes a byte now and then is never idle. Its end lets the library close it. */
static void on_deadline(void *arg)
{
    struct http *h = arg;
    struct mono now = mono_now();

    for (struct visit *v = h->visits; v != NULL; v = v->next) {
        if (!mono_before(now, v->until))
            (void)shutdown(v->fd, SHUT_RDWR);
    }
    if (h->visits != NULL)
        loop_timer_set(h->deadline, 1000);
    run(h);
}

static void ignore_log(void *arg, const char *fmt, va_list ap)
{
    (void)arg;
    (void)fmt;
    (void)ap;
}

struct http *http_new(struct loop *loop, http_f *answer_f, void (*left)(void *arg), void *arg)
{
    struct http *h = mem_new(sizeof(*h));

    h->loop = loop;
    h->answer = answer_f;
    h->left = left;
    h->arg = arg;
    h->timer = loop_timer_new(loop, on_timer, h);
    h->deadline = loop_timer_new(loop, on_deadline, h);
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, h, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, h, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MEMORY_MAX, MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (h->daemon == NULL) {
        http_free(h);
        return NULL;
    }
    h->watch = loop_fd_new(loop, MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                           LOOP_READ, on_readable, h);
    return h;
}

void http_free(struct http *h)
{
    if (h == NULL)
        return;
    loop_fd_free(h->watch);
    for (struct visit *v = h->visits; v != NULL; v = v->next)
        if (v->stream != NULL)
            http_stream_end(v->stream);
    if (h->daemon != NULL)
        (void)MHD_run(h->daemon);
    if (h->daemon != NULL)
        MHD_stop_daemon(h->daemon);
    loop_timer_free(h->timer);
    loop_timer_free(h->deadline);
    free(h);
}

bool http_take(struct http *h, int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage space;
    } from = {.space = {0}};
    socklen_t n = sizeof(from);

    if (getpeername(fd, &from.any, &n) < 0) {
        (void)close(fd);
        return false;
    }
    /* The library closes it in any case. */
    if (MHD_add_connection(h->daemon, fd, &from.any, n) != MHD_YES)
        return false;
    run(h);
    return true;
}
