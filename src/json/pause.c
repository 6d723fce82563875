#include "json/pause.h"

#include <stdio.h>
#include <string.h>

#include "json/put.h"

bool pause_read(const struct reply *r, struct pause *ret)
{
    int at = 0;

    if (sscanf(reply_str(r), "%18lld %18lld %209s%n", &ret->until_ms, &ret->since_ms, ret->by,
               &at) != 3)
        return false;
    ret->reason = reply_str(r) + at + (reply_str(r)[at] == ' ');
    return true;
}

json_t *pause_to_json(const struct pause *pause)
{
    json_t *of = json_object();

    if (pause->until_ms != 0)
        json_put_int(of, "until_ms", pause->until_ms);
    json_put_int(of, "since_ms", pause->since_ms);
    json_put_text(of, "by", pause->by, strlen(pause->by));
    json_put_text(of, "reason", pause->reason, strlen(pause->reason));
    return of;
}
