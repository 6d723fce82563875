#include "json/tail_event.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "json/put.h"

static bool take_int(const char **p, size_t *n, int64_t *ret)
{
    char word[24];

    if (!text_take_word(p, n, word, sizeof(word)))
        return false;
    *ret = -1;
    return strcmp(word, "-") == 0 || text_parse_int(word, 0, INT64_C(1) << 53, ret) == 0;
}

int tail_page_parse(const char *line, size_t n, struct tail_page *ret)
{
    char version[4];

    if (!text_take_word(&line, &n, version, sizeof(version)) || strcmp(version, "1") != 0 ||
        !take_int(&line, &n, &ret->now_ms) || !take_int(&line, &n, &ret->left_out))
        return -1;
    return n == 0 && ret->now_ms >= 0 && ret->left_out >= 0 ? 0 : -1;
}

static bool is_word(const char *s)
{
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

int tail_event_parse(const char *line, size_t n, struct tail_event *ret)
{
    if (!text_take_word(&line, &n, ret->event, sizeof(ret->event)) || !is_word(ret->event) ||
        !text_take_word(&line, &n, ret->id, sizeof(ret->id)) || !is_word(ret->id) ||
        !text_take_word(&line, &n, ret->queue, sizeof(ret->queue)) ||
        (strcmp(ret->queue, "-") != 0 && !text_is_queue_name(ret->queue, strlen(ret->queue))))
        return -1;
    for (int i = 0; i < TAIL_NUMBERS; i++)
        if (!take_int(&line, &n, &ret->numbers[i]))
            return -1;
    ret->text = line;
    ret->text_len = n == 1 && *line == '-' ? 0 : n;
    return 0;
}

json_t *tail_event_to_json(const struct tail_event *e, int64_t now_ms)
{
    static const char *const names[TAIL_NUMBERS] = {"due_ms", "start", "attempt", "code"};
    json_t *line = json_object();

    json_put_int(line, "time_ms", now_ms);
    json_put_text(line, "event", e->event, strlen(e->event));
    json_put_text(line, "id", e->id, strlen(e->id));
    if (strcmp(e->queue, "-") != 0)
        json_put_text(line, "queue", e->queue, strlen(e->queue));
    for (int i = 0; i < TAIL_NUMBERS; i++)
        if (e->numbers[i] >= 0)
            json_put_int(line, names[i], e->numbers[i]);
    if (e->text_len > 0)
        json_put_text(line, "text", e->text, e->text_len);
    return line;
}
