#include "cli/show/json.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/out.h"

static int marked = -1; /* the shard, -1: none */

void json_mark_shard(int shard)
{
    marked = shard;
}

void json_print(json_t *value)
{
    CLEANUP_BUF struct buf line = BUF_INIT;

    if (marked >= 0 && json_is_object(value))
        json_put_int(value, "shard", marked);
    json_write(&line, value);
    buf_puts(&line, "\n");
    out_bytes(line.data, line.len);
    json_decref(value);
}
