#include "conf/conf_check.h"

#include <string.h>

#include "base/shard.h"
#include "base/text.h"
#include "conf/conf_adopt.h"
#include "conf/conf_gates.h"

static bool is_in(const struct conf_ints *ints, int v)
{
    for (size_t i = 0; i < ints->n; i++)
        if (ints->at[i] == v)
            return true;
    return false;
}

static int check_backoff(const struct conf_queue *q, struct err *err)
{
    char first[24], max[24];

    if (q->backoff_max >= q->backoff_first)
        return 0;
    return err_set(err, ERR_CONFIG, "backoff.max (%s) is under backoff.first (%s)",
                   text_duration(q->backoff_max, max), text_duration(q->backoff_first, first));
}

static int check_exits(const struct conf_queue *q, struct err *err)
{
    for (size_t i = 0; i < q->exit_dead.n; i++)
        if (is_in(&q->exit_retry, q->exit_dead.at[i]))
            return err_set(err, ERR_CONFIG, "exit status %d is in exit_dead and in exit_retry",
                           q->exit_dead.at[i]);
    return 0;
}

#define MEMORY_MIN 1048576

static int check_memory(const struct conf_queue *q, struct err *err)
{
    char size[24];

    if (q->memory == 0 || q->memory >= MEMORY_MIN)
        return 0;
    return err_set(err, ERR_CONFIG, "memory: %s is less than any program needs: give 1MiB or more",
                   text_size(q->memory, size));
}

static int check_isolation(const struct conf_queue *queue, const char **ret_path, struct err *err)
{
    const struct {
        const char *path;
        bool is_set;
    } own[] = {{"env", queue->env.n > 0},
               {"env_file", queue->env_file[0] != '\0'},
               {"user", queue->user[0] != '\0'},
               {"group", queue->group[0] != '\0'},
               {"umask", queue->umask[0] != '\0'},
               {"cwd", queue->cwd[0] != '\0'},
               {"nice", queue->nice != 0},
               {"rlimits", queue->rlimits.n > 0},
               {"memory", queue->memory != 0},
               {"cpu", queue->cpu != 0},
               {"pids", queue->pids != 0},
               {"no_new_privileges", queue->no_new_privileges != 0},
               {"private_tmp", queue->private_tmp != 0}};

    if (queue->mode != CONF_MODE_PLUGIN)
        return 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i].is_set) {
            *ret_path = own[i].path;
            return err_set(
                err, ERR_CONFIG,
                "%s: a plug-in has no process of its own: that needs mode exec or stream",
                own[i].path);
        }
    return 0;
}

static int check_filters(const struct conf *conf, const struct conf_queue *q, struct err *err)
{
    if (q->filters.n == 0)
        return 0;
    if (q->mode != CONF_MODE_EXEC)
        return err_set(err, ERR_CONFIG,
                       "filters: they stand before a process of each job: that needs mode exec");
    return conf->filters_dir[0] != '\0'
               ? 0
               : err_set(err, ERR_CONFIG,
                         "filters: filters_dir is empty: name the folder they are in");
}

int conf_queue_check(const struct conf *conf, const struct conf_queue *q, const char **ret_path,
                     const char **ret_other, struct err *err)
{
    bool is_queue = q != &conf->defaults;

    if (check_backoff(q, err) < 0) {
        *ret_path = "backoff.max";
        *ret_other = "backoff.first";
    } else if (check_exits(q, err) < 0) {
        *ret_path = "exit_dead";
        *ret_other = "exit_retry";
    } else if (check_memory(q, err) < 0) {
        *ret_path = *ret_other = "memory";
    } else if (check_filters(conf, q, err) < 0) {
        *ret_path = "filters";
        *ret_other = "mode";
    } else if (is_queue && q->mode == CONF_MODE_PLUGIN && q->handler.n == 0) {
        (void)err_set(err, ERR_CONFIG,
                      "mode: plugin needs a handler: [/path/to/it.so, argument, ...]");
        *ret_path = "mode";
        *ret_other = "handler";
    } else if (conf_queue_check_gates(conf, q, ret_path, err) < 0 ||
               conf_queue_check_adopt(conf, q, ret_path, err) < 0 ||
               check_isolation(q, ret_path, err) < 0) {
        *ret_other = *ret_path;
    } else {
        return 0;
    }
    return -1;
}

int conf_shards_check(const struct conf *conf, struct err *err)
{
    if (conf->shard >= 0 && conf->shards == 0)
        return err_set(err, ERR_CONFIG, "shard: %d goes with shards:, which is not set",
                       (int)conf->shard);
    if (conf->shard >= 0 && conf->shard >= conf->shards)
        return err_set(err, ERR_CONFIG, "shard: %d is not one of 0 to %d (shards: %d)",
                       (int)conf->shard, (int)conf->shards - 1, (int)conf->shards);
    if (conf->shards > 0 && !shard_fits(conf->namespace))
        return err_set(err, ERR_CONFIG,
                       "shards: the names of the shards would be too long: give a namespace of at "
                       "most %d letters",
                       SHARD_BASE_LONG);
    if (conf->shards > 0 && strcmp(conf->redis, "embedded") == 0)
        return err_set(err, ERR_CONFIG,
                       "shards: all of them are at one address, and redis: embedded is a server of "
                       "each daemon's own");
    return 0;
}
