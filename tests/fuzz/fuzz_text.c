/* Text from outside: shown text contains nothing that a terminal obeys, and parsed text is read
 * back the same. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "fuzz.h"
#include "redis/error_reply.h"
#include "redis/url.h"

static void check_shown(const struct buf *b)
{
    for (size_t i = 0; i < b->len;) {
        const unsigned char *s = (const unsigned char *)b->data + i;
        size_t len = text_utf8_len(s, b->len - i);

        FUZZ_MUST(len > 0);
        FUZZ_MUST(s[0] >= 0x20 && s[0] != 0x7f);
        FUZZ_MUST(!(len == 2 && s[0] == 0xc2 && s[1] < 0xa0)); /* C1 */
        i += len;
    }
}

static void escape(const uint8_t *data, size_t n)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;
    size_t max = n > 0 ? data[0] : 0;

    text_escape(&shown, data, n);
    FUZZ_MUST(shown.len <= 4 * n);
    check_shown(&shown);
    if (max < 3)
        return;
    text_cut(&shown, max);
    FUZZ_MUST(shown.len <= max);
    check_shown(&shown);
}

static void numbers(const char *s)
{
    char text[24];
    int64_t v, again;

    if (text_parse_int(s, INT64_MIN, INT64_MAX, &v) == 0 && s[0] != '-')
        FUZZ_MUST(v >= 0);
    if (text_parse_int(s, -5, 5, &v) == 0)
        FUZZ_MUST(v >= -5 && v <= 5);
    if (text_parse_duration(s, &v) == 0) {
        FUZZ_MUST(v >= 0);
        FUZZ_MUST(text_parse_duration(text_duration(v, text), &again) == 0 && again == v);
    }
    if (text_parse_size(s, &v) == 0) {
        FUZZ_MUST(v >= 0);
        FUZZ_MUST(text_parse_size(text_size(v, text), &again) == 0 && again == v);
    }
}

static void words(const char *s)
{
    static const char *const names[] = {"priority", "attempts", "timeout", "key", NULL};
    struct err err = ERR_INIT;

    (void)text_nearest(s, names);
    (void)error_class_name(error_reply_class(s));
    FUZZ_MUST(error_reply_err(&err, s) == -1);
    FUZZ_MUST(memchr(err.text, '\0', sizeof(err.text)) != NULL);
}

static void address(const char *s)
{
    struct err err = ERR_INIT;
    struct url url;
    char shown[320];

    if (url_parse(s, &url, &err) < 0) {
        FUZZ_MUST(err.code == ERR_CONFIG && err.text[0] != '\0');
        return;
    }
    FUZZ_MUST(url.password[0] == '\0' && url.db >= 0);
    /* It names a place, or those who know one. */
    FUZZ_MUST((url.host[0] != '\0') + (url.sentinels[0] != '\0') + (url.nodes[0] != '\0') == 1);
    FUZZ_MUST((url.sentinels[0] != '\0') == (url.master[0] != '\0'));
    FUZZ_MUST(url.is_unix || url.host[0] == '\0' || (url.port > 0 && url.port < 65536));
    FUZZ_MUST(strlen(url_show(&url, shown)) < sizeof(shown));
}

int fuzz_text(const uint8_t *data, size_t n)
{
    char *s = mem_dup(data, n);

    escape(data, n);
    (void)text_is_queue_name((const char *)data, n);
    numbers(s);
    words(s);
    address(s);
    free(s);
    return 0;
}
