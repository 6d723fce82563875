#include "cli/show/failures.h"

#include <string.h>

#include "base/text.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

struct failure {
    int64_t when_ms, epoch, code;
    char host[256];   /* "-": unknown */
    const char *text; /* not NUL-ended */
    size_t len;
};

/* Read the line at *at and move behind it. False at the end, and at what is no such line. */
static bool next_failure(const char **at, struct failure *ret)
{
    const char *p = *at, *end = p + strcspn(p, "\n");
    size_t n = (size_t)(end - p);

    if (!text_take_int(&p, &n, &ret->when_ms) || !text_take_int(&p, &n, &ret->epoch) ||
        !text_take_word(&p, &n, ret->host, sizeof(ret->host)) || !text_take_int(&p, &n, &ret->code))
        return false;
    ret->text = p;
    ret->len = n;
    *at = end + (*end == '\n');
    return true;
}

void failures_show(const struct reply *value, int64_t now_ms)
{
    const char *at = reply_str(value), *label = "failed attempts";
    struct failure f;
    char when[48];

    while (value != NULL && next_failure(&at, &f)) {
        out_label(label);
        out_printf("%s, on ",
                   now_ms != 0 ? out_when(f.when_ms, now_ms, when) : out_instant(f.when_ms, when));
        out_text(f.host, strlen(f.host));
        out_printf(" (worker %lld): ", (long long)f.epoch);
        out_text(f.text, f.len);
        out_printf("\n");
        label = "";
    }
}

json_t *failures_to_json(const struct reply *value)
{
    const char *at = reply_str(value);
    json_t *list = NULL;
    struct failure f;

    while (value != NULL && next_failure(&at, &f)) {
        json_t *object = json_object();

        json_put_int(object, "when_ms", f.when_ms);
        json_put_int(object, "worker", f.epoch);
        json_put_text(object, "host", f.host, strlen(f.host));
        json_put_int(object, "code", f.code);
        json_put_text(object, "reason", f.text, f.len);
        list = list != NULL ? list : json_array();
        (void)json_array_append_new(list, object);
    }
    return list;
}
