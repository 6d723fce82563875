#include "redis/cluster.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/announce.h"
#include "redis/slot.h"

#define ANSWER_MS 1000     /* for the connect to one node, and for its answer */
#define PRIMARIES_MAX 1000 /* the most that a cluster is meant to have */

/* A server like url's, to be found elsewhere. */
static struct url another(const struct url *url)
{
    struct url one = *url;

    one.nodes[0] = '\0';
    return one;
}

static void name_cure(struct err *err)
{
    if (strstr(err->text, "cluster support disabled") != NULL ||
        strstr(err->text, "unknown command") != NULL)
        (void)err_set(err, ERR_CONFIG, "it is no node of a cluster: write redis://");
    else if (err->code == ERR_DENIED && strstr(err->text, "cluster") != NULL)
        (void)err_wrap(err, "laterd needs +cluster|slots to find the owner of a slot");
}

/* ---- what a node tells */

static struct client *reach(const struct url *node, int64_t timeout_ms, struct err *err)
{
    return client_connect(node, timeout_ms < ANSWER_MS ? timeout_ms : ANSWER_MS, err);
}

/* CLUSTER SLOTS of one node, or NULL with err. */
static struct reply *ask(const struct url *node, int64_t timeout_ms, struct err *err)
{
    static const char *const call[] = {"CLUSTER", "SLOTS"};
    struct client *c = reach(node, timeout_ms, err);
    struct reply *r = c != NULL ? client_call(c, 2, call, NULL, err) : NULL;

    if (c != NULL && r == NULL)
        name_cure(err);
    client_close(c);
    return r;
}

/* Which node is asked first: any, and at each connect the next one. One that is cut off from its
 * cluster tells of an owner that is none any more, and must not be believed for ever. In between it
 * stays the same: two nodes may name a third one differently. */
static atomic_uint turn;

static void ask_the_next(void)
{
    unsigned none = 0;

    if (!atomic_compare_exchange_strong(&turn, &none, (unsigned)mono_now().us))
        (void)atomic_fetch_add(&turn, 1);
}

/* The same of one of url's nodes that tells something; asked becomes it. */
static struct reply *ask_any(const struct url *url, int64_t timeout_ms, struct url *asked,
                             struct err *err)
{
    size_t nodes = url_list_count(url->nodes), first = atomic_load(&turn) % nodes;
    CLEANUP_BUF struct buf reasons = BUF_INIT;
    struct err why = ERR_INIT;
    char place[ANNOUNCE_PLACE_MAX];

    *asked = another(url);
    for (size_t i = 0; i < nodes; i++) {
        struct reply *r;

        if (url_list_host(url->nodes, (first + i) % nodes, URL_PORT, asked, &why) < 0)
            break;
        r = ask(asked, timeout_ms, &why);
        if (reply_count(r) > 0)
            return r;
        if (r != NULL)
            (void)err_set(&why, ERR_UNAVAILABLE, "it knows of no slots");
        reply_free(r);
        buf_printf(&reasons, "%s%s: %.240s", reasons.len > 0 ? "; " : "",
                   announce_place(asked, place), why.text);
    }
    (void)err_set(err, why.code, "no node of the cluster tells where slot %u is: %.400s", url->slot,
                  buf_str(&reasons));
    return NULL;
}

/* The primary of range i of the reply, into host, name and port of one. False: it names none. An
 * empty host is the one that was asked. */
static bool read_primary(const struct reply *r, size_t i, const struct url *asked, struct url *one)
{
    const struct reply *node = reply_at(reply_at(r, i), 2), *host = reply_at(node, 0);
    int64_t port = reply_int(reply_at(node, 1));
    size_t n = reply_len(host);

    if (port < 1 || port > 65535 || n >= sizeof(one->host) || strlen(reply_str(host)) != n ||
        reply_is(host, "?"))
        return false;
    text_copy(one->host, sizeof(one->host), n > 0 ? reply_str(host) : asked->host);
    one->port = (int)port;
    announce_translate(one);
    text_copy(one->name, sizeof(one->name), one->host);
    return true;
}

static bool holds(const struct reply *range, unsigned slot)
{
    return reply_int(reply_at(range, 0)) <= (int64_t)slot &&
           (int64_t)slot <= reply_int(reply_at(range, 1));
}

/* False: no primary has it. */
static bool find_owner(const struct reply *r, const struct url *asked, struct url *ret)
{
    for (size_t i = 0; i < reply_count(r); i++)
        if (holds(reply_at(r, i), ret->slot) && read_primary(r, i, asked, ret))
            return true;
    return false;
}

/* ---- what it is asked for */

static int resolve(struct url *url, int64_t timeout_ms, struct err *err)
{
    struct url asked;
    struct reply *r = ask_any(url, timeout_ms, &asked, err);
    bool is_found = r != NULL && find_owner(r, &asked, url);
    char place[ANNOUNCE_PLACE_MAX];

    reply_free(r);
    if (r != NULL && !is_found)
        (void)err_set(err, ERR_UNAVAILABLE,
                      "no node of the cluster has slot %u now, as %s tells (redis-cli --cluster "
                      "check)",
                      url->slot, announce_place(&asked, place));
    if (is_found)
        url->nodes[0] = '\0';
    explicit_bzero(&asked, sizeof(asked));
    return is_found ? 0 : -1;
}

int cluster_resolve(struct url *url, int64_t timeout_ms, struct err *err)
{
    ask_the_next();
    return resolve(url, timeout_ms, err);
}

bool cluster_has_moved(const struct url *url, int64_t timeout_ms)
{
    struct url owner = *url;
    struct err ignored = ERR_INIT;
    bool is_known = resolve(&owner, timeout_ms, &ignored) == 0;
    bool is_same = owner.port == url->port && strcmp(owner.name, url->name) == 0;

    explicit_bzero(&owner, sizeof(owner));
    return is_known && !is_same;
}

/* The places that were seen already. */
struct places {
    char *at[PRIMARIES_MAX];
    size_t n;
};

/* True: it is a new one. */
static bool note_place(struct places *seen, const struct url *one)
{
    char place[ANNOUNCE_PLACE_MAX];

    (void)announce_place(one, place);
    for (size_t i = 0; i < seen->n; i++)
        if (strcmp(seen->at[i], place) == 0)
            return false;
    if (seen->n == PRIMARIES_MAX)
        return false;
    seen->at[seen->n++] = mem_strdup(place);
    return true;
}

int cluster_primaries(const struct url *url, int64_t timeout_ms, cluster_primary_f *fn, void *arg,
                      struct err *err)
{
    struct places *seen;
    struct url asked, one = another(url);
    struct reply *r = ask_any(url, timeout_ms, &asked, err);

    if (r == NULL)
        return -1;
    seen = mem_new(sizeof(*seen));
    for (size_t i = 0; i < reply_count(r); i++) {
        struct err why = ERR_INIT;
        struct client *c;

        if (!read_primary(r, i, &asked, &one) || !note_place(seen, &one))
            continue;
        c = reach(&one, timeout_ms, &why);
        fn(arg, &one, holds(reply_at(r, i), 0) && holds(reply_at(r, i), SLOTS - 1), c, &why);
        client_close(c);
    }
    for (size_t i = 0; i < seen->n; i++)
        free(seen->at[i]);
    free(seen);
    reply_free(r);
    explicit_bzero(&asked, sizeof(asked));
    explicit_bzero(&one, sizeof(one));
    return 0;
}
