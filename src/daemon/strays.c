#include "daemon/strays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define SCAN_EVERY_MS 10000
#define SCAN_COUNT "1000"
#define REMEMBERED 64 /* reported lately; a longer list would flood the log anyway */

struct strays {
    struct link *link;
    struct store_redis *store;
    struct loop_timer *timer;
    char ns[80];
    char cursor[24];
    char reported[REMEMBERED][128];
    struct mono reported_at[REMEMBERED];
    size_t next;
    strays_serves_f *serves;
    void *arg;
};

/* What may follow later:{NS}: — names that stand alone, then those that have more behind them. */
static bool is_known(const char *rest, size_t n)
{
    static const char *const alone[] = {
        "wake",  "jobs",  "running",  "workers", "tries",  "errors", "results", "heads",
        "names", "prio",  "paused",   "clock",   "config", "stats",  "cancel",  "progress",
        "await", "notes", "unserved", "limits",  "queues", "parked", "timers",  NULL};
    static const char *const more[] = {
        "due:",  "q:",   "solo:", "big:",  "worker:",  "dead:", "done:", "token:",
        "lock:", "sem:", "rate:", "wait:", "granted:", "uniq:", NULL};

    for (size_t i = 0; alone[i] != NULL; i++) {
        if (n == strlen(alone[i]) && memcmp(rest, alone[i], n) == 0)
            return true;
    }
    for (size_t i = 0; more[i] != NULL; i++) {
        if (n > strlen(more[i]) && memcmp(rest, more[i], strlen(more[i])) == 0)
            return true;
    }
    return false;
}

/* Does the key begin with later:{NS}: for some namespace (see L.register)? */
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

bool strays_is_ours(const char *ns, const char *key, size_t n)
{
    char root[96];
    size_t len = (size_t)snprintf(root, sizeof(root), "later:{%s}:", ns);

    if (n == strlen("later:library") && memcmp(key, "later:library", n) == 0)
        return true;
    /* Another namespace is none of our business. */
    if (has_root(key, n) && (n < len || memcmp(key, root, len) != 0))
        return true;
    if (n <= len || memcmp(key, root, len) != 0)
        return false;
    if (strncmp(key + len, "due:", 4) == 0)
        return text_is_queue_name(key + len + 4, n - len - 4);
    return is_known(key + len, n - len);
}

static bool was_reported(struct strays *s, const char *key)
{
    struct mono now = mono_now();

    for (size_t i = 0; i < REMEMBERED; i++) {
        if (strncmp(s->reported[i], key, sizeof(s->reported[i]) - 1) == 0 &&
            mono_until_us(s->reported_at[i], now) < INT64_C(600000000))
            return true;
    }
    /* All told lately: where there are so many, one more line says nothing new. */
    if (s->reported[s->next][0] != '\0' &&
        mono_until_us(s->reported_at[s->next], now) < INT64_C(600000000))
        return true;
    (void)snprintf(s->reported[s->next], sizeof(s->reported[0]), "%s", key);
    s->reported_at[s->next] = now;
    s->next = (s->next + 1) % REMEMBERED;
    return false;
}

static void look(struct strays *s, const char *key, size_t n)
{
    size_t root = strlen(s->ns) + strlen("later:{}:");

    if (!strays_is_ours(s->ns, key, n)) {
        if (was_reported(s, key))
            return;
        (void)store_note(s->store, "stray-key", key);
        log_warn("event=stray-key key=\"%.200s\" cure=\"keys of this namespace are "
                 "later:{%s}:due:<queue>, braces included: RENAME it\"",
                 key, s->ns);
        return;
    }
    if (n > root + 4 && strncmp(key + root, "due:", 4) == 0 &&
        strncmp(key + 7, s->ns, strlen(s->ns)) == 0 && s->serves != NULL &&
        !s->serves(s->arg, key + root + 4))
        (void)store_note(s->store, "raw-queue", key + root + 4);
}

static void on_page(void *arg, const struct reply *r)
{
    struct strays *s = arg;
    const struct reply *keys = reply_at(r, 1);

    (void)snprintf(s->cursor, sizeof(s->cursor), "%s",
                   reply_kind(r) == REPLY_ARRAY ? reply_str(reply_at(r, 0)) : "0");
    for (size_t i = 0; i < reply_len(keys); i++)
        look(s, reply_str(reply_at(keys, i)), reply_len(reply_at(keys, i)));
}

static void on_timer(void *arg)
{
    struct strays *s = arg;
    const char *argv[] = {"SCAN", s->cursor, "MATCH", "later:*", "COUNT", SCAN_COUNT};

    (void)link_call(s->link, 6, argv, NULL, on_page, s);
    loop_timer_set(s->timer, SCAN_EVERY_MS);
}

struct strays *strays_new(struct loop *loop, struct link *link, struct store_redis *store,
                          const char *ns)
{
    struct strays *s = mem_new(sizeof(*s));

    s->link = link;
    s->store = store;
    (void)snprintf(s->ns, sizeof(s->ns), "%s", ns);
    (void)snprintf(s->cursor, sizeof(s->cursor), "0");
    s->timer = loop_timer_new(loop, on_timer, s);
    loop_timer_set(s->timer, 1000);
    return s;
}

void strays_free(struct strays *s)
{
    if (s == NULL)
        return;
    loop_timer_free(s->timer);
    free(s);
}

void strays_set_serves(struct strays *s, strays_serves_f *serves, void *arg)
{
    s->serves = serves;
    s->arg = arg;
}
