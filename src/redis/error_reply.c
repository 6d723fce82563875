#include "redis/error_reply.h"

#include <string.h>

struct error_rule {
    const char *starts; /* the error text starts with this, or NULL */
    const char *holds;  /* … or contains this */
    enum fault fault;
    enum err_code code;
    const char *cure;
};

/* The first row that fits counts. */
static const struct error_rule rows[] = {
    {"ELATER_TYPE", NULL, FAULT_TYPE, ERR_REFUSED, ""},
    {"ELATER_", NULL, FAULT_CALL, ERR_REFUSED, ""},
    {"LOADING", NULL, FAULT_WAIT, ERR_UNAVAILABLE, " (it is starting)"},
    {"BUSY", NULL, FAULT_WAIT, ERR_UNAVAILABLE,
     " (a script hangs there: redis-cli FUNCTION KILL, or SHUTDOWN NOSAVE if it has written)"},
    {"TRYAGAIN", NULL, FAULT_WAIT, ERR_UNAVAILABLE, ""},
    {"CLUSTERDOWN", NULL, FAULT_WAIT, ERR_UNAVAILABLE, ""},
    {NULL, "max number of clients", FAULT_WAIT, ERR_UNAVAILABLE, " (raise maxclients)"},
    {"OOM", NULL, FAULT_FULL, ERR_UNAVAILABLE, " (Redis is full: raise maxmemory)"},
    {"MISCONF", NULL, FAULT_FULL, ERR_UNAVAILABLE, " (Redis cannot save to its disk)"},
    {"NOREPLICAS", NULL, FAULT_FULL, ERR_UNAVAILABLE, " (too few replicas are attached)"},
    {"READONLY", NULL, FAULT_MOVED, ERR_UNAVAILABLE,
     " (it is a replica: give the master's address)"},
    {"MASTERDOWN", NULL, FAULT_MOVED, ERR_UNAVAILABLE, ""},
    {"UNBLOCKED", NULL, FAULT_MOVED, ERR_UNAVAILABLE, ""},
    {"MOVED", NULL, FAULT_MOVED, ERR_UNAVAILABLE, " (Redis Cluster is not in this version)"},
    {"ASK", NULL, FAULT_MOVED, ERR_UNAVAILABLE, " (Redis Cluster is not in this version)"},
    {NULL, "Function not found", FAULT_LIBRARY, ERR_UNAVAILABLE, " (run: later setup)"},
    {NULL, "can't run this command", FAULT_DENIED, ERR_DENIED,
     " (a right is missing: see the ACL)"},
    {NULL, "can't access", FAULT_DENIED, ERR_DENIED, " (a right is missing: see the ACL)"},
    {"NOPERM", NULL, FAULT_DENIED, ERR_DENIED, " (a right is missing: see the ACL)"},
    {"NOAUTH", NULL, FAULT_DENIED, ERR_DENIED, " (name a redis_password_file)"},
    {"WRONGPASS", NULL, FAULT_DENIED, ERR_DENIED, " (look into redis_password_file)"},
    {NULL, "without any password configured", FAULT_DENIED, ERR_DENIED,
     " (the server has no password: take redis_password_file out)"},
    {"DENIED", NULL, FAULT_DENIED, ERR_DENIED, ""},
    {"WRONGTYPE", NULL, FAULT_TYPE, ERR_REFUSED, " (a foreign value at one of our keys)"},
    {NULL, NULL, FAULT_CALL, ERR_DATA, ""},
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

enum fault error_reply_fault(const char *error_text)
{
    return find(error_text)->fault;
}

int error_reply_err(struct err *err, const char *error_text)
{
    const struct error_rule *row = find(error_text);

    return err_set(err, row->code, "%.180s%s", error_text, row->cure);
}

bool error_reply_is_bad(const struct reply *r, size_t elements,
                        void (*fault)(void *arg, enum fault fault, const char *text), void *arg)
{
    if (reply_kind(r) == REPLY_ERROR)
        fault(arg, error_reply_fault(reply_str(r)), reply_str(r));
    else if (reply_count(r) < elements)
        fault(arg, FAULT_CALL, "the library answered in a shape that is not known");
    else
        return false;
    return true;
}
