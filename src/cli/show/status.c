#include "cli/show/status.h"

#include <string.h>

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
