#include "cli/show/fields.h"

#include "base/text.h"
#include "cli/show/out.h"

void fields_put_instant(int64_t ms, int64_t now_ms)
{
    char instant[48], when[48];

    out_printf("%s", out_instant(ms, instant));
    if (now_ms != 0)
        out_printf(" (%s)", out_when(ms, now_ms, when));
}

static void put_value(const struct field *f, const struct reply *value, int64_t now_ms)
{
    char length[24];
    bool is_dead = f->kind == FIELD_STATE && reply_is(value, "dead");
    bool is_done = f->kind == FIELD_STATE && reply_is(value, "done");

    switch (f->kind) {
    case FIELD_INSTANT:
        fields_put_instant(reply_int(value), now_ms);
        break;
    case FIELD_LENGTH:
        out_printf("%s", text_duration(reply_int(value), length));
        break;
    case FIELD_STATE:
        out_printf("%s", out_style(is_dead ? OUT_BAD : is_done ? OUT_GOOD : OUT_PLAIN));
        out_text(reply_str(value), reply_len(value));
        out_printf("%s", out_style(OUT_PLAIN));
        break;
    case FIELD_TEXT:
    case FIELD_NUMBER:
        out_text(reply_str(value), reply_len(value));
        break;
    }
    out_printf("\n");
}

void fields_show(const struct field *fields, size_t n, const struct reply *r, int64_t now_ms)
{
    for (size_t i = 0; i < n; i++) {
        const struct reply *value = reply_named(r, fields[i].name);

        if (value == NULL)
            continue;
        out_label(fields[i].label);
        put_value(&fields[i], value, now_ms);
    }
}
