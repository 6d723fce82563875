/*
 * Answers `later health --live` and `--ready`. A caller connects to the abstract socket
 * `laterd/NAMESPACE/PID-RANDOM` and gets one line with the status of this daemon. Only the event
 * loop answers, so an answer proves that the loop runs. It needs no file, no Redis and no rights.
 *
 * Nothing is read from a caller, and no caller is kept: the line fits into the socket, it is sent,
 * and the socket is closed. Anybody on the host may ask, so the line has no secret. However many
 * ask, they cost a bounded part of the loop's time. Main thread.
 */
#ifndef LATER_DAEMON_PROBE_SOCKET_H
#define LATER_DAEMON_PROBE_SOCKET_H

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

struct probe_socket;

/* Append the status as words key=value, without a line end. */
typedef void probe_socket_f(void *arg, struct buf *line);

/* NULL: err says why there is no socket. */
struct probe_socket *probe_socket_new(struct loop *loop, const char *ns, probe_socket_f *say,
                                      void *arg, struct err *err);
void probe_socket_free(struct probe_socket *l); /* NULL is fine */

#endif
