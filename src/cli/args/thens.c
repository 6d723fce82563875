#include "cli/args/thens.h"

#include <string.h>

#include "base/mem.h"

#define THENS_MAX 16 /* more than the library takes: it says how many that is */

int thens_add(struct ask_call *call, const struct cli *cli, char **ret_text, struct err *err)
{
    const char *queue;
    char *rest;
    int n = 0;

    if (cli_value(cli, "then") == NULL)
        return 0;
    *ret_text = rest = mem_strdup(cli_value(cli, "then"));
    while ((queue = strsep(&rest, ",")) != NULL) {
        if (n++ == THENS_MAX)
            return err_set(err, ERR_USAGE, "--then names more than %d queues", THENS_MAX);
        ask_call_puts(call, "then");
        ask_call_puts(call, queue);
    }
    return 0;
}
