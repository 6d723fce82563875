#include "cli/cli.h"

#include <string.h>

#include "base/text.h"

const char *cli_value(const struct cli *cli, const char *option)
{
    const struct cli_option *o = cli->verb->options;

    for (size_t i = 0; o != NULL && o[i].name != NULL; i++)
        if (strcmp(o[i].name, option) == 0)
            return cli->value[i];
    return NULL;
}

int cli_duration(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err)
{
    const char *text = cli_value(cli, option);

    if (text == NULL || text_parse_duration(text, ret_ms) == 0)
        return 0;
    return err_set(err, ERR_USAGE, "--%s %.40s is no duration: write it like 250ms 10s 5m 2h 7d",
                   option, text);
}

void cli_call_options(struct ask_call *call, const struct cli *cli, const char *const *options)
{
    for (; *options != NULL; options++) {
        const char *value = cli_value(cli, *options);

        if (value == NULL)
            continue;
        ask_call_puts(call, *options);
        ask_call_puts(call, value);
    }
}
