#include "store/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define RESERVED ""

struct key_rule {
    const char *name, *type;
};

/* The names that may follow later:{NS}: - whole names, then prefixes of longer ones. */
static const struct key_rule alone[] = {
    {"jobs", "hash"},
    {"running", "zset"},
    {"workers", "hash"},
    {"tries", "hash"},
    {"errors", "hash"},
    {"failures", "hash"},
    {"results", "hash"},
    {"heads", "zset"},
    {"names", "set"},
    {"prio", "hash"},
    {"paused", "hash"},
    {"clock", "string"},
    {"config", "hash"},
    {"stats", "hash"},
    {"cancel", "hash"},
    {"progress", "hash"},
    {"await", "hash"},
    {"notes", "hash"},
    {"unserved", "hash"},
    {"wake", RESERVED},
    {"limits", "hash"},
    {"queues", "hash"},
    {"parked", "hash"},
    {"timers", "zset"},
    {"holds", "hash"},
    {"batches", "hash"},
    {"schedules", "hash"},
    {"cursors", "hash"},
    {"schedule:file", "zset"},
    {"schedule:gone", "zset"},
    {"schedule:paused", "hash"},
    {"schedule:state", "hash"},
    {"topics", "hash"},
    {"topic:file", "hash"},
    {"pinned", "set"},
    {"series", "hash"},
    {"seen", "hash"},
    {"index", "zset"},
    {"index:state", "hash"},
    {"recents", "zset"},
    {"bulks", "zset"},
    {"fair", "hash"},
    {"resume", "hash"},
};
static const struct key_rule more[] = {
    {"due:", "zset"},          {"q:", "zset"},
    {"solo:", "zset"},         {"dead:", "zset"},
    {"done:", "zset"},         {"big:", "string"},
    {"worker:", "hash"},       {"token:", "string"},
    {"lock:", "hash"},         {"sem:", "zset"},
    {"rate:sliding:", "zset"}, {"rate:gcra:", "string"},
    {"rate:fixed:", "string"}, {"wait:", "zset"},
    {"line:", "zset"},         {"parked:", "zset"},
    {"rate:granted:", "set"},  {"granted:", "zset"},
    {"aside:", "set"},         {"uniq:", "string"},
    {"members:", "zset"},      {"batch:", "zset"},
    {"cal:", "string"},        {"pin:", "zset"},
    {"pins:", "set"},          {"bodyless:", "zset"},
    {"m:", "string"},          {"h:", "string"},
    {"total:", "string"},      {"keys:", "string"},
    {"top:", "zset"},          {"seen:", "string"},
    {"recent:", "list"},       {"bulk:", "hash"},
    {"fair:", "zset"},         {"fair-next:", "zset"},
    {"fair-debts:", "zset"},   {"fair-used:", "hash"},
    {"fair-jobs:", "zset"},    {"steps:", "hash"},
};

const char *keys_type(const char *rest, size_t n)
{
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        if (n == strlen(alone[i].name) && memcmp(rest, alone[i].name, n) == 0)
            return alone[i].type;
    }
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        size_t len = strlen(more[i].name);

        if (n > len && memcmp(rest, more[i].name, len) == 0)
            return more[i].type;
    }
    return NULL;
}

/* Does the key begin with later:{NS}: for some namespace (see register)? */
static bool has_root(const char *key, size_t n)
{
    static const char letters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-";
    size_t len = strlen("later:{"), name;

    if (n <= len || memcmp(key, "later:{", len) != 0 || strchr("_.-", key[len]) != NULL)
        return false;
    name = strspn(key + len, letters);
    return name > 0 && strncmp(key + len + name, "}:", 2) == 0;
}

bool keys_is_ours(const char *ns, const char *key, size_t n)
{
    char root[96];
    size_t len = (size_t)snprintf(root, sizeof(root), "later:{%s}:", ns);

    /* Other namespaces do not concern us. */
    if (has_root(key, n) && (n < len || memcmp(key, root, len) != 0))
        return true;
    if (n <= len || memcmp(key, root, len) != 0)
        return false;
    if (strncmp(key + len, "due:", 4) == 0)
        return text_is_queue_name(key + len + 4, n - len - 4);
    return keys_type(key + len, n - len) != NULL;
}

const char *keys_queue_of_set(const char *rest, size_t n, size_t *ret_len)
{
    static const char *const sets[] = {"solo:", "dead:", "done:", "parked:"};
    const char *queue = NULL;

    if (n > 4 && memcmp(rest, "q:", 2) == 0 && rest[n - 2] == ':' && rest[n - 1] >= '0' &&
        rest[n - 1] <= '9') {
        queue = rest + 2;
        *ret_len = n - 4;
    }
    if (n > 4 && memcmp(rest, "pin:", 4) == 0 && memchr(rest + 4, ':', n - 4) != NULL) {
        queue = rest + 4;
        *ret_len = (size_t)((const char *)memchr(queue, ':', n - 4) - queue);
    }
    for (size_t i = 0; queue == NULL && i < sizeof(sets) / sizeof(sets[0]); i++) {
        size_t len = strlen(sets[i]);

        if (n > len && memcmp(rest, sets[i], len) == 0) {
            queue = rest + len;
            *ret_len = n - len;
        }
    }
    return queue != NULL && text_is_queue_name(queue, *ret_len) ? queue : NULL;
}
