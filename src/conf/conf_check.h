/*
 * Checks that the settings of one queue go together, and those of shards. Pure.
 */
#ifndef LATER_CONF_CONF_CHECK_H
#define LATER_CONF_CONF_CHECK_H

#include "base/err.h"
#include "conf/conf.h"

/*
 * 0, or -1 with code CONFIG and the paths of the two rows that do not go together (or the same one
 * twice); the caller adds where they were written. The defaults may be incomplete.
 */
int conf_queue_check(const struct conf *conf, const struct conf_queue *q, const char **ret_path,
                     const char **ret_other, struct err *err);

/* 0, or -1 with code CONFIG: shards and shard do not go together, or not with the rest. */
int conf_shards_check(const struct conf *conf, struct err *err);

#endif
