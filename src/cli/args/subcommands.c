#include "cli/args/subcommands.h"

#include <string.h>

#include "base/text.h"

#define MOST 24

static bool takes(const struct subcommand *s, const char *option)
{
    for (size_t i = 0; s->options[i] != NULL; i++) {
        if (strcmp(s->options[i], option) == 0)
            return true;
    }
    return false;
}

static int refuse(const struct cli *cli, const struct subcommand *all, struct err *err)
{
    const char *names[MOST + 1] = {NULL}, *near;
    CLEANUP_BUF struct buf list = BUF_INIT;

    for (size_t i = 0; i < MOST && all[i].name != NULL; i++) {
        names[i] = all[i].name;
        buf_printf(&list, "%s%s", i == 0 ? "" : all[i + 1].name != NULL ? ", " : " or ", names[i]);
    }
    near = text_nearest(cli->argv[0], names);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "later %s has no such word: did you mean %s?",
                       cli->verb->name, near);
    return err_set(err, ERR_USAGE, "write later %s %s", cli->verb->name, buf_str(&list));
}

int subcommands_run(struct cli *cli, const struct subcommand *all, struct err *err)
{
    const struct cli_option *o = cli->verb->options;
    const struct subcommand *s = all;

    while (s->name != NULL && strcmp(cli->argv[0], s->name) != 0)
        s++;
    if (s->name == NULL)
        return refuse(cli, all, err);
    for (; o != NULL && o->name != NULL; o++) {
        if (cli_value(cli, o->name) != NULL && !takes(s, o->name))
            return err_set(err, ERR_USAGE, "--%s does not belong to later %s %s", o->name,
                           cli->verb->name, s->name);
    }
    if (cli->argc - 1 < s->min || cli->argc - 1 > s->max)
        return err_set(err, ERR_USAGE, "later %s %s takes %s", cli->verb->name, s->name,
                       s->operands);
    return s->run(cli, err);
}
