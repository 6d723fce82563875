/* Where the page listens: ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH. No names: what is listened at
 * does not depend on a resolver. */
#ifndef LATER_WEB_LISTEN_H
#define LATER_WEB_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

/* A socket that listens there, non-blocking. -1 with err (CONFIG: no such address; UNAVAILABLE). */
int listen_at(const char *address, struct err *err);
/* May nobody but programs of this host reach it? */
bool listen_is_local(const char *address);
bool listen_is_unix(const char *address);

#endif
