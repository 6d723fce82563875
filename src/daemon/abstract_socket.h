/*
 * A socket of this daemon with an abstract name, `laterd/NAMESPACE/PID-RANDOM` and what follows: it
 * has no file, needs no rights, and ends with the process.
 */
#ifndef LATER_DAEMON_ABSTRACT_SOCKET_H
#define LATER_DAEMON_ABSTRACT_SOCKET_H

#include <sys/un.h>

#include "base/err.h"

#define ABSTRACT_SOCKET_NAME (sizeof(((struct sockaddr_un *)0)->sun_path))

/*
 * Listen under a new name, which goes to `name` without its leading NUL. behind: the end of the
 * name; what: whose socket it is, for errors. -> a descriptor that does not block, or -1 with err.
 */
int abstract_socket_listen(const char *ns, const char *behind, const char *what,
                           char name[ABSTRACT_SOCKET_NAME], struct err *err);

#endif
