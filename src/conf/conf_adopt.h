/* `adopt` of a queue: the delay queue of another program whose members become its jobs. */
#ifndef LATER_CONF_CONF_ADOPT_H
#define LATER_CONF_CONF_ADOPT_H

#include "conf/conf.h"

#define CONF_ADOPT_MAX 64 /* queues of a daemon that adopt one */

/* Check a queue, and that no queue before it adopts the same. -1 with err and the path of the row
 * to blame in *ret_path. */
int conf_queue_check_adopt(const struct conf *conf, const struct conf_queue *queue,
                           const char **ret_path, struct err *err);

#endif
