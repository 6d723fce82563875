#include "cli/show/json.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/out.h"

void json_print(json_t *value)
{
    CLEANUP_BUF struct buf line = BUF_INIT;

    json_write(&line, value);
    buf_puts(&line, "\n");
    out_bytes(line.data, line.len);
    json_decref(value);
}
