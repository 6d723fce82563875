/*
 * The abstract socket `laterd/NAMESPACE/PID-RANDOM/steps`, by which handlers keep their steps
 * (job/step.h). A handler needs no rights in Redis and no password for it: with the token of its
 * attempt it reaches what its own job has kept, and nothing else. An abstract socket has no file:
 * a handler that runs as another user or sees other files reaches it, too.
 *
 * Anybody on the host may connect, so callers are bounded: by number, by bytes, and by the time in
 * which they have to send their request. Main thread.
 */
#ifndef LATER_DAEMON_STEP_SOCKET_H
#define LATER_DAEMON_STEP_SOCKET_H

#include "base/err.h"
#include "job/step.h"
#include "loop/loop.h"

struct step_socket;
struct step_caller;

/* A request has come whole. It has to be answered by one of the functions below, now or later.
 * output: valid until this returns. */
typedef void step_socket_f(void *arg, struct step_caller *caller,
                           const struct step_request *request, const char *output);

/* NULL: err says why there is no socket. */
struct step_socket *step_socket_new(struct loop *loop, const char *ns, step_socket_f *cb, void *arg,
                                    struct err *err);
void step_socket_free(struct step_socket *s); /* NULL is fine */
/* Without the leading NUL. */
const char *step_socket_name(const struct step_socket *s);

/* word: run, gone, refused or again; text: "" for run. Frees the caller. */
void step_caller_say(struct step_caller *c, const char *word, const char *text);
/* kept, with these bytes. Frees the caller. */
void step_caller_kept(struct step_caller *c, const char *output, size_t n);
/* All whose request is not answered yet are told `again`. */
void step_socket_say_again(struct step_socket *s, const char *text);

#endif
