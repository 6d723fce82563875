#include "ask/ask.h"

#include <poll.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "redis/error_reply.h"

#define ASIDE_MS 500 /* what is asked besides the answer holds nobody up for longer */
#define AGAIN_PAUSE_MS 100

int ask_target(struct ask_server *s, struct err *err)
{
    if (s->has_target)
        return 0;
    if (target_find(&s->flags, &s->target, err) < 0)
        return -1;
    s->has_target = true;
    if (s->on_target != NULL)
        s->on_target(&s->target);
    return 0;
}

/* During a failover, the server that sentinels or nodes name does not answer or is no master yet.
 */
static bool may_try_again(const struct ask_server *s, const struct err *err, struct mono deadline)
{
    if (!url_is_guided(&s->target.url) || err->code != ERR_UNAVAILABLE ||
        !mono_before(mono_add_ms(mono_now(), AGAIN_PAUSE_MS), deadline))
        return false;
    (void)poll(NULL, 0, AGAIN_PAUSE_MS);
    return true;
}

/* How long a connection may take to be made. */
static int64_t patience_ms(const struct ask_server *s)
{
    int64_t left_ms = s->is_bounded ? (s->until.us - mono_now().us) / 1000 + 1 : INT64_MAX;

    return left_ms < s->target.timeout_ms ? left_ms : s->target.timeout_ms;
}

int ask_connect(struct ask_server *s, struct err *err)
{
    struct mono deadline;

    if (ask_is_late(s))
        return err_set(err, ERR_UNAVAILABLE, "Redis answers too slowly for this question");
    if (s->client != NULL)
        return 0;
    if (ask_target(s, err) < 0)
        return -1;
    deadline = mono_add_ms(mono_now(), patience_ms(s));
    do {
        s->client = client_open(&s->target.url, patience_ms(s), err);
    } while (s->client == NULL && may_try_again(s, err, deadline));
    if (s->client != NULL && s->is_bounded) {
        client_set_timeout(s->client, s->target.timeout_ms);
        client_set_until(s->client, s->until);
    }
    return s->client != NULL ? 0 : -1;
}

void ask_disconnect(struct ask_server *s)
{
    client_close(s->client);
    s->client = NULL;
}

void ask_within(struct ask_server *s, int64_t ms)
{
    s->is_bounded = true;
    s->until = mono_add_ms(mono_now(), ms);
    if (s->client != NULL && client_has_ended(s->client))
        ask_disconnect(s);
    if (s->client != NULL)
        client_set_until(s->client, s->until);
}

bool ask_is_late(const struct ask_server *s)
{
    return s->is_bounded && !mono_before(mono_now(), s->until);
}

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

/* Redis names the command, which is always FCALL: say which function was refused to whom. */
static void name_refused(const struct ask_server *s, const char *function, struct err *err)
{
    if (err->code == ERR_DENIED && strstr(err->text, "(a right is missing") != NULL)
        (void)err_wrap(err, "user %s, function %s", target_user(&s->target), function);
}

bool ask_is_elsewhere(const struct ask_server *s, const struct err *err)
{
    return s->target.url.nodes[0] != '\0' && error_reply_is_between_nodes(err->text);
}

struct reply *ask_many(struct ask_server *s, const char *function, int argc,
                       const char *const *argv, const size_t *lens, struct err *err)
{
    struct mono deadline = mono_add_ms(mono_now(), s->target.timeout_ms);
    struct reply *r;

    for (;;) {
        if (ask_connect(s, err) < 0)
            return NULL;
        r = client_fcall(s->client, s->target.ns, function, argc, argv, lens, err);
        if (r != NULL || !ask_is_elsewhere(s, err) || !may_try_again(s, err, deadline))
            break;
        ask_disconnect(s);
    }
    if (r == NULL)
        name_refused(s, function, err);
    return r;
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
        name_refused(s, function, err);
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

bool ask_is_refusal(const struct err *err, const char *code)
{
    size_t n = strlen(code);

    return err->code == ERR_REFUSED && strncmp(err->text, code, n) == 0 &&
           (err->text[n] == ' ' || err->text[n] == '\0');
}

struct client *ask_subscribe(struct ask_server *s, const char *channel, struct err *err)
{
    CLEANUP_BUF struct buf name = BUF_INIT;
    const char *argv[2] = {"SUBSCRIBE", NULL};
    struct client *ears;
    struct reply *r;
    struct url url;

    if (ask_connect(s, err) < 0)
        return NULL;
    /* A host name may stand for several servers: subscribe at the one that gets our calls. */
    client_get_url(s->client, &url);
    ears = client_open(&url, s->target.timeout_ms, err);
    explicit_bzero(&url, sizeof(url));
    if (ears == NULL)
        return NULL;
    buf_printf(&name, "later:{%s}:%s", s->target.ns, channel);
    argv[1] = buf_str(&name);
    r = client_call(ears, 2, argv, NULL, err);
    if (r == NULL) {
        client_close(ears);
        return NULL;
    }
    reply_free(r);
    return ears;
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
