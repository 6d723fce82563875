#include "worker/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

struct peer {
    int64_t epoch;
    char counter[24];
    unsigned silent; /* our beats that saw it there, the first one counted */
    bool is_listed;
};

struct watch {
    struct peer *peers;
    size_t n;
    struct mono last; /* beat that was counted; us 0: none */
};

struct watch *watch_new(void)
{
    return mem_new(sizeof(struct watch));
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    free(w->peers);
    free(w);
}

void watch_reset(struct watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->peers[i] = (struct peer){.epoch = w->peers[i].epoch};
}

static struct peer *find(struct watch *w, int64_t epoch)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->peers[i].epoch == epoch)
            return &w->peers[i];
    }
    if (w->n == WATCH_PEERS_MAX)
        return NULL;
    w->peers = mem_grow(w->peers, w->n + 1, sizeof(*w->peers));
    w->peers[w->n] = (struct peer){.epoch = epoch};
    return &w->peers[w->n++];
}

static void drop_unlisted(struct watch *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (w->peers[i].is_listed)
            w->peers[kept++] = w->peers[i];
    }
    w->n = kept;
}

void watch_beat(struct watch *w, struct mono now, const struct store_peer *peers, size_t n,
                watch_silent_f *silent, void *arg)
{
    if (w->last.us != 0 && mono_until_us(w->last, now) < WATCH_GAP_MS * 1000)
        return;
    w->last = now;
    for (size_t i = 0; i < w->n; i++)
        w->peers[i].is_listed = false;
    for (size_t i = 0; i < n; i++) {
        struct peer *p = find(w, peers[i].epoch);

        if (p == NULL)
            continue;
        p->is_listed = true;
        if (strcmp(p->counter, peers[i].counter) != 0) {
            text_copy(p->counter, sizeof(p->counter), peers[i].counter);
            p->silent = 0;
        }
        p->silent++;
        if (p->silent >= WATCH_SILENT_BEATS || strcmp(p->counter, "dead") == 0)
            silent(arg, p->epoch, p->counter);
    }
    drop_unlisted(w);
}
