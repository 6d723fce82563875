#include "ask/ask.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ask/shards.h"
#include "base/mem.h"
#include "redis/error_reply.h"

#define ASIDE_MS 500 /* what is asked besides the answer holds nobody up for longer */

void ask_call_add(struct ask_call *call, const char *p, size_t n)
{
    if (call->n == ASK_CALL_MAX)
        return; /* does not happen: see ASK_CALL_MAX */
    call->argv[call->n] = p;
    call->lens[call->n++] = n;
}

void ask_call_puts(struct ask_call *call, const char *s)
{
    ask_call_add(call, s, strlen(s));
}

struct reply *ask_many(struct ask_server *s, const char *function, int argc,
                       const char *const *argv, const size_t *lens, struct err *err)
{
    char id[SHARDS_ID] = "";
    const char *words[ASK_CALL_MAX];
    size_t sizes[ASK_CALL_MAX];

    if (ask_target(s, err) < 0 ||
        shards_choose(s, shards_by(function), argc, argv, lens, id, err) < 0)
        return NULL;
    if (id[0] == '\0' || argc > ASK_CALL_MAX)
        return ask_present(s, function, argc, argv, lens, err);
    memcpy(words, argv, (size_t)argc * sizeof(words[0]));
    memcpy(sizes, lens, (size_t)argc * sizeof(sizes[0]));
    words[0] = id;
    sizes[0] = strlen(id);
    return ask_present(s, function, argc, words, sizes, err);
}

struct reply *ask_fcall(struct ask_server *s, const char *function, const struct ask_call *call,
                        struct err *err)
{
    return ask_many(s, function, call->n, call->argv, call->lens, err);
}

struct reply *ask_words(struct ask_server *s, struct err *err, const char *function, ...)
{
    struct ask_call call = {.n = 0};
    const char *word;
    va_list ap;

    va_start(ap, function);
    while ((word = va_arg(ap, const char *)) != NULL)
        ask_call_puts(&call, word);
    va_end(ap);
    return ask_fcall(s, function, &call, err);
}

struct reply *ask_loaded(struct ask_server *s, const char *function, const struct ask_call *call,
                         struct err *err)
{
    struct reply *r;

    if (ask_connect(s, err) < 0 || client_fcall_send(s->client, s->target.ns, function, call->n,
                                                     call->argv, call->lens, err) < 0)
        return NULL;
    r = client_answer(s->client, err);
    if (r == NULL)
        ask_name_refused(s, function, err);
    return r;
}

struct reply *ask_aside(struct ask_server *s, const char *function, const struct ask_call *call)
{
    struct err ignored = ERR_INIT;
    struct reply *r;

    if (s->client == NULL)
        return NULL;
    if (s->target.timeout_ms > ASIDE_MS)
        client_set_timeout(s->client, ASIDE_MS);
    r = ask_loaded(s, function, call, &ignored);
    if (client_is_broken(s->client))
        ask_disconnect(s);
    else
        client_set_timeout(s->client, s->target.timeout_ms);
    return r;
}

bool ask_lacks_function(const struct err *err)
{
    return strstr(err->text, "Function not found") != NULL;
}

/* SUBSCRIBE to this channel of all shards that are meant. 0 or -1. */
static int subscribe(struct ask_server *s, struct client *ears, const char *channel, bool to_all,
                     struct err *err)
{
    const char *argv[SHARDS_MAX + 1] = {"SUBSCRIBE"};
    char *names[SHARDS_MAX], root[SHARD_ROOT_MAX];
    int n = to_all ? shards_count(s) : 1;
    struct reply *r;

    for (int i = 0; i < n; i++) {
        const char *ns =
            to_all && s->target.shards > 0 ? shard_root(s->target.base, i, root) : s->target.ns;

        argv[i + 1] = names[i] = mem_printf("later:{%s}:%s", ns, channel);
    }
    r = client_call(ears, n + 1, argv, NULL, err);
    for (int i = 0; i < n; i++)
        free(names[i]);
    reply_free(r);
    return r != NULL ? 0 : -1;
}

static struct client *open_ears(struct ask_server *s, const char *channel, bool to_all,
                                struct err *err)
{
    struct client *ears;
    struct url url;

    if (ask_connect(s, err) < 0)
        return NULL;
    /* A host name may stand for several servers: subscribe at the one that gets our calls. */
    client_get_url(s->client, &url);
    ears = client_open(&url, s->target.timeout_ms, err);
    explicit_bzero(&url, sizeof(url));
    if (ears != NULL && subscribe(s, ears, channel, to_all, err) < 0) {
        client_close(ears);
        return NULL;
    }
    return ears;
}

struct client *ask_subscribe(struct ask_server *s, const char *channel, struct err *err)
{
    return open_ears(s, channel, false, err);
}

struct client *ask_subscribe_all(struct ask_server *s, const char *channel, struct err *err)
{
    return open_ears(s, channel, true, err);
}

int ask_time(struct ask_server *s, int64_t *ret_ms, struct err *err)
{
    static const char *const ask[] = {"TIME"};
    struct reply *r;
    int64_t seconds;

    if (ask_connect(s, err) < 0 || (r = client_call(s->client, 1, ask, NULL, err)) == NULL)
        return -1;
    seconds = reply_int(reply_at(r, 0));
    *ret_ms = seconds > 0 && seconds < INT64_MAX / 2000
                  ? seconds * 1000 + reply_int(reply_at(r, 1)) / 1000
                  : 0;
    reply_free(r);
    return *ret_ms > 0 ? 0 : err_set(err, ERR_DATA, "the answer to TIME is no time");
}

int64_t ask_now_ms(struct ask_server *s)
{
    struct err ignored = ERR_INIT;
    int64_t ms;

    return ask_time(s, &ms, &ignored) == 0 ? ms : 0;
}
