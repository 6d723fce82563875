#include "web/head.h"

#include <string.h>
#include <strings.h>

/* What the headers said that have been read. */
struct seen {
    int hosts, lengths, types, sites;
    bool is_post, has_body, is_json, is_same_site;
};

static enum head_state refuse(struct head_refusal *ret, unsigned status, const char *text)
{
    *ret = (struct head_refusal){status, text};
    return HEAD_REFUSED;
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* A value may hold tabs and any bytes above blanks; a control character ends a line for some. */
static bool is_clean(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_word(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(p, word, n) == 0;
}

/* Does the path stay where it is? No empty segment and none of dots. A name may hold %2F: segments
 * are cut before they are decoded. */
static bool is_plain_path(const char *p, size_t n)
{
    size_t segment = 0;

    for (size_t i = 1; i <= n; i++) {
        if (i < n && p[i] == '%' &&
            (n - i < 3 || strncmp(p + i, "%00", 3) == 0 || strncasecmp(p + i, "%2e", 3) == 0))
            return false;
        if (i < n && p[i] == '\\')
            return false;
        if (i < n && p[i] != '/') {
            segment++;
            continue;
        }
        if ((segment == 0 && i < n) || (segment == 1 && p[i - 1] == '.') ||
            (segment == 2 && p[i - 1] == '.' && p[i - 2] == '.'))
            return false;
        segment = 0;
    }
    return true;
}

static enum head_state check_target(const char *p, size_t n, struct head_refusal *ret)
{
    const char *query = memchr(p, '?', n);
    size_t path = query != NULL ? (size_t)(query - p) : n;

    if (n > HEAD_TARGET_MAX)
        return refuse(ret, 414, "the address is longer than 2048 bytes");
    if (n == 0 || p[0] != '/')
        return refuse(ret, 400, "the address must begin with /");
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] <= ' ' || (unsigned char)p[i] >= 0x7f)
            return refuse(ret, 400, "the address has bytes that are not encoded");
    }
    if (!is_plain_path(p, path))
        return refuse(ret, 400, "the address leaves its folder");
    return HEAD_GOOD;
}

/* METHOD SP TARGET SP HTTP/1.1 */
static enum head_state check_request_line(const char *p, size_t n, struct seen *seen,
                                          struct head_refusal *ret)
{
    const char *blank = memchr(p, ' ', n), *last;
    size_t method;

    if (blank == NULL)
        return refuse(ret, 400, "the request line is not METHOD ADDRESS HTTP/1.1");
    method = (size_t)(blank - p);
    last = memrchr(p, ' ', n);
    if (!is_word(last + 1, n - (size_t)(last - p) - 1, "HTTP/1.1") ||
        strncmp(last + 1, "HTTP/1.1", 8) != 0)
        return refuse(ret, 505, "only HTTP/1.1 is spoken here");
    seen->is_post = method == 4 && strncmp(p, "POST", 4) == 0;
    if (!seen->is_post && (method != 3 || strncmp(p, "GET", 3) != 0) &&
        (method != 4 || strncmp(p, "HEAD", 4) != 0))
        return refuse(ret, 405, "the methods here are GET, HEAD and POST");
    if (last == blank)
        return refuse(ret, 400, "the request line has no address");
    return check_target(blank + 1, (size_t)(last - blank) - 1, ret);
}

static bool is_known_host(const char *p, size_t n, const struct head_rules *rules)
{
    if (rules->any_host)
        return true;
    for (size_t i = 0; rules->hosts[i] != NULL; i++)
        if (is_word(p, n, rules->hosts[i]))
            return true;
    return false;
}

static enum head_state check_length(const char *p, size_t n, struct seen *seen,
                                    struct head_refusal *ret)
{
    size_t length = 0;

    if (n == 0 || n > 10 || strspn(p, "0123456789") < n)
        return refuse(ret, 400, "Content-Length is no number");
    for (size_t i = 0; i < n; i++)
        length = length * 10 + (size_t)(p[i] - '0');
    if (length > HEAD_BODY_MAX)
        return refuse(ret, 413, "the body is longer than 64 KiB");
    seen->has_body = length > 0;
    return HEAD_GOOD;
}

static enum head_state check_value(const char *name, size_t n, const char *value, size_t len,
                                   const struct head_rules *rules, struct seen *seen,
                                   struct head_refusal *ret)
{
    if (is_word(name, n, "Host"))
        return ++seen->hosts > 1 ? refuse(ret, 400, "there is more than one Host")
               : is_known_host(value, len, rules)
                   ? HEAD_GOOD
                   : refuse(ret, 421,
                            "this Host is none of web.hosts: add it there if it is yours");
    if (is_word(name, n, "Content-Length"))
        return ++seen->lengths > 1 ? refuse(ret, 400, "there is more than one Content-Length")
                                   : check_length(value, len, seen, ret);
    if (is_word(name, n, "Transfer-Encoding"))
        return refuse(ret, 400, "Transfer-Encoding is not accepted: send Content-Length");
    if (is_word(name, n, "Upgrade"))
        return refuse(ret, 400, "no other protocol is spoken here");
    if (is_word(name, n, "Content-Type")) {
        seen->types++;
        seen->is_json = is_word(value, len, "application/json");
    } else if (is_word(name, n, "Sec-Fetch-Site")) {
        seen->sites++;
        seen->is_same_site = is_word(value, len, "same-origin");
    }
    return HEAD_GOOD;
}

static enum head_state check_header(const char *p, size_t n, const struct head_rules *rules,
                                    struct seen *seen, struct head_refusal *ret)
{
    const char *colon = memchr(p, ':', n);
    size_t name = colon != NULL ? (size_t)(colon - p) : 0, from, to = n;

    if (p[0] == ' ' || p[0] == '\t')
        return refuse(ret, 400, "a header goes on in a second line");
    if (name == 0)
        return refuse(ret, 400, "a header line has no name");
    for (size_t i = 0; i < name; i++) {
        if (!is_token_char(p[i]))
            return refuse(ret, 400, "the name of a header has characters that it may not have");
    }
    if (!is_clean(p, n))
        return refuse(ret, 400, "a header has control characters");
    for (from = name + 1; from < n && (p[from] == ' ' || p[from] == '\t');)
        from++;
    while (to > from && (p[to - 1] == ' ' || p[to - 1] == '\t'))
        to--;
    return check_value(p, name, p + from, to - from, rules, seen, ret);
}

static enum head_state check_whole(const struct seen *seen, struct head_refusal *ret)
{
    if (seen->hosts == 0)
        return refuse(ret, 400, "there is no Host");
    if (!seen->is_post && seen->has_body)
        return refuse(ret, 400, "only a POST has a body");
    if (!seen->is_post)
        return HEAD_GOOD;
    if (seen->lengths == 0)
        return refuse(ret, 411, "a POST needs Content-Length");
    if (seen->types != 1 || !seen->is_json)
        return refuse(ret, 415, "a POST is Content-Type: application/json");
    /* Every browser of today says it; without it there is no browser. */
    if (seen->sites > 1 || (seen->sites == 1 && !seen->is_same_site))
        return refuse(ret, 403, "a page of another site may not write here");
    return HEAD_GOOD;
}

/* The end of the line at p: its CR. NULL: it is not complete, or *ret says what is wrong. */
static const char *line_end(const char *p, const char *end, struct head_refusal *ret)
{
    const char *lf = memchr(p, '\n', (size_t)(end - p));

    if (lf == NULL)
        return NULL;
    if (lf == p || lf[-1] != '\r')
        (void)refuse(ret, 400, "a line ends without CR");
    return lf == p || lf[-1] != '\r' ? NULL : lf - 1;
}

enum head_state head_check(const char *p, size_t n, const struct head_rules *rules,
                           struct head_refusal *ret)
{
    struct seen seen = {.hosts = 0};
    const char *end = p + n, *cr;

    *ret = (struct head_refusal){0, NULL};
    for (bool is_first = true; (cr = line_end(p, end, ret)) != NULL; p = cr + 2, is_first = false) {
        size_t len = (size_t)(cr - p);
        enum head_state state;

        if (len == 0 && is_first)
            return refuse(ret, 400, "the request line is empty");
        if (len == 0)
            return check_whole(&seen, ret);
        state = is_first ? check_request_line(p, len, &seen, ret)
                         : check_header(p, len, rules, &seen, ret);
        if (state != HEAD_GOOD)
            return state;
    }
    if (ret->status != 0)
        return HEAD_REFUSED;
    return n >= HEAD_MAX ? refuse(ret, 431, "the head is longer than 8 KiB") : HEAD_MORE;
}
