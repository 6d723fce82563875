/* later-web: the page, its API, and the connections to Redis behind them. */
#ifndef LATER_WEB_WEB_H
#define LATER_WEB_WEB_H

#include "ask/target.h"
#include "base/err.h"
#include "conf/conf.h"
#include "loop/loop.h"

struct web;

/* conf and flags stay the caller's. NULL with err: a bad setting, or the address is taken. Redis
 * need not answer yet. */
struct web *web_new(struct loop *loop, const struct conf *conf, const struct target_flags *flags,
                    struct err *err);
void web_free(struct web *w);

/* The token that the page asks for; "" if none is. */
const char *web_token(const struct web *w);

#endif
