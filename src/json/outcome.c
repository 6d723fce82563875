#include "json/outcome.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "json/put.h"

int outcome_parse(const char *p, size_t n, struct outcome *ret)
{
    const char *all_end = p + n;
    const char *lf = n > 0 ? memchr(p, '\n', n) : NULL;
    size_t left = lf != NULL ? (size_t)(lf - p) : n;

    memset(ret, 0, sizeof(*ret));
    if (n == 0 || !text_take_word(&p, &left, ret->state, sizeof(ret->state)) ||
        !text_take_int(&p, &left, &ret->code) || !text_take_int(&p, &left, &ret->when_ms) ||
        !text_take_int(&p, &left, &ret->start) || p[-1] != ' ')
        return -1;
    ret->reason = p;
    ret->reason_len = left;
    ret->output = lf != NULL ? lf + 1 : all_end;
    ret->output_len = (size_t)(all_end - ret->output);
    return 0;
}

int outcome_of_reply(const struct reply *r, struct outcome *ret)
{
    const struct reply *state = reply_at(r, 0);

    memset(ret, 0, sizeof(*ret));
    if (reply_count(r) != 6 || reply_len(state) == 0 || reply_len(state) >= sizeof(ret->state))
        return -1;
    memcpy(ret->state, reply_str(state), reply_len(state));
    ret->code = reply_int(reply_at(r, 1));
    ret->when_ms = reply_int(reply_at(r, 2));
    ret->start = reply_int(reply_at(r, 3));
    ret->reason = reply_str(reply_at(r, 4));
    ret->reason_len = reply_len(reply_at(r, 4));
    ret->output = reply_str(reply_at(r, 5));
    ret->output_len = reply_len(reply_at(r, 5));
    return 0;
}

void outcome_to_json(const struct outcome *o, json_t *object)
{
    json_put_text(object, "state", o->state, strlen(o->state));
    json_put_int(object, "code", o->code);
    json_put_int(object, "when_ms", o->when_ms);
    json_put_int(object, "start", o->start);
    json_put_text(object, "text", o->reason, o->reason_len);
    if (o->output_len > 0)
        json_put_bytes(object, "output", o->output, o->output_len);
}
