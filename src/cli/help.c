#include "cli/help.h"

#include <stdio.h>

#include "cli/args.h"
#include "cli/out.h"
#include "lua/lua_lib.h"

static void put_options(const struct cli_option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        char left[64], letter[8] = "";

        if (args_letter(o->name) != '\0')
            (void)snprintf(letter, sizeof(letter), "-%c, ", args_letter(o->name));
        (void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->arg != NULL ? " " : "",
                       o->arg != NULL ? o->arg : "");
        out_printf("  %-20s  %s\n", left, o->prose);
    }
}

static void put_title(const char *title)
{
    out_printf("\n%s%s%s\n", out_style(OUT_BOLD), title, out_style(OUT_PLAIN));
}

int help_all(void)
{
    out_printf(
        "usage: later [OPTIONS] VERB ...\n\nPut jobs into laterd's queues, and look after them.\n");
    put_title("Verbs");
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        out_printf("  %-12s  %s\n", cli_verbs[i]->name, cli_verbs[i]->brief);
    out_printf("  %-12s  %s\n", "help", "show this, or help on one verb: later help VERB");
    put_title("Options of every verb");
    put_options(args_globals);
    put_title("Which server");
    out_printf(
        "  --redis or --config, else LATER_REDIS_URL, else ~/.config/later.yaml, else the\n"
        "  daemon's configuration, else redis://127.0.0.1:6379. The namespace: --namespace,\n"
        "  LATER_NAMESPACE or that file. A password: redis_password_file, or REDISCLI_AUTH\n"
        "  in the environment.\n");
    put_title("Exit status");
    out_printf("  0 fine, 1 refused or limited, 64 wrong arguments, 65 bad input, 66 no such job,\n"
               "  69 Redis cannot be reached, 75 try again later, 77 not allowed, 78 bad\n"
               "  configuration.\n");
    return 0;
}

int help_verb(const struct cli_verb *verb)
{
    out_printf("usage: later %s%s%s%s\n\n%s\n", verb->name,
               verb->options != NULL ? " [OPTIONS]" : "", verb->synopsis[0] != '\0' ? " " : "",
               verb->synopsis, verb->prose);
    if (verb->options != NULL) {
        put_title("Options");
        put_options(verb->options);
    }
    put_title("Options of every verb");
    put_options(args_globals);
    return 0;
}

int help_version(void)
{
    out_printf("later " PACKAGE_VERSION " (function library %ld)\n", lua_lib_number);
    return 0;
}
