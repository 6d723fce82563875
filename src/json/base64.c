#include "json/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i += 3) {
        unsigned word = (unsigned)p[i] << 16;
        char four[4];

        if (i + 1 < n)
            word |= (unsigned)p[i + 1] << 8;
        if (i + 2 < n)
            word |= p[i + 2];
        for (int k = 0; k < 4; k++)
            four[k] = digits[word >> (18 - 6 * k) & 63];
        if (i + 2 >= n)
            four[3] = '=';
        if (i + 1 >= n)
            four[2] = '=';
        buf_add(out, four, 4);
    }
}

/* The bits of a digit, -1 for any other character. */
static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

int base64_get(struct buf *out, const char *p, size_t n)
{
    size_t pad = 0;

    if (n % 4 != 0)
        return -1;
    while (pad < 2 && pad < n && p[n - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < n; i += 4) {
        size_t bytes = i + 4 == n ? 3 - pad : 3;
        unsigned word = 0;
        char three[3];

        for (size_t k = 0; k < 4; k++) {
            int value = k <= bytes ? value_of(p[i + k]) : 0;

            if (value < 0)
                return -1;
            word = word << 6 | (unsigned)value;
        }
        /* The unused bits after the last byte must be 0. */
        if ((word & ((1U << 8 * (3 - bytes)) - 1)) != 0)
            return -1;
        for (size_t k = 0; k < bytes; k++)
            three[k] = (char)(word >> (16 - 8 * k) & 255);
        buf_add(out, three, bytes);
    }
    return 0;
}
