#include "cli/each_shard.h"

#include "ask/shards.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

/* A worker is in one shard, and refused by the others. */
static bool is_missing(const struct err *err)
{
    return err->code == ERR_INPUT || ask_is_refusal(err, "ELATER_WORKER");
}

static int run_all(struct cli *cli, int (*run)(struct cli *cli, struct err *err), bool is_told,
                   struct err *err)
{
    int worst = 0, missing = 0;

    if (ask_target(&cli->server, err) < 0)
        return -1;
    for (int i = 0; i < shards_count(&cli->server) && !out_has_failed(); i++) {
        int status;

        shards_use(&cli->server, i);
        if (cli->server.target.shards > 0 && is_told) {
            json_mark_shard(i);
            out_heading(cli->json ? NULL : cli->server.target.ns);
        }
        *err = (struct err)ERR_INIT;
        status = run(cli, err);
        if (status < 0 && (!is_missing(err) || missing == shards_count(&cli->server) - 1))
            return -1;
        missing += status < 0;
        worst = status > worst ? status : worst;
    }
    return worst;
}

int each_shard(struct cli *cli, int (*run)(struct cli *cli, struct err *err), struct err *err)
{
    return run_all(cli, run, true, err);
}

int each_shard_plain(struct cli *cli, int (*run)(struct cli *cli, struct err *err), struct err *err)
{
    return run_all(cli, run, false, err);
}
