#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "lua/lua_lib.h"
#include "redis/lib.h"
#include "redis/preflight.h"

static void show_json(const struct lib_state *state)
{
    json_t *line = json_object();

    json_put_int(line, "library", state->number);
    json_put_text(line, "hash", state->hash, strlen(state->hash));
    json_put_int(line, "protocol", state->protocol);
    (void)json_object_set_new(line, "loaded", json_boolean(state->loaded));
    (void)json_object_set_new(line, "pinned", json_boolean(state->pinned));
    json_print(line);
}

static void show(const struct lib_state *state)
{
    bool is_ours = state->number == lua_lib_number && strcmp(state->hash, lua_lib_hash) == 0;

    out_printf("library %ld (", state->number);
    out_text(state->hash, strlen(state->hash));
    out_printf("), protocol %ld: %s%s\n", state->protocol,
               state->loaded ? "loaded" : "was there already", state->pinned ? ", pinned" : "");
    if (is_ours)
        return;
    out_printf("this program has library %ld (%s)%s\n", lua_lib_number, lua_lib_hash,
               state->number > lua_lib_number ? ": --downgrade loads it and pins it"
               : state->pinned                ? ": --force loads it and ends the pin"
                                              : ": --force loads it");
}

/* An error of the library cannot say which command the server does not know. */
static void tell_renamed(struct cli *cli)
{
    struct preflight found = {.n = 0};
    struct err ignored = ERR_INIT;

    (void)preflight_rights(&found, cli->server.client, cli->server.target.ns, &ignored);
    for (size_t i = 0; i < found.n; i++) {
        if (strcmp(found.at[i].check, "commands") == 0)
            (void)fprintf(stderr, "later: %s\n", found.at[i].text);
    }
}

static int run(struct cli *cli, struct err *err)
{
    bool is_forced = cli_value(cli, "force") != NULL;
    bool is_downgrade = cli_value(cli, "downgrade") != NULL;
    enum lib_mode mode = is_downgrade ? LIB_DOWNGRADE : is_forced ? LIB_FORCE : LIB_ENSURE;
    struct lib_state state;

    if (cli_value(cli, "print") != NULL) {
        out_bytes(lua_lib_text, strlen(lua_lib_text));
        return 0;
    }
    if (is_forced && is_downgrade)
        return err_set(err, ERR_USAGE, "give either --force or --downgrade");
    if (ask_connect(&cli->server, err) < 0 ||
        lib_ensure(cli->server.client, cli->server.target.ns, mode, &state, err) < 0)
        return -1;
    if (cli->json)
        show_json(&state);
    else
        show(&state);
    tell_renamed(cli);
    return 0;
}

static const struct cli_option options[] = {
    {"force", NULL, "also replace one of the same number with another text, or a pinned one"},
    {"downgrade", NULL, "put this program's library instead of a newer one, and pin it"},
    {"print", NULL, "only print the library, for redis-cli -x FUNCTION LOAD"},
    {NULL, NULL, NULL},
};

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
}

const struct cli_verb cmd_setup = {
    "setup",
    "",
    "load the function library into Redis",
    "Load the function library into Redis, unless the same or a newer one is there. The\n"
    "daemons and this command do so by themselves where they may; this is for servers on\n"
    "which only an administrator may load functions.",
    0,
    0,
    false,
    options,
    run_each,
};
