#include "daemon/log_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void put_field(const struct log_event *r, const struct log_field *f, size_t *budget,
                      json_t *line)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;
    char key[256];

    (void)snprintf(key, sizeof(key), "%.*s", f->key_len, f->key);
    if (!log_field_show(r, f, budget, &shown))
        (void)json_object_set_new(line, "cut", json_true());
    (void)json_object_set_new(line, key,
                              f->is_number ? json_integer(strtoll(buf_str(&shown), NULL, 10))
                                           : json_stringn(buf_str(&shown), shown.len));
}

void log_json(const struct log_event *r, const char *when, int64_t worker, struct buf *out)
{
    CLEANUP_FREE char *text = NULL;
    json_t *line = json_object();
    size_t budget = LOG_SHOWN_MAX;

    (void)json_object_set_new(line, "time", json_string(when));
    (void)json_object_set_new(line, "level", json_string(log_level_name(r->level)));
    if (worker != 0)
        (void)json_object_set_new(line, "worker", json_integer(worker));
    if (r->dropped > 0)
        (void)json_object_set_new(line, "dropped_lines", json_integer((json_int_t)r->dropped));
    if (r->is_cut)
        (void)json_object_set_new(line, "cut", json_true());
    for (unsigned i = 0; i < r->nfields; i++)
        put_field(r, &r->fields[i], &budget, line);
    text = json_dumps(line, JSON_COMPACT);
    buf_puts(out, text != NULL ? text : "{}");
    json_decref(line);
}
