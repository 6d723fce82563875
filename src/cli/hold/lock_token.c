#include "cli/hold/lock_token.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

char *lock_token_env(int64_t epoch, const char *instance, const char *gate)
{
    const char *before = getenv(LOCK_TOKENS);

    if (before == NULL)
        before = "";
    return mem_printf(LOCK_TOKENS "=@%lld:%s:%s%s%s", (long long)epoch, instance, gate,
                      before[0] != '\0' ? " " : "", before);
}

struct query {
    struct cli *cli;
    const char *gate;
    struct err *err;
};

/* The reply to `command R:<key> [field]`. field may be NULL. The caller frees it. */
static struct reply *ask(const struct query *l, const char *command, const char *key,
                         const char *field)
{
    CLEANUP_FREE char *full = mem_printf("later:{%s}:%s", l->cli->server.target.ns, key);
    const char *argv[] = {command, full, field};

    return client_call(l->cli->server.client, field != NULL ? 3 : 2, argv, NULL, l->err);
}

/* 1: the worker of this epoch registered with this instance. 0: no. -1 with err. */
static int is_instance(const struct query *l, const char *epoch, const char *instance)
{
    CLEANUP_FREE char *key = mem_printf("worker:%s", epoch);
    struct reply *r = ask(l, "HGET", key, "inst");
    int is_so;

    if (r == NULL)
        return -1;
    is_so = reply_is(r, instance);
    reply_free(r);
    return is_so;
}

/* 1: the worker of this epoch lives and holds the gate. 0: no. -1 with err. */
static int holds(const struct query *l, const char *epoch)
{
    CLEANUP_FREE char *who = mem_printf("@%s", epoch);
    bool is_sem = strncmp(l->gate, "sem:", 4) == 0, is_so;
    struct reply *counter = ask(l, "HGET", "workers", epoch), *permit;

    if (counter == NULL)
        return -1;
    is_so = reply_len(counter) > 0 && !reply_is(counter, "dead");
    reply_free(counter);
    permit = ask(l, is_sem ? "ZSCORE" : "HGET", l->gate, is_sem ? who : "holder");
    if (permit == NULL)
        return -1;
    is_so = is_so && (is_sem ? reply_len(permit) > 0 : reply_is(permit, who));
    reply_free(permit);
    return is_so;
}

static int tell(const struct query *l, const char *epoch, enum lock_token *ret)
{
    int is_so = holds(l, epoch);

    if (is_so >= 0)
        *ret = is_so > 0 ? LOCK_TOKEN_HELD : LOCK_TOKEN_LOST;
    return is_so < 0 ? -1 : 0;
}

/* The epoch is not (any more) that of our ancestor. Search all workers for its instance: if it has
 * registered anew, asking for the gate would make us wait for our own ancestor. */
static int query_all(const struct query *l, const char *instance, enum lock_token *ret)
{
    struct reply *workers = ask(l, "HGETALL", "workers", NULL);
    int rc = workers != NULL ? 0 : -1, is_it = 0;

    for (size_t i = 0; rc == 0 && is_it == 0 && i + 1 < reply_count(workers); i += 2) {
        const char *epoch = reply_str(reply_at(workers, i));

        is_it = is_instance(l, epoch, instance);
        if (is_it != 0)
            rc = is_it > 0 ? tell(l, epoch, ret) : -1;
    }
    reply_free(workers);
    return rc;
}

static int query_one(const struct query *l, const char *epoch, const char *instance,
                     enum lock_token *ret)
{
    int is_it = is_instance(l, epoch, instance);

    if (is_it < 0)
        return -1;
    return is_it > 0 ? tell(l, epoch, ret) : query_all(l, instance, ret);
}

/* Split a lock token where it stands. False: it is malformed, or of another gate. */
static bool read_token(char *token, const char *gate, const char **ret_epoch,
                       const char **ret_instance)
{
    char *instance = strchr(token, ':');
    char *of = instance != NULL ? strchr(instance + 1, ':') : NULL;
    int64_t epoch;

    if (token[0] != '@' || of == NULL || strcmp(of + 1, gate) != 0)
        return false;
    *instance = *of = '\0';
    *ret_epoch = token + 1;
    *ret_instance = instance + 1;
    return **ret_instance != '\0' && text_parse_int(*ret_epoch, 1, INT64_MAX, &epoch) == 0;
}

int lock_token_query(struct cli *cli, const char *gate, enum lock_token *ret, struct err *err)
{
    const char *all = getenv(LOCK_TOKENS), *epoch, *instance;
    CLEANUP_FREE char *tokens = mem_strdup(all != NULL ? all : "");
    struct query l = {cli, gate, err};
    char *rest = NULL;

    *ret = LOCK_TOKEN_NONE;
    for (char *t = strtok_r(tokens, " ", &rest); t != NULL; t = strtok_r(NULL, " ", &rest)) {
        if (!read_token(t, gate, &epoch, &instance))
            continue;
        if (ask_connect(&cli->server, err) < 0 || query_one(&l, epoch, instance, ret) < 0)
            return -1;
        if (*ret != LOCK_TOKEN_NONE)
            return 0;
    }
    return 0;
}
