#include "redis/preflight.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "redis/announce.h"
#include "redis/error_reply.h"

#define MEMORY_PERCENT 90

static void find(struct preflight *p, const char *check, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void find(struct preflight *p, const char *check, const char *fmt, ...)
{
    va_list ap;

    if (p->n == PREFLIGHT_MAX)
        return;
    p->at[p->n].check = check;
    va_start(ap, fmt);
    (void)vsnprintf(p->at[p->n].text, sizeof(p->at[p->n].text), fmt, ap);
    va_end(ap);
    p->n++;
}

void preflight_value(const char *info, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);

    ret[0] = '\0';
    for (const char *line = info; *line != '\0';) {
        size_t len = strcspn(line, "\r\n");

        if (len > n && line[n] == ':' && memcmp(line, name, n) == 0) {
            (void)snprintf(ret, size, "%.*s", (int)(len - n - 1), line + n + 1);
            return;
        }
        line += len;
        line += strspn(line, "\r\n");
    }
}

static int64_t number(const char *info, const char *name)
{
    char text[24];
    int64_t n = 0;

    preflight_value(info, name, text, sizeof(text));
    return text_parse_int(text, 0, INT64_MAX, &n) == 0 ? n : 0;
}

/* Compare as Redis does: it does not count buffers of replicas and of the append-only file. The
 * text has no number that changes from one check to the next, so that preflight_equal holds. */
static void read_memory(struct preflight *p, const char *info)
{
    int64_t most = number(info, "maxmemory");
    int64_t used = number(info, "used_memory") - number(info, "mem_not_counted_for_evict");

    if (most > 0 && used > most / 100 * MEMORY_PERCENT)
        find(p, "memory",
             "over %d%% of maxmemory (%lld bytes) are used: when it is full every add is refused; "
             "raise it, or see what fills it: later stats",
             MEMORY_PERCENT, (long long)most);
}

void preflight_read(struct preflight *p, const char *info)
{
    char policy[32], aof[8], aof_write[8], role[16];

    preflight_value(info, "maxmemory_policy", policy, sizeof(policy));
    preflight_value(info, "aof_enabled", aof, sizeof(aof));
    preflight_value(info, "aof_last_write_status", aof_write, sizeof(aof_write));
    preflight_value(info, "role", role, sizeof(role));
    if (strncmp(policy, "allkeys", 7) == 0)
        find(p, "eviction",
             "maxmemory-policy is %s: when Redis is full it throws jobs away; set it to noeviction",
             policy);
    else if (strncmp(policy, "volatile", 8) == 0)
        find(p, "eviction",
             "maxmemory-policy is %s: when Redis is full it forgets tokens, and a repeated add "
             "makes a second job; set it to noeviction",
             policy);
    if (strcmp(aof, "0") == 0)
        find(p, "persistence",
             "appendonly is off: when Redis dies, every job since its last snapshot is lost (all, "
             "if it makes none); set appendonly yes");
    if (strcmp(aof_write, "err") == 0)
        find(p, "disk", "the last write of the append-only file failed: look at Redis' disk");
    if (strncmp(policy, "allkeys", 7) != 0) /* with allkeys it is always full */
        read_memory(p, info);
    if (strcmp(role, "slave") == 0)
        find(p, "replica",
             "it is a replica: what is written there is refused or lost; give the address of the "
             "master");
}

void preflight_server(struct preflight *p, const char *info, const struct url *by)
{
    char cluster[16];

    preflight_read(p, info);
    preflight_value(info, "cluster_enabled", cluster, sizeof(cluster));
    if (strcmp(cluster, "1") == 0 && by->nodes[0] == '\0')
        find(p, "cluster",
             "it is a node of a Redis Cluster, and the slot of the namespace may move to another: "
             "write cluster://HOST:PORT");
}

void preflight_not_loaded(struct preflight *p, const struct url *at, const char *why)
{
    char place[ANNOUNCE_PLACE_MAX];

    find(p, "cluster",
         "the library is not on the primary %.60s, so a slot that moves there stands: %.100s",
         announce_place(at, place), why);
}

void preflight_unknown(struct preflight *p)
{
    find(p, "info",
         "this user may not ask INFO, or the server has none: whether it may lose jobs (eviction, "
         "persistence, a replica) is not known");
}

int preflight_rights(struct preflight *p, struct client *c, const char *ns, struct err *err)
{
    struct err why = ERR_INIT;
    struct reply *r = client_fcall(c, ns, "later_v1_rights", 0, NULL, NULL, &why);
    CLEANUP_BUF struct buf missing = BUF_INIT, renamed = BUF_INIT;
    bool is_unknown = reply_is(reply_at(r, 0), "acl_check_cmd(unknown)");

    if (r == NULL) {
        /* An older library that is pinned there does not have the function. */
        if (error_reply_class(why.text) == ERROR_CLASS_LIBRARY)
            return 0;
        return err_set(err, why.code, "%s", why.text);
    }
    if (is_unknown)
        find(p, "acl",
             "this server cannot tell which rights a user has (no redis.acl_check_cmd): a right "
             "that is missing shows when a job needs it");
    for (size_t i = 0; i < reply_count(r) && !is_unknown; i++) {
        const char *command = reply_str(reply_at(r, i)), *mark = strchr(command, '(');

        if (mark != NULL)
            buf_printf(&renamed, " %.*s", (int)(mark - command), command);
        else
            buf_printf(&missing, " %s", command);
    }
    if (missing.len > 0)
        find(p, "rights", "this user may not:%.90s; jobs wait until its ACL allows it",
             buf_str(&missing));
    if (renamed.len > 0)
        find(p, "commands",
             "the server has renamed or disabled:%.60s; what needs them is refused: take them out "
             "of rename-command in its configuration",
             buf_str(&renamed));
    reply_free(r);
    return 0;
}

bool preflight_equal(const struct preflight *a, const struct preflight *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->at[i].check, b->at[i].check) != 0 ||
            strcmp(a->at[i].text, b->at[i].text) != 0)
            return false;
    }
    return true;
}
