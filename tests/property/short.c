#include "short.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST 4 /* the first argument of the function */
#define ELEMENTS 11

struct claim {
    int64_t fence;
    struct buf text;
};

static struct short_counts counts;

const struct short_counts *short_counts(void)
{
    return &counts;
}

static int64_t number_at(const struct args *a, int at)
{
    char text[24] = "";

    if (at < a->n && a->arg[at].len < sizeof(text))
        memcpy(text, a->arg[at].data, a->arg[at].len);
    return strtoll(text, NULL, 10);
}

static bool is_step(const struct args *a)
{
    static const char name[] = "later_v1_step";
    size_t n = sizeof(name) - 1;

    return a->n > FIRST + 4 && a->arg[1].len == n && memcmp(a->arg[1].data, name, n) == 0;
}

/* Where NG stands; 0: this is no short step. */
static int groups_at(const struct args *a)
{
    int at = FIRST + 4;

    if (!is_step(a))
        return 0;
    at += 1 + 8 * (int)number_at(a, at);
    at += 1 + 3 * (int)number_at(a, at);
    return at < a->n ? at : 0;
}

static int64_t count_ends(const struct args *a, int at)
{
    int64_t n = 0;

    for (int i = at + 1; i + 1 < a->n; i += 2 + (int)number_at(a, i + 1))
        n += number_at(a, i + 1);
    return n;
}

/* Those of the long ones, then those of the short ones: of these only the refused are told. */
static void render_answers(const struct reply *r, int64_t ends, struct buf *out)
{
    const struct reply *longs = reply_at(r, 2), *refused = reply_at(r, 9);
    size_t next = 0;

    buf_puts(out, "[ ");
    for (size_t i = 0; i < reply_count(longs); i++)
        server_render(out, reply_at(longs, i));
    for (int64_t i = 1; i <= ends; i++) {
        if (next + 1 < reply_count(refused) && reply_int(reply_at(refused, next)) == i) {
            const struct reply *answer = reply_at(refused, next + 1);

            buf_puts(out, reply_is(answer, "ok") ? "!refused " : "");
            server_render(out, answer);
            next += 2;
            counts.refused++;
        } else {
            out_text(out, "ok");
        }
        counts.ends++;
    }
    buf_puts(out, next == reply_count(refused) ? "] " : "!refused ] ");
}

/* Priority 5, no options, a small payload. */
static bool is_plain(const char *queue, const struct reply *record)
{
    char head[96];
    size_t n = (size_t)snprintf(head, sizeof(head), "-%s\n", queue), len = reply_len(record);

    return len >= n && len <= n + MODEL_BIG && memcmp(reply_str(record), head, n) == 0;
}

static void expand(const struct reply *list, size_t i, struct claim *claim)
{
    const char *queue = reply_str(reply_at(list, 0));
    const struct reply *record = reply_at(list, 4 + 3 * i);
    struct buf *out = &claim->text;

    claim->fence = reply_int(reply_at(list, 1)) + 2 * (int64_t)i;
    buf_puts(out, is_plain(queue, record) ? "[ " : "!short [ ");
    server_render(out, reply_at(list, 2 + 3 * i));
    out_text(out, queue);
    out_int(out, 1);
    out_int(out, 1);
    out_int(out, 0);
    out_int(out, claim->fence);
    server_render(out, reply_at(list, 3 + 3 * i));
    server_render(out, record);
    out_int(out, 0);
    buf_puts(out, "] ");
    counts.claims++;
}

static int by_fence(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;

    return (x->fence > y->fence) - (x->fence < y->fence);
}

/* Long and short ones in the order in which they were made: fences rise. */
static void render_claims(const struct reply *r, struct buf *out)
{
    const struct reply *longs = reply_at(r, 3), *lists = reply_at(r, 10);
    size_t n = 0, most = reply_count(longs);
    bool is_well = true;
    struct claim *claim;

    for (size_t i = 0; i < reply_count(lists); i++)
        most += reply_count(reply_at(lists, i)) / 3;
    claim = mem_new((most + 1) * sizeof(*claim));
    for (size_t i = 0; i < reply_count(longs); i++) {
        claim[n].fence = reply_int(reply_at(reply_at(longs, i), 5));
        server_render(&claim[n++].text, reply_at(longs, i));
    }
    for (size_t i = 0; i < reply_count(lists); i++) {
        const struct reply *list = reply_at(lists, i);
        size_t len = reply_count(list);

        is_well = is_well && len > 2 && len % 3 == 2;
        for (size_t k = 0; 3 * k + 4 < len; k++)
            expand(list, k, &claim[n++]);
    }
    if (n > 1)
        qsort(claim, n, sizeof(claim[0]), by_fence);
    buf_puts(out, is_well ? "[ " : "!short [ ");
    for (size_t i = 0; i < n; i++) {
        buf_add(out, claim[i].text.data, claim[i].text.len);
        buf_done(&claim[i].text);
    }
    buf_puts(out, "] ");
    free(claim);
}

void short_render(const struct args *a, const struct reply *r, struct buf *out)
{
    int at = groups_at(a);

    if (at == 0 || reply_count(r) != ELEMENTS) {
        server_render(out, r);
        return;
    }
    buf_puts(out, "[ ");
    for (size_t i = 0; i < ELEMENTS - 2; i++) {
        if (i == 2)
            render_answers(r, count_ends(a, at), out);
        else if (i == 3)
            render_claims(r, out);
        else
            server_render(out, reply_at(r, i));
    }
    buf_puts(out, "] ");
}
