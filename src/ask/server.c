#include "ask/server.h"

#include <poll.h>
#include <string.h>

#include "redis/error_reply.h"

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

bool ask_is_broken(const struct ask_server *s)
{
    return s->client != NULL && client_is_broken(s->client);
}

void ask_done(struct ask_server *s)
{
    ask_disconnect(s);
    for (int i = 0; i < SHARDS_MAX; i++) {
        client_close(s->others[i]);
        s->others[i] = NULL;
    }
}

void ask_go_on(struct ask_server *s)
{
    if (!s->is_bounded)
        return;
    if (s->client != NULL && client_has_ended(s->client))
        ask_disconnect(s);
    if (s->client != NULL)
        client_set_until(s->client, s->until);
}

void ask_within(struct ask_server *s, int64_t ms)
{
    s->is_bounded = true;
    s->until = mono_add_ms(mono_now(), ms);
    ask_go_on(s);
}

bool ask_is_late(const struct ask_server *s)
{
    return s->is_bounded && !mono_before(mono_now(), s->until);
}

void ask_name_refused(const struct ask_server *s, const char *function, struct err *err)
{
    if (err->code == ERR_DENIED && strstr(err->text, "(a right is missing") != NULL)
        (void)err_wrap(err, "user %s, function %s", target_user(&s->target), function);
}

bool ask_is_elsewhere(const struct ask_server *s, const struct err *err)
{
    return s->target.url.nodes[0] != '\0' && error_reply_is_between_nodes(err->text);
}

struct reply *ask_present(struct ask_server *s, const char *function, int argc,
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
        ask_name_refused(s, function, err);
    return r;
}

struct reply *ask_present_one(struct ask_server *s, const char *function, const char *word,
                              struct err *err)
{
    const size_t len = strlen(word);

    return ask_present(s, function, 1, &word, &len, err);
}

bool ask_is_refusal(const struct err *err, const char *code)
{
    size_t n = strlen(code);

    return err->code == ERR_REFUSED && strncmp(err->text, code, n) == 0 &&
           (err->text[n] == ' ' || err->text[n] == '\0');
}
