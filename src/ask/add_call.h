/*
 * A call that adds jobs once. When the link breaks after it was sent, nobody knows whether they
 * were added. Since each such call carries a token, asking again on a fresh connection is safe:
 * what was added is answered with its ids instead of being added twice.
 */
#ifndef LATER_ASK_ADD_CALL_H
#define LATER_ASK_ADD_CALL_H

#include "ask/ask.h"

#define ADD_TOKEN 33 /* bytes of a token, with its NUL */

/* Append a new token, which must stay until the call. 0 or -1. */
int add_token(struct ask_call *call, char token[ADD_TOKEN], struct err *err);

/* Connect and call, once more if the answer is lost. The caller frees the reply; NULL with err. */
struct reply *add_call(struct ask_server *s, const char *function, const struct ask_call *call,
                       struct err *err);

#endif
