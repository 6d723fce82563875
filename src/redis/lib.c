#include "redis/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lua/lua_lib.h"
#include "redis/error_reply.h"

#define VERSION_KEY "later:library"
#define RACES_MAX 10

/* One command; NULL and err as client_call. */
static struct reply *call(struct client *c, struct err *err, int argc, const char *const *argv)
{
    return client_call(c, argc, argv, NULL, err);
}

static int run(struct client *c, struct err *err, int argc, const char *const *argv)
{
    struct reply *r = call(c, err, argc, argv);

    reply_free(r);
    return r != NULL ? 0 : -1;
}

/* Read which library is on the server; number 0: none. */
static int query(struct client *c, struct lib_state *ret, struct err *err)
{
    static const char *const ask[] = {"FCALL_RO", "later_version", "1", "later:{setup}"};
    static const char *const key[] = {"GET", VERSION_KEY};
    struct err e = ERR_INIT;
    struct reply *r;

    memset(ret, 0, sizeof(*ret));
    r = call(c, err, 2, key);
    if (r == NULL)
        return -1;
    ret->pinned = strstr(reply_str(r), " pinned") != NULL;
    reply_free(r);
    r = call(c, &e, 4, ask);
    if (r == NULL) {
        if (error_reply_class(e.text) == ERROR_CLASS_LIBRARY)
            return 0;
        if (err != NULL)
            *err = e;
        return -1;
    }
    ret->number = (long)reply_int(reply_at(r, 0));
    text_copy(ret->hash, sizeof(ret->hash), reply_str(reply_at(r, 1)));
    ret->protocol = (long)reply_int(reply_at(r, 2));
    reply_free(r);
    return 0;
}

static bool wanted(const struct lib_state *is, enum lib_mode mode)
{
    switch (mode) {
    case LIB_DOWNGRADE:
        return is->number != lua_lib_number || strcmp(is->hash, lua_lib_hash) != 0;
    case LIB_FORCE:
        return !is->pinned &&
               (is->number < lua_lib_number ||
                (is->number == lua_lib_number && strcmp(is->hash, lua_lib_hash) != 0));
    case LIB_ENSURE:
        break;
    }
    /* If a pinned library was flushed away, ours is loaded all the same, without the pin. */
    return is->number == 0 || (!is->pinned && is->number < lua_lib_number);
}

/* MULTI … EXEC under the WATCH of the caller. 1: done, 0: another loader was faster, -1: error. */
static int replace(struct client *c, bool replace_it, enum lib_mode mode, struct err *err)
{
    char value[64];
    static const char *const multi[] = {"MULTI"};
    static const char *const exec[] = {"EXEC"};
    const char *load[] = {"FUNCTION", "LOAD", lua_lib_text, NULL};
    const char *set[] = {"SET", VERSION_KEY, value};
    struct reply *r;
    int done;

    if (replace_it) {
        load[2] = "REPLACE";
        load[3] = lua_lib_text;
    }
    (void)snprintf(value, sizeof(value), "%ld %s%s", lua_lib_number, lua_lib_hash,
                   mode == LIB_DOWNGRADE ? " pinned" : "");
    if (run(c, err, 1, multi) < 0 || run(c, err, replace_it ? 4 : 3, load) < 0 ||
        run(c, err, 3, set) < 0)
        return -1;
    r = call(c, err, 1, exec);
    if (r == NULL)
        return -1;
    done = reply_kind(r) == REPLY_ARRAY;
    if (done && reply_kind(reply_at(r, 0)) == REPLY_ERROR) {
        /* "already exists": loaded by a program that does not use our key; check again. */
        done = strstr(reply_str(reply_at(r, 0)), "already exists") != NULL
                   ? 0
                   : error_reply_err(err, reply_str(reply_at(r, 0)));
    }
    reply_free(r);
    return done;
}

/* The caller's right to load is not what is wrong: one user loads it once for all. */
static int may_not_load(const struct lib_state *is, struct err *err)
{
    if (is->number == 0)
        return err_set(err, ERR_DENIED,
                       "the function library is not on the server, and this user may not load it: "
                       "run `later setup` once as an administrator (user admin of etc/users.acl)");
    return err_set(err, ERR_DENIED,
                   "function library %ld is on the server, and this user may not put %ld in its "
                   "place: run `later setup` once as an administrator (user admin of "
                   "etc/users.acl)",
                   is->number, lua_lib_number);
}

int lib_ensure(struct client *c, enum lib_mode mode, struct lib_state *ret, struct err *err)
{
    static const char *const watch[] = {"WATCH", VERSION_KEY};
    static const char *const unwatch[] = {"UNWATCH"};
    bool loaded = false;

    for (int i = 0; i < RACES_MAX; i++) {
        int done;

        if (run(c, err, 2, watch) < 0 || query(c, ret, err) < 0)
            return err_wrap(err, "looking for the function library");
        ret->loaded = loaded;
        if (loaded || !wanted(ret, mode))
            return run(c, err, 1, unwatch);
        done = replace(c, ret->number != 0, mode, err);
        if (done < 0 && err != NULL && err->code == ERR_DENIED)
            return may_not_load(ret, err);
        if (done < 0)
            return err_wrap(err, "loading the function library");
        loaded = done == 1;
    }
    return err_set(err, ERR_TEMP, "loading the function library: others load it all the time");
}
