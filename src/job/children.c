#include "job/children.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LEN_DIGITS 15

void children_done(struct children *c)
{
    buf_done(&c->bytes);
    free(c->lens);
    free(c->counts);
    memset(c, 0, sizeof(*c));
}

struct children *children_copy(const struct children *c)
{
    struct children *copy;

    if (c->n == 0)
        return NULL;
    copy = mem_new(sizeof(*copy));
    buf_add(&copy->bytes, c->bytes.data, c->bytes.len);
    copy->lens = (size_t *)(void *)mem_dup(c->lens, c->nwords * sizeof(*c->lens));
    copy->counts = (size_t *)(void *)mem_dup(c->counts, c->n * sizeof(*c->counts));
    copy->nwords = c->nwords;
    copy->n = c->n;
    copy->payloads = c->payloads;
    return copy;
}

void children_free(struct children *c)
{
    if (c != NULL)
        children_done(c);
    free(c);
}

void children_refuse(struct children *c, const char *text)
{
    if (c->refusal == NULL)
        c->refusal = text;
}

static void add_word(struct children *c, const char *p, size_t n)
{
    c->lens = mem_grow(c->lens, c->nwords + 1, sizeof(*c->lens));
    c->lens[c->nwords++] = n;
    buf_add(&c->bytes, p, n);
}

/* Is there room for one more child with a payload of so many bytes? */
static bool has_room(struct children *c, size_t bytes)
{
    if (c->n == CHILDREN_MAX)
        children_refuse(c, "it adds more than 1,000 jobs");
    else if (bytes > CHILDREN_BYTES - c->payloads)
        children_refuse(c, "the payloads of the jobs that it adds have more than 1 MiB");
    return c->refusal == NULL;
}

static void count_child(struct children *c, size_t words, size_t payload)
{
    c->counts = mem_grow(c->counts, c->n + 1, sizeof(*c->counts));
    c->counts[c->n++] = words;
    c->payloads += payload;
}

void children_add(struct children *c, const char *const *words, const size_t *lens, size_t n)
{
    if (n < 2 || n > CHILDREN_WORDS_MAX) {
        children_refuse(c, "an add needs a queue and a payload, and at most 31 options");
        return;
    }
    if (!has_room(c, lens[n - 1]))
        return;
    for (size_t i = 0; i < n; i++)
        add_word(c, words[i], lens[i]);
    count_child(c, n, lens[n - 1]);
}

/* ---- lines */

/* What stands before the payload. */
struct header {
    const char *words[CHILDREN_WORDS_MAX];
    size_t lens[CHILDREN_WORDS_MAX];
    size_t n;
    const char *payload; /* of `-- PAYLOAD`; NULL: `len N` */
    size_t payload_len;
};

static bool is_word(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(p, word, n) == 0;
}

/* The value of `len`. False: it is no number. */
static bool read_len(const char *p, size_t n, size_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *ret = 10 * *ret + (size_t)(p[i] - '0');
    }
    return n > 0 && n <= LEN_DIGITS;
}

/* QUEUE, then pairs, then `--` or `len N` in the place of a name. -> why not, or NULL */
static const char *read_header(const char *line, size_t n, struct header *h)
{
    const char *at = line, *end = line + n;

    while (at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        const char *stop = space != NULL ? space : end;
        size_t len = (size_t)(stop - at);

        if (h->n % 2 == 1 && is_word(at, len, "--")) {
            h->payload = space != NULL ? space + 1 : end;
            h->payload_len = (size_t)(end - h->payload);
            return NULL;
        }
        if (h->n % 2 == 1 && is_word(at, len, "len") && space != NULL)
            return read_len(space + 1, (size_t)(end - space) - 1, &h->payload_len)
                       ? NULL
                       : "len of an add is no number of bytes";
        if (h->n == CHILDREN_WORDS_MAX - 1)
            return "an add has too many words";
        h->words[h->n] = at;
        h->lens[h->n++] = len;
        at = space != NULL ? space + 1 : end;
    }
    return "an add has neither `-- PAYLOAD` nor `len N`";
}

int children_line(struct children *c, const char *line, size_t n, bool cut, size_t *ret_len)
{
    struct header h = {.n = 0};
    const char *why = cut ? "a line of an add is too long: give the payload with len N"
                          : read_header(line, n, &h);

    *ret_len = 0;
    if (why != NULL) {
        children_refuse(c, why);
        return -1;
    }
    if (h.payload != NULL) {
        h.words[h.n] = h.payload;
        h.lens[h.n++] = h.payload_len;
        children_add(c, h.words, h.lens, h.n);
        return 0;
    }
    if (n > CHILDREN_HEADER_BYTES)
        children_refuse(c, "a line of an add has more than 2,048 bytes");
    c->awaits_lf = true;
    *ret_len = h.payload_len;
    if (has_room(c, h.payload_len)) {
        for (size_t i = 0; i < h.n; i++)
            add_word(c, h.words[i], h.lens[i]);
        add_word(c, "", 0);
        count_child(c, h.n + 1, h.payload_len);
    }
    return 0;
}

void children_payload(struct children *c, const char *p, size_t n)
{
    if (c->refusal != NULL)
        return;
    buf_add(&c->bytes, p, n);
    c->lens[c->nwords - 1] += n;
}

bool children_end_payload(struct children *c, size_t n)
{
    bool was_awaited = c->awaits_lf;

    c->awaits_lf = false;
    if (was_awaited && n > 0)
        children_refuse(c, "the payload of an add is longer than its len says");
    return was_awaited && n == 0;
}

void children_end(struct children *c, bool is_half_line)
{
    if (is_half_line || c->awaits_lf)
        children_refuse(c, "an add was cut off by the end of its handler");
}
