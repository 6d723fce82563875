/* The head of an HTTP request: what is let in has one meaning, however its bytes come in pieces. */
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "web/head.h"

static const char *const hosts[] = {"127.0.0.1:8377", "localhost:8377", NULL};

/* How many header lines have this name, read without head.c. */
static int count(const char *p, const char *end, const char *name)
{
    size_t n = strlen(name);
    int found = 0;

    while ((p = memmem(p, (size_t)(end - p), "\r\n", 2)) != NULL) {
        p += 2;
        found += (size_t)(end - p) > n && strncasecmp(p, name, n) == 0 && p[n] == ':';
    }
    return found;
}

/* Nothing that one reader could take for the end of a line, or for a header, and another not. */
static void check_good(const char *p, const char *end)
{
    const char *line = memmem(p, (size_t)(end - p), "\r\n", 2), *version;

    FUZZ_MUST(line != NULL && line - p > 9);
    version = line - 9;
    FUZZ_MUST(memcmp(version, " HTTP/1.1", 9) == 0);
    FUZZ_MUST(memcmp(p, "GET /", 5) == 0 || memcmp(p, "HEAD /", 6) == 0 ||
              memcmp(p, "POST /", 6) == 0);
    FUZZ_MUST(memchr(strchr(p, '/'), ' ', (size_t)(version - strchr(p, '/'))) == NULL);
    for (const char *c = p; c < end; c++) {
        FUZZ_MUST(*c != '\0');
        FUZZ_MUST((*c == '\r') == (c + 1 < end && c[1] == '\n'));
        FUZZ_MUST(*c != '\n' || c + 1 == end || (c[1] != ' ' && c[1] != '\t'));
    }
    FUZZ_MUST(count(p, end, "Host") == 1);
    FUZZ_MUST(count(p, end, "Content-Length") <= 1);
    FUZZ_MUST(count(p, end, "Content-Length") == 1 || memcmp(p, "POST", 4) != 0);
    FUZZ_MUST(count(p, end, "Transfer-Encoding") == 0);
    FUZZ_MUST(count(p, end, "Upgrade") == 0);
}

static void check(const char *p, size_t n, const struct head_rules *rules)
{
    struct head_refusal whole, part;
    enum head_state state = head_check(p, n, rules, &whole);
    const char *end = n > 0 ? memmem(p, n, "\r\n\r\n", 4) : NULL;

    FUZZ_MUST((state == HEAD_REFUSED) == (whole.status >= 400 && whole.text != NULL));
    if (state == HEAD_GOOD) {
        FUZZ_MUST(end != NULL);
        check_good(p, end + 4);
    }
    if (state == HEAD_MORE)
        FUZZ_MUST(n < HEAD_MAX && end == NULL);
    /* With fewer bytes it is never let in when the whole is not. Not all lengths: it would take
     * seconds. */
    for (size_t k = 0; k < n; k += 1 + n / 64) {
        enum head_state early = head_check(p, k, rules, &part);

        if (early == HEAD_MORE)
            continue;
        FUZZ_MUST(early == state);
        FUZZ_MUST(part.status == whole.status && part.text == whole.text);
        break;
    }
}

int fuzz_head(const uint8_t *data, size_t n)
{
    const struct head_rules named = {hosts, false}, any = {hosts, true};

    n = n > HEAD_MAX ? HEAD_MAX : n; /* the door looks at no more */
    check((const char *)data, n, &named);
    check((const char *)data, n, &any);
    return 0;
}
