#include "conf/conf_adopt.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "conf/conf_row.h"

/* A guess at the unit could be wrong by a factor of a thousand. */
static int check_given(const struct conf_queue *q, const char **ret_path, struct err *err)
{
    bool has_zset = q->adopt_zset[0] != '\0', has_unit = q->adopt_unit != CONF_ADOPT_NONE;

    *ret_path = has_unit ? "adopt.unit" : "adopt.bodies";
    if (!has_zset && (has_unit || q->adopt_bodies[0] != '\0'))
        return err_set(err, ERR_CONFIG, "adopt.zset is missing: the sorted set of that queue");
    *ret_path = "adopt.zset";
    if (has_zset && !has_unit)
        return err_set(err, ERR_CONFIG,
                       "adopt.unit is missing: are the scores in s (seconds) or in ms?");
    return 0;
}

static bool is_ours(const struct conf *conf, const char *key)
{
    CLEANUP_FREE char *root = mem_printf("later:{%s}:", conf->root);

    return strncmp(key, root, strlen(root)) == 0;
}

static int check_keys(const struct conf *conf, const struct conf_queue *q, const char **ret_path,
                      struct err *err)
{
    *ret_path = "adopt.zset";
    if (is_ours(conf, q->adopt_zset))
        return err_set(err, ERR_CONFIG, "adopt.zset: %s belongs to this namespace of laterd",
                       conf_show(q->adopt_zset).s);
    *ret_path = "adopt.bodies";
    if (is_ours(conf, q->adopt_bodies))
        return err_set(err, ERR_CONFIG, "adopt.bodies: %s belongs to this namespace of laterd",
                       conf_show(q->adopt_bodies).s);
    if (strcmp(q->adopt_zset, q->adopt_bodies) == 0)
        return err_set(err, ERR_CONFIG, "adopt.bodies: %s is the sorted set: name the hash",
                       conf_show(q->adopt_bodies).s);
    return 0;
}

/* The queues behind this one are not loaded yet. */
static int check_others(const struct conf *conf, const struct conf_queue *q, struct err *err)
{
    size_t n = 1;

    for (const struct conf_queue *other = conf->queues; other != q; other++) {
        n += other->adopt_zset[0] != '\0';
        if (strcmp(other->adopt_zset, q->adopt_zset) == 0)
            return err_set(err, ERR_CONFIG, "adopt.zset: queue %s adopts %s already", other->name,
                           conf_show(q->adopt_zset).s);
    }
    if (n > CONF_ADOPT_MAX)
        return err_set(err, ERR_CONFIG, "adopt.zset: a daemon adopts at most %d queues",
                       CONF_ADOPT_MAX);
    return 0;
}

int conf_queue_check_adopt(const struct conf *conf, const struct conf_queue *queue,
                           const char **ret_path, struct err *err)
{
    if (queue == &conf->defaults)
        return 0;
    if (check_given(queue, ret_path, err) < 0)
        return -1;
    if (queue->adopt_zset[0] == '\0')
        return 0;
    if (check_keys(conf, queue, ret_path, err) < 0)
        return -1;
    *ret_path = "adopt.zset";
    return check_others(conf, queue, err);
}
