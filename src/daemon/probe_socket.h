/*
 * Answers `later health --live` and `--ready`: whoever connects to the abstract socket
 * `laterd/NAMESPACE/PID-RANDOM` is told in one line how this daemon stands, by the event loop and
 * by nothing else, so that an answer proves that it turns. Needs no file, no Redis, no rights.
 *
 * Nothing is read from a caller and none is kept: the line fits into the socket, it is sent and the
 * socket is closed. Anybody on the host may ask, so the line has no secret; however many ask, they
 * cost a bounded part of the loop's time. Main thread.
 */
#ifndef LATER_DAEMON_PROBE_SOCKET_H
#define LATER_DAEMON_PROBE_SOCKET_H

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

struct probe_socket;

/* Append how things stand: words key=value, without a line end. */
typedef void probe_socket_f(void *arg, struct buf *line);

/* NULL: err says why there is no socket. */
struct probe_socket *probe_socket_new(struct loop *loop, const char *ns, probe_socket_f *say,
                                      void *arg, struct err *err);
void probe_socket_free(struct probe_socket *l); /* NULL is fine */

#endif
