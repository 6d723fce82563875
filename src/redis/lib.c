#include "redis/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "lua/lua_lib.h"
#include "redis/error_reply.h"

#define RACES_MAX 10

/* Set to 1 in the text of a library that is loaded to stay (scripts/join-lua). */
static const char not_pinned[] = "\nlocal pinned = 0\n";

int lib_look(struct client *c, const char *ns, struct lib_state *ret, struct err *err)
{
    CLEANUP_FREE char *root = ns != NULL ? mem_printf("later:{%s}", ns) : NULL;
    const char *ask[] = {"FCALL_RO", "later_version", ns != NULL ? "1" : "0", root};
    struct err e = ERR_INIT;
    struct reply *r = client_call(c, ns != NULL ? 4 : 3, ask, NULL, &e);

    memset(ret, 0, sizeof(*ret));
    if (r == NULL && ns == NULL && strncmp(e.text, "ELATER_ROOT", 11) == 0) {
        ret->number = 1; /* before 44 it wanted a root */
        return 0;
    }
    if (r == NULL && error_reply_class(e.text) == ERROR_CLASS_LIBRARY)
        return 0;
    if (r == NULL && strstr(e.text, "unknown command") != NULL)
        return err_set(err, ERR_UNFIT,
                       "this server has no functions (FCALL_RO is unknown to it): laterd needs "
                       "Redis 7.0 or later, or Valkey; Redis 6, Dragonfly and Garnet have none");
    if (r == NULL)
        return err_set(err, e.code, "%s", e.text);
    ret->number = (long)reply_int(reply_at(r, 0));
    text_copy(ret->hash, sizeof(ret->hash), reply_str(reply_at(r, 1)));
    ret->protocol = (long)reply_int(reply_at(r, 2));
    ret->pinned = reply_int(reply_at(r, 3)) == 1;
    reply_free(r);
    return 0;
}

static bool wanted(const struct lib_state *is, enum lib_mode mode)
{
    bool is_ours = is->number == lua_lib_number && strcmp(is->hash, lua_lib_hash) == 0;

    switch (mode) {
    case LIB_DOWNGRADE:
        return !is_ours || !is->pinned;
    case LIB_FORCE:
        return is->number < lua_lib_number ||
               (is->number == lua_lib_number && (!is_ours || is->pinned));
    case LIB_ENSURE:
        break;
    }
    return is->number == 0 || (!is->pinned && is->number < lua_lib_number);
}

static char *text_to_load(bool is_pinned)
{
    char *text = mem_strdup(lua_lib_text);
    char *at = strstr(text, not_pinned);

    if (is_pinned && at != NULL)
        at[strlen(not_pinned) - 2] = '1';
    return text;
}

/* 1: done, 0: another loader was faster, -1: error. Without REPLACE the server itself sees a race;
 * with it, two versions may replace each other once, until the next beat (store.h). */
static int load(struct client *c, bool replace, enum lib_mode mode, struct err *err)
{
    CLEANUP_FREE char *text = text_to_load(mode == LIB_DOWNGRADE);
    const char *plain[] = {"FUNCTION", "LOAD", text};
    const char *over[] = {"FUNCTION", "LOAD", "REPLACE", text};
    struct err e = ERR_INIT;
    struct reply *r =
        replace ? client_call(c, 4, over, NULL, &e) : client_call(c, 3, plain, NULL, &e);

    reply_free(r);
    if (r != NULL)
        return 1;
    if (strstr(e.text, "Library 'laterd' already exists") != NULL)
        return 0;
    if (strcasestr(e.text, "engine") != NULL)
        return err_set(err, ERR_UNFIT,
                       "this server has functions but nothing that runs them (%.80s): in Valkey "
                       "9.1 and later Lua is a module of its own, load it there",
                       e.text);
    return err_set(err, e.code, "%s", e.text);
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

int lib_ensure(struct client *c, const char *ns, enum lib_mode mode, struct lib_state *ret,
               struct err *err)
{
    bool loaded = false;

    for (int i = 0; i < RACES_MAX; i++) {
        int done;

        if (lib_look(c, ns, ret, err) < 0)
            return err_wrap(err, "looking for the function library");
        ret->loaded = loaded;
        if (loaded || !wanted(ret, mode))
            return 0;
        done = load(c, ret->number != 0, mode, err);
        if (done < 0 && err != NULL && err->code == ERR_DENIED)
            return may_not_load(ret, err);
        if (done < 0)
            return err_wrap(err, "loading the function library");
        loaded = done == 1;
    }
    return err_set(err, ERR_TEMP, "loading the function library: others load it all the time");
}

bool lib_is_older(int64_t number)
{
    return number > 0 && number < lua_lib_number;
}
