/*
 * The face of a serverless service: one endpoint that hides the nodes of a cluster.
 *
 *   endpoint PORT generous|strict NODE...      the ports of the primaries on 127.0.0.1
 *
 * CLUSTER SLOTS names this endpoint alone, for all slots. A command with a key goes to the node
 * that owns the slot: MOVED and ASK are followed here, TRYAGAIN is passed on. FUNCTION and SCRIPT
 * go to all nodes. SCAN goes through them in turn. A subscriber hears one node, any.
 *
 * A script without keys, MULTI, CONFIG and more are refused, as such services do or may. `strict`
 * also refuses INFO, CLIENT and PSUBSCRIBE. Standard output gets a line for each: `refused NAME
 * FIRST`.
 *
 * A thread a client. A node that breaks the connection ends that of the client.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/slot.h"
#include "proc.h"
#include "resp.h"

#define NODES_MAX 8
#define WORDS_MAX 4
#define ARGS_MAX 3999 /* of ElastiCache Serverless, which ends at more */
#define TRIES 1000

struct side {
    int fd; /* -1: not connected */
    struct buf in;
};

struct visitor {
    struct side client, nodes[NODES_MAX];
    size_t any; /* the node for what names no key */
};

struct request {
    struct resp_word words[WORDS_MAX];
    size_t argc;
    const char *bytes;
    size_t len;
};

static int ports[NODES_MAX];
static size_t nnodes;
static int own_port;
static bool is_strict;
static unsigned char owners[SLOTS]; /* as far as MOVED has told */

/* ---- sockets */

static bool put(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool say(struct visitor *v, const char *text)
{
    return put(v->client.fd, text, strlen(text));
}

/* Waits. False: the other side has closed. */
static bool take(struct side *s)
{
    ssize_t n = read(s->fd, buf_reserve(&s->in, 65536), 65536);

    s->in.len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Wait for a whole request or reply at the front of s->in. False: the other side has closed. */
static bool await(struct side *s, size_t *ret_len)
{
    while ((*ret_len = resp_end(&s->in, 0)) == 0)
        if (!take(s))
            return false;
    return true;
}

static void be_quick(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static bool is_reached(struct visitor *v, size_t node)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)ports[node]),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct side *s = &v->nodes[node];

    if (s->fd >= 0)
        return true;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be_quick(s->fd);
    return connect(s->fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

/* The reply is at the front of the node's buf. */
static bool call(struct visitor *v, size_t node, const char *data, size_t n, size_t *ret_len)
{
    return is_reached(v, node) && put(v->nodes[node].fd, data, n) &&
           await(&v->nodes[node], ret_len);
}

/* Hand the reply out to the client. */
static bool pass_on(struct visitor *v, size_t node, size_t len)
{
    bool is_done = put(v->client.fd, v->nodes[node].in.data, len);

    buf_drop(&v->nodes[node].in, len);
    return is_done;
}

/* ---- a command with a key */

static unsigned slot_of_key(const struct resp_word *key)
{
    const char *open = memchr(key->at, '{', key->len), *end = key->at + key->len, *close = NULL;

    if (open != NULL)
        close = memchr(open, '}', (size_t)(end - open));
    return close != NULL && close > open + 1 ? slot_of(open + 1, (size_t)(close - open - 1))
                                             : slot_of(key->at, key->len);
}

/* The node of this port; nnodes: none has it. */
static size_t node_at(int port)
{
    size_t node = 0;

    while (node < nnodes && ports[node] != port)
        node++;
    return node;
}

/* Does the reply name another node, as in "-MOVED 42 127.0.0.1:7001"? Then it is dropped. */
static bool names(struct buf *reply, size_t len, const char *code, size_t *ret_node)
{
    CLEANUP_FREE char *text = mem_dup(reply->data, len < 400 ? len : 400);
    const char *port = strrchr(text, ':');
    size_t node;

    if (strncmp(text, code, strlen(code)) != 0 || port == NULL)
        return false;
    node = node_at(atoi(port + 1));
    if (node == nnodes)
        return false;
    *ret_node = node;
    buf_drop(reply, len);
    return true;
}

static bool call_asking(struct visitor *v, size_t node, const struct request *r, size_t *ret_len)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

    if (!call(v, node, asking, sizeof(asking) - 1, ret_len))
        return false;
    buf_drop(&v->nodes[node].in, *ret_len);
    return call(v, node, r->bytes, r->len, ret_len);
}

static bool to_owner(struct visitor *v, const struct request *r, const struct resp_word *key)
{
    unsigned slot = slot_of_key(key);

    for (int i = 0; i < TRIES; i++) {
        size_t node = __atomic_load_n(&owners[slot], __ATOMIC_RELAXED), len;

        if (!call(v, node, r->bytes, r->len, &len))
            return false;
        if (names(&v->nodes[node].in, len, "-ASK ", &node) && !call_asking(v, node, r, &len))
            return false;
        if (!names(&v->nodes[node].in, len, "-MOVED ", &node))
            return pass_on(v, node, len);
        __atomic_store_n(&owners[slot], (unsigned char)node, __ATOMIC_RELAXED);
        test_pause(i > 0 ? 1 : 0);
    }
    return say(v, "-ERR the owner of the slot cannot be found\r\n");
}

/* ---- what is refused */

static bool is_word(const struct resp_word *word, const char *text)
{
    return word->len == strlen(text) && strncasecmp(word->at, text, word->len) == 0;
}

static bool refuse(struct visitor *v, const struct request *r, const char *text)
{
    const struct resp_word *name = &r->words[0], *first = r->argc > 1 ? &r->words[1] : NULL;

    (void)dprintf(1, "refused %.*s %.*s\n", (int)(name->len < 40 ? name->len : 40), name->at,
                  first == NULL ? 0 : (int)(first->len < 40 ? first->len : 40),
                  first == NULL ? "" : first->at);
    return say(v, text);
}

static bool refuse_name(struct visitor *v, const struct request *r)
{
    CLEANUP_FREE char *text =
        mem_printf("-ERR unknown command '%.*s', with args beginning with: \r\n",
                   (int)(r->words[0].len < 40 ? r->words[0].len : 40), r->words[0].at);

    return refuse(v, r, text);
}

/* ---- commands */

typedef bool answer_f(struct visitor *v, const struct request *r);

static bool script(struct visitor *v, const struct request *r)
{
    if (r->argc < 4 || is_word(&r->words[2], "0"))
        return refuse(v, r, "-ERR Lua scripts without any input keys are not supported.\r\n");
    return to_owner(v, r, &r->words[3]);
}

static bool login(struct visitor *v, const struct request *r)
{
    (void)r;
    return say(v, "+OK\r\n");
}

static bool hello(struct visitor *v, const struct request *r)
{
    return refuse(v, r, "-NOPROTO unsupported protocol version\r\n");
}

static bool choose_database(struct visitor *v, const struct request *r)
{
    return r->argc == 2 && is_word(&r->words[1], "0")
               ? say(v, "+OK\r\n")
               : refuse(v, r, "-ERR DB index is out of range\r\n");
}

static bool to_any(struct visitor *v, const struct request *r)
{
    size_t len;

    return call(v, v->any, r->bytes, r->len, &len) && pass_on(v, v->any, len);
}

/* Answered by the first error, or by the last node. */
static bool to_all(struct visitor *v, const struct request *r)
{
    size_t told = nnodes, lens[NODES_MAX];

    for (size_t i = 0; i < nnodes; i++) {
        if (!call(v, i, r->bytes, r->len, &lens[i]))
            return false;
        if (told == nnodes && v->nodes[i].in.data[0] == '-')
            told = i;
    }
    told = told < nnodes ? told : nnodes - 1;
    for (size_t i = 0; i < nnodes; i++)
        if (i != told)
            buf_drop(&v->nodes[i].in, lens[i]);
    return pass_on(v, told, lens[told]);
}

static bool tell_cluster(struct visitor *v, const struct request *r)
{
    CLEANUP_FREE char *slots =
        mem_printf("*1\r\n*3\r\n:0\r\n:%d\r\n*4\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n"
                   "*0\r\n",
                   SLOTS - 1, own_port, own_port);

    return r->argc == 2 && is_word(&r->words[1], "SLOTS") ? say(v, slots) : refuse_name(v, r);
}

/* Our cursor is that of the node, times the number of nodes, plus the number of the node. */
static bool scan(struct visitor *v, const struct request *r)
{
    const struct resp_word *word = &r->words[1];
    unsigned long long ours = r->argc > 1 ? strtoull(word->at, NULL, 10) : 0, theirs;
    CLEANUP_FREE char *cursor = mem_printf("%llu", ours / nnodes);
    CLEANUP_BUF struct buf asked = BUF_INIT, told = BUF_INIT;
    size_t node = ours % nnodes, len, rest;
    struct resp_word words[2];

    if (r->argc < 2)
        return refuse_name(v, r);
    buf_printf(&asked, "*%zu\r\n$4\r\nSCAN\r\n$%zu\r\n%s", r->argc, strlen(cursor), cursor);
    buf_add(&asked, word->at + word->len, (size_t)(r->bytes + r->len - word->at) - word->len);
    if (!call(v, node, asked.data, asked.len, &len))
        return false;
    if (v->nodes[node].in.data[0] == '-')
        return pass_on(v, node, len);
    (void)resp_words(&v->nodes[node].in, words, 1);
    theirs = strtoull(words[0].at, NULL, 10);
    rest = (size_t)(words[0].at - v->nodes[node].in.data) + words[0].len;
    ours = theirs > 0 ? theirs * nnodes + node : (node + 1) % nnodes;
    free(cursor);
    cursor = mem_printf("%llu", ours);
    buf_printf(&told, "*2\r\n$%zu\r\n%s", strlen(cursor), cursor);
    buf_add(&told, v->nodes[node].in.data + rest, len - rest);
    buf_drop(&v->nodes[node].in, len);
    return put(v->client.fd, told.data, told.len);
}

static answer_f hear;

static const struct rule {
    const char *name;
    answer_f *answer;       /* NULL: it is refused */
    bool is_strict_refusal; /* `strict` refuses it */
} rules[] = {
    {"FCALL", script, false},
    {"FCALL_RO", script, false},
    {"EVAL", script, false},
    {"EVALSHA", script, false},
    {"EVAL_RO", script, false},
    {"EVALSHA_RO", script, false},
    {"AUTH", login, false},
    {"HELLO", hello, false},
    {"SELECT", choose_database, false},
    {"PING", to_any, false},
    {"TIME", to_any, false},
    {"ECHO", to_any, false},
    {"PUBLISH", to_any, false},
    {"DBSIZE", to_any, false},
    {"COMMAND", to_any, false},
    {"INFO", to_any, true},
    {"CLIENT", to_any, true},
    {"FUNCTION", to_all, false},
    {"SCRIPT", to_all, false},
    {"CLUSTER", tell_cluster, false},
    {"SCAN", scan, false},
    {"SUBSCRIBE", hear, false},
    {"PSUBSCRIBE", hear, true},
    {"MULTI", NULL, false},
    {"EXEC", NULL, false},
    {"DISCARD", NULL, false},
    {"WATCH", NULL, false},
    {"CONFIG", NULL, false},
    {"WAIT", NULL, false},
    {"WAITAOF", NULL, false},
    {"ACL", NULL, false},
    {"KEYS", NULL, false},
    {"MEMORY", NULL, false},
    {"MODULE", NULL, false},
    {"SLOWLOG", NULL, false},
    {"DEBUG", NULL, false},
    {"ROLE", NULL, false},
    {"ASKING", NULL, false},
    {"READONLY", NULL, false},
};

static const struct rule *rule_of(const struct request *r)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (is_word(&r->words[0], rules[i].name))
            return &rules[i];
    return NULL;
}

static bool may_hear(const struct request *r)
{
    static const char *const others[] = {"UNSUBSCRIBE", "PUNSUBSCRIBE", "PING"};
    const struct rule *rule = rule_of(r);

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (is_word(&r->words[0], others[i]))
            return true;
    return rule != NULL && rule->answer == hear && !(is_strict && rule->is_strict_refusal);
}

/* ---- clients */

static struct request read_request(const struct buf *b, size_t len)
{
    struct request r = {.bytes = b->data, .len = len};

    r.argc = resp_words(b, r.words, WORDS_MAX);
    return r;
}

/* What a subscriber asks goes on; what its node says comes back, each as a whole. */
static bool relay(struct visitor *v)
{
    struct side *node = &v->nodes[v->any];
    size_t len;

    while ((len = resp_end(&v->client.in, 0)) > 0) {
        struct request r = read_request(&v->client.in, len);

        if (!(may_hear(&r) ? put(node->fd, r.bytes, len) : refuse_name(v, &r)))
            return false;
        buf_drop(&v->client.in, len);
    }
    while ((len = resp_end(&node->in, 0)) > 0)
        if (!pass_on(v, v->any, len))
            return false;
    return true;
}

/* It is a subscriber from here on. Returns at its end. */
static bool hear(struct visitor *v, const struct request *r)
{
    struct pollfd at[2];

    if (!is_reached(v, v->any) || !put(v->nodes[v->any].fd, r->bytes, r->len))
        return false;
    buf_drop(&v->client.in, r->len);
    at[0] = (struct pollfd){v->client.fd, POLLIN, 0};
    at[1] = (struct pollfd){v->nodes[v->any].fd, POLLIN, 0};
    while (relay(v) && poll(at, 2, -1) > 0)
        if ((at[0].revents != 0 && !take(&v->client)) ||
            (at[1].revents != 0 && !take(&v->nodes[v->any])))
            break;
    return false;
}

static bool answer(struct visitor *v, const struct request *r)
{
    const struct rule *rule;

    if (r->argc == 0 || r->argc > ARGS_MAX)
        return false;
    rule = rule_of(r);
    if (rule == NULL && r->argc > 1)
        return to_owner(v, r, &r->words[1]);
    if (rule == NULL || rule->answer == NULL || (is_strict && rule->is_strict_refusal))
        return refuse_name(v, r);
    return rule->answer(v, r);
}

static void leave(struct side *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    buf_done(&s->in);
}

static void *serve(void *arg)
{
    struct visitor *v = arg;
    size_t len;

    while (await(&v->client, &len)) {
        struct request r = read_request(&v->client.in, len);

        if (!answer(v, &r))
            break;
        buf_drop(&v->client.in, len);
    }
    leave(&v->client);
    for (size_t i = 0; i < nnodes; i++)
        leave(&v->nodes[i]);
    free(v);
    return NULL;
}

static void welcome(int fd)
{
    static size_t visitors;
    struct visitor *v = mem_new(sizeof(*v));
    pthread_t thread;

    be_quick(fd);
    v->client.fd = fd;
    v->any = visitors++ % nnodes;
    for (size_t i = 0; i < NODES_MAX; i++)
        v->nodes[i].fd = -1;
    if (pthread_create(&thread, NULL, serve, v) != 0)
        test_die("thread");
    (void)pthread_detach(thread);
}

static int listen_at(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 128) < 0)
        test_die("listen");
    return fd;
}

int main(int argc, char **argv)
{
    int listener;

    if (argc < 4 || argc > 3 + NODES_MAX) {
        (void)fprintf(stderr, "usage: endpoint PORT generous|strict NODE...\n");
        return 2;
    }
    own_port = atoi(argv[1]);
    is_strict = strcmp(argv[2], "strict") == 0;
    for (; nnodes < (size_t)argc - 3; nnodes++)
        ports[nnodes] = atoi(argv[3 + nnodes]);
    listener = listen_at(own_port);
    (void)dprintf(1, "listening\n");
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            welcome(fd);
    }
}
