#include "cli/confirm.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define DEFAULT_MS 1000
#define LONGEST_MS 3600000

int confirm_parse(const struct cli *cli, struct confirm *ret, struct err *err)
{
    const char *replicas = cli_value(cli, "replicas"), *within = cli_value(cli, "confirm");

    *ret = (struct confirm){.ms = DEFAULT_MS, .is_fsync = cli_value(cli, "fsync") != NULL};
    if (replicas == NULL && (within != NULL || ret->is_fsync))
        return err_set(err, ERR_USAGE, "--confirm and --fsync go with --replicas N");
    if (replicas != NULL && text_parse_int(replicas, 1, 100, &ret->replicas) < 0)
        return err_set(err, ERR_USAGE, "--replicas '%.40s' is not a number from 1 to 100",
                       replicas);
    if (within != NULL &&
        (text_parse_duration(within, &ret->ms) < 0 || ret->ms < 1 || ret->ms > LONGEST_MS))
        return err_set(err, ERR_USAGE, "--confirm '%.40s' is not a duration from 1ms to 1h",
                       within);
    return 0;
}

/* WAIT says how many replicas; WAITAOF [our own disk, how many replicas]. */
static bool is_enough(const struct confirm *c, const struct reply *r, int64_t *ret_n)
{
    *ret_n = c->is_fsync ? reply_int(reply_at(r, 1)) : reply_int(r);
    return *ret_n >= c->replicas && (!c->is_fsync || reply_int(reply_at(r, 0)) >= 1);
}

int confirm_wait(struct cli *cli, const struct confirm *c, const char *id, struct err *err)
{
    char replicas[24], ms[24];
    const char *wait[] = {"WAIT", replicas, ms}, *wait_disk[] = {"WAITAOF", "1", replicas, ms};
    struct reply *r;
    bool has_enough;
    int64_t n;

    (void)snprintf(replicas, sizeof(replicas), "%lld", (long long)c->replicas);
    (void)snprintf(ms, sizeof(ms), "%lld", (long long)c->ms);
    client_set_timeout(cli->server.client, cli->server.target.timeout_ms + c->ms);
    r = c->is_fsync ? client_call(cli->server.client, 4, wait_disk, NULL, err)
                    : client_call(cli->server.client, 3, wait, NULL, err);
    if (!client_is_broken(cli->server.client))
        client_set_timeout(cli->server.client, cli->server.target.timeout_ms);
    if (r == NULL) {
        const char *cure = strstr(err->text, "unknown command") != NULL && c->is_fsync
                               ? " (--fsync needs Redis 7.2)"
                               : "";
        char why[160];

        text_copy(why, sizeof(why), err->text);
        return err_set(err, ERR_TEMP, "job %.40s was added, but nobody confirms it: %.120s%s", id,
                       why, cure);
    }
    has_enough = is_enough(c, r, &n);
    reply_free(r);
    if (has_enough)
        return 0;
    return err_set(
        err, ERR_TEMP,
        "job %.40s was added, but %lld of %lld replicas confirmed it within %lld ms%s: a "
        "failover now may lose it",
        id, (long long)n, (long long)c->replicas, (long long)c->ms,
        c->is_fsync ? " (on disk, as the master has to)" : "");
}
