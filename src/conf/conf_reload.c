/* What a reload may change of a configuration in force, and what only a restart does. */
#include "conf/conf.h"

#include "conf/conf_row.h"
#include "conf/conf_value.h"

void conf_needs_restart(const struct conf *was, const struct conf *is, struct buf *out)
{
    for (size_t i = 0; i < CONF_TOP_ROWS; i++) {
        const struct conf_row *row = &conf_top_rows[i];

        if (row->is_reloaded || conf_value_is_equal(row, (const char *)was + row->offset,
                                                    (const char *)is + row->offset))
            continue;
        buf_printf(out, "%s%s", out->len > 0 ? ", " : "", row->path);
    }
}

void conf_keep_fixed(struct conf *was, struct conf *is)
{
#define SWAP_yes(type, name)
#define SWAP_no(type, name)                                                                        \
    {                                                                                              \
        conf_##type fixed = was->name;                                                             \
                                                                                                   \
        was->name = is->name;                                                                      \
        is->name = fixed;                                                                          \
    }
#define TOP(name, path, type, def, min, max, reload, prose) SWAP_##reload(type, name)
#include "conf/conf.def"
#undef SWAP_yes
#undef SWAP_no
}
