#include "daemon/bulks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/error_reply.h"

#define AGAIN_MS 1000 /* after a refusal, doubled to the next */
#define LAST_MS 32000

struct bulks {
    struct loop_alarm *alarm; /* set: a call follows then */
    struct link *link;
    char root[80];
    char epoch[24]; /* "": not registered */
    bool is_asking; /* a call is under way */
    bool is_woken;  /* since that was sent */
    bool is_stopped;
    int64_t again_ms;  /* after the next refusal */
    char refusal[200]; /* as it was logged last; "": none */
};

static void on_advanced(void *arg, const struct reply *r);

static void ask(struct bulks *b)
{
    const char *argv[] = {"FCALL", "later_v1_bulk", "1", b->root, b->epoch};

    if (b->is_asking) {
        b->is_woken = true;
        return;
    }
    if (b->is_stopped || b->epoch[0] == '\0' || !link_is_up(b->link))
        return;
    loop_alarm_set(b->alarm, MONO_NEVER);
    b->is_woken = false;
    b->is_asking = link_call(b->link, 5, argv, NULL, on_advanced, b) == 0;
}

static void on_alarm(void *arg)
{
    ask(arg);
}

static void ask_in(struct bulks *b, int64_t ms)
{
    if (!b->is_stopped)
        loop_alarm_set(b->alarm, mono_add_ms(mono_now(), ms));
}

static void tell_refusal(struct bulks *b, const char *text)
{
    if (text[0] != '\0' && strncmp(b->refusal, text, sizeof(b->refusal) - 1) != 0)
        log_err("event=refused class=bulk reason=\"%s\" effect=\"bulks do not go on here\"", text);
    text_copy(b->refusal, sizeof(b->refusal), text);
}

/* An older library, which is pinned, has no bulks. */
static void take_refusal(struct bulks *b, const char *text)
{
    if (error_reply_class(text) == ERROR_CLASS_LIBRARY)
        return;
    tell_refusal(b, text);
    ask_in(b, b->again_ms);
    b->again_ms = b->again_ms < LAST_MS ? 2 * b->again_ms : LAST_MS;
}

static void on_advanced(void *arg, const struct reply *r)
{
    struct bulks *b = arg;
    int64_t ms = reply_int(reply_at(r, 0));

    b->is_asking = false;
    if (reply_kind(r) != REPLY_ARRAY) {
        take_refusal(b, reply_kind(r) == REPLY_ERROR ? reply_str(r) : "a bad answer");
        return;
    }
    tell_refusal(b, "");
    b->again_ms = AGAIN_MS;
    if (ms > 0)
        ask_in(b, ms < AGAIN_MS ? ms : AGAIN_MS);
    else if (b->is_woken)
        ask(b);
}

struct bulks *bulks_new(struct loop *loop, struct link *link, const char *ns)
{
    struct bulks *b = mem_new(sizeof(*b));

    b->link = link;
    b->again_ms = AGAIN_MS;
    (void)snprintf(b->root, sizeof(b->root), "later:{%s}", ns);
    b->alarm = loop_alarm_new(loop, on_alarm, b);
    if (b->alarm != NULL)
        return b;
    free(b);
    return NULL;
}

void bulks_free(struct bulks *b)
{
    if (b == NULL)
        return;
    loop_alarm_free(b->alarm);
    free(b);
}

void bulks_registered(struct bulks *b, int64_t epoch)
{
    if (b == NULL)
        return;
    (void)snprintf(b->epoch, sizeof(b->epoch), "%lld", (long long)epoch);
    ask(b);
}

void bulks_wake(struct bulks *b)
{
    if (b != NULL)
        ask(b);
}

void bulks_link_down(struct bulks *b)
{
    if (b == NULL)
        return;
    b->is_asking = false;
    loop_alarm_set(b->alarm, MONO_NEVER);
}

void bulks_stop(struct bulks *b)
{
    if (b == NULL)
        return;
    b->is_stopped = true;
    loop_alarm_set(b->alarm, MONO_NEVER);
}
