#include "short.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST 4 /* index of the function's first argument */
#define GROUP_COMMON 6
#define GROUP_HEAD 2 /* words of a group of ended jobs before its number of ids */
#define VALUES 11

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

static bool is_call(const struct args *a, const char *name)
{
    size_t n = strlen(name);

    return a->n > FIRST + 4 && a->arg[1].len == n && memcmp(a->arg[1].data, name, n) == 0;
}

/* The index of NG; 0: there is none. */
static int groups_at(const struct args *a)
{
    int at = FIRST + 4;

    if (!is_call(a, "later_v1_sync"))
        return 0;
    at += 1 + 8 * (int)number_at(a, at);
    at += 1 + 3 * (int)number_at(a, at);
    return at < a->n ? at : 0;
}

/* How many results are in the groups. */
static int64_t count_ends(const struct args *a, int at)
{
    int64_t n = 0, groups = number_at(a, at++);

    for (; groups > 0; groups--) {
        int64_t ids = number_at(a, at + GROUP_HEAD);

        n += ids;
        at += GROUP_HEAD + 1 + (int)ids;
    }
    return n;
}

/* An answer. Of a child that is refused, only the code is told. */
static void render_answer(const struct reply *r, struct buf *out)
{
    static const char begin[] = "refused child ";
    const char *code;

    if (reply_kind(r) != REPLY_STR || strncmp(reply_str(r), begin, sizeof(begin) - 1) != 0 ||
        (code = strstr(reply_str(r), ": ")) == NULL) {
        server_render(out, r);
        return;
    }
    code += 2;
    out_bytes(out, reply_str(r), (size_t)(code - reply_str(r)) + strcspn(code, " "));
}

/* The answers to the long results, then those to the groups: there only refused ones are told. */
static void render_answers(const struct reply *r, int64_t ends, struct buf *out)
{
    const struct reply *told = reply_at(r, 2), *refused = reply_at(r, 9);
    size_t next = 0;

    buf_puts(out, "[ ");
    for (size_t i = 0; i < reply_count(told); i++)
        render_answer(reply_at(told, i), out);
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

/* The i-th claim of a group in the form of a single claim. */
static void expand(const struct reply *group, size_t i, struct buf *out)
{
    buf_puts(out, "[ ");
    server_render(out, reply_at(group, GROUP_COMMON + 3 * i));
    server_render(out, reply_at(group, 0));
    for (size_t k = 2; k < 5; k++)
        server_render(out, reply_at(group, k));
    out_int(out, reply_int(reply_at(group, 1)) + 2 * (int64_t)i);
    server_render(out, reply_at(group, GROUP_COMMON + 3 * i + 1));
    server_render(out, reply_at(group, GROUP_COMMON + 3 * i + 2));
    server_render(out, reply_at(group, 5));
    buf_puts(out, "] ");
    counts.claims++;
}

static void render_groups(const struct reply *groups, struct buf *out)
{
    buf_puts(out, "[ ");
    for (size_t i = 0; i < reply_count(groups); i++) {
        const struct reply *group = reply_at(groups, i);
        size_t len = reply_count(group);

        if (len < GROUP_COMMON + 3 || len % 3 != 0)
            buf_puts(out, "!group ");
        for (size_t k = 0; GROUP_COMMON + 3 * k + 2 < len; k++)
            expand(group, k, out);
    }
    buf_puts(out, "] ");
}

void short_render(const struct args *a, const struct reply *r, struct buf *out)
{
    int at = groups_at(a);

    if (at == 0 || reply_count(r) != VALUES) {
        server_render(out, r);
        return;
    }
    buf_puts(out, "[ ");
    for (size_t i = 0; i < 9; i++) {
        if (i == 2)
            render_answers(r, count_ends(a, at), out);
        else if (i == 3)
            render_groups(reply_at(r, 3), out);
        else
            server_render(out, reply_at(r, i));
    }
    server_render(out, reply_at(r, 10)); /* refused, at 9, is among the answers */
    buf_puts(out, "] ");
}
