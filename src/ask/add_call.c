#include "ask/add_call.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

int add_token(struct ask_call *call, char token[ADD_TOKEN], struct err *err)
{
    unsigned char random[ADD_TOKEN / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_sys(err, errno, "cannot make a token");
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(token + 2 * i, 3, "%02x", random[i]);
    ask_call_puts(call, "token");
    ask_call_puts(call, token);
    return 0;
}

struct reply *add_call(struct ask_server *s, const char *function, const struct ask_call *call,
                       struct err *err)
{
    struct err again = ERR_INIT;
    struct reply *r;

    r = ask_fcall(s, function, call, err);
    if (r != NULL || err->code != ERR_UNAVAILABLE)
        return r;
    if (s->client == NULL) /* nothing was sent */
        return NULL;
    ask_disconnect(s);
    r = ask_fcall(s, function, call, &again);
    if (r == NULL && again.code != ERR_UNAVAILABLE)
        *err = again;
    return r;
}
