#include "sched/silence.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

struct peer {
    int64_t epoch;
    char counter[24];
    unsigned beats; /* our beats that saw this counter, the first one included */
    bool is_listed;
};

struct silence {
    struct peer *peers;
    size_t n;
    struct mono last; /* the last beat that was counted; us 0: none */
};

struct silence *silence_new(void)
{
    return mem_new(sizeof(struct silence));
}

void silence_free(struct silence *w)
{
    if (w == NULL)
        return;
    free(w->peers);
    free(w);
}

void silence_reset(struct silence *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->peers[i] = (struct peer){.epoch = w->peers[i].epoch};
}

static struct peer *find(struct silence *w, int64_t epoch)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->peers[i].epoch == epoch)
            return &w->peers[i];
    }
    if (w->n == SILENCE_PEERS_MAX)
        return NULL;
    w->peers = mem_grow(w->peers, w->n + 1, sizeof(*w->peers));
    w->peers[w->n] = (struct peer){.epoch = epoch};
    return &w->peers[w->n++];
}

static void drop_unlisted(struct silence *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (w->peers[i].is_listed)
            w->peers[kept++] = w->peers[i];
    }
    w->n = kept;
}

void silence_beat(struct silence *w, struct mono now, const struct store_peer *peers, size_t n,
                  silence_found_f *found, void *arg)
{
    if (w->last.us != 0 && mono_until_us(w->last, now) < SILENCE_GAP_MS * 1000)
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
            p->beats = 0;
        }
        p->beats++;
        if (p->beats >= SILENCE_BEATS || strcmp(p->counter, "dead") == 0)
            found(arg, p->epoch, p->counter);
    }
    drop_unlisted(w);
}
