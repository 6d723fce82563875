#include "redis/client.h"

#include <stdio.h>
#include <string.h>

#include "redis/cluster.h"
#include "redis/error_reply.h"
#include "redis/lib.h"
#include "redis/sentinel.h"

#define ARGS_MAX 1100

static int choose_database(struct client *c, int number, struct err *err)
{
    char db[16];
    const char *choose[] = {"SELECT", db};
    struct reply *r;

    if (number == 0)
        return 0;
    (void)snprintf(db, sizeof(db), "%d", number);
    r = client_call(c, 2, choose, NULL, err);
    reply_free(r);
    if (r == NULL && err->code == ERR_DATA)
        return err_wrap(err, "database %d, the last number of the URL (CONFIG GET databases)",
                        number);
    return r != NULL ? 0 : -1;
}

/* To a server that others have named: it may be one that just died. */
static struct client *connect_named(const struct url *url, int64_t timeout_ms, struct err *err)
{
    return client_connect(url, timeout_ms < SENTINEL_CONNECT_MS ? timeout_ms : SENTINEL_CONNECT_MS,
                          err);
}

/* What a sentinel names may be one that is no master (yet). */
static struct client *connect_as_told(const struct url *url, int64_t timeout_ms, struct err *err)
{
    char where[320];
    struct client *c = connect_named(url, timeout_ms, err);

    if (c == NULL) {
        (void)err_wrap(err, "as the sentinels say");
        return NULL;
    }
    if (sentinel_check_role(c, url->master, err) < 0) {
        if (!client_is_broken(c))
            (void)err_wrap(err, "%s", url_show(url, where));
        client_close(c);
        return NULL;
    }
    client_set_timeout(c, timeout_ms);
    return c;
}

static struct client *connect_to_master(struct url *url, int64_t timeout_ms, struct err *err)
{
    struct url told_by = *url;
    struct client *c = NULL;

    if (sentinel_resolve(url, err) == 0 && (c = connect_as_told(url, timeout_ms, err)) == NULL)
        sentinel_doubt(&told_by);
    explicit_bzero(&told_by, sizeof(told_by));
    return c;
}

static struct client *connect_to_owner(struct url *url, int64_t timeout_ms, struct err *err)
{
    struct client *c = NULL;

    if (cluster_resolve(url, timeout_ms, err) == 0)
        c = connect_named(url, timeout_ms, err);
    if (c != NULL)
        client_set_timeout(c, timeout_ms);
    return c;
}

static struct client *connect_any(struct url *url, int64_t timeout_ms, struct err *err)
{
    if (url->nodes[0] != '\0')
        return connect_to_owner(url, timeout_ms, err);
    return url->sentinels[0] != '\0' ? connect_to_master(url, timeout_ms, err)
                                     : client_connect(url, timeout_ms, err);
}

struct client *client_open(const struct url *url, int64_t timeout_ms, struct err *err)
{
    struct url to = *url;
    struct client *c = NULL;
    struct err local = ERR_INIT;

    err = err != NULL ? err : &local;
    if (url->ask_password == NULL || url->ask_password(&to, err) >= 0)
        c = connect_any(&to, timeout_ms, err);
    explicit_bzero(&to, sizeof(to));
    if (c != NULL && choose_database(c, url->db, err) < 0) {
        client_close(c);
        c = NULL;
    }
    return c;
}

/* FCALL and its arguments. */
struct blocking_fcall {
    const char *argv[ARGS_MAX];
    size_t lens[ARGS_MAX];
    char root[80];
    int argc;
};

static int fcall_make(struct blocking_fcall *f, const char *ns, const char *function, int argc,
                      const char *const *argv, const size_t *lens, struct err *err)
{
    if (argc + 4 > ARGS_MAX)
        return err_set(err, ERR_USAGE, "too many arguments");
    (void)snprintf(f->root, sizeof(f->root), "later:{%s}", ns);
    f->argc = argc + 4;
    f->argv[0] = "FCALL";
    f->argv[1] = function;
    f->argv[2] = "1";
    f->argv[3] = f->root;
    for (int i = 0; i < argc; i++)
        f->argv[4 + i] = argv[i];
    for (int i = 0; i < f->argc; i++)
        f->lens[i] = i >= 4 && lens != NULL ? lens[i - 4] : strlen(f->argv[i]);
    return 0;
}

/* Call; if the library is missing, load it and call again. */
static struct reply *call_library(struct client *c, const char *ns, const struct blocking_fcall *f,
                                  struct err *err)
{
    struct err first = ERR_INIT;
    struct lib_state state;
    struct reply *r = client_call(c, f->argc, f->argv, f->lens, &first);

    if (r != NULL || first.code != ERR_UNAVAILABLE ||
        error_reply_class(first.text) != ERROR_CLASS_LIBRARY) {
        if (r == NULL && err != NULL)
            *err = first;
        return r;
    }
    if (lib_ensure(c, ns, LIB_ENSURE, &state, err) < 0) {
        /* This user may not even look which library is there. */
        if (err != NULL && err->code == ERR_DENIED && strstr(err->text, "later setup") == NULL)
            (void)err_set(err, ERR_DENIED,
                          "the function library is not on the server, or is too old, and this user "
                          "may not load it: run `later setup` once as an administrator (user admin "
                          "of etc/users.acl)");
        return NULL;
    }
    return client_call(c, f->argc, f->argv, f->lens, err);
}

struct reply *client_fcall(struct client *c, const char *ns, const char *function, int argc,
                           const char *const *argv, const size_t *lens, struct err *err)
{
    struct blocking_fcall f;

    if (fcall_make(&f, ns, function, argc, argv, lens, err) < 0)
        return NULL;
    return call_library(c, ns, &f, err);
}

int client_fcall_send(struct client *c, const char *ns, const char *function, int argc,
                      const char *const *argv, const size_t *lens, struct err *err)
{
    struct blocking_fcall f;

    if (fcall_make(&f, ns, function, argc, argv, lens, err) < 0)
        return -1;
    return client_send(c, f.argc, f.argv, f.lens, err);
}
