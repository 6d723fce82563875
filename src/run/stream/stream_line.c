#include "run/stream/stream_line.h"

#include <string.h>

#include "run/report.h"

/* Some languages write CR LF. A CR before the LF belongs to the line end: otherwise it would change
 * the last word, and `ok ID` would be output that ends no job. */
static size_t without_cr(const char *line, size_t n)
{
    return n > 0 && line[n - 1] == '\r' ? n - 1 : n;
}

/* The rest of a text line that is read word by word. */
struct rest {
    const char *p;
    size_t n;
};

/* Take the next word and the one space after it off r. */
static struct rest take_word(struct rest *r)
{
    const char *space = r->n > 0 ? memchr(r->p, ' ', r->n) : NULL;
    struct rest word = {r->p, space != NULL ? (size_t)(space - r->p) : r->n};
    size_t gone = space != NULL ? word.n + 1 : r->n;

    r->p += gone;
    r->n -= gone;
    return word;
}

static bool is_word(struct rest word, const char *text)
{
    return word.n == strlen(text) && memcmp(word.p, text, word.n) == 0;
}

/* At least one digit, only digits, at most max. */
static bool parse_number(struct rest word, int64_t max, int64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9')
            return false;
        *ret = *ret * 10 + (word.p[i] - '0');
        if (*ret > max)
            return false;
    }
    return word.n > 0;
}

static bool begins(struct rest word, const char *text, struct rest *behind)
{
    size_t n = strlen(text);

    if (word.n < n || memcmp(word.p, text, n) != 0)
        return false;
    *behind = (struct rest){word.p + n, word.n - n};
    return true;
}

bool stream_greeting_parse(const char *line, size_t n, struct stream_greeting *ret)
{
    struct rest r, value;
    int64_t number;

    *ret = (struct stream_greeting){.inflight = 1};
    if (!begins((struct rest){line, without_cr(line, n)}, STREAM_GREETING, &r) ||
        !parse_number(take_word(&r), 1000000, &ret->version))
        return false;
    while (r.n > 0) {
        struct rest word = take_word(&r);

        if (begins(word, "inflight=", &value)) {
            if (!parse_number(value, STREAM_INFLIGHT_MAX, &number) || number == 0)
                return false;
            ret->inflight = (unsigned)number;
        } else if (is_word(word, "cancel")) {
            ret->can_cancel = true;
        }
    }
    return true;
}

static enum stream_word word_of(struct rest word)
{
    static const char *const words[] = {"",         "ok",         "retry", "fail", "dead",
                                        "progress", "checkpoint", "alive", "add"};

    for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
        if (is_word(word, words[i]))
            return (enum stream_word)i;
    }
    return STREAM_OTHER;
}

/* Both `retry ID 5m because` and `retry ID because` are allowed: a first word that is no duration
 * belongs to the text. */
static void take_duration(struct rest *r, int64_t *ms)
{
    struct rest behind = *r, word = take_word(&behind);

    if (run_parse_retry_in(word.p, word.n, ms))
        *r = behind;
}

void stream_answer_parse(const char *line, size_t n, struct stream_answer *ret)
{
    struct rest r = {line, without_cr(line, n)}, id;

    *ret = (struct stream_answer){.word = word_of(take_word(&r)), .retry_in_ms = -1};
    if (ret->word != STREAM_OTHER) {
        id = take_word(&r);
        if (id.n == STREAM_ID_LEN && memchr(id.p, '\0', id.n) == NULL)
            memcpy(ret->id, id.p, id.n);
        else if (id.n > 0 || ret->word != STREAM_ALIVE)
            ret->word = STREAM_OTHER;
    }
    if (ret->word == STREAM_RETRY)
        take_duration(&r, &ret->retry_in_ms);
    ret->text = ret->word == STREAM_OTHER ? line : r.p;
    ret->len = ret->word == STREAM_OTHER ? n : r.n;
}
