#include "resp.h"

#include <stdlib.h>
#include <string.h>

size_t resp_line(const struct buf *b, size_t at, long *ret_number)
{
    const char *end = at < b->len ? memchr(b->data + at, '\n', b->len - at) : NULL;

    if (end == NULL)
        return 0;
    *ret_number = strtol(b->data + at + 1, NULL, 10);
    return (size_t)(end - b->data) + 1;
}

size_t resp_end(const struct buf *b, size_t at)
{
    long left = 1;

    while (left > 0) {
        long n;
        size_t next = resp_line(b, at, &n);

        if (next == 0)
            return 0;
        left--;
        if (b->data[at] == '*' && n > 0)
            left += n;
        if (b->data[at] == '$' && n >= 0)
            next += (size_t)n + 2;
        at = next;
        if (at > b->len)
            return 0;
    }
    return at;
}

size_t resp_words(const struct buf *b, struct resp_word *ret, size_t most)
{
    long words = 0, len = 0;
    size_t at = resp_line(b, 0, &words);

    for (size_t i = 0; i < most && (long)i < words; i++) {
        size_t text = resp_line(b, at, &len);

        ret[i] = (struct resp_word){b->data + text, (size_t)len};
        at = text + (size_t)len + 2;
    }
    return words > 0 ? (size_t)words : 0;
}
