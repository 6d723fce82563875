#include "cli/show/status.h"

#include <string.h>

#include "base/text.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

void status_show(const struct cli *cli, const char *what, const char *name, const char *status)
{
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, what, name, strlen(name));
        json_put_text(line, "status", status, strlen(status));
        json_print(line);
        return;
    }
    out_text(name, strlen(name));
    out_printf(" ");
    out_text(status, strlen(status));
    out_printf("\n");
}

void status_show_again(const struct cli *cli, const char *what, const char *name,
                       const char *status, const char *again)
{
    bool is_again = !cli->json && strcmp(status, "repeated") == 0;

    status_show(cli, what, name, is_again ? again : status);
}

int status_deleted(const struct cli *cli, bool was_there, const char *kind, const char *name,
                   const char *list, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    if (was_there) {
        status_show(cli, "name", name, "deleted");
        return 0;
    }
    text_escape(&safe, name, strlen(name));
    text_cut(&safe, 64);
    return err_set(err, ERR_INPUT, "there is no %s %s: %s lists them", kind, buf_str(&safe), list);
}
