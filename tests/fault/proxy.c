/*
 * The fault proxy: stands between laterd (or later) and a redis-server and disturbs their
 * connections as a test orders.
 *
 *   proxy CONTROL SERVER      two unix sockets: where it takes orders, and Redis
 *
 * It listens on a port of 127.0.0.1 that it chooses. An order is a text line on CONTROL, its answer
 * a line `NUMBER TEXT`. Once the answer is sent, the order is in force. NAME is a command in
 * capitals, the function of an FCALL, KEYLESS for an FCALL that names no key, or * for all.
 *
 *   pass                     end all modes and rules; stalled bytes flow again
 *   mode MODE                slice (one byte at a time), stall (nothing is read, nothing is lost),
 *                            blackhole (all bytes are dropped), refuse (accepted, then reset)
 *   latency MS               delay, each way
 *   jitter SEED MS PERCENT   delay this share of the calls and of the answers by 0 to MS
 *   on NAME ACTION [TIMES]   act on the next TIMES such commands (default 1; 0: all)
 *   release                  send held requests to the server
 *   reset                    RST to every client
 *   mute                     blackhole all subscribed connections
 *   say HEX                  send these bytes, which nobody asked for, to every client
 *   port accepted open held fired said seen NAME burst MS      questions
 *
 * Actions: dropreply (executed, then closed without an answer), delay:MS (of the request), late:MS
 * (of the answer), hold (keep the request until `release`, even if its client has gone), rst (not
 * executed), cut:N (executed; N bytes of the answer, then RST), blackhole (this connection from now
 * on), garbage:HEX (not executed, answered with these bytes), bye:HEX (the same, then closed).
 *
 * `fired` counts commands that a rule applied to. `said` is the last answer to such a command that
 * its client did not get. `seen` counts commands NAME. `burst` is the largest number of connections
 * accepted within MS.
 *
 * One thread, one poll. Reason for its length: it is one program, and each order takes some lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../support/resp.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#define CONNS_MAX 400
#define RULES_MAX 16
#define NAMES_MAX 128
#define ACCEPTS_MAX 65536

enum act {
    ACT_PASS,
    ACT_DROPREPLY,
    ACT_DELAY,
    ACT_LATE,
    ACT_HOLD,
    ACT_RST,
    ACT_CUT,
    ACT_BLACKHOLE,
    ACT_GARBAGE,
    ACT_BYE
};

static const char *const act_names[] = {"pass", "dropreply", "delay",     "late",    "hold",
                                        "rst",  "cut",       "blackhole", "garbage", "bye"};

struct rule {
    char name[48];
    enum act act;
    int64_t arg;
    struct buf bytes;
    int left; /* times to apply; -1: always */
};

/* Bytes to be written to one side. */
struct piece {
    struct piece *next;
    struct mono at; /* not before this time */
    bool is_held;
    bool then_close;
    size_t done, len;
    char data[];
};

struct pending {
    enum act act;
    int64_t arg;
};

struct conn {
    int client, server; /* -1: closed */
    struct buf asked, answered;
    struct piece *to_server, *to_client;
    struct pending *pending; /* commands without an answer yet, oldest first */
    size_t npending;
    bool is_push; /* subscribed, or a replica: what comes is no answer */
    bool is_dark; /* blackholed */
};

static const char *server_path;
static int listener, control_listener, control = -1;
static int port;
static struct conn *conns[CONNS_MAX];
static size_t nconns;
static struct rule rules[RULES_MAX];
static size_t nrules;
static struct {
    char name[48];
    int64_t n;
} seen[NAMES_MAX];
static size_t nseen;
static struct mono accepts[ACCEPTS_MAX];
static int64_t accepted, fired;
static char said[256];
static bool is_slice, is_stall, is_blackhole, is_refuse;
static int64_t latency_ms, jitter_ms;
static int jitter_percent;
static struct buf orders;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- sockets */

static int unix_socket(const char *path, struct sockaddr_un *addr)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    (void)snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path);
    return fd;
}

static void listen_for_orders(const char *path)
{
    struct sockaddr_un addr;

    control_listener = unix_socket(path, &addr);
    if (control_listener < 0 ||
        bind(control_listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        listen(control_listener, 8) < 0)
        die(path);
}

static void listen_for_clients(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        listen(listener, 512) < 0 || getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
        die("listen");
    port = ntohs(addr.sin_port);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void reset_fd(int *fd)
{
    struct linger now = {1, 0};

    if (*fd >= 0)
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close_fd(fd);
}

/* ---- pieces */

static struct piece *push(struct piece **queue, const char *data, size_t n, int64_t delay_ms)
{
    struct piece *p = mem_new(sizeof(*p) + n);
    int64_t more = latency_ms;

    if (jitter_ms > 0 && random() % 100 < jitter_percent)
        more += random() % (jitter_ms + 1);
    p->at = mono_add_ms(mono_now(), delay_ms + more);
    p->len = n;
    memcpy(p->data, data, n);
    while (*queue != NULL)
        queue = &(*queue)->next;
    *queue = p;
    return p;
}

static void drop_pieces(struct piece **queue)
{
    while (*queue != NULL) {
        struct piece *p = *queue;

        *queue = p->next;
        free(p);
    }
}

static bool is_ready(const struct piece *p)
{
    return p != NULL && !p->is_held && !mono_before(mono_now(), p->at);
}

/* Write what is due. -1: the connection must be closed. */
static int flush(struct piece **queue, int fd)
{
    while (is_ready(*queue)) {
        struct piece *p = *queue;
        size_t want = is_slice && p->len > p->done ? 1 : p->len - p->done;
        ssize_t n = want > 0 ? send(fd, p->data + p->done, want, MSG_NOSIGNAL) : 0;

        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        p->done += (size_t)n;
        if (p->done == p->len) {
            bool then_close = p->then_close;

            *queue = p->next;
            free(p);
            if (then_close)
                return -1;
        }
        if (is_slice)
            return 0;
    }
    return 0;
}

/* ---- RESP */

/* Argument i of the request; the command itself (0) in capitals. */
static void argument(const struct buf *b, int i, char ret[48])
{
    long n;
    size_t at = resp_line(b, 0, &n);

    for (int k = 0; k <= i && at < b->len; k++) {
        size_t text = resp_line(b, at, &n);

        (void)snprintf(ret, 48, "%.*s", n < 47 ? (int)n : 47, b->data + text);
        at = text + (size_t)n + 2;
    }
    for (char *c = ret; i == 0 && *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
}

static void name_of(const struct buf *b, char ret[48])
{
    ret[0] = '\0';
    argument(b, 0, ret);
    if (strcmp(ret, "FCALL") != 0 && strcmp(ret, "FCALL_RO") != 0)
        return;
    argument(b, 2, ret);
    if (strcmp(ret, "0") == 0)
        (void)strcpy(ret, "KEYLESS");
    else
        argument(b, 1, ret);
}

static void count(const char *name)
{
    size_t i = 0;

    while (i < nseen && strcmp(seen[i].name, name) != 0)
        i++;
    if (i == nseen && nseen < NAMES_MAX)
        (void)snprintf(seen[nseen++].name, sizeof(seen[0].name), "%s", name);
    if (i < nseen)
        seen[i].n++;
}

/* ---- connections */

static void conn_free(struct conn *c)
{
    close_fd(&c->client);
    close_fd(&c->server);
    drop_pieces(&c->to_server);
    drop_pieces(&c->to_client);
    buf_done(&c->asked);
    buf_done(&c->answered);
    free(c->pending);
    free(c);
}

static void accept_client(void)
{
    struct sockaddr_un addr;
    struct conn *c;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int on = 1;

    if (fd < 0)
        return;
    accepts[accepted++ % ACCEPTS_MAX] = mono_now();
    if (is_refuse || nconns == CONNS_MAX) {
        reset_fd(&fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c = mem_new(sizeof(*c));
    c->client = fd;
    c->server = unix_socket(server_path, &addr);
    if (connect(c->server, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        /* A blackholed connection never answers, so it needs no server. */
        close_fd(&c->server);
        if (!is_blackhole) {
            conn_free(c);
            return;
        }
        c->is_dark = true;
    } else {
        (void)fcntl(c->server, F_SETFL, O_NONBLOCK);
    }
    conns[nconns++] = c;
}

static struct rule *rule_for(const char *name)
{
    for (size_t i = 0; i < nrules; i++) {
        struct rule *r = &rules[i];

        if (r->left == 0 || (strcmp(r->name, "*") != 0 && strcmp(r->name, name) != 0))
            continue;
        if (r->left > 0)
            r->left--;
        fired++;
        return r;
    }
    return NULL;
}

static void pend(struct conn *c, enum act act, int64_t arg)
{
    c->pending = mem_grow(c->pending, c->npending + 1, sizeof(*c->pending));
    c->pending[c->npending++] = (struct pending){act, arg};
}

static void forward(struct conn *c, size_t n, const struct rule *r)
{
    enum act act = r != NULL ? r->act : ACT_PASS;
    struct piece *p;

    p = push(&c->to_server, c->asked.data, n, act == ACT_DELAY ? r->arg : 0);
    p->is_held = act == ACT_HOLD;
    if (!c->is_push)
        pend(c, act, r != NULL ? r->arg : 0);
}

static void command(struct conn *c, size_t n)
{
    char name[48];
    struct rule *r;

    name_of(&c->asked, name);
    count(name);
    r = rule_for(name);
    if (strcmp(name, "SUBSCRIBE") == 0 || strcmp(name, "PSUBSCRIBE") == 0 ||
        strcmp(name, "PSYNC") == 0)
        c->is_push = true;
    if (r != NULL && r->act == ACT_RST)
        reset_fd(&c->client);
    else if (r != NULL && r->act == ACT_BLACKHOLE)
        c->is_dark = true;
    else if (r != NULL && (r->act == ACT_GARBAGE || r->act == ACT_BYE))
        push(&c->to_client, r->bytes.data, r->bytes.len, 0)->then_close = r->act == ACT_BYE;
    else
        forward(c, n, r);
}

static ssize_t take(int fd, struct buf *into)
{
    ssize_t n = read(fd, buf_reserve(into, 65536), 65536);

    if (n > 0)
        into->len += (size_t)n;
    return n < 0 && errno == EAGAIN ? 1 : n;
}

static void from_client(struct conn *c)
{
    size_t n;

    if (take(c->client, &c->asked) <= 0) {
        close_fd(&c->client);
        drop_pieces(&c->to_client);
        return;
    }
    while (c->client >= 0 && (n = resp_end(&c->asked, 0)) > 0) {
        if (is_blackhole || c->is_dark)
            c->is_dark = true;
        else
            command(c, n);
        buf_drop(&c->asked, n);
    }
}

static void note_said(const char *data, size_t n)
{
    (void)snprintf(said, sizeof(said), "%.*s", n < 250 ? (int)n : 250, data);
    for (char *p = said; *p != '\0'; p++)
        if (*p == '\r' || *p == '\n')
            *p = ' ';
}

static void answer(struct conn *c, size_t n)
{
    struct pending p = c->npending > 0 ? c->pending[0] : (struct pending){ACT_PASS, 0};

    if (c->npending > 0)
        memmove(c->pending, c->pending + 1, --c->npending * sizeof(*c->pending));
    if (p.act != ACT_PASS && (c->client < 0 || p.act == ACT_DROPREPLY || p.act == ACT_CUT))
        note_said(c->answered.data, n);
    if (c->client < 0)
        return;
    if (p.act == ACT_CUT) {
        size_t part = (size_t)p.arg < n ? (size_t)p.arg : n;

        (void)!send(c->client, c->answered.data, part, MSG_NOSIGNAL);
        reset_fd(&c->client);
    } else if (p.act == ACT_DROPREPLY) {
        close_fd(&c->client);
    } else {
        (void)push(&c->to_client, c->answered.data, n, p.act == ACT_LATE ? p.arg : 0);
    }
}

static void from_server(struct conn *c)
{
    size_t n;

    if (take(c->server, &c->answered) <= 0)
        close_fd(&c->server);
    if (is_blackhole || c->is_dark) {
        c->is_dark = true;
        buf_clear(&c->answered);
        return;
    }
    if (c->is_push && c->npending == 0) {
        if (c->client >= 0)
            (void)push(&c->to_client, c->answered.data, c->answered.len, 0);
        buf_clear(&c->answered);
        return;
    }
    while ((n = resp_end(&c->answered, 0)) > 0) {
        answer(c, n);
        buf_drop(&c->answered, n);
    }
}

/* Is the connection finished? What a client sent before it closed is still delivered. */
static bool is_over(const struct conn *c)
{
    if (c->client < 0 && c->server < 0)
        return true;
    if (c->client < 0)
        return c->is_dark || (c->to_server == NULL && c->npending == 0);
    return c->server < 0 && c->to_client == NULL && !c->is_dark;
}

static void move_on(struct conn *c)
{
    if (is_stall)
        return;
    if (c->server >= 0 && flush(&c->to_server, c->server) < 0)
        close_fd(&c->server);
    if (c->client >= 0 && flush(&c->to_client, c->client) < 0)
        close_fd(&c->client);
}

/* ---- orders */

/* Two digits of hex a byte. */
static void add_hex(struct buf *to, const char *hex)
{
    unsigned byte;

    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        char c = (char)byte;

        buf_add(to, &c, 1);
    }
}

static void add_rule(char *text)
{
    char name[48] = "", action[32] = "", hex[2048] = "";
    struct rule *r = &rules[nrules % RULES_MAX];
    int times = 1;

    (void)sscanf(text, "on %47s %31[a-z]:%2047s %d", name, action, hex, &times);
    if (hex[0] == '\0')
        (void)sscanf(text, "on %47s %31[a-z] %d", name, action, &times);
    if (nrules < RULES_MAX)
        nrules++;
    buf_clear(&r->bytes);
    (void)snprintf(r->name, sizeof(r->name), "%s", name);
    r->left = times > 0 ? times : -1;
    r->arg = strtoll(hex, NULL, 10);
    r->act = ACT_PASS;
    for (size_t i = 0; i < sizeof(act_names) / sizeof(act_names[0]); i++)
        if (strcmp(action, act_names[i]) == 0)
            r->act = (enum act)i;
    if (r->act >= ACT_GARBAGE)
        add_hex(&r->bytes, hex);
    if (r->act == ACT_PASS)
        die(text);
}

static void set_pass(void)
{
    is_slice = is_stall = is_blackhole = is_refuse = false;
    latency_ms = jitter_ms = 0;
    nrules = 0;
}

static void set_mode(const char *mode)
{
    is_slice = strcmp(mode, "slice") == 0;
    is_stall = strcmp(mode, "stall") == 0;
    is_blackhole = strcmp(mode, "blackhole") == 0;
    is_refuse = strcmp(mode, "refuse") == 0;
    if (!is_slice && !is_stall && !is_blackhole && !is_refuse)
        die(mode);
}

static int64_t each_held(bool release)
{
    int64_t n = 0;

    for (size_t i = 0; i < nconns; i++) {
        for (struct piece *p = conns[i]->to_server; p != NULL; p = p->next) {
            n += p->is_held;
            if (release)
                p->is_held = false;
        }
    }
    return n;
}

static int64_t burst(int64_t ms)
{
    int64_t from = accepted > ACCEPTS_MAX ? accepted - ACCEPTS_MAX : 0, first = from, most = 0;

    for (int64_t i = from; i < accepted; i++) {
        while (mono_until_us(accepts[first % ACCEPTS_MAX], accepts[i % ACCEPTS_MAX]) > ms * 1000)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    return most;
}

static int64_t seen_of(const char *name)
{
    for (size_t i = 0; i < nseen; i++)
        if (strcmp(seen[i].name, name) == 0)
            return seen[i].n;
    return 0;
}

static void say(const char *hex)
{
    struct buf bytes = BUF_INIT;

    add_hex(&bytes, hex);
    for (size_t i = 0; i < nconns; i++)
        (void)!send(conns[i]->client, bytes.data, bytes.len, MSG_NOSIGNAL);
    buf_done(&bytes);
}

static int64_t ask(const char *text)
{
    if (strcmp(text, "port") == 0)
        return port;
    if (strcmp(text, "accepted") == 0)
        return accepted;
    if (strcmp(text, "open") == 0)
        return (int64_t)nconns;
    if (strcmp(text, "held") == 0)
        return each_held(false);
    if (strcmp(text, "fired") == 0)
        return fired;
    if (strncmp(text, "seen ", 5) == 0)
        return seen_of(text + 5);
    if (strncmp(text, "burst ", 6) == 0)
        return burst(strtoll(text + 6, NULL, 10));
    if (strcmp(text, "said") != 0)
        die(text);
    return (int64_t)strlen(said);
}

static int64_t obey(char *text)
{
    unsigned seed = 0;

    if (strcmp(text, "pass") == 0) {
        set_pass();
    } else if (strncmp(text, "mode ", 5) == 0) {
        set_mode(text + 5);
    } else if (strncmp(text, "latency ", 8) == 0) {
        latency_ms = strtoll(text + 8, NULL, 10);
    } else if (strncmp(text, "jitter ", 7) == 0) {
        (void)sscanf(text, "jitter %u %ld %d", &seed, &jitter_ms, &jitter_percent);
        srandom(seed);
    } else if (strncmp(text, "on ", 3) == 0) {
        add_rule(text);
    } else if (strcmp(text, "release") == 0) {
        return each_held(true);
    } else if (strncmp(text, "say ", 4) == 0) {
        say(text + 4);
    } else if (strcmp(text, "reset") == 0 || strcmp(text, "mute") == 0) {
        for (size_t i = 0; i < nconns; i++) {
            if (*text == 'r')
                reset_fd(&conns[i]->client);
            else
                conns[i]->is_dark = conns[i]->is_dark || conns[i]->is_push;
        }
    } else {
        return ask(text);
    }
    return 0;
}

static void take_orders(void)
{
    char *end;

    if (take(control, &orders) <= 0) {
        close_fd(&control);
        buf_clear(&orders);
        return;
    }
    while (orders.len > 0 && (end = memchr(orders.data, '\n', orders.len)) != NULL) {
        char out[320];
        int64_t n;

        *end = '\0';
        n = obey(orders.data);
        (void)snprintf(out, sizeof(out), "%lld %s\n", (long long)n, said);
        (void)!send(control, out, strlen(out), MSG_NOSIGNAL);
        buf_drop(&orders, (size_t)(end - orders.data) + 1);
    }
}

/* ---- the loop */

static void want(struct pollfd *p, int fd, bool reads, const struct piece *queue, int *wait_ms)
{
    /* Leave out a descriptor that we do not read: poll would report its hang-up again and again. */
    *p = (struct pollfd){reads ? fd : -1, POLLIN, 0};
    if (queue == NULL || queue->is_held || is_stall)
        return;
    if (is_ready(queue)) {
        p->events |= POLLOUT;
    } else {
        int64_t ms = mono_until_us(mono_now(), queue->at) / 1000 + 1;

        *wait_ms = ms < *wait_ms ? (int)ms : *wait_ms;
    }
}

static void turn(void)
{
    static struct pollfd at[2 * CONNS_MAX + 3];
    size_t n = nconns, kept = 0;
    int wait_ms = 10000;

    at[0] = (struct pollfd){listener, POLLIN, 0};
    at[1] = (struct pollfd){control_listener, POLLIN, 0};
    at[2] = (struct pollfd){control, POLLIN, 0};
    for (size_t i = 0; i < n; i++) {
        want(&at[3 + 2 * i], conns[i]->client, !is_stall, conns[i]->to_client, &wait_ms);
        want(&at[4 + 2 * i], conns[i]->server, !is_stall, conns[i]->to_server, &wait_ms);
    }
    if (poll(at, 3 + 2 * n, wait_ms) < 0 && errno != EINTR)
        die("poll");
    for (size_t i = 0; i < n; i++) {
        if (at[4 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR) && !is_stall)
            from_server(conns[i]);
        if (at[3 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR) && !is_stall &&
            conns[i]->client >= 0)
            from_client(conns[i]);
        move_on(conns[i]);
    }
    if (at[0].revents != 0)
        accept_client();
    if (at[1].revents != 0 && control < 0)
        control = accept4(control_listener, NULL, NULL, SOCK_CLOEXEC);
    if (at[2].revents != 0 && control >= 0)
        take_orders();
    for (size_t i = 0; i < nconns; i++) {
        if (is_over(conns[i]))
            conn_free(conns[i]);
        else
            conns[kept++] = conns[i];
    }
    nconns = kept;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "usage: proxy CONTROL SERVER\n");
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    server_path = argv[2];
    listen_for_clients();
    listen_for_orders(argv[1]);
    for (;;)
        turn();
}
