#include "cli/health_options.h"

#include "base/text.h"

static int read_span(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err)
{
    const char *value = cli_value(cli, option);

    *ret_ms = -1;
    if (value == NULL || text_parse_duration(value, ret_ms) == 0)
        return 0;
    return err_set(err, ERR_USAGE, "--%s '%.40s' is no span: 30s, 5m, 1h30m", option, value);
}

int health_options_read(struct health_limits *l, const struct cli *cli, struct err *err)
{
    const char *dead = cli_value(cli, "dead");

    l->dead = -1;
    if (read_span(cli, "late", &l->late_ms, err) < 0 ||
        read_span(cli, "parked", &l->parked_ms, err) < 0 ||
        read_span(cli, "paused", &l->paused_ms, err) < 0)
        return -1;
    if (dead != NULL && text_parse_int(dead, 0, INT64_MAX, &l->dead) < 0)
        return err_set(err, ERR_USAGE, "--dead '%.40s' is no number from 0 on", dead);
    return 0;
}
