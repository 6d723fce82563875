#include "base/log_rate.h"

#include <string.h>

#include "base/text.h"

#define PROBES 8 /* entries of the table that a kind may use */

static bool is_free(const struct log_kind *k, struct mono now)
{
    return k->left_out == 0 && !mono_before(now, k->empty);
}

static bool is_same(const struct log_kind *k, const struct log_kind *wanted)
{
    return k->site == wanted->site && k->level == wanted->level &&
           strcmp(k->name, wanted->name) == 0;
}

/* An empty bucket tells nothing, so its entry is free. If no entry is, kinds share the last one. */
static struct log_kind *find(struct log_rate *r, const struct log_kind *wanted, struct mono now)
{
    uint32_t hash = text_hash(wanted->name) ^ (uint32_t)((uintptr_t)wanted->site >> 3) ^
                    (uint32_t)wanted->level;
    struct log_kind *k = NULL, *free = NULL;

    for (uint32_t i = 0; i < PROBES; i++) {
        k = &r->kinds[(hash + i) % LOG_RATE_KINDS];
        if (is_same(k, wanted))
            return k;
        if (free == NULL && is_free(k, now))
            free = k;
    }
    if (free == NULL)
        return k;
    *free = *wanted;
    return free;
}

static bool tell(struct log_kind *k, struct mono now, struct log_left_out *ret)
{
    ret->lines = 0;
    if (k->left_out == 0 || mono_before(now, mono_add_ms(k->since, LOG_RATE_TELL_MS)))
        return false;
    ret->level = k->level;
    text_copy(ret->name, sizeof(ret->name), k->name);
    ret->lines = k->left_out;
    k->left_out = 0;
    return true;
}

bool log_rate_take(struct log_rate *r, const void *site, int level, const char *name, int weight,
                   struct mono now, struct log_left_out *ret)
{
    struct log_kind wanted = {.site = site, .level = level}, *k;
    struct mono empty;

    ret->lines = 0;
    if (r->per_s <= 0)
        return true;
    text_copy(wanted.name, sizeof(wanted.name), name);
    k = find(r, &wanted, now);
    (void)tell(k, now, ret);
    empty = mono_add_us(mono_before(k->empty, now) ? now : k->empty, 1000000 / (r->per_s * weight));
    if (mono_until_us(now, empty) <= LOG_RATE_BURST_S * INT64_C(1000000)) {
        k->empty = empty;
        return true;
    }
    if (k->left_out++ == 0)
        k->since = now;
    return false;
}

bool log_rate_tell(struct log_rate *r, struct mono now, struct log_left_out *ret)
{
    for (size_t i = 0; i < LOG_RATE_KINDS; i++)
        if (tell(&r->kinds[i], now, ret))
            return true;
    return false;
}
