#include "redis/error_reply.h"

#include <string.h>

struct error_rule {
    const char *starts; /* the error text starts with this, or NULL */
    const char *holds;  /* … or contains this */
    enum error_class class;
    enum err_code code;
    const char *cure;
};

#define NO_RIGHT " (a right is missing: doc/security.md has the roles)"
#define SLOT_MOVES                                                                                 \
    " (its slot moves to another node; until it has, nothing is done. Atomic migration, of Redis " \
    "8.4 and Valkey 9, takes a moment)"
#define NO_COMMAND                                                                                 \
    " (the server has renamed or disabled a command that the library calls: later setup names it)"

/* The first row that fits counts. Redis 7.0 and its successors have other words for the same. */
static const struct error_rule rows[] = {
    {"ELATER_TYPE", NULL, ERROR_CLASS_TYPE, ERR_REFUSED, ""},
    {"ELATER_", NULL, ERROR_CLASS_CALL, ERR_REFUSED, ""},
    {"LOADING", NULL, ERROR_CLASS_WAIT, ERR_UNAVAILABLE, " (it is starting)"},
    {"BUSY", NULL, ERROR_CLASS_WAIT, ERR_UNAVAILABLE,
     " (a script hangs there: redis-cli FUNCTION KILL, or SHUTDOWN NOSAVE if it has written)"},
    {"TRYAGAIN", NULL, ERROR_CLASS_WAIT, ERR_UNAVAILABLE, SLOT_MOVES},
    {"CLUSTERDOWN", NULL, ERROR_CLASS_WAIT, ERR_UNAVAILABLE,
     " (too few nodes of the cluster: redis-cli --cluster check)"},
    {NULL, "max number of clients", ERROR_CLASS_WAIT, ERR_UNAVAILABLE, " (raise maxclients)"},
    {"OOM", NULL, ERROR_CLASS_FULL, ERR_UNAVAILABLE, " (Redis is full: raise maxmemory)"},
    {"MISCONF", NULL, ERROR_CLASS_FULL, ERR_UNAVAILABLE, " (Redis cannot save to its disk)"},
    {"NOREPLICAS", NULL, ERROR_CLASS_FULL, ERR_UNAVAILABLE, " (too few replicas are attached)"},
    {"READONLY", NULL, ERROR_CLASS_MOVED, ERR_UNAVAILABLE,
     " (it is a replica: give the master's address)"},
    {"MASTERDOWN", NULL, ERROR_CLASS_MOVED, ERR_UNAVAILABLE, ""},
    {"UNBLOCKED", NULL, ERROR_CLASS_MOVED, ERR_UNAVAILABLE, ""},
    {"MOVED", NULL, ERROR_CLASS_MOVED, ERR_UNAVAILABLE,
     " (another node of the cluster has it: write cluster://HOST:PORT)"},
    {"ASK", NULL, ERROR_CLASS_WAIT, ERR_UNAVAILABLE, SLOT_MOVES},
    {NULL, "Function not found", ERROR_CLASS_LIBRARY, ERR_UNAVAILABLE, " (run: later setup)"},
    {NULL, "can't run this command", ERROR_CLASS_DENIED, ERR_DENIED, NO_RIGHT},
    {NULL, "can't access", ERROR_CLASS_DENIED, ERR_DENIED, NO_RIGHT},
    {NULL, "can't publish to the channel", ERROR_CLASS_DENIED, ERR_DENIED, NO_RIGHT},
    {NULL, "ACL failure in script", ERROR_CLASS_DENIED, ERR_DENIED, NO_RIGHT},
    {"NOPERM", NULL, ERROR_CLASS_DENIED, ERR_DENIED, NO_RIGHT},
    {NULL, "command called from script", ERROR_CLASS_DENIED, ERR_DENIED, NO_COMMAND},
    {NULL, "acl_check_cmd()", ERROR_CLASS_DENIED, ERR_DENIED, NO_COMMAND},
    {"NOAUTH", NULL, ERROR_CLASS_DENIED, ERR_DENIED,
     " (give a password: redis_password_file or _command, or REDISCLI_AUTH of later)"},
    {"WRONGPASS", NULL, ERROR_CLASS_DENIED, ERR_DENIED,
     " (look into redis_password_file or _command, or REDISCLI_AUTH of later)"},
    {NULL, "without any password configured", ERROR_CLASS_DENIED, ERR_DENIED,
     " (the server has no password: give none)"},
    {"DENIED", NULL, ERROR_CLASS_DENIED, ERR_DENIED, ""},
    {"WRONGTYPE", NULL, ERROR_CLASS_TYPE, ERR_REFUSED, " (a foreign value at one of our keys)"},
    {NULL, NULL, ERROR_CLASS_CALL, ERR_DATA, ""},
};

static const struct error_rule *find(const char *text)
{
    const struct error_rule *row = rows;

    for (; row->starts != NULL || row->holds != NULL; row++) {
        if (row->starts != NULL && strncmp(text, row->starts, strlen(row->starts)) == 0)
            break;
        if (row->holds != NULL && strstr(text, row->holds) != NULL)
            break;
    }
    return row;
}

enum error_class error_reply_class(const char *error_text)
{
    return find(error_text)->class;
}

bool error_reply_is_between_nodes(const char *error_text)
{
    static const char *const codes[] = {"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN "};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strncmp(error_text, codes[i], strlen(codes[i])) == 0)
            return true;
    return false;
}

int error_reply_err(struct err *err, const char *error_text)
{
    const struct error_rule *row = find(error_text);

    return err_set(err, row->code, "%.180s%s", error_text, row->cure);
}

bool error_reply_is_bad(const struct reply *r, size_t elements,
                        void (*failed)(void *arg, enum error_class class, const char *text),
                        void *arg)
{
    if (reply_kind(r) == REPLY_ERROR)
        failed(arg, error_reply_class(reply_str(r)), reply_str(r));
    else if (reply_count(r) < elements)
        failed(arg, ERROR_CLASS_CALL, "the library answered in a shape that is not known");
    else
        return false;
    return true;
}
