#include "daemon/stray_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/keys.h"

#define SCAN_EVERY_MS 10000
#define SCAN_COUNT "1000"
#define REMEMBERED 64 /* keys that were reported lately; more would flood the log anyway */

struct stray_keys {
    struct link *link;
    struct store_redis *store;
    struct loop_timer *timer;
    char ns[80];
    char cursor[24];
    char reported[REMEMBERED][128];
    struct mono reported_at[REMEMBERED];
    size_t next;
    stray_keys_serves_f *serves;
    void *arg;
};

static bool was_reported(struct stray_keys *s, const char *key)
{
    struct mono now = mono_now();

    for (size_t i = 0; i < REMEMBERED; i++) {
        if (strncmp(s->reported[i], key, sizeof(s->reported[i]) - 1) == 0 &&
            mono_until_us(s->reported_at[i], now) < INT64_C(600000000))
            return true;
    }
    /* All entries are recent: where there are so many stray keys, one more line says nothing
     * new. */
    if (s->reported[s->next][0] != '\0' &&
        mono_until_us(s->reported_at[s->next], now) < INT64_C(600000000))
        return true;
    text_copy(s->reported[s->next], sizeof(s->reported[0]), key);
    s->reported_at[s->next] = now;
    s->next = (s->next + 1) % REMEMBERED;
    return false;
}

static void check_key(struct stray_keys *s, const char *key, size_t n)
{
    size_t root = strlen(s->ns) + strlen("later:{}:");

    if (!keys_is_ours(s->ns, key, n)) {
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
    struct stray_keys *s = arg;
    const struct reply *keys = reply_at(r, 1);

    text_copy(s->cursor, sizeof(s->cursor),
              reply_kind(r) == REPLY_ARRAY ? reply_str(reply_at(r, 0)) : "0");
    for (size_t i = 0; i < reply_count(keys); i++)
        check_key(s, reply_str(reply_at(keys, i)), reply_len(reply_at(keys, i)));
}

static void on_timer(void *arg)
{
    struct stray_keys *s = arg;
    const char *argv[] = {"SCAN", s->cursor, "MATCH", "later:*", "COUNT", SCAN_COUNT};

    (void)link_call(s->link, 6, argv, NULL, on_page, s);
    loop_timer_set(s->timer, SCAN_EVERY_MS);
}

struct stray_keys *stray_keys_new(struct loop *loop, struct link *link, struct store_redis *store,
                                  const char *ns)
{
    struct stray_keys *s = mem_new(sizeof(*s));

    s->link = link;
    s->store = store;
    text_copy(s->ns, sizeof(s->ns), ns);
    (void)snprintf(s->cursor, sizeof(s->cursor), "0");
    s->timer = loop_timer_new(loop, on_timer, s);
    loop_timer_set(s->timer, 1000);
    return s;
}

void stray_keys_free(struct stray_keys *s)
{
    if (s == NULL)
        return;
    loop_timer_free(s->timer);
    free(s);
}

void stray_keys_set_serves(struct stray_keys *s, stray_keys_serves_f *serves, void *arg)
{
    s->serves = serves;
    s->arg = arg;
}
